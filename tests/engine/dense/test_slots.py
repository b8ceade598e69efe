"""Slots: what keeps them, what ends them, and when a new generation begins."""

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.exec.dense import Derived, OpenTable, Slots
from omnigraph.exec.dense.slots import SlotBase, TablePin
from omnigraph.graph.graph import Graph
from tests.engine.dense.graphs import SCHEMA, check, check_table, derived_of, pinned, reader
from tests.engine.dense.unchecked import publish_compaction, publish_restore
from tests.engine.dense.writes import Writer
from tests.support.engine import ndjson, new_graph, node
from tests.support.queries import mutation
from tests.support.seam import patched

PERSON = "node:Person"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    people = [node("Person", name=f"p{number}", age=number) for number in range(20)]
    return new_graph(tmp_path / "graph", SCHEMA, *people)


def slots_by_name(graph: Graph, derived: Derived) -> dict[str, int]:
    """Return the slot of every person."""
    table = pinned(graph, PERSON)
    slots, index = derived.slots(table), derived.ids(table)
    names = map(str, index.take(slots.all()).to_pylist())
    return dict(zip(names, slots.all().tolist(), strict=True))


def test_an_update_keeps_the_slot_and_an_insert_appends(graph: Graph) -> None:
    warm = derived_of(graph)
    before = slots_by_name(graph, warm)

    graph.mutate(mutation('update Person set { age: 99 } where name = "p3"'))
    graph.load(ndjson([node("Person", name="new")]), "append", index=False)

    after = slots_by_name(graph, warm)
    assert after == {**before, "new": 20}
    assert warm.counts.slot_rebuilds == 1
    assert warm.column(pinned(graph, PERSON), "age", np.array([before["p3"]], np.int32)).to_pylist() == [99]


def test_a_delete_leaves_a_tombstone_and_a_reinserted_id_gets_a_new_slot(graph: Graph) -> None:
    warm = derived_of(graph)
    before = slots_by_name(graph, warm)

    graph.mutate(mutation('delete Person where name = "p3"'))
    deleted = slots_by_name(graph, warm)
    graph.load(ndjson([node("Person", name="p3", age=5)]), "append", index=False)
    after = slots_by_name(graph, warm)

    assert deleted == {name: slot for name, slot in before.items() if name != "p3"}
    assert after == {**deleted, "p3": 20}
    slots = warm.slots(pinned(graph, PERSON))
    live = slots.live()
    assert live is not None
    assert not live[before["p3"]]
    check(reader(graph, warm))


def test_a_row_that_came_and_went_between_two_pins_leaves_a_hole(graph: Graph) -> None:
    warm = derived_of(graph)
    slots_by_name(graph, warm)

    graph.load(ndjson([node("Person", name="brief")]), "append", index=False)
    graph.mutate(mutation('delete Person where name = "brief"'))
    graph.load(ndjson([node("Person", name="late")]), "append", index=False)

    assert slots_by_name(graph, warm)["late"] == 21
    assert warm.counts.slot_rebuilds == 1
    check_table(reader(graph, warm), PERSON)


def test_compaction_and_index_builds_keep_every_slot(graph: Graph) -> None:
    warm = derived_of(graph)
    for number in range(5):
        graph.mutate(mutation(f'update Person set {{ age: 50 }} where name = "p{number}"'))
    check_table(reader(graph, warm), PERSON)
    before, counts = slots_by_name(graph, warm), warm.counts

    assert publish_compaction(graph, PERSON) > 1
    graph.ensure_indices()

    assert slots_by_name(graph, warm) == before
    check_table(reader(graph, warm), PERSON)
    assert warm.counts.slot_rebuilds == counts.slot_rebuilds
    assert warm.counts.column_builds == counts.column_builds


def test_a_restored_version_is_numbered_right(graph: Graph) -> None:
    """Rows come back, and row ids may be given out again: nothing that went before is trusted."""
    warm = derived_of(graph)
    version = graph.snapshot().entry(PERSON).version
    graph.mutate(mutation('delete Person where name = "p3"'))
    graph.load(ndjson([node("Person", name="x")]), "append", index=False)
    check_table(reader(graph, warm), PERSON)

    publish_restore(graph, PERSON, version)
    check_table(reader(graph, warm), PERSON)
    graph.load(ndjson([node("Person", name="y")]), "append", index=False)
    check_table(reader(graph, warm), PERSON)


