"""Reads and mutations over HTTP: bodies, names, refusals and their order."""

import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pyarrow as pa
import pytest
from pydantic import BaseModel

import omnigraph
from omnigraph.core.errors import HistoricalVersionReclaimed
from omnigraph.server.bodies import read_json_body
from omnigraph.server.route import PARSED_AT_ONCE
from tests.support.atlas import MUTATIONS, place_atlas
from tests.support.http_app import serving_app, settings_for
from tests.support.http_server import error_of
from tests.support.in_process import invoke
from tests.support.seam import patched

READ = "query crafts($least: F64?) { match { $c: Craft } return { $c.code, $c.name } order { $c.code } }"
ARROW = "application/vnd.apache.arrow.stream"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """One open server for the tests of this file; each writes rows of its own."""
    with serving_app(settings_for(place_atlas(tmp_path_factory.mktemp("queries")))) as client:
        yield client


def read(client: httpx.Client, text: str, **more: object) -> list[dict[str, object]]:
    answer = client.post("/query", json={"query": text, **more})
    assert answer.status_code == 200, answer.text
    rows: list[dict[str, object]] = answer.json()["rows"]
    return rows


@pytest.mark.case("surfaces", 126)
def test_a_read_answers_with_columns_rows_and_its_commit(client: httpx.Client) -> None:
    body = {"query": READ + MUTATIONS, "name": "crafts", "params": {"least": None}}

    answer = client.post("/query", json=body)

    assert answer.status_code == 200
    document = answer.json()
    assert list(document) == ["query_name", "target", "row_count", "columns", "rows", "graph_commit_id"]
    assert document["query_name"] == "crafts"
    assert document["target"] == {"branch": "main", "snapshot": None}
    assert document["columns"] == ["c.code", "c.name"]
    assert document["row_count"] == len(document["rows"])
    assert document["rows"][0] == {"c.code": "GLL-1", "c.name": "gll-1"}
    head = client.get("/snapshot").json()
    assert head["branch"] == "main"
    again = client.post("/query", json={"query": READ, "snapshot": document["graph_commit_id"]})
    assert again.json()["rows"] == document["rows"]


@pytest.mark.case("surfaces", 127)
def test_the_older_words_for_a_read_work_and_name_their_successor(client: httpx.Client) -> None:
    answer = client.post("/read", json={"query_source": READ, "query_name": "crafts"})

    assert answer.status_code == 200
    assert "graph_commit_id" not in answer.json()
    assert answer.headers["deprecation"] == "true"
    assert answer.headers["link"] == '<query>; rel="successor-version"'


@pytest.mark.case("surfaces", 128)
def test_what_cannot_be_read_is_refused_with_400_or_415(client: httpx.Client) -> None:
    mutation = {"query": MUTATIONS, "name": "retire", "params": {"code": "VGR-1"}}
    as_text = client.post("/query", content=b"{}", headers={"Content-Type": "text/plain"})
    as_json = {"Content-Type": "application/json"}

    assert "/mutate" in error_of(client.post("/query", json=mutation), 400, "bad_request")
    assert "'query' is missing" in error_of(client.post("/query", json={}), 400, "bad_request")
    assert "application/json" in error_of(as_text, 415, "bad_request")
    assert "not JSON" in error_of(client.post("/query", content=b"{", headers=as_json), 400, "bad_request")
    assert "/query" in error_of(client.post("/mutate", json={"query": READ}), 400, "bad_request")


@pytest.mark.case("surfaces", 129)
def test_a_branch_and_a_snapshot_exclude_each_other(client: httpx.Client) -> None:
    body = {"query": READ, "branch": "main", "snapshot": "01J"}

    assert "not both" in error_of(client.post("/query", json=body), 400, "bad_request")


@pytest.mark.case("surfaces", 130)
def test_both_words_for_a_mutation_give_the_same_shape(client: httpx.Client) -> None:
    new = {"query": MUTATIONS, "name": "add_craft", "params": {"code": "A-1", "name": "a"}}
    old = {"query_source": MUTATIONS, "query_name": "add_craft", "params": {"code": "A-2", "name": "a"}}

    mutated, changed = client.post("/mutate", json=new), client.post("/change", json=old)

    assert mutated.status_code == changed.status_code == 200
    assert list(mutated.json()) == list(changed.json())
    assert mutated.json()["affected_nodes"] == changed.json()["affected_nodes"] == 1
    assert changed.json()["commit"]["parent_commit_id"] == mutated.json()["commit"]["graph_commit_id"]
    assert changed.headers["link"] == '<mutate>; rel="successor-version"'


def test_names_that_a_text_does_not_have_are_mistakes(client: httpx.Client) -> None:
    unknown = client.post("/query", json={"query": READ, "name": "nope"})
    several = client.post("/mutate", json={"query": MUTATIONS})
    both = client.post("/mutate", json={"query": MUTATIONS, "query_source": MUTATIONS})

    assert "nope" in error_of(unknown, 400, "bad_request")
    error_of(several, 400, "bad_request")
    assert "query_source" in error_of(both, 400, "bad_request")


