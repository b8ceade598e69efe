"""`connect`: what names a graph, and what a server that is not quite one of ours makes of it."""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.client.http import BrokenAnswer, HttpReply
from omnigraph.client.record_stream import lines_of
from omnigraph.client.remote.graph import RemoteGraph
from omnigraph.client.remote.rows import batches_of, reader_of
from omnigraph.core.errors import BadRequest
from omnigraph.graph.graph import Graph
from omnigraph.server.serving import Serving
from tests.support.atlas import GRAPH, place_atlas
from tests.support.commands import python, write
from tests.support.gates import policy_text
from tests.support.http_app import listening, settings_for
from tests.support.in_process import invoke
from tests.support.parity import ALL, WHOLE, place_parity
from tests.support.scripted import HEAD, LOST, Answer, serving

TOKEN = "mira-token-0123456789"
NOTHING_OF_HTTP = """\
import sys
import omnigraph
assert "pyarrow" not in sys.modules
omnigraph.connect(sys.argv[1]).close()
print("httpx" in sys.modules)
"""
RECORD = b'{"type":"Craft","data":{"id":"a"}}\n'
RECORDS = {"content-type": "application/x-ndjson; charset=utf-8"}
CODES = "query q() { match { $c: Craft } return { $c.code } order { $c.code } }"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a graph, which is served with one token."""
    folder = tmp_path_factory.mktemp("connect")
    place_atlas(folder)
    return folder


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    """The address of its server."""
    serving = Serving.begin(settings_for(folder / GRAPH, tokens={"act-mira": TOKEN}))
    try:
        with listening(serving) as url:
            yield url
    finally:
        serving.close()


@pytest.fixture
def home(tmp_path: Path, url: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The operator's files: a server with its token, and profiles."""
    write(
        tmp_path,
        "config.yaml",
        f"servers:\n  lab:\n    url: {url}\nprofiles:\n"
        "  behind:\n    server: lab\n    default_graph: default\n"
        f"  here:\n    store: {folder / GRAPH}\n",
    )
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path))
    monkeypatch.setenv("OMNIGRAPH_TOKEN_LAB", TOKEN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.case("surfaces", 610)
def test_every_way_of_naming_a_graph_leads_to_it(home: Path, url: str, folder: Path) -> None:
    ways = [
        omnigraph.connect(folder / GRAPH),
        omnigraph.connect(profile="here"),
        omnigraph.connect(url),
        omnigraph.connect(f"{url}/graphs/default"),
        omnigraph.connect(url, graph="default"),
        omnigraph.connect("lab", graph="default"),
        omnigraph.connect(profile="behind"),
        omnigraph.connect(url, token=TOKEN, timeout=30, retries=0),
    ]
    assert [type(graph) for graph in ways] == [Graph] * 2 + [RemoteGraph] * 6
    for graph in ways:
        with graph:
            assert len(graph.query(CODES)) == 3
    with (
        omnigraph.connect(url, token="another-token-0123") as graph,
        pytest.raises(omnigraph.AuthenticationError),
    ):
        graph.branches()


@pytest.mark.case("surfaces", 620)
def test_the_policy_of_a_projects_graph_holds_however_it_is_opened(folder: Path, tmp_path: Path) -> None:
    write(tmp_path, "policy.yaml", policy_text("read", actors="act-mira"))
    project = f"graphs:\n  desk: {{ uri: {folder / GRAPH}, policy: {{ file: policy.yaml }} }}\n"
    write(tmp_path, "omnigraph.yaml", f"{project}cli: {{ graph: desk, actor: act-mira }}\n")

    with omnigraph.connect(config=tmp_path / "omnigraph.yaml") as graph:
        assert len(graph.query(CODES)) == 3
        with pytest.raises(omnigraph.PolicyDenied, match="act-mira"):
            graph.create_branch("june")
    write(tmp_path, "omnigraph.yaml", f"{project}cli: {{ graph: desk }}\n")
    with (
        omnigraph.connect(config=tmp_path / "omnigraph.yaml") as graph,
        pytest.raises(omnigraph.PolicyDenied),
    ):
        graph.query(CODES)


@pytest.mark.case("surfaces", 610)
@pytest.mark.parametrize(
    ("named", "told"),
    [
        ({"target": "x.omni", "token": "t"}, "token is for a server"),
        ({"target": "x.omni", "timeout": 1.0}, "timeout is for a server"),
        ({"target": "x.omni", "retries": 1}, "retries is for a server"),
        ({"target": "nowhere", "graph": "a"}, "no server 'nowhere' under servers"),
        ({"target": "http://lab.example", "profile": "here"}, "give a target or a profile, not both"),
        ({"target": "http://lab.example", "timeout": 0, "token": "t"}, "timeout must be a number of seconds"),
        ({"target": "http://lab.example", "retries": -1, "token": "t"}, "retries must be a whole number"),
        ({"target": "http://lab.example", "token": "a b"}, "a token is one word"),
        ({"target": "http://lab.example", "graph": "graphs"}, "cannot be the id of a graph"),
        ({"target": 7}, "target must be a path or an address"),
        ({"profile": "none"}, "no profile 'none'"),
        ({}, "no graph given: name it with connect"),
    ],
)
def test_what_names_no_graph_is_refused_with_what_to_do(named: dict[str, Any], told: str, home: Path) -> None:
    with pytest.raises(BadRequest, match=told):
        omnigraph.connect(**named)


@pytest.mark.case("surfaces", 610)
def test_a_store_needs_nothing_of_http(folder: Path) -> None:
    assert python("-c", NOTHING_OF_HTTP, str(folder / GRAPH), cwd=folder).stdout.strip() == "False"


@pytest.mark.case("surfaces", 612)
@pytest.mark.parametrize("query", [ALL, WHOLE])
def test_rows_without_arrow_have_the_types_of_the_schema(query: str, tmp_path: Path) -> None:
    with omnigraph.open(place_parity(tmp_path)) as graph:
        expected, schema = graph.query(query), graph.schema()
    answers: tuple[Answer, ...] = (
        (200, expected.to_json(), {"Content-Type": "application/json"}),
        (200, {"schema_source": schema}, {}),
    )

    with serving(*answers) as script, script.remote() as graph:
        found = graph.query(query)

    assert found.to_arrow().schema.equals(expected.to_arrow().schema)
    assert found.to_arrow().equals(expected.to_arrow())
    assert (found.commit_id, found.target) == (expected.commit_id, expected.target)


def test_a_number_that_is_none_is_a_text_in_json_and_a_number_again() -> None:
    from omnigraph.client.remote.json_rows import typed

    assert [typed(text, pa.float64()) for text in ("Infinity", "-Infinity")] == [float("inf"), -float("inf")]
    assert str(typed("NaN", pa.float32())) == "nan"
    assert typed("9007199254749097", pa.uint64()) == 9007199254749097


@pytest.mark.case("surfaces", 613)
def test_a_stream_that_breaks_off_is_no_export(tmp_path: Path) -> None:
    half = b'{"type":"Craft","data":{"id":"a"}}\n{"type":"Cr'
    whole = b'{"type":"Craft","data":{"id":"a"}}\n'
    short = {**RECORDS, "Content-Length": "1000", "Connection": "close"}
    schema: Answer = (200, {"schema_source": "node Craft { code: String @key }"}, {})
    answers: tuple[Answer, ...] = (
        (200, whole, short),
        (200, half, RECORDS),
        schema,
        (200, whole, RECORDS),
        schema,
    )
    with serving(*answers) as script, script.remote() as graph:
        with pytest.raises(omnigraph.TransportError):
            graph.export().to_file(tmp_path / "cut.jsonl")
        with pytest.raises(omnigraph.TransportError, match="its last line has no end"):
            list(graph.export())
        baseline = graph.baseline()
        with pytest.raises(omnigraph.TransportError, match="a baseline ends with its cursor"):
            list(baseline)
        with pytest.raises(BadRequest, match="known once all"):
            _ = baseline.resume_cursor
    assert not (tmp_path / "cut.jsonl").exists()


@pytest.mark.case("surfaces", 783)
@pytest.mark.parametrize(
    "answer",
    [
        (200, RECORD, RECORDS | {"Content-Length": ""}),
        (200, RECORD + b'{"ty', RECORDS | {"Content-Length": ""}),
        (200, RECORD + b'{"ty', RECORDS),
        (200, b"<html>\n", {"Content-Type": "text/html"}),
        (200, RECORD, {}),
    ],
    ids=["no end", "cut", "cut in a line", "page", "no type"],
)
def test_an_export_that_may_be_cut_is_none(answer: Answer, tmp_path: Path) -> None:
    out = tmp_path / "export.jsonl"
    schema: Answer = (200, {"schema_source": "node Craft { code: String @key }"}, {})
    takings: list[Callable[[RemoteGraph], object]] = [
        lambda graph: graph.export().to_file(out),
        lambda graph: b"".join(graph.export().lines()),
        lambda graph: graph.baseline().to_file(out),
        lambda graph: list(graph.export()),
    ]
    with serving(*[answer] * len(takings), schema) as script, script.remote() as graph:
        for take in takings:
            with pytest.raises(omnigraph.TransportError):
                take(graph)
    with serving(answer, answer) as script:
        printed = invoke("export", "--store", script.url, cwd=tmp_path)
        written = invoke("export", "--store", script.url, "--out", out, cwd=tmp_path)

    assert (printed.code, written.code) == (1, 1)
    assert not out.exists()


@pytest.mark.case("surfaces", 783)
def test_a_line_may_come_in_any_pieces() -> None:
    text = b'{"a": 1}\n\n{"b": 2}\n'
    for size in range(1, len(text) + 1):
        pieces = (text[at : at + size] for at in range(0, len(text), size))
        assert [*lines_of(HttpReply(RECORDS | {"content-length": "9"}, pieces))] == [b'{"a": 1}', b'{"b": 2}']


@pytest.mark.case("surfaces", 613)
def test_rows_that_are_not_what_the_answer_says_are_no_rows() -> None:
    sink = pa.BufferOutputStream()
    table = pa.table({"n": [1, 2]})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    rows = sink.getvalue().to_pybytes()
    said = {
        "Content-Type": "application/vnd.apache.arrow.stream",
        "Omnigraph-Query-Name": "q",
        "Omnigraph-Row-Count": "2",
        "Omnigraph-Graph-Commit-Id": HEAD,
    }
    cut = (200, rows[: len(rows) // 2], said)
    fewer = (200, rows, {**said, "Omnigraph-Row-Count": "3"})
    with (
        serving(cut, fewer, (200, rows, {"Content-Type": said["Content-Type"]}), (200, rows, said)) as script,
        script.remote() as graph,
    ):
        for _ in range(3):
            with pytest.raises(omnigraph.TransportError):
                graph.query(CODES)
        assert graph.query(CODES).rows == [{"n": 1}, {"n": 2}]


@pytest.mark.case("surfaces", 613)
def test_rows_that_are_cut_off_anywhere_are_no_rows() -> None:
    sink = pa.BufferOutputStream()
    table = pa.table({"n": [1, 2], "t": ["a", "b"]})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    rows, said = sink.getvalue().to_pybytes(), {"Omnigraph-Row-Count": "2"}
    end = len(rows) - 8  # the mark of the end is 8 bytes: without it, all rows are there
    for length in range(end):
        answer = HttpReply(said, iter([rows[:length]]))
        with pytest.raises(BrokenAnswer), reader_of(answer) as reader:
            list(batches_of(reader, answer))


def event(commit_id: str) -> bytes:
    document = {
        "graph_commit_id": commit_id,
        "manifest_branch": None,
        "manifest_version": 1,
        "parent_commit_id": None,
        "merged_parent_commit_id": None,
        "actor_id": None,
        "created_at": 1,
    }
    return f"id: {commit_id}\nevent: commit\ndata: {json.dumps(document)}\n\n".encode()


@pytest.mark.case("surfaces", 614)
def test_commits_are_told_once_over_connections_that_break() -> None:
    begun = {"Content-Type": "text/event-stream"}
    answers: tuple[Answer, ...] = (
        (200, b": hello\n\n" + event("A") + event("B"), begun),  # the server was told to stop
        (200, event("C") + b"id: D\nevent: com", {**begun, "Content-Length": "500", "Connection": "close"}),
        (400, {"error": "no", "code": "bad_request"}, {"Omnigraph-Error": "BadRequest"}),
    )
    with serving(*answers) as script, script.remote() as graph:
        told = graph.events(branch="june")
        commits = [next(told).graph_commit_id for _ in range(3)]
        with pytest.raises(BadRequest, match="no"):
            next(told)

    assert commits == ["A", "B", "C"]
    assert script.after == [HEAD, "B", "C"]


@pytest.mark.case("surfaces", 614)
def test_events_of_a_server_are_the_commits_that_are_made(url: str) -> None:
    with omnigraph.connect(url, token=TOKEN) as graph:
        assert isinstance(graph, RemoteGraph)
        before = graph.commits()
        told = graph.events(after=before[-1].graph_commit_id)
        assert [next(told) for _ in before[:-1]] == before[-2::-1]
        told.close()


def test_a_connection_that_is_closed_is_a_closed_handle(url: str) -> None:
    graph = omnigraph.connect(url)
    graph.close()
    graph.close()
    with pytest.raises(omnigraph.HandleClosed):
        graph.branches()


def test_a_read_whose_answer_is_lost_is_no_write() -> None:
    with serving(LOST) as script, script.remote() as graph, pytest.raises(omnigraph.TransportError):
        graph.query(CODES)


@pytest.mark.case("surfaces", 619)
def test_a_server_is_asked_for_itself_and_for_its_graphs(url: str) -> None:
    listing: Answer = (200, {"graphs": [{"graph_id": "atlas", "uri": "x"}]}, {})
    with serving(listing) as script, omnigraph.Client(script.url, "tok-1") as client:
        assert client.graphs() == ["atlas"]

    async def main() -> None:
        async with omnigraph.AsyncClient(url, TOKEN) as client:
            assert (await client.health())["status"] == "ok"
            async with await client.graph("default") as graph:
                assert len(await graph.query(CODES)) == 3

    asyncio.run(main())
    with omnigraph.Client(url, TOKEN) as client, pytest.raises(omnigraph.PolicyDenied):
        client.graphs()


@pytest.mark.case("surfaces", 803)
def test_a_branch_beside_a_snapshot_is_refused_by_a_client_too(url: str) -> None:
    with omnigraph.connect(url, token=TOKEN) as graph:
        head = graph.commits()[0].graph_commit_id
        for branch in ("main", "nobody-has-this"):
            with pytest.raises(BadRequest, match="cannot be combined"):
                graph.query(CODES, branch=branch, snapshot=head)
