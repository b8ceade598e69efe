"""SIGINT and SIGTERM wherever a writer passes: what landed stays, the rest is gone, nothing is half there."""

import random
import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.protocol.interrupts.play import SIGNALS, interrupted, stage
from tests.protocol.interrupts.scenes import SCENES, Scene

pytestmark = pytest.mark.usefixtures("no_syncs")
QUICK = 2  # places of each scene in the quick suite; the seed is fixed


@pytest.mark.case("engine", 363)
@pytest.mark.parametrize("scene", SCENES, ids=str)
def test_a_signal_never_undoes_what_has_landed(scene: Scene, tmp_path: Path) -> None:
    staged = stage(scene, tmp_path)
    chosen = random.Random(scene.name)
    pairs = [(place, number) for place in staged.places for number in SIGNALS]

    for number, (place, sent) in enumerate(chosen.sample(pairs, min(QUICK, len(pairs)))):
        interrupted(staged, place, sent, tmp_path / f"graph-{number}")


@pytest.mark.crash
@pytest.mark.parametrize("scene", SCENES, ids=str)
def test_every_place_and_both_signals(scene: Scene, tmp_path: Path) -> None:
    staged = stage(scene, tmp_path)
    landed: Counter[str] = Counter()
    for place in staged.places:
        for sent in SIGNALS:
            root = tmp_path / f"{place.failpoint}-{place.visit}-{sent.name}"
            landed["landed" if interrupted(staged, place, sent, root) else "did not land"] += 1
    names = {signal.Signals(number).name for number in SIGNALS}
    print(f"\n{scene}: {len(staged.places)} places x {sorted(names)}: {dict(landed)}; 0 lost, 0 half visible")  # noqa: T201
