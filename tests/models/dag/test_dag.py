"""The engine against the dictionary model: random histories of branches, writes and merges.

`DAG_SEED` repeats a history of either test; the long test goes on from there, `DAG_COUNT` times.
"""

import os
import random
import tempfile
from collections import Counter
from pathlib import Path

import pytest

from tests.models.dag import model
from tests.models.dag.play import History
from tests.support.seam import patched

HISTORIES = 30
GROUP = 6  # histories of one test: what a test starts and ends with costs as much as half of them
HISTORIES_FUZZ = 5_000
UPKEEP_EVERY = (64, 3)  # commits; the low one for every other history, so that few commits are enough
SEEDS = [int(os.environ["DAG_SEED"])] if "DAG_SEED" in os.environ else range(0, HISTORIES, GROUP)


@pytest.mark.parametrize("first", SEEDS)
def test_the_engine_agrees_with_the_model(tmp_path: Path, first: int) -> None:
    for seed in range(first, first + (1 if "DAG_SEED" in os.environ else GROUP)):
        play(tmp_path / str(seed), seed)


@pytest.mark.fuzz
def test_the_engine_agrees_with_the_model_for_long() -> None:
    first = int(os.environ.get("DAG_SEED", random.randrange(10**9)))
    count = int(os.environ.get("DAG_COUNT", HISTORIES_FUZZ))
    print(f"DAG_SEED={first} DAG_COUNT={count}")  # noqa: T201 - how to repeat the run
    events = Counter[str]()
    for seed in range(first, first + count):
        with tempfile.TemporaryDirectory(prefix="omnigraph-dag-") as folder:
            events += play(Path(folder), seed)
    print(f"{count} histories, no difference: {dict(sorted(events.items()))}")  # noqa: T201 - as above


def test_a_wrong_model_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = model.merge_rows

    def lenient(base: model.Rows, source: model.Rows, target: model.Rows) -> object:
        rows, conflicts = right(base, source, target)
        return rows, {each for each in conflicts if each.kind != "divergent_update"}

    monkeypatch.setattr(model, "merge_rows", lenient)

    with pytest.raises(pytest.fail.Exception, match="divergent_update"):
        [play(tmp_path / str(seed), seed) for seed in range(HISTORIES)]


def test_a_model_with_one_ancestor_of_several_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def newest(self: model.Model, bases: tuple[str, ...]) -> model.Rows:
        return self.commits[bases[-1]].rows

    monkeypatch.setattr(model.Model, "_base", newest)

    with pytest.raises(pytest.fail.Exception, match="DAG_SEED="):
        [play(tmp_path / str(seed), seed) for seed in range(HISTORIES)]


def play(folder: Path, seed: int) -> Counter[str]:
    """Play one history; if it differs, tell all of it."""
    with pytest.MonkeyPatch.context() as patch:
        patched(patch, "omnigraph.operations.upkeep.UPKEEP_INTERVAL", UPKEEP_EVERY[seed % 2])
        history = History(folder, seed)
        try:
            history.play()
        except Exception as error:  # noqa: BLE001 - whatever the engine raises is the finding
            told = "\n".join(f"  {number}: {step}" for number, step in enumerate(history.told))
            pytest.fail(
                f"DAG_SEED={seed} fails at its last step:\n{told}\n{type(error).__name__}: {error}",
                pytrace=False,
            )
        finally:
            history.close()
    return history.events
