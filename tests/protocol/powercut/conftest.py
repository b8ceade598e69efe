"""What all power cuts of a run have looked at, told at its end."""

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from tests.protocol.powercut.cuts import Tally

VERBS = ("schema", "indexes", "optimize", "cleanup", "clone", "migration")
IMAGES_MIN = 2_000  # of these verbs in the long forms


@dataclass(slots=True)
class Total:
    """The images of the long forms by verb, and how many had lost something or did not open."""

    images: Counter[str] = field(default_factory=Counter)
    lost: int = 0


@pytest.fixture(scope="session")
def total() -> Iterator[Total]:
    """Count over all tests; the line at the end, and how many images there must be if nothing is left out."""
    total = Total()
    yield total
    if not total.images:
        return
    by_verb = ", ".join(f"{count} {verb}" for verb, count in total.images.most_common())
    sys.stdout.write(f"\npowercut: {total.images.total()} images in all ({by_verb}), {total.lost} lost\n")
    if set(VERBS) <= total.images.keys():
        assert sum(total.images[verb] for verb in VERBS) >= IMAGES_MIN


@pytest.fixture
def tally(request: pytest.FixtureRequest, total: Total) -> Iterator[Tally]:
    """What one test looks at; it says of which verb."""
    tally = Tally()
    yield tally
    if request.node.get_closest_marker("powercut") is not None:
        total.images[tally.verb] += tally.images
        total.lost += tally.lost
