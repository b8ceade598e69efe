"""The power fails while a graph is looked after: optimized, cleaned up, copied, brought to a newer format."""

import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph.core.errors import CloneUnfinished, GraphNotFound
from tests.models.histories.operations import (
    ChangeSchema,
    DropPeople,
    Load,
    Operation,
    PutNote,
    PutPerson,
    SetAge,
    apply,
    perform,
)
from tests.models.histories.programs import Program
from tests.protocol.powercut.cuts import Bench, Tally
from tests.protocol.powercut.disk import VARIANTS, Disk
from tests.protocol.powercut.test_order import files_of, is_version
from tests.protocol.powercut.test_powercut import quietly
from tests.protocol.test_clone_crash import chosen, killed, new_source
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
LATER: list[Operation] = [
    Load("append", {"eve": (9, "t6")}, {"blue": None}, ("n2",), {"L2": ("eve", "ada")}, {}),
    SetAge("dot", 0, 21),
    PutNote("later"),
]
INSERT = "query q($n: String) { insert Person { name: $n } }"
DRAWS = {"some": 6, "every": 220}  # images of one moment, each with another part of what was not safe
EVERY = [pytest.param("some", marks=pytest.mark.slow), pytest.param("every", marks=pytest.mark.powercut)]


@pytest.fixture(params=EVERY)
def amount(request: pytest.FixtureRequest) -> str:
    """How much of it is looked at: some, or every cut."""
    return str(request.param)


@pytest.fixture
def bench(tmp_path: Path, amount: str, tally: Tally) -> Iterator[Bench]:
    """A graph with a few writes and no upkeep, watched."""
    bench = Bench(tmp_path, stride=1 if amount == "every" else 10, tally=tally)
    with omnigraph.open(bench.root, upkeep=False) as graph:
        for operation in WRITES:
            quietly(bench, graph, operation)
    yield bench
    told(tally, f"{tally.quarantined} versions quarantined, {tally.recovered} recoveries")


def told(tally: Tally, more: str) -> None:
    """Print what was looked at."""
    sys.stdout.write(
        f"\npowercut: {tally.cuts} cuts, {tally.images} images opened, {more}; {tally.lost} lost\n"
    )


@pytest.mark.case("engine", 294)
def test_every_sync_of_optimize(bench: Bench) -> None:
    bench.tally.verb = "optimize"

    def optimize() -> str | None:
        with omnigraph.open(bench.root, upkeep=False) as graph:
            done = graph.optimize()
        assert done.commit is not None
        return done.commit.graph_commit_id

    bench.cut_during(optimize, bench.allowed[-1])


@pytest.mark.case("engine", 845)
def test_every_sync_of_optimize_of_a_branch(bench: Bench) -> None:
    bench.tally.verb = "optimize"
    contents = bench.allowed[-1]
    with omnigraph.open(bench.root, upkeep=False) as graph:
        graph.create_branch("june")
        for operation in LATER:
            perform(graph, operation, branch="june")
            contents = apply(contents, operation)
    bench.beside["june"] = contents

    def optimize() -> str | None:
        with omnigraph.open(bench.root, upkeep=False) as graph:
            done = graph.optimize(branch="june")
        assert done.commit is not None
        return done.commit.graph_commit_id

    bench.cut_during(optimize, bench.allowed[-1])


