"""Loads in process: modes, counts, refusals, and what a failed one leaves."""

import base64
import threading
from collections.abc import Mapping
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from omnigraph.catalog.arrow_schema import PRIMARY_KEY_METADATA, PROPERTY_ID_KEY, arrow_schema
from omnigraph.core.errors import (
    BranchNotFound,
    KeyConflict,
    OmnigraphError,
    ResourceLimit,
    StorageError,
    ValidationError,
)
from omnigraph.core.limits import MAX_FRAGMENT_ROWS
from omnigraph.graph.graph import Graph
from omnigraph.operations.load.load import MODES, LoadMode
from omnigraph.storage.tables.handle import SnapshotHandle
from omnigraph.storage.tables.stage import CommittedTable, StagedWrite, TableStager
from omnigraph.validate.records import LINE_BYTES_SETTING, LINE_TOKENS_SETTING
from tests.support.engine import (
    LIBRARY,
    assert_settled,
    chain,
    contents,
    edge,
    head,
    ids,
    ndjson,
    new_graph,
    node,
    people,
    pins,
    reopen,
    rows,
    table_path,
)
from tests.support.library import LIB
from tests.support.seam import internals

PEOPLE_AND_WORK = (
    node("Person", name="ann", age=30),
    node("Person", name="bob"),
    node("Company", name="acme"),
    edge("WorksAt", "ann", "acme", id="w1"),
    edge("Knows", "ann", "bob", id="k1"),
)


def load(graph: Graph, mode: LoadMode, *records: Mapping[str, object]) -> dict[str, int]:
    """Load records without building indexes and return the counts per table."""
    return dict(graph.load(ndjson(records), mode, index=False).tables)


def refused(graph: Graph, mode: LoadMode, *records: Mapping[str, object]) -> OmnigraphError:
    """Return the error of a load, having checked that nothing moved and that the next load succeeds."""
    before, commit = contents(graph), head(graph)
    with pytest.raises((ValidationError, KeyConflict)) as caught:
        graph.load(ndjson(records), mode)
    assert contents(graph) == before
    assert head(graph) == commit
    assert_settled(graph)
    load(graph, "merge", node("Company", name="next"))
    return caught.value


# Modes


@pytest.mark.case("engine", 107)
@pytest.mark.parametrize("mode", MODES)
def test_each_mode_on_a_fresh_graph_counts_and_commits_once(graph: Graph, mode: LoadMode) -> None:
    result = graph.load(ndjson(PEOPLE_AND_WORK), mode, index=False)

    assert dict(result.tables) == {"edge:Knows": 1, "edge:WorksAt": 1, "node:Company": 1, "node:Person": 2}
    assert [commit.graph_commit_id for commit in chain(graph)[1:]] == [head(graph).graph_commit_id]
    assert result.commit == head(graph)
    assert rows(graph, "Person")["ann"] == {"id": "ann", "name": "ann", "age": 30, "nickName": None}
    assert rows(graph, "WorksAt") == {"w1": {"id": "w1", "src": "ann", "dst": "acme"}}
    assert_settled(graph)


@pytest.mark.case("engine", 108)
def test_append_refuses_ids_that_are_there_or_come_twice(graph: Graph) -> None:
    load(graph, "append", *PEOPLE_AND_WORK)

    existing = refused(graph, "append", node("Person", name="new"), node("Person", name="ann", age=1))
    assert isinstance(existing, KeyConflict)
    assert (existing.table_key, existing.row_id) == ("node:Person", "ann")
    twice = [edge("Knows", "bob", "ann", id="k9"), edge("Knows", "ann", "ann", id="k9")]
    assert isinstance(refused(graph, "append", *twice), KeyConflict)


@pytest.mark.case("engine", 109)
def test_of_edges_merged_under_one_id_the_last_counts_and_counts_once(graph: Graph) -> None:
    load(graph, "append", *PEOPLE_AND_WORK, node("Company", name="zeta"))

    repeated = [edge("WorksAt", "bob", place, id="w2") for place in ("acme", "zeta")]
    assert load(graph, "merge", *repeated) == {"edge:WorksAt": 1}
    assert rows(graph, "WorksAt")["w2"]["dst"] == "zeta"

    moved = [edge("WorksAt", "ann", "zeta", id="w1"), edge("WorksAt", "bob", "acme", id="w2")]
    for _ in range(2):
        assert load(graph, "merge", *moved) == {"edge:WorksAt": 2}
    assert {key: row["dst"] for key, row in rows(graph, "WorksAt").items()} == {"w1": "zeta", "w2": "acme"}


