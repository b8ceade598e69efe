"""Columns by slot: what is kept, what is fetched, and that both are the same."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.exec.dense import Derived
from omnigraph.exec.dense.ids import hash_strings, hash_text
from omnigraph.graph.graph import Graph
from tests.engine.dense.graphs import derived_of, pinned
from tests.support.engine import copy_of, ndjson, new_graph, node, reopen
from tests.support.queries import mutation
from tests.support.seam import patched

DOC = """\
node Doc {
  name: String @key
  size: I64?
  kind: String?
  body: String?
  tags: [String]?
  at: Date?
  vector: Vector(4)?
}
"""
KEY, ROWS = "node:Doc", 3_000


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("columns") / "graph"
    table = pa.table(
        {
            "name": [f"d{number:05d}" for number in range(ROWS)],
            "size": pa.array([None if number % 7 == 0 else number for number in range(ROWS)], pa.int64()),
            "kind": [f"kind{number % 5}" for number in range(ROWS)],
            "body": ["long words " * 40 for _ in range(ROWS)],
        }
    )
    new_graph(place, DOC).load({"Doc": table}, "append", index=False)
    return place


@pytest.fixture
def graph(root: Path, tmp_path: Path) -> Graph:
    return reopen(copy_of(root, tmp_path / "graph"))


def test_fixed_width_and_short_strings_are_kept_and_others_never(graph: Graph) -> None:
    derived, table = derived_of(graph), pinned(graph, KEY)

    kept = {name for name in table.handle.schema.names if derived.cached_column(table, name) is not None}

    assert kept == {"id", "name", "size", "kind", "at"}


def test_strings_that_repeat_are_kept_as_codes(graph: Graph) -> None:
    derived, table = derived_of(graph), pinned(graph, KEY)

    kind, name = derived.cached_column(table, "kind"), derived.cached_column(table, "name")

    assert isinstance(kind, pa.DictionaryArray)
    assert len(kind.dictionary) == 5
    assert not isinstance(name, pa.DictionaryArray)
    assert derived.column(table, "kind", np.array([4, 4, 0], np.int32)).type == pa.utf8()


def test_a_column_that_is_asked_for_often_is_read_once(graph: Graph) -> None:
    derived, table = derived_of(graph), pinned(graph, KEY)
    few = np.array([5, 2, 5], np.int32)
    first = derived.column(table, "size", few).to_pylist()
    assert derived.counts.column_builds == 0

    for _ in range(20):
        assert derived.column(table, "size", few).to_pylist() == first

    assert derived.counts.column_builds == 1


def test_columns_of_a_table_in_use_are_kept_earlier(graph: Graph) -> None:
    """One whose ids are in memory: more of its rows will be asked for (H2)."""
    one = np.array([5], np.int32)

    def fetches(derived: Derived) -> int:
        table = pinned(graph, KEY)
        for number in range(1, 50):
            derived.column(table, "name", one)
            if derived.counts.column_builds:
                return number
        raise AssertionError("the column was never kept")

    rare, used = derived_of(graph), derived_of(graph)
    used.ids(pinned(graph, KEY))

    assert fetches(rare) == 7
    assert fetches(used) == 2


def test_one_value_is_an_array_of_its_own(graph: Graph) -> None:
    """Whoever keeps an answer does not keep the column."""
    derived, table = derived_of(graph), pinned(graph, KEY)
    for name, expected in (("name", "d00005"), ("size", 5), ("kind", "kind0"), ("at", None)):
        whole = derived.cached_column(table, name)
        assert whole is not None

        value = derived.column(table, name, np.array([5], np.int32))

        assert value.to_pylist() == [expected]
        assert value.get_total_buffer_size() < 1_000 < whole.get_total_buffer_size()


def test_long_text_and_lists_are_fetched_in_order(graph: Graph) -> None:
    graph.load(ndjson([node("Doc", name="x", body="short", tags=["a", "b"])]), "append", index=False)
    derived, table = derived_of(graph), pinned(graph, KEY)
    slot = derived.ids(table).slot("x")

    for _ in range(20):
        values = derived.column(table, "tags", np.array([slot, 0, slot], np.int32))
        assert values.to_pylist() == [["a", "b"], None, ["a", "b"]]
    assert derived.column(table, "body", np.array([slot], np.int32)).to_pylist() == ["short"]
    assert derived.counts.column_builds == 0


def test_many_changes_are_folded_into_a_new_base(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    patched(monkeypatch, "omnigraph.exec.dense.columns.PATCHES_MAX", 5)
    patched(monkeypatch, "omnigraph.exec.dense.ids.TAIL_FREE", 3)
    patched(monkeypatch, "omnigraph.exec.dense.ids.TAIL_MAX_SHARE", 0)
    derived = derived_of(graph)
    past = pinned(graph, KEY)
    names = ("size", "kind", "name")
    for name in names:
        derived.cached_column(past, name)
    derived.ids(past)

    for number in range(4):
        graph.mutate(mutation(f'update Doc set {{ size: 1, kind: "new" }} where name = "d0000{number}"'))
        records = [node("Doc", name=f"n{number}{part}", kind="other", size=part) for part in range(2)]
        graph.load(ndjson(records), "append", index=False)
        table = pinned(graph, KEY)
        rows = {row["id"]: row for row in graph.table("Doc").to_pylist()}
        slots = derived.slots(table).all()
        ids = [str(id) for id in derived.ids(table).take(slots).to_pylist()]
        assert derived.ids(table).slots(ids).tolist() == slots.tolist()
        for name in names:
            expected = [rows[id][name] for id in ids]
            assert derived.column(table, name, slots).to_pylist() == expected
            whole = derived.cached_column(table, name)
            assert whole is not None
            assert whole.to_pylist() == expected

    assert derived.column(past, "kind", np.arange(3, dtype=np.int32)).to_pylist() == [
        "kind0",
        "kind1",
        "kind2",
    ]
    assert derived.counts.column_builds == len(names)
    assert derived.counts.id_builds == 1


def test_one_id_is_looked_up_until_an_index_pays(graph: Graph) -> None:
    derived, table = derived_of(graph), pinned(graph, KEY)
    expected = derived_of(graph).ids(table).slot("d00042")

    found = [derived.find(table, "d00042") for _ in range(6)]

    assert found == [expected] * 6
    assert derived.find(table, "nobody") == -1
    assert derived.counts.id_builds == 1


def test_memory_is_bounded_and_nothing_is_lost(graph: Graph) -> None:
    derived, table = derived_of(graph, memory_bytes=130_000), pinned(graph, KEY)
    for _ in range(2):
        assert derived.ids(table).slot("d00001") >= 0
        for name in ("size", "name", "kind", "at", "id"):
            whole = derived.cached_column(table, name)
            assert whole is None or len(whole) == ROWS

    assert sum(family.nbytes for family in derived._residents._families.values()) <= 130_000
    assert derived.counts.column_builds > 5


def test_an_array_and_its_strings_hash_alike() -> None:
    texts = ["", "a", "abcdefg", "abcdefgh", "abcdefghi", "é" * 9, "x" * 1_000, "abcdefgh\x00", "\x00"]
    for type_ in (pa.utf8(), pa.large_utf8()):
        array = pa.array(texts, type_)

        assert hash_strings(array).tolist() == [hash_text(text) for text in texts]
        assert hash_strings(array.slice(2, 3)).tolist() == [hash_text(text) for text in texts[2:5]]
        assert hash_strings(array.slice(0, 0)).tolist() == []
    assert len({hash_text(text) for text in texts}) == len(texts)


def test_ids_with_one_hash_are_told_apart(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    patched(monkeypatch, "omnigraph.exec.dense.ids.hash_text", lambda _: 7)
    patched(
        monkeypatch, "omnigraph.exec.dense.ids.hash_strings", lambda keys: np.full(len(keys), 7, np.uint64)
    )
    graph.load({"Doc": pa.table({"name": ["a", "b", "c"]})}, "overwrite")
    derived, table = derived_of(graph), pinned(graph, KEY)
    index = derived.ids(table)

    found = index.slots(["c", "x", "a", "b"])

    assert sorted(found.tolist()) == [-1, 0, 1, 2]
    assert index.take(found[found >= 0]).to_pylist() == ["c", "a", "b"]
    assert [index.slot(id) for id in "cxab"] == found.tolist()