@pytest.mark.parametrize("transactions_max", [0, 32])
def test_a_restore_between_two_pins_is_noticed(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, transactions_max: int
) -> None:
    patched(monkeypatch, "omnigraph.storage.versions.difference.TRANSACTIONS_MAX", transactions_max)
    warm = derived_of(graph)
    version = graph.snapshot().entry(PERSON).version
    graph.mutate(mutation('delete Person where name = "p3"'))
    check_table(reader(graph, warm), PERSON)

    publish_restore(graph, PERSON, version)
    graph.mutate(mutation('delete Person where name = "p4"'))

    check_table(reader(graph, warm), PERSON)


def test_many_commits_are_crossed_without_looking_at_each(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    patched(monkeypatch, "omnigraph.storage.versions.difference.TRANSACTIONS_MAX", 0)
    warm = derived_of(graph)
    check_table(reader(graph, warm), PERSON)
    for number in range(3):
        graph.mutate(mutation(f'update Person set {{ age: 50 }} where name = "p{number}"'))
        graph.mutate(mutation(f'delete Person where name = "p{number + 10}"'))
        graph.load(ndjson([node("Person", name=f"n{number}")]), "append", index=False)
        if number != 1:
            check_table(reader(graph, warm), PERSON)

    assert warm.counts.slot_rebuilds == 1


def test_an_overwrite_begins_a_new_generation(graph: Graph) -> None:
    warm = derived_of(graph)
    first = warm.slots(pinned(graph, PERSON)).generation

    graph.load({"Person": pa.table({"name": ["a", "b"]})}, "overwrite")

    second = warm.slots(pinned(graph, PERSON))
    assert second.generation != first
    assert second.size == second.live_count == 2
    check(reader(graph, warm))


def test_many_tombstones_begin_a_new_generation(tmp_path: Path) -> None:
    graph = new_graph(tmp_path / "graph", SCHEMA)
    graph.load({"Person": pa.table({"name": [f"p{n:04d}" for n in range(4_000)]})}, "append", index=False)
    warm = derived_of(graph)
    warm.slots(pinned(graph, PERSON))

    graph.mutate(mutation('delete Person where name >= "p1500"'))

    slots = warm.slots(pinned(graph, PERSON))
    assert slots.size == slots.live_count == 1_500
    assert warm.counts.slot_rebuilds == 2


def test_empty_tables_have_no_slots_and_no_neighbours(tmp_path: Path) -> None:
    graph = new_graph(tmp_path / "graph", SCHEMA)
    warm = derived_of(graph)

    check(reader(graph, warm))
    Writer(graph, random.Random(1)).load_many()
    check(reader(graph, warm))


def test_a_pin_with_another_transaction_is_another_table(graph: Graph) -> None:
    """Two forks hold different rows under one version number."""
    warm = derived_of(graph)
    table = pinned(graph, PERSON)
    mine = warm.slots(table)
    fork = _with_pin(table, ref=None, uuid="another")
    owned = _with_pin(table, ref="fork", uuid=table.pin.uuid)

    assert warm.slots(fork) is not mine
    assert warm.slots(fork).generation != mine.generation
    assert warm.slots(owned) is not mine
    assert warm.slots(table) is mine


def test_row_ids_with_gaps_are_found_by_array_and_by_search() -> None:
    for row_ids in (np.array([3, 5, 6, 9, 10]), np.array([3, 500, 6_000, 6_001])):
        base = SlotBase(TablePin(1, "u"), 3, len(row_ids), row_ids)
        slots = Slots(TablePin(2, "v"), base, size=len(row_ids) + 2, dead=np.array([1], np.int32), layout={})
        last = int(row_ids[-1])
        asked = np.array([3, int(row_ids[1]), int(row_ids[2]), 4, 2, last, last + 1, last + 2, last + 3])

        count = len(row_ids)
        assert slots.of_row_ids(asked).tolist() == [0, -1, 2, -1, -1, count - 1, count, count + 1, -1]
        assert slots.row_ids(slots.all()).tolist() == [3, *row_ids[2:].tolist(), last + 1, last + 2]


def _with_pin(table: OpenTable, *, ref: str | None, uuid: str) -> OpenTable:
    pin = replace(table.entry.pin, ref=ref, transaction_uuid=uuid)
    return replace(table, entry=replace(table.entry, pin=pin))