@pytest.mark.case("engine", 109)
def test_a_key_repeated_inside_one_merge_is_refused(graph: Graph) -> None:
    load(graph, "merge", node("Person", name="ann", age=1), node("Person", name="bob"))
    load(graph, "merge", node("Person", name="ann", age=2), node("Person", name="cid"))

    error = refused(graph, "merge", node("Person", name="ann", age=3), node("Person", name="ann", age=4))

    assert isinstance(error, ValidationError)
    assert (error.kind, error.line) == ("unique", 2)
    assert rows(graph, "Person")["ann"]["age"] == 2


@pytest.mark.case("engine", 110)
def test_overwrite_replaces_the_types_it_names_and_no_other(graph: Graph) -> None:
    load(graph, "append", *PEOPLE_AND_WORK)
    before = pins(graph)

    assert load(graph, "overwrite", edge("Knows", "bob", "ann", id="k7")) == {"edge:Knows": 1}

    after = pins(graph)
    assert ids(graph, "Knows") == ["k7"]
    assert {key for key in after if after[key] != before[key]} == {"edge:Knows"}


@pytest.mark.case("engine", 110)
def test_an_empty_table_overwrites_a_type_by_nothing(graph: Graph) -> None:
    load(graph, "append", *PEOPLE_AND_WORK)
    nothing = pa.table({"from": pa.array([], pa.utf8()), "to": pa.array([], pa.utf8())})

    result = graph.load({"Knows": nothing}, "overwrite", index=False)

    assert dict(result.tables) == {"edge:Knows": 0}
    parts = internals(graph).parts
    entry = graph.snapshot().entry("edge:Knows")
    assert parts.open(entry).fragment_count == 0
    assert ids(graph, "Person") == ["ann", "bob"]
    assert load(graph, "append", edge("Knows", "ann", "bob", id="k2")) == {"edge:Knows": 1}


STRICT = """\
node Doc { code: String @key  title: String  note: String? }
edge Link: Doc -> Doc { weight: I32  note: String? }
"""
REQUIRED = {"node:Doc": {"id", "code", "title"}, "edge:Link": {"id", "src", "dst", "weight"}}


@pytest.mark.case("engine", 308)
@pytest.mark.parametrize("count", [0, 2], ids=["by nothing", "by rows"])
def test_an_overwrite_keeps_key_non_null_flags_and_property_ids(tmp_path: Path, count: int) -> None:
    records = [node("Doc", code="a", title="A"), edge("Link", "a", "a", weight=1)]
    graph = new_graph(tmp_path / "docs", STRICT, *records)
    before = pins(graph)
    names = pa.array(["b", "c"][:count], pa.utf8())
    docs = pa.table({"code": names, "title": names})
    links = pa.table({"from": names, "to": names, "weight": pa.array([1, 2][:count], pa.int32())})

    graph.load({"Doc": docs, "Link": links}, "overwrite", index=False)

    for type_ in graph.catalog.types:
        key = type_.table_key
        schema = lance.dataset(str(table_path(graph, key)), version=pins(graph)[key]).schema
        fields = {name: schema.field(name) for name in schema.names}
        assert pins(graph)[key] == before[key] + 1
        assert fields["id"].metadata == PRIMARY_KEY_METADATA
        assert {name for name, field in fields.items() if not field.nullable} == REQUIRED[key]
        assert {name: dict(fields[name].metadata or {}) for name in type_.properties} == {
            item.name: {PROPERTY_ID_KEY: b"%d" % item.id} for item in type_.properties.values()
        }
        assert schema.equals(arrow_schema(type_), check_metadata=True)
    assert load(graph, "append", *records) == {"edge:Link": 1, "node:Doc": 1}


