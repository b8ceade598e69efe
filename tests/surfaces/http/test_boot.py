"""A server starts only in a state that its operator asked for, says where it listens, and ends in order."""

import json
import os
import shutil
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from omnigraph.cli.server_settings import GivenServer
from omnigraph.server.settings import Bind
from tests.support.atlas import GRAPH, place_atlas
from tests.support.commands import write
from tests.support.http_server import TOKENS, error_of, running_server
from tests.support.in_process import invoke

TOKENS_JSON = "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON"
ONE_TOKEN = "OMNIGRAPH_SERVER_BEARER_TOKEN"
AWS_SECRET = "OMNIGRAPH_SERVER_BEARER_TOKENS_AWS_SECRET"
TOKENS_FILE = "OMNIGRAPH_SERVER_BEARER_TOKENS_FILE"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a graph in it, which no test of this file changes."""
    made = tmp_path_factory.mktemp("boot")
    place_atlas(made)
    return made


@pytest.mark.case("surfaces", 109)
def test_a_server_without_tokens_does_not_start(folder: Path) -> None:
    outcome = invoke("server", GRAPH, "--bind", "127.0.0.1:0", cwd=folder)

    assert outcome.code == 1
    assert outcome.stdout == ""
    for name in ("--unauthenticated", TOKENS_JSON, TOKENS_FILE, ONE_TOKEN):
        assert name in outcome.stderr


@pytest.mark.case("surfaces", 654)
@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "127.0.0.1"])
@pytest.mark.parametrize("variable", [None, "", "0", "false", "FALSE"])
def test_no_address_is_served_openly_by_itself(
    host: str, variable: str | None, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The port is taken: whoever tried to listen would say so."""
    if variable is not None:
        monkeypatch.setenv("OMNIGRAPH_UNAUTHENTICATED", variable)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"{host}:{taken.getsockname()[1]}"
        uri = json.dumps(str(folder / GRAPH))
        project = write(
            tmp_path, "p.yaml", f'graphs: {{ a: {{ uri: {uri} }} }}\nserver: {{ bind: "{address}" }}\n'
        )
        by_flag = invoke("server", GRAPH, "--bind", address, cwd=folder)
        by_file = invoke("server", "--config", project, cwd=folder)
        monkeypatch.setenv("OMNIGRAPH_BIND", address)
        by_variable = invoke("server", GRAPH, cwd=folder)

    for outcome in (by_flag, by_file, by_variable):
        assert (outcome.code, outcome.stdout) == (1, "")
        assert "--unauthenticated" in outcome.stderr
        assert "cannot listen" not in outcome.stderr


@pytest.mark.case("surfaces", 654)
def test_a_server_listens_on_loopback_unless_told_otherwise(folder: Path) -> None:
    given = GivenServer(str(folder / GRAPH), None, None, None, None, is_unauthenticated=True)

    assert given.settings().bind == Bind("127.0.0.1", 8080)
    assert replace(given, bind="0.0.0.0:80").settings().bind == Bind("0.0.0.0", 80)
    assert replace(given, bind="[::]:80").settings().bind == Bind("::", 80)


@pytest.mark.case("surfaces", 115)
@pytest.mark.parametrize(
    ("tokens", "reason"),
    [
        ({"a": "same", "b": "same"}, "same token"),
        ({" ": "token"}, "not allowed"),
        ({"a": " "}, "blank"),
        ({"a": "x", "a ": "y"}, "two tokens"),
    ],
)
def test_token_sources_that_cannot_be_used_stop_the_boot(
    tokens: dict[str, str], reason: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TOKENS_JSON, json.dumps(tokens))

    outcome = invoke("server", GRAPH, "--bind", "127.0.0.1:0", cwd=folder)

    assert outcome.code == 1
    assert reason in outcome.stderr
    assert "same" not in outcome.stderr.replace("same token", "")


@pytest.mark.case("surfaces", 212)
def test_a_token_of_the_engine_itself_stops_the_boot(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKENS_JSON, '{"omnigraph:x": "token"}')

    outcome = invoke("server", GRAPH, "--bind", "127.0.0.1:0", cwd=folder)

    assert outcome.code == 1
    assert "omnigraph:x" in outcome.stderr


