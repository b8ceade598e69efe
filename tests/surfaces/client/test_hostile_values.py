"""Values of a server that no server of ours sends: one typed error, wherever they would be used."""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.client.http import BrokenAnswer, HttpReply
from omnigraph.client.remote.graph import RemoteGraph
from omnigraph.client.remote.rows import batches_of, reader_of
from tests.support.in_process import invoke
from tests.support.scripted import COMMIT, Answer, serving

SCHEMA: Answer = (200, {"schema_source": "node M { h: String @key\n n: I64?\n t: DateTime?\n d: Date? }"}, {})
QUERY = "query q() { match { $m: M } return { $m.n as n, $m.t as t, $m.h as h, $m.d as d } }"
RECORDS = {"Content-Type": "application/x-ndjson"}
DEEP = b"[" * 2_000 + b"]" * 2_000


def rows(row: dict[str, object]) -> Answer:
    target = {"branch": "main", "snapshot": None}
    document = {"query_name": "q", "target": target, "row_count": 1, "columns": [*"nthd"], "rows": [row]}
    return 200, document, {}


@pytest.mark.case("surfaces", 786)
@pytest.mark.parametrize(
    "row",
    [
        {"n": {"a": 1}},
        {"n": [1]},
        {"h": [["a"]]},
        {"n": 2**70},
        {"n": "9" * 5_000},
        {"t": 10**18},
        {"d": 10**9},
        {"t": "soon"},
    ],
    ids=lambda row: repr(row)[:20],
)
def test_rows_of_other_values_are_none(row: dict[str, object]) -> None:
    with (
        serving(rows(row), SCHEMA) as script,
        script.remote() as graph,
        pytest.raises(omnigraph.TransportError),
    ):
        graph.query(QUERY)


@pytest.mark.case("surfaces", 786)
@pytest.mark.parametrize(
    "type_",
    [pa.timestamp("ms", "UTC"), pa.timestamp("us"), pa.timestamp("ms", "No/where"), pa.date32(), pa.date64()],
    ids=str,
)
def test_times_that_no_calendar_has_are_no_rows(type_: pa.DataType) -> None:
    is_small = type_.bit_width == 32
    times = pa.array([10**9 if is_small else 10**18], pa.int32() if is_small else pa.int64()).cast(type_)
    lists = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), times)
    for column in (times, lists, pa.StructArray.from_arrays([lists], ["t"])):
        table, sink = pa.table({"t": column}), pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        answer = HttpReply({"Omnigraph-Row-Count": "1"}, iter([sink.getvalue().to_pybytes()]))
        with pytest.raises(BrokenAnswer), reader_of(answer) as reader:
            list(batches_of(reader, answer))


@pytest.mark.case("surfaces", 786)
@pytest.mark.parametrize(
    ("document", "ask"),
    [
        ({"commits": [{**COMMIT, "created_at": "now"}]}, lambda graph: graph.commit("a").created_at),
        ({**COMMIT, "created_at": "now"}, lambda graph: graph.commit("a").created_at),
        ({**COMMIT, "created_at": 10**30}, lambda graph: graph.commit("a").created_at),
        ({**COMMIT, "manifest_version": "1"}, lambda graph: graph.commit("a")),
        ({**COMMIT, "message": 5}, lambda graph: graph.commit("a")),
        ({"blocks": [], "next_page_token": 1.5}, lambda graph: graph.poll_changes(cursor="c")),
        ({"blocks": [], "cursor": 1.5, "caught_up": True}, lambda graph: graph.poll_changes(cursor="c")),
        (
            {"supported": True, "steps": [], "notes": 5},
            lambda graph: graph.plan_schema("node M { h: I64 @key }"),
        ),
        ({"graphs": 5}, lambda graph: graph.branches()),
    ],
    ids=range(9),
)
def test_members_of_another_kind_are_no_answer(
    document: object, ask: Callable[[RemoteGraph], object]
) -> None:
    with (
        serving((200, document, {})) as script,
        script.remote() as graph,
        pytest.raises(omnigraph.TransportError, match="not one of this API"),
    ):
        ask(graph)


@pytest.mark.case("surfaces", 786)
def test_a_history_without_commits_has_no_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.support.scripted.COMMITS", (200, {"commits": []}, {}))
    with (
        serving((200, {"commits": []}, {})) as script,
        script.remote() as graph,
        pytest.raises(omnigraph.TransportError, match="not one of this API"),
    ):
        graph.query(QUERY, snapshot=1)


@pytest.mark.case("surfaces", 786)
def test_a_moment_that_no_calendar_has_is_no_traceback(tmp_path: Path) -> None:
    for micros in (10**18, 10**30):
        commit = {**COMMIT, "created_at": micros}
        with serving((200, commit, {})) as script:
            outcome = invoke("commit", "show", "a", "--store", script.url, cwd=tmp_path)
        assert outcome.code == 1
        assert "the server's answer is not one of this API" in outcome.stderr


@pytest.mark.case("surfaces", 786)
def test_a_record_that_is_nested_is_one_or_none() -> None:
    record = b'{"type":"M","data":{"h":"a","t":%b}}\n' % DEEP
    with (
        serving((200, record, RECORDS), SCHEMA) as script,
        script.remote() as graph,
        pytest.raises(omnigraph.TransportError),
    ):
        list(graph.export())
    for depth in (900, 20):
        nested = json.loads(b"[" * depth + b"]" * depth)
        record = json.dumps({"type": "M", "data": {"h": "a", "t": nested}}).encode() + b"\n"
        with serving((200, record, RECORDS), SCHEMA) as script, script.remote() as graph:
            assert list(graph.export()) == [{"type": "M", "data": {"h": "a", "t": nested}}]
