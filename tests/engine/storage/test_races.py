"""Writers of every shape on one base, at the same moment: one of them wins."""

import multiprocessing
import threading
from collections.abc import Callable, Sequence
from itertools import combinations_with_replacement, cycle, islice
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from omnigraph.core.errors import CommitConflict
from omnigraph.storage.tables.stage import StagedWrite
from omnigraph.storage.tables.table import TableAddress
from tests.support.shapes import ALL_SHAPES, EMPTY_SHAPES
from tests.support.tables import Workbench, rows

ROUNDS = 60


def pairs(names: Sequence[str]) -> list[tuple[str, str]]:
    """Return the pairs of shapes that the rounds go through."""
    return list(islice(cycle(combinations_with_replacement(names, 2)), ROUNDS))


def commits(bench: Workbench, staged: StagedWrite, wait: Callable[[], object]) -> bool:
    """Commit at the signal; say whether it landed."""
    wait()
    try:
        bench.commit(staged)
    except CommitConflict:
        return False
    return True


def race(bench: Workbench, shapes: tuple[str, str]) -> list[bool]:
    base = bench.head()
    staged = [ALL_SHAPES[name](bench.stager, base, str(n)) for n, name in enumerate(shapes)]
    barrier = threading.Barrier(2)
    landed = [False, False]

    def run(place: int) -> None:
        landed[place] = commits(bench, staged[place], barrier.wait)

    threads = [threading.Thread(target=run, args=(place,)) for place in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bench.store.latest_version(bench.address) == base.version + 1
    return landed


@pytest.mark.case("engine", 72)
@pytest.mark.case("engine", 346)
def test_threads_of_mixed_shapes_have_one_winner_in_each_round(tmp_path: Path) -> None:
    bench = Workbench(tmp_path)

    for shapes in pairs(list(ALL_SHAPES)):
        bench.upsert(rows(["a", "b"]))
        assert sorted(race(bench, shapes)) == [False, True], shapes


@pytest.mark.case("engine", 72)
def test_threads_on_an_empty_table_have_one_winner_in_each_round(tmp_path: Path) -> None:
    for number, shapes in enumerate(pairs(EMPTY_SHAPES)):
        bench = Workbench(tmp_path, name=f"table-{number}")
        assert sorted(race(bench, shapes)) == [False, True], shapes


def serve(directory: str, connection: Connection) -> None:
    """Stage what the parent asks for and commit it at its signal, until there is nothing more to do."""
    while (job := connection.recv()) is not None:
        name, version, shape, mark = job
        bench = Workbench(Path(directory), name=name)
        handle = bench.store.open_at(bench.address, version)
        staged = ALL_SHAPES[shape](bench.stager, handle, mark)
        connection.send("ready")
        connection.send(commits(bench, staged, connection.recv))


@pytest.mark.case("engine", 72)
@pytest.mark.case("engine", 346)
def test_processes_of_mixed_shapes_have_one_winner_in_each_round(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")  # the library does not survive a fork
    ours, theirs = zip(*(spawn.Pipe() for _ in range(2)), strict=True)
    workers = [spawn.Process(target=serve, args=(str(tmp_path), end), daemon=True) for end in theirs]
    for worker in workers:
        worker.start()
    full = Workbench(tmp_path, name="full")

    for number in range(ROUNDS):
        is_empty = number % 3 == 0
        choices = pairs(EMPTY_SHAPES if is_empty else list(ALL_SHAPES))
        bench = Workbench(tmp_path, name=f"empty-{number}") if is_empty else full
        if not is_empty:
            bench.upsert(rows(["a", "b"]))
        base = bench.store.latest_version(bench.address)
        for place, connection in enumerate(ours):
            name = Path(bench.address.uri).name
            connection.send((name, base, choices[number][place], str(place)))
        assert [connection.recv() for connection in ours] == ["ready", "ready"]
        for connection in ours:
            connection.send("go")
        assert sorted(connection.recv() for connection in ours) == [False, True], choices[number]
        assert bench.store.latest_version(TableAddress(bench.address.uri)) == base + 1

    for connection, worker in zip(ours, workers, strict=True):
        connection.send(None)
        worker.join()
