"""Many rows: chunks, fragments, and work that follows the changes."""

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph.merge.rows
from omnigraph.commit import multi_step
from omnigraph.core.limits import MAX_FRAGMENT_ROWS, MERGE_CHUNK_ROWS
from omnigraph.graph.graph import Graph, init

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

    monkeypatch.setattr(omnigraph.merge.rows.RowReader, "fetch", watched)

    store.merge("june")

    expected = store.table("Item", branch="june").num_rows + 1
    found = store.table("Item")
    assert found.num_rows == expected
    assert found.slice(0, expected - 1).equals(store.table("Item", branch="june"))
    assert max(held) == MERGE_CHUNK_ROWS
    assert len(held) > 4


def test_what_is_held_does_not_grow_with_the_delta(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnigraph.merge.rows.MERGE_CHUNK_ROWS", 1_000)
    monkeypatch.setattr(multi_step, "MERGE_CHUNK_BYTES", 1_000_000)
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
            patch.setattr(omnigraph.merge.rows.RowReader, "fetch", watched)
            graph.merge(f"b{number}")
        peaks.append(peak)

    small, large = peaks

    assert small > 0
    assert large < 1.5 * small + 1_000_000, peaks


@pytest.mark.case("engine", 348)
def test_no_fragment_of_a_merge_is_larger_than_allowed(store: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multi_step, "MAX_FRAGMENT_ROWS", 9_000)
    load(store, "june", items(range(ROWS, 2 * ROWS), 1))

    store.merge("june")

    parts, entry = store._graph.parts, store.snapshot().entry("node:Item")
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
