"""Many rows: chunks, fragments, and work that follows the changes."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph.merge.rows
from omnigraph.core.arrays import RowIds
from omnigraph.core.limits import MAX_FRAGMENT_ROWS, MERGE_CHUNK_ROWS
from omnigraph.graph.graph import Graph
from omnigraph.graph.opening import init
from omnigraph.history.commits import MAINTENANCE_ACTOR
from omnigraph.storage.tables.handle import SnapshotHandle
from omnigraph.storage.tables.rows import take_rows
from omnigraph.storage.versions.difference import lie_alike
from tests.support.seam import internals, patched

SCHEMA = "node Item { name: String @key  size: I64  text: String }\n"
ROWS = 20_000


def items(numbers: Iterable[int], size: int, text: str = "") -> dict[str, pa.Table]:
    chosen = list(numbers)
    names = [f"i{number:06d}" for number in chosen]
    table = pa.table(
        {"name": names, "size": pa.array([size] * len(chosen), pa.int64()), "text": [text] * len(chosen)}
    )
    return {"Item": table}


def load(graph: Graph, branch: str | None, rows: dict[str, pa.Table]) -> None:
    graph.load_tables(rows, "merge", branch=branch, index=False, engine="local")


@pytest.fixture
def store(tmp_path: Path) -> Graph:
    graph = init(tmp_path / "graph", SCHEMA, durability="process")
    load(graph, None, items(range(ROWS), 0))
    graph.create_branch("june")
    return graph


@pytest.mark.case("engine", 242)
def test_a_delta_of_many_rows_goes_through_in_chunks(store: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    load(store, "june", items(range(ROWS, 2 * ROWS), 1, "new" * 50))
    load(store, "june", items(range(5_000, 5_000 + MERGE_CHUNK_ROWS + 7), 2, "changed" * 50))
    store.mutate("query gone() { delete Item where size = 0 }", branch="june")
    load(store, None, items([3 * ROWS], 3))
    held: list[int] = []
    fetch = omnigraph.merge.rows.RowReader.fetch

    def watched(reader: omnigraph.merge.rows.RowReader, *given: object) -> pa.Table:
        rows: pa.Table = fetch(reader, *given)  # type: ignore[arg-type]
        held.append(rows.num_rows)
        return rows

    patched(monkeypatch, "omnigraph.merge.rows.RowReader.fetch", watched)

    store.merge("june")

    expected = store.table("Item", branch="june").num_rows + 1
    found = store.table("Item")
    assert found.num_rows == expected
    assert found.slice(0, expected - 1).equals(store.table("Item", branch="june"))
    assert max(held) == MERGE_CHUNK_ROWS
    assert len(held) > 4


def test_what_is_held_does_not_grow_with_the_delta(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    patched(monkeypatch, "omnigraph.merge.rows.MERGE_CHUNK_ROWS", 1_000)
    patched(monkeypatch, "omnigraph.commit.multi_step.MERGE_CHUNK_BYTES", 1_000_000)
    graph = init(tmp_path / "graph", SCHEMA, durability="process")
    peaks = []
    for number, rows in enumerate((4_000, 16_000)):
        graph.create_branch(f"b{number}")
        first = 100_000 * (number + 1)
        load(graph, f"b{number}", items(range(first, first + rows), 1, "x" * 1_000))
        before = pa.total_allocated_bytes()
        peak = 0
        fetch = omnigraph.merge.rows.RowReader.fetch

        def watched(reader: omnigraph.merge.rows.RowReader, *given: object) -> pa.Table:
            nonlocal peak
            found: pa.Table = fetch(reader, *given)  # type: ignore[arg-type]  # noqa: B023 - of this round
            peak = max(peak, pa.total_allocated_bytes() - before)  # noqa: B023 - as above
            return found

        with monkeypatch.context() as patch:
            patched(patch, "omnigraph.merge.rows.RowReader.fetch", watched)
            graph.merge(f"b{number}")
        peaks.append(peak)

    small, large = peaks

    assert small > 0
    assert large < 1.5 * small + 1_000_000, peaks


@pytest.mark.case("engine", 348)
def test_no_fragment_of_a_merge_is_larger_than_allowed(store: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    patched(monkeypatch, "omnigraph.commit.multi_step.MAX_FRAGMENT_ROWS", 9_000)
    patched(monkeypatch, "omnigraph.operations.upkeep.UNCOVERED_ROWS_MAX", 10 * ROWS)  # it would fold these
    load(store, "june", items(range(ROWS, 2 * ROWS), 1))

    store.merge("june")

    parts, entry = internals(store).parts, store.snapshot().entry("node:Item")
    dataset = parts.store.open_unshared(parts.address(entry), entry.version)
    sizes = [fragment.metadata.physical_rows for fragment in dataset.get_fragments()]
    assert max(sizes[1:]) <= 9_000
    assert max(sizes) <= MAX_FRAGMENT_ROWS
    assert sum(sizes) == 2 * ROWS


def test_rows_read_follow_the_changes(store: Graph) -> None:
    load(store, "june", items(range(10), 1))
    load(store, None, items(range(100, 120), 2))

    result = store.merge("june")

    # 10 rows written by the source and 20 by the target, each seen in both versions; 10 read on either side.
    assert 40 <= result.rows_read <= 100, result.rows_read
    assert store.merge("main", into="june").rows_read == 0


def test_a_table_that_only_the_target_changed_is_not_read(tmp_path: Path) -> None:
    schema = SCHEMA + "node Other { name: String @key }\n"
    graph = init(tmp_path / "graph", schema, durability="process")
    load(graph, None, items(range(100), 0))
    graph.create_branch("june")
    graph.mutate('query add() { insert Other { name: "x" } }', branch="june")
    load(graph, None, items(range(50), 1))

    result = graph.merge("june")

    assert result.rows_read <= 3, result.rows_read


def test_a_number_that_differs_spares_the_texts(store: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    load(store, None, items(range(50), 0, "as before"))
    store.create_branch("july")
    load(store, "july", items(range(10), 1, "as before"))
    load(store, "july", items(range(10, 20), 0, "another"))
    load(store, "july", items(range(20, 30), 0, "as before"))
    load(store, None, items([ROWS], 5))
    fetched: list[tuple[int, tuple[str, ...]]] = []

    def watched(handle: SnapshotHandle, row_ids: RowIds, columns: Sequence[str]) -> pa.Table:
        fetched.append((len(row_ids), tuple(columns)))
        return take_rows(handle, row_ids, columns)

    patched(monkeypatch, "omnigraph.merge.rows.take_rows", watched)

    result = store.merge("july")

    assert fetched == [(30, ("size",)), (20, ("name", "text"))]
    assert result.commit is not None
    changed = store.commit_changes(result.commit.graph_commit_id)
    assert len(list(changed)) == 20  # rows that were written again as they were are no changes


def test_rows_that_the_target_has_moved_are_replaced_where_they_lie_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = init(tmp_path / "graph", SCHEMA, durability="process")
    for start in range(0, 600, 20):  # small fragments, which upkeep folds
        load(graph, None, items(range(start, start + 20), 1))
    graph.create_branch("july")
    load(graph, "july", items(range(0, 600, 3), 2, "july"))
    for number in range(40):
        load(graph, None, items([600 + number], 3))
    assert MAINTENANCE_ACTOR in {commit.actor_id for commit in graph.commits()}
    answers: list[bool] = []

    def watched(one: SnapshotHandle, other: SnapshotHandle, addresses: RowIds) -> bool:
        answers.append(lie_alike(one, other, addresses))
        return answers[-1]

    patched(monkeypatch, "omnigraph.merge.three_way.lie_alike", watched)

    graph.merge("july")

    assert answers == [False]
    found = graph.table("Item")
    sizes = {
        str(name): size for name, size in zip(*(found[c].to_pylist() for c in ("name", "size")), strict=True)
    }
    assert len(sizes) == found.num_rows == 640
    for number in range(640):
        expected = 3 if number >= 600 else 1 if number % 3 else 2
        assert sizes[f"i{number:06d}"] == expected


@pytest.mark.slow  # a million rows
@pytest.mark.case("engine", 310)
def test_reads_of_a_merge_follow_the_changes_and_not_the_table(tmp_path: Path) -> None:
    read: dict[int, tuple[int, int, int]] = {}
    for rows in (100_000, 1_000_000):
        graph = init(tmp_path / str(rows), SCHEMA, durability="process")
        graph.load_tables(items(range(rows), 0), "append", engine="local")
        for name, start in (("june", 10), ("july", 5_000)):
            graph.create_branch(name)
            load(graph, name, items(range(start, start + 100), 1))
        store = internals(graph).parts.store
        before = store.io_stats()

        result = graph.merge("june", into="july")

        after = store.io_stats()
        read[rows] = (result.rows_read, after.reads - before.reads, after.read_bytes - before.read_bytes)
        graph.close()

    (rows_few, reads_few, bytes_few), (rows_many, reads_many, bytes_many) = read.values()
    assert rows_few == rows_many <= 600
    assert reads_many == reads_few, read
    assert bytes_many <= 1.25 * bytes_few, read  # a version of ten times as many rows has more fragments
