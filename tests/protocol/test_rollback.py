"""Undoing what a dead writer committed: strict inverses at any entry, restores at an open."""

from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import omnigraph
from omnigraph.core.errors import ExpectedVersionMismatch, RecoveryRequired
from omnigraph.core.failpoint import failpoint
from omnigraph.graph.graph import Graph
from omnigraph.storage.tables.handle import SnapshotHandle
from tests.support.books import assert_settled, books
from tests.support.protocol import (
    BEFORE,
    TABLE_KEYS,
    WRITERS,
    give_up,
    paused_at,
    sidecars,
    with_extra,
    write_everywhere,
)
from tests.support.seam import internals

# Each writes two tables; the first in the order of names is committed when the writer dies.
MANY = [{"name": f"c{number:04}", "city": None} for number in range(1_000)]
SHAPES: dict[str, tuple[str, Callable[[Graph], object]]] = {
    "append": ("edge:Knows", WRITERS["append"].run),
    "upsert": ("node:Company", WRITERS["merge"].run),
    "large upsert": (
        "node:Company",
        lambda graph: graph.load(
            {
                "Company": pa.Table.from_pylist([{"name": "acme", "city": "Graz"}, *MANY]),
                "Person": pa.table({"name": ["dan"]}),
            },
            "merge",
            index=False,
        ),
    ),
    "delete": ("edge:Knows", WRITERS["delete"].run),
    "overwrite": ("edge:Knows", WRITERS["overwrite"].run),
}


def die(root: Path, write: Callable[[Graph], object]) -> None:
    """Fail between the commits of the two tables."""
    with (
        omnigraph.open(root) as graph,
        failpoint("write.post_table_commit", "raise"),
        pytest.raises(RecoveryRequired),
    ):
        write(graph)
    assert len(sidecars(root)) == 1


def handle_of(graph: Graph, table_key: str) -> SnapshotHandle:
    """Return a table as it is published."""
    entry, parts = graph.snapshot().entry(table_key), internals(graph).parts
    return parts.open(entry)


def rows_with_ids(graph: Graph, table_key: str) -> list[dict[str, object]]:
    """Return the rows of a table with their row ids."""
    dataset = handle_of(graph, table_key)._dataset
    return dataset.to_table(with_row_id=True).sort_by("id").to_pylist()


def answers(graph: Graph, table_key: str) -> tuple[set[str], dict[str, str]]:
    """Return what the index of ids says about rows that are there and rows that are not, and its coverage."""
    handle, store = handle_of(graph, table_key), internals(graph).parts.store
    known = [str(row["id"]) for row in rows_with_ids(graph, table_key)]
    return store.existing_ids(handle, [*known, "dan", "c0001"]), dict(store.index_coverage(handle))


@pytest.mark.case("engine", 291)
@pytest.mark.parametrize("shape", SHAPES)
def test_rows_row_ids_and_indexes_are_as_before(shape: str, root: Path) -> None:
    table_key, write = SHAPES[shape]
    is_restored = shape == "overwrite"
    graph = omnigraph.open(root)
    graph.ensure_indices()
    before = {key: (rows_with_ids(graph, key), answers(graph, key)) for key in TABLE_KEYS}
    die(root, write)

    graph.refresh()
    if is_restored:
        assert len(sidecars(root)) == 1  # entry healing leaves it
        omnigraph.open(root).close()

    found = assert_settled(root, BEFORE, recoveries=1)
    assert (found.recoveries[0].kind, found.recoveries[0].tables) == ("RolledBack", (table_key,))
    parts, entry = internals(graph).parts, graph.snapshot().entry(table_key)
    operation = parts.store.transaction_info(parts.address(entry), entry.version).operation
    assert operation == ("restore" if is_restored else "rollback")
    assert {key: (rows_with_ids(graph, key), answers(graph, key)) for key in TABLE_KEYS} == before
    write_everywhere(graph)
    assert_settled(root, with_extra(BEFORE), recoveries=1)


@pytest.mark.case("engine", 292)
@pytest.mark.parametrize("entry", ["refresh", "write", "open"])
def test_an_inverse_that_a_foreign_commit_overtakes_is_refused_and_tried_again(
    entry: str, root: Path
) -> None:
    graph = omnigraph.open(root)
    give_up(root, "insert", "P2")
    (sidecar,) = sidecars(root)
    table = root / graph.snapshot().entry("edge:Knows").location
    landed: list[int] = []

    def overtake() -> None:
        foreign = lance.dataset(str(table))
        foreign.delete("src = 'bob'")
        landed.append(foreign.version)

    calls: dict[str, Callable[[], object]] = {
        "refresh": graph.refresh,
        "write": lambda: write_everywhere(graph),
        "open": lambda: omnigraph.open(root),
    }
    with (
        paused_at("recovery.post_plan_pre_undo", "call", overtake),
        pytest.raises(ExpectedVersionMismatch) as refused,
    ):
        calls[entry]()

    assert (refused.value.table_key, refused.value.actual) == ("edge:Knows", landed[0])
    assert refused.value.recovery_operation_id == sidecar.stem
    assert sidecars(root) == (sidecar,)
    assert books(root).contents == BEFORE
    assert books(root).recovery_commits == ()
    assert lance.dataset(str(table)).version == landed[0]  # the foreign commit stands, nothing on top of it

    graph.refresh()

    found = assert_settled(root, BEFORE, recoveries=1)
    assert found.recoveries[0].outcomes[0][:2] == ("edge:Knows", 3)  # as planned first
    assert lance.dataset(str(table), version=landed[0]).count_rows() == 2  # its version is there to read
    write_everywhere(graph)
    assert_settled(root, with_extra(BEFORE), recoveries=1)