@pytest.mark.case("surfaces", 906)
@pytest.mark.parametrize("more", [None, TOKENS_JSON, "--unauthenticated"])
def test_tokens_from_a_secret_of_aws_are_refused_and_never_left_out(
    more: str | None, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that started with other tokens, or open, would not be the one that was asked for."""
    monkeypatch.setenv(AWS_SECRET, "arn:aws:secretsmanager:atlas")
    if more == TOKENS_JSON:
        monkeypatch.setenv(TOKENS_JSON, '{"act-mira": "token"}')
    flags = ["--unauthenticated"] if more == "--unauthenticated" else []

    outcome = invoke("server", GRAPH, "--bind", "127.0.0.1:0", *flags, cwd=folder)

    assert outcome.code == 1
    assert AWS_SECRET in outcome.stderr
    assert TOKENS_FILE in outcome.stderr
    assert "arn:" not in outcome.stderr
    monkeypatch.setenv(AWS_SECRET, "")
    assert AWS_SECRET not in invoke("server", GRAPH, "--bind", "nonsense", cwd=folder).stderr


@pytest.mark.parametrize("text", ["not json", "[]", '{"a": 5}', '{"a": "x", "a": "y"}', '{"secret": NaN}'])
def test_no_message_shows_what_a_source_of_tokens_contains(
    text: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TOKENS_JSON, text)

    outcome = invoke("server", GRAPH, "--bind", "127.0.0.1:0", cwd=folder)

    assert outcome.code == 1
    assert TOKENS_JSON in outcome.stderr
    assert text not in outcome.stderr
    assert "secret" not in outcome.stderr


@pytest.mark.parametrize("bind", ["nonsense", "127.0.0.1", ":80", "127.0.0.1:99999", "127.0.0.1:-1", "h:²"])
def test_an_address_that_is_none_is_a_mistake_of_usage(bind: str, folder: Path) -> None:
    outcome = invoke("server", GRAPH, "--unauthenticated", "--bind", bind, cwd=folder)

    assert outcome.code == 2
    assert "HOST:PORT" in outcome.stderr


def test_what_is_not_built_is_refused_by_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert invoke("server", "--cluster", "c", cwd=folder).code == 2
    assert invoke("server", cwd=folder).code == 2

    monkeypatch.setenv("OMNIGRAPH_CLUSTER", "c")

    outcome = invoke("server", GRAPH, "--unauthenticated", cwd=folder)
    assert outcome.code == 2
    assert "OMNIGRAPH_CLUSTER" in outcome.stderr


PROJECT = """\
auth: { env_file: .env }
graphs:
  desk: { uri: g.omni }
  guarded: { uri: g.omni, policy: { file: policies/atlas.yaml } }
  far: { uri: "http://127.0.0.1:1/graphs/atlas" }
server: { graph: desk, bind: "127.0.0.1:0" }
queries: { craft: { file: craft.gq } }
"""


def place_project(folder: Path, text: str = PROJECT) -> Path:
    """Put a project file beside a graph, with stored queries and variables."""
    write(folder, "craft.gq", "query craft() { match { $c: Craft } return { $c.code } }")
    write(folder, ".env", f"{TOKENS_JSON}={json.dumps(TOKENS)}\n")
    return write(folder, "omnigraph.yaml", text)


@pytest.mark.case("surfaces", 339)
def test_a_project_file_that_cannot_be_served_stops_the_boot(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = str(place_project(tmp_path))
    monkeypatch.delenv(TOKENS_JSON, raising=False)

    def refused(*arguments: str, code: int = 1) -> str:
        outcome = invoke("server", "--unauthenticated", *arguments, cwd=folder)
        assert outcome.code == code, outcome
        return outcome.stderr

    try:
        assert "policies/atlas.yaml" in refused("--config", project, "--target", "guarded")
        assert "behind a server" in refused("--config", project, "--target", "far")
        assert "desk" in refused("--config", project, "--target", "nope")
        assert "--target" in refused(GRAPH, "--config", project, "--target", "desk", code=2)
        assert "missing.yaml" in refused("--config", "missing.yaml")
        place_project(tmp_path, PROJECT + "policy: { file: policies/atlas.yaml }\n")
        assert "policies/atlas.yaml" in refused("--config", project)
        assert "policies/atlas.yaml" in refused(GRAPH, "--config", project)
        place_project(tmp_path, "graphs: { a: { uri: a.omni }, b: { uri: b.omni } }\nqueries: craft.gq\n")
        assert "--target" in refused("--config", project)
    finally:
        os.environ.pop(TOKENS_JSON, None)  # what the file of variables has set in this process


@pytest.mark.slow
@pytest.mark.case("surfaces", 339)
def test_a_project_file_names_graph_address_queries_and_tokens(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    project = str(place_project(tmp_path))

    with running_server(None, "--config", project, tokens={}, log=tmp_path / "log") as server:
        with server.client() as nobody:
            error_of(nobody.get("/snapshot"), 401, "unauthorized")
        with server.client(TOKENS["act-mira"]) as mira:
            flat, nested = mira.get("/snapshot"), mira.get("/graphs/desk/snapshot")
            assert flat.status_code == 200
            assert flat.json() == nested.json()
            error_of(mira.get("/graphs/default/snapshot"), 404, "not_found")
            assert [query["name"] for query in mira.get("/queries").json()["queries"]] == ["craft"]


@pytest.mark.slow
@pytest.mark.case("surfaces", 119)
@pytest.mark.case("surfaces", 339)
def test_without_a_choice_every_graph_of_a_project_is_served_by_its_name(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    shutil.copytree(tmp_path / GRAPH, tmp_path / "other.omni")
    project = write(tmp_path, "p.yaml", "graphs: { a: { uri: g.omni }, b: { uri: other.omni } }\n")

    arguments = ("--config", str(project), "--bind", "127.0.0.1:0")
    with running_server(None, *arguments, log=tmp_path / "log") as server, server.client() as client:
        error_of(client.get("/snapshot"), 404, "not_found")
        assert {client.get(f"/graphs/{name}/snapshot").status_code for name in "ab"} == {200}
        assert client.get("/readyz").json()["graphs_ready"] == 2
        paths = client.get("/openapi.json").json()["paths"]
        assert "/snapshot" not in paths
        assert "/graphs/{graph_id}/snapshot" in paths


@pytest.mark.slow
@pytest.mark.case("surfaces", 109)
@pytest.mark.case("surfaces", 111)
@pytest.mark.case("surfaces", 112)
def test_an_open_server_says_where_it_listens_and_that_it_is_open(folder: Path, tmp_path: Path) -> None:
    with running_server(folder / GRAPH, log=tmp_path / "log") as server, server.client() as client:
        health = client.get("/healthz")
        with_wrong_token = client.get("/healthz", headers={"Authorization": "Bearer nonsense"})

        assert server.address.startswith("127.0.0.1:")
        assert health.status_code == 200
        assert health.json()["status"] == "ok"
        assert with_wrong_token.status_code == 200
        assert "open to everybody" in server.told()


@pytest.mark.slow
@pytest.mark.case("surfaces", 113)
@pytest.mark.case("surfaces", 116)
def test_a_server_with_tokens_lets_callers_read(folder: Path, tmp_path: Path) -> None:
    read = {"query": "query q() { match { $c: Craft } return { $c.code } }"}
    write = {"query": 'query q() { insert Mission { title: "Neptune" } }'}
    with running_server(folder / GRAPH, tokens=TOKENS, log=tmp_path / "log") as server:
        with server.client() as nobody:
            assert error_of(nobody.post("/query", json=read), 401, "unauthorized") == "missing bearer token"
            basic = nobody.post("/query", json=read, headers={"Authorization": "Basic eDp5"})
            assert error_of(basic, 401, "unauthorized") == "missing bearer token"
            wrong = nobody.post("/query", json=read, headers={"Authorization": "Bearer nonsense"})
            assert error_of(wrong, 401, "unauthorized") == "invalid bearer token"
        with server.client(TOKENS["act-mira"]) as mira:
            assert mira.post("/query", json=read).json()["row_count"] == 3
            assert "default-deny" in error_of(mira.post("/mutate", json=write), 403, "forbidden")
            error_of(mira.post("/queries/x"), 404, "not_found")
        assert all(token not in server.told() for token in TOKENS.values())