@pytest.mark.case("engine", 111)
def test_overwrite_cannot_drop_a_node_that_a_retained_edge_refers_to(graph: Graph) -> None:
    load(graph, "append", *PEOPLE_AND_WORK)

    error = refused(graph, "overwrite", node("Person", name="bob"))

    assert isinstance(error, ValidationError)
    assert error.kind == "endpoint"


@pytest.mark.case("engine", 112)
def test_overwriting_edges_looks_for_their_ends_among_committed_nodes(graph: Graph) -> None:
    load(graph, "append", *PEOPLE_AND_WORK)

    assert load(graph, "overwrite", edge("WorksAt", "bob", "acme", id="w5")) == {"edge:WorksAt": 1}
    error = refused(graph, "overwrite", edge("WorksAt", "bob", "nowhere", id="w6"))

    assert isinstance(error, ValidationError)
    assert error.kind == "endpoint"
    assert ids(graph, "WorksAt") == ["w5"]


@pytest.mark.case("engine", 348)
@pytest.mark.parametrize("mode", MODES)
def test_a_load_writes_no_fragment_above_the_limit(graph: Graph, mode: LoadMode) -> None:
    graph.load({"Person": people("p000000", "zoe")}, "append", index=False)
    names = [f"q{number:06d}" for number in range(MAX_FRAGMENT_ROWS + 3)]

    graph.load({"Person": people(*names)}, mode, index=False)

    dataset = lance.dataset(str(table_path(graph, "node:Person")))
    sizes = [fragment.count_rows() for fragment in dataset.get_fragments()]
    assert max(sizes) <= MAX_FRAGMENT_ROWS
    assert sum(sizes) == len(names) + (0 if mode == "overwrite" else 2)


@pytest.mark.parametrize("mode", MODES)
def test_an_input_without_records_publishes_nothing(graph: Graph, mode: LoadMode) -> None:
    commit = head(graph)

    result = graph.load(b"\n\n", mode)

    assert (result.tables, result.commit) == ((), None)
    assert head(graph) == commit


@pytest.mark.parametrize("mode", ["append", "merge"])
def test_a_table_without_rows_publishes_nothing(graph: Graph, mode: LoadMode) -> None:
    commit = head(graph)

    assert graph.load({"Person": people()}, mode).commit is None
    assert head(graph) == commit


@pytest.mark.case("engine", 116)
def test_a_given_id_must_be_the_derived_one(graph: Graph) -> None:
    assert load(graph, "append", node("Person", name="ann", id="ann")) == {"node:Person": 1}

    error = refused(graph, "append", node("Person", name="bob"), node("Person", name="cid", id="other"))

    assert isinstance(error, ValidationError)
    assert error.line == 2


def test_a_branch_that_is_missing_is_not_made_by_a_typo(graph: Graph) -> None:
    with pytest.raises(BranchNotFound):
        graph.load(ndjson(PEOPLE_AND_WORK), "append", branch="tpyo")

    assert len(chain(graph)) == 1


@pytest.mark.case("engine", 302)
def test_a_record_is_as_large_as_it_wants_unless_a_limit_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = new_graph(tmp_path / "files", "node File { name: String @key  raw: Blob?  tags: [String]? }")
    raw, tags = bytes(range(256)) * (40 * 1024 * 4), [f"t{number}" for number in range(200_000)]
    small = node("File", name="small", tags=["t"])
    large = node("File", name="large", raw=f"base64:{base64.b64encode(raw).decode()}")
    records = {"many": node("File", name="many", tags=tags), "large": large}
    assert len(raw) == 40 * 1024 * 1024

    for setting, name, resource in (
        (LINE_BYTES_SETTING, "large", "bytes of line 2"),
        (LINE_TOKENS_SETTING, "many", "structural tokens of line 2"),
    ):
        with monkeypatch.context() as patch:
            patch.setenv(setting, "1000")
            with pytest.raises(ResourceLimit) as caught:
                load(graph, "append", small, records[name])
        assert (caught.value.resource, caught.value.limit) == (resource, 1000)
        assert caught.value.actual > 200_000
        assert len(chain(graph)) == 1
        assert_settled(graph)

    assert load(graph, "append", small, *records.values()) == {"node:File": 3}
    found = rows(graph, "File")
    assert found["large"]["raw"] == raw
    assert found["many"]["tags"] == tags
    assert found["small"] == {"id": "small", "name": "small", "raw": None, "tags": ["t"]}


