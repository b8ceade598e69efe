"""What a server gives of blobs, tables, networks and schemas: of one commit, whole, and to whom it may."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import duckdb
import pyarrow as pa
import pytest

import omnigraph
from omnigraph.client.remote.graph import RemoteGraph
from omnigraph.core.errors import OmnigraphError
from omnigraph.operations.blob import PIECE_BYTES
from omnigraph.server.serving import Serving
from tests.engine.blobs.steps import FIVE, VALUES, documents
from tests.support.gates import policy_of
from tests.support.http_app import listening, settings_for
from tests.support.parity import place_parity
from tests.support.scripted import HEAD, Answer, serving

ADD = 'query q() { insert Mission { title: "Later" } }'
CHANGE = 'query q($b: Blob) { update Doc set { body: $b } where name = "five" }'
COUNT = "SELECT count(*) FROM Mission"
TOKEN = "token-of-ann-0123456789"
ARROW = {"Content-Type": "application/vnd.apache.arrow.stream"}
AnyGraph: TypeAlias = Any  # in its storage or behind a server


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph of documents with values of every size."""
    folder = tmp_path_factory.mktemp("remote-blobs") / "g.omni"
    documents(folder).close()
    return folder


@pytest.fixture(scope="module")
def docs(place: Path) -> Iterator[RemoteGraph]:
    """The graph of documents behind a server."""
    with served(place) as graph:
        yield graph


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[RemoteGraph]:
    """The graph of the parity tests behind a server of its own."""
    with served(place_parity(tmp_path)) as graph:
        yield graph


class served:
    """A connection to a server of a graph."""

    def __init__(self, place: Path, *rules: str) -> None:
        policy = {"tokens": {"ann": TOKEN}, "policy": policy_of(*rules)} if rules else {}
        self._serving = Serving.begin(settings_for(place, **policy))  # type: ignore[arg-type] # by their names
        self._listening = listening(self._serving)
        self._token = TOKEN if rules else None

    def __enter__(self) -> RemoteGraph:
        graph = omnigraph.connect(self._listening.__enter__(), token=self._token)
        assert isinstance(graph, RemoteGraph)
        self._remote = graph
        return graph

    def __exit__(self, *_: object) -> None:
        self._remote.close()
        self._listening.__exit__(None, None, None)
        self._serving.close()


# Blobs


@pytest.mark.case("surfaces", 721)
@pytest.mark.parametrize("name", [name for name, value in VALUES.items() if value is not None])
def test_a_value_is_what_the_storage_has(name: str, docs: RemoteGraph, place: Path, tmp_path: Path) -> None:
    value = VALUES[name]
    assert value is not None
    with omnigraph.open(place, mode="ro") as here:
        stored = here.blob("node", "Doc", name, "body")
        expected = (stored.kind, stored.size, stored.etag, stored.uri, stored.commit_id)

    found = docs.blob("node", "Doc", name, "body")

    assert (found.kind, found.size, found.etag, found.uri, found.commit_id) == expected
    assert found == docs.blob("node", "Doc", name, "body")
    assert found.read() == value
    assert found.read(0, 3) == value[:3]
    assert found.read(0, 10**12) == value
    pieces = list(found.stream())
    assert b"".join(pieces) == value
    assert all(0 < len(piece) <= PIECE_BYTES for piece in pieces)
    found.save(tmp_path / "saved")
    assert (tmp_path / "saved").read_bytes() == value


@pytest.mark.case("surfaces", 721)
def test_a_value_is_read_from_the_commit_it_was_found_in(tmp_path: Path) -> None:
    documents(tmp_path / "g.omni").close()
    with served(tmp_path / "g.omni") as graph:
        found = graph.blob("node", "Doc", "five", "body")
        pieces = found.stream()
        first = next(pieces)

        graph.mutate(CHANGE, params={"b": "base64:AAAA"})

        assert first + b"".join(pieces) == VALUES["five"]
        assert graph.blob("node", "Doc", "five", "body").read() == bytes(3)
        assert graph.blob("node", "Doc", "five", "body").etag != found.etag
        assert graph.at(found.commit_id).blob("node", "Doc", "five", "body").size == FIVE


