"""The power fails while a graph is looked after: optimized, cleaned up, copied, brought to a newer format."""

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph.core.errors import CloneUnfinished, GraphNotFound
from tests.models.histories.operations import DropPeople, Load, Operation, PutNote, PutPerson, SetAge
from tests.models.histories.programs import Program
from tests.protocol.powercut.cuts import Bench
from tests.protocol.powercut.disk import VARIANTS, Disk
from tests.protocol.powercut.test_powercut import quietly
from tests.protocol.test_clone_crash import new_source
from tests.protocol.test_migration_crash import assert_whole
from tests.support.hollow import quiet
from tests.support.older_graphs import write_older_graph
from tests.support.seeds import fixed_seed

WRITES: list[Operation] = [
    PutPerson("ada", 36, "t1"),
    PutPerson("ben", None, "t2", "ada", "k1"),
    Load("append", {"cy": (50, "t3"), "dot": (20, "t4")}, {"red": 3}, ("n1",), {"L1": ("cy", "ada")}, {}),
    SetAge("ada", 0, 37),
    DropPeople("cy", 0),
    PutNote("last"),
]
DRAWS = {"some": 6, "every": 220}  # images of one moment, each with another part of what was not safe
EVERY = [pytest.param("some", marks=pytest.mark.slow), pytest.param("every", marks=pytest.mark.powercut)]


@pytest.fixture(params=EVERY)
def amount(request: pytest.FixtureRequest) -> str:
    """How much of it is looked at: some, or every cut."""
    return str(request.param)


@pytest.fixture
def bench(tmp_path: Path, amount: str) -> Iterator[Bench]:
    """A graph with a few writes and no upkeep, watched."""
    bench = Bench(tmp_path, stride=1 if amount == "every" else 6)
    with omnigraph.open(bench.root, upkeep=False) as graph:
        for operation in WRITES:
            quietly(bench, graph, operation)
    yield bench
    tally = bench.tally
    told(tally.cuts, tally.images, f"{tally.quarantined} versions quarantined, {tally.recovered} recoveries")


def told(cuts: int, images: int, more: str) -> None:
    """Print what was looked at."""
    sys.stdout.write(
        f"\npowercut: {cuts} cuts, {images} images opened, {more}; 0 acknowledged commits lost\n"
    )


@pytest.mark.case("engine", 294)
def test_every_sync_of_optimize(bench: Bench) -> None:
    def optimize() -> str | None:
        with omnigraph.open(bench.root, upkeep=False) as graph:
            done = graph.optimize()
        assert done.commit is not None
        return done.commit.graph_commit_id

    bench.cut_during(optimize, bench.allowed[-1])


@pytest.mark.case("engine", 294)
def test_what_cleanup_removed_may_come_back_in_part(
    bench: Bench, amount: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No folder is synced for what goes: any part of it may be there again, and nothing misses the rest."""
    monkeypatch.setenv("OMNIGRAPH_READER_GRACE", "0")
    # One table at a time: what others remove meanwhile would go while an image is written.
    monkeypatch.setenv("OMNIGRAPH_MAINTENANCE_CONCURRENCY", "1")
    program = Program(fixed_seed("CRASH_SEED"))
    with omnigraph.open(bench.root, upkeep=False) as graph:
        for _ in range(8):
            quietly(bench, graph, program.next(bench.allowed[-1]))
        graph.optimize()
    disk = Disk(bench.root, bench.folder / "shadow")
    disk.start()

    with disk.watching(lambda: bench.cut_sometimes(disk)), omnigraph.open(bench.root) as graph:
        result = graph.cleanup(keep=1)
        removed = sum(row.old_versions_removed for row in result.tables)

    assert [row.error for row in result.tables if row.error is not None] == []
    assert removed > 0
    for _ in range(DRAWS[amount] // len(VARIANTS) + 1):
        bench.cut(disk)


def images(disk: Disk, folder: Path, seen: list[int], look: Callable[[Path], None]) -> Callable[[], None]:
    """Return what looks at every variant of a cut; `seen` counts cuts and images."""

    def cut() -> None:
        seen[0] += 1
        for variant in VARIANTS:
            image = folder / "images" / "image"  # not beside the disk: what opens an image syncs, too
            disk.image(image, variant, seed=seen[1])
            seen[1] += 1
            try:
                with quiet():
                    look(image)
            except Exception as error:
                raise AssertionError(f"image {seen[1]}, cut {seen[0]}, {variant}") from error
            shutil.rmtree(image, ignore_errors=True)

    return cut


def sometimes(cut: Callable[[], None], stride: int) -> Callable[[], None]:
    """Return what cuts one time in so many."""
    calls = [0]

    def step() -> None:
        calls[0] += 1
        if calls[0] % stride == 0:
            cut()

    return step


def test_every_sync_of_a_copy(tmp_path: Path, amount: str) -> None:
    """What is there is whole, or says that it is not finished; the same command finishes it.

    Most syncs are of one data file each, all alike: every third one is looked at, if all of this is.
    """
    source, target = new_source(tmp_path / "source"), tmp_path / "disk" / "target"
    target.mkdir(parents=True)
    disk = Disk(target, tmp_path / "shadow")
    disk.start()
    finished = [0]
    seen = [0, 0]

    def look(image: Path) -> None:
        try:
            omnigraph.open(image, mode="ro").close()
        except (CloneUnfinished, GraphNotFound):
            omnigraph.clone(str(source), str(image))
        else:
            finished[0] += 1
        assert omnigraph.check_copy(str(source), str(image), deep=True).is_same
        with omnigraph.open(image, durability="process") as graph:
            assert graph.verify().is_whole

    cut = images(disk, tmp_path, seen, look)
    with disk.watching(sometimes(cut, 3 if amount == "every" else 100)):
        omnigraph.clone(str(source), str(target))
    before = finished[0]
    cut()

    assert finished[0] - before == len(VARIANTS), "a copy that was acknowledged is there"
    told(seen[0], seen[1], f"{finished[0]} of them finished")


@pytest.mark.parametrize("stamp", [1, 2, 3])
def test_every_sync_of_a_migration(tmp_path: Path, amount: str, stamp: int) -> None:
    root = write_older_graph(tmp_path / "disk" / "graph", stamp).root
    disk = Disk(root, tmp_path / "shadow")
    disk.start()
    seen = [0, 0]
    cut = images(disk, tmp_path, seen, assert_whole)

    with disk.watching(sometimes(cut, 1 if amount == "every" else 8)):
        omnigraph.open(root).close()
    cut()

    told(seen[0], seen[1], f"from stamp {stamp}")