def test_the_library_is_loaded_through_a_file_as_through_bytes(library: Graph, tmp_path: Path) -> None:
    path = tmp_path / "library.ndjson"
    path.write_bytes(ndjson(LIBRARY))

    other = new_graph(tmp_path / "other", LIB)
    other.load(path, "append")

    assert contents(other) == contents(library)


# Concurrency and faults of staging


class TracedStager:
    """Stages and commits for real, and notes who was inside at the same time."""

    def __init__(self, inner: TableStager, *, fails_at: int | None = None) -> None:
        self.inner = inner
        self.fails_at = fails_at
        self.staged = 0
        self.trace: list[str] = []
        self._lock = threading.Lock()
        self._two_inside = threading.Event()
        self._inside = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self.inner, name)

    def stage_append(self, handle: SnapshotHandle, table: pa.Table) -> StagedWrite:
        with self._lock:
            self.staged += 1
            number = self.staged
            self._inside += 1
            if self._inside > 1:
                self._two_inside.set()
        if self.fails_at == number:
            raise StorageError(f"table {number} cannot be staged", kind="transient")
        staged = self.inner.stage_append(handle, table)
        with self._lock:
            self._inside -= 1
            self.trace.append("stage")
        return staged

    def commit_staged(self, staged: StagedWrite, *, operation_id: str, writer_kind: str) -> CommittedTable:
        with self._lock:
            self.trace.append("commit begins")
        committed = self.inner.commit_staged(staged, operation_id=operation_id, writer_kind=writer_kind)
        with self._lock:
            self.trace.append("commit ends")
        return committed


def _trace(graph: Graph, stager: TracedStager) -> None:
    object.__setattr__(internals(graph).parts, "stager", stager)


@pytest.mark.case("engine", 118)
def test_staging_runs_in_parallel_and_commits_in_turn(
    tmp_path: Path, library: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (1, 8):
        monkeypatch.setenv("OMNIGRAPH_LOAD_CONCURRENCY", str(number))
        graph = new_graph(tmp_path / f"with-{number}", LIB)
        stager = TracedStager(internals(graph).parts.stager)
        meeting = threading.Barrier(2, timeout=20)
        if number > 1:
            _meet_in_staging(stager, meeting)
        _trace(graph, stager)

        graph.load(ndjson(LIBRARY), "append", index=False)

        assert contents(graph) == contents(library)
        assert stager.trace == ["stage"] * 9 + ["commit begins", "commit ends"] * 9
        assert_settled(graph)


def _meet_in_staging(stager: TracedStager, meeting: threading.Barrier) -> None:
    """Make the first two tables wait for each other: only parallel staging gets past that."""
    inner, lock, waiting = stager.inner, threading.Lock(), [2]

    class Meeting:
        def __getattr__(self, name: str) -> object:
            return getattr(inner, name)

        def stage_append(self, handle: SnapshotHandle, table: pa.Table) -> StagedWrite:
            with lock:
                is_one_of_two = waiting[0] > 0
                waiting[0] -= 1
            if is_one_of_two:
                meeting.wait()
            return inner.stage_append(handle, table)

    object.__setattr__(stager, "inner", Meeting())


TEN = "\n".join(f"node T{number} {{ name: String @key }}" for number in range(10))


@pytest.mark.case("engine", 119)
@pytest.mark.parametrize("concurrency", [1, 8])
def test_a_fault_while_staging_one_of_ten_tables_moves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, concurrency: int
) -> None:
    monkeypatch.setenv("OMNIGRAPH_LOAD_CONCURRENCY", str(concurrency))
    graph = new_graph(tmp_path / "ten", TEN)
    before = pins(graph)
    records = ndjson([node(f"T{number}", name="x") for number in range(10)])
    stager = internals(graph).parts.stager
    _trace(graph, TracedStager(stager, fails_at=7))

    with pytest.raises(StorageError, match="table 7"):
        graph.load(records, "append")

    assert pins(graph) == before
    assert_settled(graph)
    _trace(graph, TracedStager(stager))
    assert len(dict(graph.load(records, "append", index=False).tables)) == 10
    assert len(chain(reopen(graph))) == 2