@pytest.mark.case("engine", 845)
def test_every_sync_of_a_hard_drop(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A branch keeps what main drops; what nobody shows goes behind the publish, and may come back."""
    monkeypatch.setenv("OMNIGRAPH_MAINTENANCE_CONCURRENCY", "1")  # as of a cleanup
    bench.tally.verb = "schema"
    with omnigraph.open(bench.root, upkeep=False) as graph:
        perform(graph, ChangeSchema(7))
        graph.create_branch("june")
        bench.beside["june"] = bench.allowed[-1]
        for operation in LATER:  # rows whose files hold what is dropped beside what stays
            quietly(bench, graph, operation)
    before = files_of(bench.root)

    def drop() -> str | None:
        with omnigraph.open(bench.root, upkeep=False) as graph:
            return perform(graph, ChangeSchema(0, is_hard=True))

    bench.cut_during(drop, bench.allowed[-1])

    assert any(is_version(path, of_manifest=False) for path in before - files_of(bench.root)), "nothing went"


@pytest.mark.case("engine", 294)
def test_what_cleanup_removed_may_come_back_in_part(
    bench: Bench, amount: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No folder is synced for what goes: any part of it may be there again, and nothing misses the rest."""
    bench.tally.verb = "cleanup"
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


def images(disk: Disk, folder: Path, tally: Tally, look: Callable[[Path], None]) -> Callable[[], None]:
    """Return what looks at every variant of a cut."""

    def cut() -> None:
        tally.cuts += 1
        for variant in VARIANTS:
            image = folder / "images" / "image"  # not beside the disk: what opens an image syncs, too
            disk.image(image, variant, seed=tally.images)
            tally.images += 1
            try:
                with quiet():
                    look(image)
            except Exception as error:
                tally.lost += 1
                raise AssertionError(f"image {tally.images}, cut {tally.cuts}, {variant}") from error
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


@pytest.mark.case("engine", 845)
@pytest.mark.case("engine", 888)
@pytest.mark.parametrize("kind", ["whole", "continued", "past of a branch"])
def test_every_sync_of_a_copy(tmp_path: Path, amount: str, tally: Tally, kind: str) -> None:
    """What is there is whole, or says that it is not finished; the same command finishes it.

    Of a run that was killed before, the files are on the disk and their names are not. Most syncs are of one
    data file each, all alike: every third one is looked at, if all of this is.
    """
    tally.verb = "clone"
    source, target = new_source(tmp_path / "source"), tmp_path / "disk" / "target"
    choice = chosen(source, "from-3") if kind == "past of a branch" else {}
    target.mkdir(parents=True)
    disk = Disk(target, tmp_path / "shadow")
    disk.start()
    if kind == "continued":
        killed(source, target, "clone.before_file=skip:60,exit")
        disk.take_contents()
    finished = [0]

    def look(image: Path) -> None:
        try:
            omnigraph.open(image, mode="ro").close()
        except (CloneUnfinished, GraphNotFound):
            omnigraph.clone(str(source), str(image), **choice)
        else:
            finished[0] += 1
        assert omnigraph.check_copy(str(source), str(image), **choice, deep=True).is_same
        with omnigraph.open(image, durability="process") as graph:
            assert graph.verify().is_whole

    cut = images(disk, tmp_path, tally, look)
    with disk.watching(sometimes(cut, 3 if amount == "every" else 100)):
        omnigraph.clone(str(source), str(target), **choice)
    before = finished[0]
    cut()

    assert finished[0] - before == len(VARIANTS), "a copy that was acknowledged is there"
    told(tally, f"{finished[0]} of them finished")


@pytest.mark.parametrize("stamp", [1, 2, 3])
def test_every_sync_of_a_migration(tmp_path: Path, amount: str, tally: Tally, stamp: int) -> None:
    tally.verb = "migration"
    root = write_older_graph(tmp_path / "disk" / "graph", stamp).root
    disk = Disk(root, tmp_path / "shadow")
    disk.start()
    cut = images(disk, tmp_path, tally, assert_whole)

    with disk.watching(sometimes(cut, 1 if amount == "every" else 8)):
        omnigraph.open(root).close()
    cut()

    told(tally, f"from stamp {stamp}")


@pytest.mark.case("engine", 845)
def test_every_sync_of_the_migration_of_a_branch_by_its_first_write(
    tmp_path: Path, amount: str, tally: Tally
) -> None:
    tally.verb = "migration"
    root = write_older_graph(tmp_path / "disk" / "graph", 3).root
    omnigraph.open(root).close()
    disk = Disk(root, tmp_path / "shadow")
    disk.start()
    found = Counter[bool]()

    def look(image: Path) -> None:
        assert_whole(image)
        with omnigraph.open(image, durability="process") as graph:
            names = graph.table("Person", branch="feature")["name"].to_pylist()
            actors = [commit.actor_id for commit in graph.commits(branch="feature")]
            assert "eve" in names or "eve" not in actors
            found["eve" in names] += 1
            graph.mutate(INSERT, params={"n": "zoe"}, branch="feature")
            assert graph.table("Person", branch="feature").num_rows == len(names) + 1

    cut = images(disk, tmp_path, tally, look)
    with disk.watching(sometimes(cut, 1 if amount == "every" else 8)), omnigraph.open(root) as graph:
        graph.mutate(INSERT, params={"n": "eve"}, branch="feature", actor="eve")
    before = found[True]
    cut()

    assert found[True] - before == len(VARIANTS), "a write that was acknowledged is there"
    told(tally, f"of a branch; the write absent in {found[False]}, present in {found[True]}")