@pytest.mark.case("surfaces", 721)
def test_each_piece_is_asked_for_when_it_is_taken_and_only_of_this_value(tmp_path: Path) -> None:
    size = PIECE_BYTES + 2
    marks = {"ETag": '"one"', "Omnigraph-Blob-Kind": "managed"}
    described: Answer = (
        200,
        b"",
        marks | {"Content-Length": str(size), "Omnigraph-Snapshot-Id": HEAD},
    )
    another: Answer = (412, {"error": "the value is not the one", "code": "conflict"}, {})
    first = marks | {"Content-Range": f"bytes 0-{PIECE_BYTES - 1}/{size}"}
    last = marks | {"Content-Range": f"bytes {PIECE_BYTES}-{size - 1}/{size}"}
    whole: Answer = (206, bytes(PIECE_BYTES), first)
    answers: tuple[Answer, ...] = (
        described,
        whole,
        another,
        whole,
        (206, b"x", last),
        whole,
        (206, b"xyz", last),
        whole,
        (200, b"xy", last),
        whole,
        (206, b"xy", last | {"ETag": '"two"'}),
        whole,
        (206, b"x", last | {"Content-Range": f"bytes {PIECE_BYTES}-{PIECE_BYTES}/{PIECE_BYTES + 1}"}),
    )
    with serving(*answers) as script, script.remote() as graph:
        found = graph.blob("node", "Doc", "x", "body")
        pieces = found.stream()
        assert script.ranges == []
        next(pieces)
        assert script.ranges == [(f"bytes=0-{PIECE_BYTES - 1}", '"one"')]
        with pytest.raises(omnigraph.PreconditionFailed):
            next(pieces)
        assert script.ranges[1:] == [(f"bytes={PIECE_BYTES}-{size - 1}", '"one"')]
        with pytest.raises(omnigraph.TransportError, match="fewer bytes"):
            found.save(tmp_path / "cut")
        for reason in ("more bytes", "not the range", "another value", "fewer bytes than were asked"):
            with pytest.raises(omnigraph.TransportError, match=reason):
                found.read()
        asked = [line.partition("?")[2] for line in script.asked[1:]]

    assert not (tmp_path / "cut").exists()
    assert all(f"snapshot={HEAD}" in words for words in asked)


@pytest.mark.case("surfaces", 722)
@pytest.mark.parametrize(
    "ask",
    [
        lambda g: g.blob("node", "Doc", "null", "body"),
        lambda g: g.blob("node", "Doc", "nobody", "body"),
        lambda g: g.blob("node", "Doc", "half \ud800", "body"),
        lambda g: g.blob("node", "Nope", "one", "body"),
        lambda g: g.blob("node", "Doc", "one", "note"),
        lambda g: g.blob("node", "Doc", "one", "nope"),
        lambda g: g.blob("noun", "Doc", "one", "body"),
        lambda g: g.blob("node", 7, "one", "body"),
        lambda g: g.blob("node", "Doc", "one", "body", branch="nowhere"),
        lambda g: g.blob("node", "Doc", "one", "body", snapshot=HEAD),
        lambda g: g.blob("node", "Doc", "one", "body").read(1),
        lambda g: g.blob("node", "Doc", "empty", "body").read(1, 2),
        lambda g: g.blob("node", "Doc", "one", "body").read(-1),
        lambda g: g.blob("node", "Doc", "one", "body").stream(1, 0),
        lambda g: g.blob("node", "Doc", "one", "body").read(True),
    ],
)
def test_what_is_no_value_is_refused_as_the_storage_does(
    ask: Callable[[AnyGraph], object], docs: RemoteGraph, place: Path
) -> None:
    with omnigraph.open(place, mode="ro") as here:
        expected, raised = refused(ask, here), refused(ask, docs)

    assert type(raised) is type(expected)
    assert str(raised) == str(expected)
    if isinstance(expected, omnigraph.BlobRangeError):
        assert vars(raised) == vars(expected)


def refused(ask: Callable[[AnyGraph], object], graph: AnyGraph) -> OmnigraphError:
    with pytest.raises(OmnigraphError) as raised:
        ask(graph)
    return raised.value


# Loads


@pytest.mark.case("surfaces", 723)
def test_a_table_without_rows_among_several_is_refused_where_it_would_empty_a_type(
    graph: RemoteGraph,
) -> None:
    nothing = pa.table({"title": pa.array([], pa.utf8())})
    with pytest.raises(omnigraph.UnsupportedError, match="load Mission, which has no rows, alone"):
        graph.load_tables({"Mission": nothing, "Paper": [{"code": "P-8"}]}, "overwrite")
    graph.load_tables({"Flew": []}, "overwrite")
    graph.load_tables({"Mission": nothing}, "overwrite")

    assert (graph.table("Mission").num_rows, graph.table("Flew").num_rows) == (0, 0)


# Tables, networks, SQL


@pytest.mark.case("surfaces", 724)
def test_a_connection_and_rows_show_one_commit_and_end_with_the_graph(graph: RemoteGraph) -> None:
    rows, held, sql = graph.scan("Mission"), graph.scan("node:Mission", columns=["title"]), graph.duckdb()
    first = graph.commits(limit=1)[0].graph_commit_id

    graph.mutate(ADD)

    assert sql.execute(COUNT).fetchone() == (2,)
    assert sql.execute(COUNT).fetchone() == (2,), "it can be asked again"
    assert graph.duckdb().execute(COUNT).fetchone() == (3,)
    assert graph.duckdb(snapshot=first).execute(COUNT).fetchone() == (2,)
    assert (rows.commit_id, rows.to_arrow().num_rows) == (first, 2)
    assert [batch.schema.names for batch in held] == [["title"]]
    assert graph.to_networkx(types=["Mission"]).number_of_nodes() == 3
    assert graph.to_networkx(types=["Mission"], snapshot=first).graph == {
        "branch": "main",
        "commit_id": first,
    }
    with pytest.raises(duckdb.Error):
        sql.execute("DELETE FROM Mission")
    graph.close()
    with pytest.raises(duckdb.Error, match="closed"):
        sql.execute(COUNT).fetchall()


