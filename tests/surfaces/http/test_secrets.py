"""Secrets of a server, while its store and its provider refuse: none is in a log, an answer or a message."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph.core.errors import OmnigraphError
from omnigraph.storage.control.uri import GraphRoot
from omnigraph.storage.tables.table import TableAddress, TableStore
from tests.support.http_server import RunningServer, error_of, running_server
from tests.support.in_process import invoke
from tests.support.proxy import store_proxy
from tests.support.s3 import s3_server, settings_of, stored
from tests.support.seam import patched
from tests.unit.embedding.stand_in import Answer, stand_in

pytestmark = pytest.mark.slow

SCHEMA = "node Note { text: String @key  vector: Vector(2)? @embed(text) }\n"
NEAR = 'query q() { match { $n: Note } return { $n.text } order { nearest($n.vector, "far") } limit 3 }'
READ = "query q() { match { $n: Note } return { $n.text } }"
ADD = 'query q() { insert Note { text: "one" } }'
TOKEN, UNKNOWN = "token-of-ann-3141592653589793", "presented-by-nobody-2718281828"
STORE = {
    "AWS_SECRET_ACCESS_KEY": "aws-secret-1618033988749894",
    "AWS_SESSION_TOKEN": "aws-session-1414213562373095",
}
PROVIDER_KEY = "sk-provider-1732050807568877"
SIGNATURE = "sig-of-azure-2236067977499789"
SECRETS = (TOKEN, UNKNOWN, PROVIDER_KEY, SIGNATURE, *STORE.values())
POLICY = """\
version: 1
groups: { owners: [ann] }
rules: [{ id: all, allow: { actors: { group: owners }, actions: [read, export, change] } }]
"""
AZURE = "az://container/graph"


def assert_hidden(text: str) -> None:
    assert [secret for secret in SECRETS if secret in text] == []


@pytest.mark.case("surfaces", 653)
def test_a_store_and_a_provider_that_refuse_show_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with omnigraph.init(tmp_path / "g.omni", SCHEMA) as made:
        made.load({"Note": [{"text": "near", "vector": [1.0, 0.0]}]}, mode="append")
    (tmp_path / "policy.yaml").write_text(POLICY)
    refusal = Answer({"error": {"message": f"Incorrect API key provided: {PROVIDER_KEY}"}}, 401)
    with s3_server() as endpoint, store_proxy(endpoint) as proxy, stand_in(refusal) as provider:
        project = {"policy": {"file": "policy.yaml"}}
        (tmp_path / "omnigraph.yaml").write_text(json.dumps(project))
        for name, value in {
            **settings_of(proxy.endpoint),
            **STORE,
            **provider_settings(provider.url),
        }.items():
            monkeypatch.setenv(name, value)
        graph = stored(tmp_path / "g.omni")
        flags = ("--config", str(tmp_path / "omnigraph.yaml"))
        log, tokens = tmp_path / "log", {"ann": TOKEN}
        with running_server(graph, *flags, tokens=tokens, log=log, OMNIGRAPH_LOG="debug") as server:
            bodies = list(answers(server, "status 401"))
            assert provider.asked[0].headers["authorization"] == f"Bearer {PROVIDER_KEY}"
            proxy.refuses = True
            bodies += answers(server, None)
            proxy.refuses = False
            told = server.told()

        proxy.refuses = True
        outcome = invoke("server", graph, "--unauthenticated", "--bind", "127.0.0.1:0", cwd=tmp_path)

    assert outcome.code == 1
    assert "was refused" in outcome.stderr
    assert "storage request failed (configuration)" in "".join(bodies)
    assert "request failed" in told or "was refused" in told
    assert_hidden("".join([*bodies, told, outcome.stdout, outcome.stderr]))


def provider_settings(url: str) -> dict[str, str]:
    """Return the settings of a provider on this machine."""
    return {
        "OMNIGRAPH_EMBEDDINGS_MOCK": "0",
        "OMNIGRAPH_EMBED_PROVIDER": "openai",
        "OMNIGRAPH_EMBED_BASE_URL": url,
        "OPENAI_API_KEY": PROVIDER_KEY,
    }


def answers(server: RunningServer, of_provider: str | None) -> Iterator[str]:
    """Ask for what needs the store and the provider, and yield every body."""
    with server.client(TOKEN) as client:
        near = client.post("/query", json={"query": NEAR})
        if of_provider is not None:
            assert of_provider in error_of(near, 500, "internal")
        yield near.text
        for method, path, body in (
            ("POST", "/query", {"query": READ}),
            ("POST", "/mutate", {"query": ADD}),
            ("POST", "/export", {}),
            ("GET", "/commits", None),
            ("GET", "/readyz", None),
            ("GET", "/metrics", None),
        ):
            yield client.request(method, path, json=body).text
    with server.client(UNKNOWN) as client:
        yield error_text(client.get("/snapshot").text)


def error_text(body: str) -> str:
    """Return the body of an error."""
    assert "invalid bearer token" in body
    return body


@pytest.fixture(params=["refused", "not there"])
def azure(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A store of Azure that refuses, or is not there, for a signature that is part of every address."""
    patched(monkeypatch, "omnigraph.storage.control.object_store.RETRIES_MAX", 0)
    with store_proxy("http://127.0.0.1:9") as proxy:
        proxy.refuses = True
        endpoint = proxy.endpoint if request.param == "refused" else "http://127.0.0.1:9"
        for name, value in {
            "AZURE_STORAGE_ACCOUNT_NAME": "someaccount",
            "AZURE_STORAGE_SAS_KEY": f"sv=2021-08-06&sp=rl&sig={SIGNATURE}",
            "AZURE_STORAGE_ENDPOINT": f"{endpoint}/someaccount",
            "AZURE_ALLOW_HTTP": "true",
        }.items():
            monkeypatch.setenv(name, value)
        yield


COMMANDS: dict[str, tuple[str, ...]] = {
    "server": ("server", AZURE, "--unauthenticated", "--bind", "127.0.0.1:0"),
    "query": ("query", "-e", READ, "--store", AZURE),
    "query as JSON": ("query", "-e", READ, "--store", AZURE, "--json"),
    "init": ("init", AZURE, "--schema", "notes.pg"),
}


@pytest.mark.case("surfaces", 653)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_signature_in_every_address_is_in_no_message(command: str, azure: None, tmp_path: Path) -> None:
    (tmp_path / "notes.pg").write_text(SCHEMA)

    outcome = invoke(*COMMANDS[command], cwd=tmp_path)

    assert outcome.code == 1
    assert outcome.stderr
    assert_hidden(outcome.stdout + outcome.stderr)


@pytest.mark.case("surfaces", 653)
def test_a_signature_is_in_no_error_of_the_library(azure: None) -> None:
    root = GraphRoot.parse(AZURE)
    calls: list[Callable[[], object]] = [
        lambda: omnigraph.open(AZURE),
        lambda: TableStore(root.storage_options).open_head(TableAddress(f"{AZURE}/__manifest")),
    ]

    for call in calls:
        with pytest.raises(OmnigraphError) as raised:
            call()
        assert_hidden(f"{raised.value} {raised.value!r}")