@pytest.mark.case("surfaces", 330)
@pytest.mark.parametrize("field", ["query", "query_source"])
def test_the_name_of_a_file_is_a_text_like_any_other(
    field: str, client: httpx.Client, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.gq"
    secret.write_text("query found() { match { $c: Craft } return { $c.code } }", encoding="utf-8")
    route = "/query" if field == "query" else "/read"

    text = error_of(client.post(route, json={field: str(secret)}), 400, "bad_request")

    assert text.startswith("parse error")
    error_of(client.post("/mutate", json={"query": str(secret)}), 400, "bad_request")


@pytest.mark.case("surfaces", 36)
def test_parameters_are_checked_by_name_and_type(client: httpx.Client) -> None:
    def refused(params: dict[str, object]) -> str:
        body = {"query": MUTATIONS, "name": "add_craft", "params": params}
        return error_of(client.post("/mutate", json=body), 400, "bad_request")

    assert "'name'" in refused({"code": "X"})
    assert "'bogus'" in refused({"code": "X", "name": "x", "bogus": 1})
    assert "expected string, got number" in refused({"code": 5, "name": "x"})


@pytest.mark.case("surfaces", 135)
def test_a_conditional_write_needs_its_header_and_an_unmoved_branch(client: httpx.Client) -> None:
    def write(code: str, path: str, **headers: str) -> httpx.Response:
        body = {"query": MUTATIONS, "name": "add_craft", "params": {"code": code, "name": "c"}}
        return client.post(path, json=body, headers=headers)

    condition, path = "Omnigraph-If-Graph-Commit", "/mutate/if-graph-commit"
    before = client.post("/query", json={"query": READ}).json()["graph_commit_id"]

    assert write("C-1", path, **{condition: before}).status_code == 200
    lost = write("C-2", path, **{condition: before})
    assert before in error_of(lost, 412, None)
    assert lost.json()["precondition_failure"]["expected"] == before
    assert condition in error_of(write("C-3", path), 400, "bad_request")
    error_of(write("C-3", "/mutate", **{condition: before}), 400, "bad_request")
    for wrong in (f'"{before}"', "*", f"{before}, {before}", f"W/{before}", ""):
        error_of(write("C-3", path, **{condition: wrong}), 400, "bad_request")
    codes = [row["c.code"] for row in read(client, READ)]
    assert "C-1" in codes
    assert not {"C-2", "C-3"} & set(codes)


@pytest.mark.case("surfaces", 331)
def test_rows_come_as_a_stream_of_arrow_to_callers_that_accept_it(client: httpx.Client) -> None:
    plain = client.post("/query", json={"query": READ}).json()

    answer = client.post("/query", json={"query": READ}, headers={"Accept": f"{ARROW}, application/json"})

    assert answer.headers["content-type"] == ARROW
    table = pa.ipc.open_stream(answer.content).read_all()
    assert table.to_pylist() == plain["rows"]
    assert answer.headers["omnigraph-graph-commit-id"] == plain["graph_commit_id"]
    assert answer.headers["omnigraph-row-count"] == str(plain["row_count"])
    assert answer.headers["omnigraph-query-name"] == "crafts"
    assert answer.headers["omnigraph-branch"] == "main"
    refused = client.post("/query", json={"query": READ}, headers={"Accept": f"{ARROW};q=0"})
    assert refused.headers["content-type"] == "application/json"


def test_an_unknown_branch_or_commit_is_not_found(client: httpx.Client) -> None:
    branch = client.post("/query", json={"query": READ, "branch": "nope"})
    commit = client.post("/query", json={"query": READ, "snapshot": "01ARZ3NDEKTSV4RRFFQ69G5FAV"})

    assert error_of(branch, 404, "not_found") == "branch 'nope' not found"
    error_of(commit, 404, "not_found")
    error_of(client.get("/snapshot", params={"branch": "nope"}), 404, "not_found")


def test_every_answer_has_the_id_of_its_request(client: httpx.Client) -> None:
    given = client.get("/healthz", headers={"X-Request-Id": "mine-1"})
    unusable = client.get("/healthz", headers={"X-Request-Id": "two words"})

    assert given.headers["x-request-id"] == "mine-1"
    assert len(unusable.headers["x-request-id"]) == 26


@pytest.mark.case("engine", 309)
@pytest.mark.case("surfaces", 213)
def test_a_version_that_was_cleaned_up_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_READER_GRACE", "0")
    people = "query q() { match { $p: Person } return { $p.name } }"
    with omnigraph.init(tmp_path / "graph", "node Person { name: String @key }\n") as graph:
        commits = [
            graph.load(f'{{"type":"Person","data":{{"name":"{name}"}}}}'.encode(), "overwrite").commit
            for name in ("ann", "bob")
        ]
        past = commits[0]
        assert past is not None
        assert graph.cleanup(keep=1).failed == ()
        with pytest.raises(HistoricalVersionReclaimed) as caught:
            graph.query(people, snapshot=past.graph_commit_id)

    with serving_app(settings_for(tmp_path / "graph")) as client:
        answer = client.post("/query", json={"query": people, "snapshot": past.graph_commit_id})
        assert read(client, people) == [{"p.name": "bob"}]

    assert error_of(answer, 410, None)
    told = answer.json()["version_reclaimed"]
    assert (told["table_key"], told["version"]) == ("node:Person", caught.value.version)
    words = ("query", "--store", "graph", "-e", people, "--snapshot", past.graph_commit_id)
    printed = invoke(*words, cwd=tmp_path)
    assert (printed.code, printed.stdout) == (1, "")
    assert "node:Person" in printed.stderr
    assert "cleanup" in printed.stderr


@pytest.mark.case("surfaces", 343)
def test_a_large_body_is_read_beside_the_thread_of_connections(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []

    def noted(body: bytes, model: type[BaseModel], *, may_be_absent: bool) -> BaseModel:
        threads.append(threading.current_thread().name)
        return read_json_body(body, model, may_be_absent=may_be_absent)

    patched(monkeypatch, "omnigraph.server.route.read_json_body", noted)
    text = "query q() { match { $c: Craft } return { $c.code } }"
    for blanks in (0, PARSED_AT_ONCE):
        assert client.post("/query", json={"query": text + " " * blanks}).status_code == 200

    assert [name.startswith("omnigraph-read") for name in threads] == [False, True]