@pytest.mark.case("surfaces", 724)
@pytest.mark.parametrize(("library", "verb"), [("duckdb", "duckdb"), ("networkx", "to_networkx")])
def test_a_missing_library_is_named_with_its_extra(
    library: str, verb: str, graph: RemoteGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)

    with pytest.raises(omnigraph.UnsupportedError, match=rf"pip install 'omnigraph\[{library}\]'"):
        getattr(graph, verb)()


@pytest.mark.case("surfaces", 725)
def test_rows_that_are_cut_off_or_of_another_commit_are_no_table() -> None:
    sink = pa.BufferOutputStream()
    table = pa.table({"id": ["a", "b"]})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    rows = sink.getvalue().to_pybytes()
    said = {**ARROW, "Omnigraph-Row-Count": "2", "Omnigraph-Graph-Commit-Id": HEAD}
    answers: tuple[Answer, ...] = (
        (200, rows[: len(rows) // 2], said),
        (200, rows, {**said, "Omnigraph-Row-Count": "3"}),
        (200, rows, {**said, "Omnigraph-Graph-Commit-Id": "another"}),
        (200, rows, said),
    )
    with serving(*answers) as script, script.remote() as graph:
        found = graph.scan("Mission", snapshot=HEAD)
        for _ in range(3):
            with pytest.raises(omnigraph.TransportError):
                found.to_arrow()
        assert found.to_arrow() == table


@pytest.mark.case("surfaces", 880)
def test_an_entity_is_one_row() -> None:
    def sent(*ids: str) -> bytes:
        sink, table = pa.BufferOutputStream(), pa.table({"id": [*ids]})
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return sink.getvalue().to_pybytes()

    answers: tuple[Answer, ...] = (
        (200, sent("a", "b"), {**ARROW, "Omnigraph-Row-Count": "2"}),
        (200, sent("b"), {**ARROW, "Omnigraph-Row-Count": "1"}),
        (200, sent("a"), {**ARROW, "Omnigraph-Row-Count": "2"}),
        (200, {"entity": {"id": "a"}}, {"Content-Type": "application/json"}),
        (200, sent("a"), {**ARROW, "Omnigraph-Row-Count": "1"}),
    )
    with serving(*answers) as script, script.remote() as graph:
        for _ in range(4):
            with pytest.raises(omnigraph.TransportError):
                graph.entity_at("Mission", "a", "june")
        assert graph.entity_at("Mission", "a", "june") == {"id": "a"}
    assert script.asked == ["GET /entity?type=Mission&id=a&target=june"] * 5


# Who may


@pytest.mark.case("surfaces", 727)
def test_who_may_read_a_branch_reads_what_it_shows(tmp_path: Path) -> None:
    place = place_parity(tmp_path)
    with omnigraph.open(place) as here:
        here.create_branch("june")
        head = here.commits()[0].graph_commit_id
    reads: list[Callable[[AnyGraph, dict[str, str]], object]] = [
        lambda g, on: g.blob("node", "Paper", "P-1", "scan", **on).read(0, 2),
        lambda g, on: g.scan("Mission", **on).to_arrow().num_rows,
        lambda g, on: g.duckdb(**on).execute(COUNT).fetchone(),
        lambda g, on: g.to_networkx(**on).graph["branch"],
        lambda g, on: g.describe("Mission", **on).rows,
        lambda g, on: g.explain("query q() { match { $m: Mission } return { $m } }", **on),
    ]
    with served(place, "read; branch_scope: unprotected") as graph:
        found = [read(graph, {"branch": "june"}) for read in reads]
        for read in reads:
            for where in ({"branch": "main"}, {"snapshot": head}):
                with pytest.raises(omnigraph.PolicyDenied):
                    read(graph, where)

    assert found[:-1] == [b"\x00\x01", 2, (2,), "june", 2]


# Schemas


@pytest.mark.case("surfaces", 729)
def test_a_view_has_the_schema_of_its_commit(graph: RemoteGraph, tmp_path: Path) -> None:
    text, first = graph.schema(), graph.commits(limit=1)[0].graph_commit_id
    graph.apply_schema(text.replace("title: String @key", "title: String @key\n    motto: String?"))

    old, new = graph.at(first).schema(), graph.at(graph.snapshot()).schema()

    assert "motto" not in old
    assert "motto: String?" in new
    assert graph.scan("Mission", snapshot=first).to_arrow().column_names == ["id", "title"]
    assert graph.duckdb(snapshot=first).execute("SELECT * FROM Mission LIMIT 1").df().columns.to_list() == [
        "id",
        "title",
    ]
    assert graph.to_networkx(snapshot=first, types=["Mission"]).number_of_nodes() == 2
