"""Loads with checks, `dry_run` and `strict_columns`: what keeps them, and what does not load without them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pyarrow as pa
import pytest

import omnigraph
from omnigraph.client.http import Http
from omnigraph.client.remote.graph import RemoteGraph
from omnigraph.config.server_url import ServerUrl
from omnigraph.core.access_errors import TransportError
from omnigraph.core.errors import ColumnsLeftOut, NotFoundError
from omnigraph.server.settings import ServerLimits
from omnigraph.wire.responses import LoadOutput
from tests.support.atlas import ATLAS, craft, digest, lines, mission, place_atlas
from tests.support.gates import policy_of
from tests.support.http_app import serving_app, settings_for
from tests.support.http_server import error_of
from tests.support.in_process import invoke
from tests.support.proxy import store_proxy
from tests.support.scripted import Answer, serving

NDJSON, ARROW = "application/x-ndjson", "application/vnd.apache.arrow.stream"
CHECKED = "/load/ndjson/checked"
TOKEN = "token-of-ann-0123456789"
NEW = lines(mission("Saturn")).encode()
CLEARING = lines(craft("VGR-1")).encode()  # which has a mass and a day of its launch
CLEARED = [{"table_key": "node:Craft", "property": name, "rows": 1} for name in ("launched", "mass_kg")]


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    return place_atlas(tmp_path)


@pytest.fixture
def client(graph: Path) -> Iterator[httpx.Client]:
    with serving_app(settings_for(graph)) as client:
        yield client


@dataclass(frozen=True)
class Mission:
    title: str


def sent(client: httpx.Client, query: str, data: bytes = NEW, media_type: str = NDJSON) -> httpx.Response:
    return client.post(query, content=data, headers={"Content-Type": media_type})


def state(client: httpx.Client) -> object:
    return client.get("/branches").json(), client.get("/commits").json(), client.get("/snapshot").json()


def stream(**columns: list[str]) -> bytes:
    table, sink = pa.table(columns), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


@pytest.mark.case("surfaces", 885)
@pytest.mark.parametrize(
    ("query", "data", "media_type"),
    [
        (f"{CHECKED}?dry_run=true&mode=append", NEW, NDJSON),
        (f"{CHECKED}?dry_run=true&branch=new&from=main", NEW, NDJSON),
        ("/load/arrow/checked?dry_run=true&type=Mission", stream(title=["Saturn"]), ARROW),
    ],
)
def test_a_dry_run_says_what_would_be_and_writes_nothing(
    client: httpx.Client, graph: Path, query: str, data: bytes, media_type: str
) -> None:
    before, files = state(client), digest(graph)

    answer = sent(client, query, data, media_type)

    assert answer.status_code == 200, answer.text
    LoadOutput.model_validate(answer.json(), strict=True)
    told = answer.json()
    assert (told["dry_run"], told["commit"], told["branch_created"]) == (True, None, False)
    assert told["tables"] == [{"table_key": "node:Mission", "rows_loaded": 1}]
    assert state(client) == before
    assert digest(graph) == files


@pytest.mark.case("surfaces", 885)
def test_a_dry_run_tells_its_progress_and_its_errors(client: httpx.Client) -> None:
    before = state(client)

    told = client.post(
        f"{CHECKED}?dry_run=true", content=NEW, headers={"Content-Type": NDJSON, "Accept": NDJSON}
    )
    refused = sent(client, f"{CHECKED}?dry_run=true&mode=append", lines(mission("Jupiter")).encode())

    assert '{"result":' in told.text.splitlines()[-1]
    assert '"dry_run":true' in told.text.splitlines()[-1]
    error_of(refused, 409, "conflict")
    assert state(client) == before


@pytest.mark.case("surfaces", 885)
@pytest.mark.case("surfaces", 886)
def test_every_load_of_a_remote_graph_takes_both_checks(client: httpx.Client) -> None:
    before = state(client)
    with omnigraph.connect(str(client.base_url)) as graph:
        assert isinstance(graph, RemoteGraph)
        tables = {
            "Mission": pa.table({"title": ["Saturn"]}),
            "Craft": pa.table({"code": ["X"], "name": ["x"]}),
        }
        planned = [
            graph.load(NEW, "merge", dry_run=True),
            graph.load_tables(tables, "merge", dry_run=True, strict_columns=True),
            graph.load_objects([Mission("Saturn")], "append", dry_run=True),
        ]
        assert [(each.is_dry_run, each.commit) for each in planned] == [(True, None)] * 3
        with pytest.raises(ColumnsLeftOut) as refused:
            graph.load(CLEARING, "merge", strict_columns=True)
        with pytest.raises(ColumnsLeftOut):
            graph.load_tables(
                {"Craft": pa.table({"code": ["VGR-1"], "name": ["V"]})}, "merge", strict_columns=True
            )
        assert state(client) == before
        assert [(each.property, each.rows) for each in refused.value.cleared] == [
            ("launched", 1),
            ("mass_kg", 1),
        ]
        landed = graph.load(NEW, "merge", strict_columns=True)

    assert (landed.is_dry_run, landed.commit is None) == (False, False)


@pytest.mark.case("surfaces", 885)
@pytest.mark.case("surfaces", 886)
def test_the_command_checks_through_a_server(client: httpx.Client, tmp_path: Path) -> None:
    (tmp_path / "new.jsonl").write_bytes(NEW)
    (tmp_path / "clearing.jsonl").write_bytes(CLEARING)
    before, url = state(client), str(client.base_url)

    words = ("load", "--server", url, "--mode", "merge", "--data")
    dry = invoke(*words, "new.jsonl", "--dry-run", cwd=tmp_path)
    would = invoke(*words, "clearing.jsonl", "--dry-run", cwd=tmp_path)
    strict = invoke(*words, "clearing.jsonl", "--strict-columns", cwd=tmp_path)

    assert (dry.code, would.code, strict.code) == (0, 0, 1)
    assert "would clear" in would.stderr
    assert "mass_kg" in strict.stderr
    assert state(client) == before


@pytest.mark.case("surfaces", 886)
def test_a_load_that_would_clear_is_refused_with_what(client: httpx.Client) -> None:
    before = state(client)

    refused = sent(client, f"{CHECKED}?strict_columns=true&mode=merge", CLEARING)

    error_of(refused, 400, "bad_request")
    assert refused.json()["cleared"] == CLEARED
    assert state(client) == before
    landed = sent(client, f"{CHECKED}?strict_columns=true&mode=merge")
    assert landed.json()["commit"] is not None
    assert "dry_run" not in landed.json()


# Nothing is loaded without the checks that were asked for


@pytest.mark.case("surfaces", 887)
@pytest.mark.parametrize("check", ["dry_run", "strict_columns"])
@pytest.mark.parametrize("value", ["true", "false", "perhaps"])
def test_a_load_that_keeps_no_checks_names_the_routes_that_do(
    client: httpx.Client, check: str, value: str
) -> None:
    before = state(client)
    body = {"data": NEW.decode(), check: value == "true"}

    answers = [
        sent(client, f"/load/ndjson?{check}={value}"),
        sent(client, f"/load/arrow?type=Mission&{check}={value}", stream(title=["Saturn"]), ARROW),
        client.post("/load", json=body),
        client.post("/ingest", json=body),
    ]

    for answer in answers:
        text = error_of(answer, 400, "bad_request")
        assert f"'{check}' is kept by load/ndjson/checked and load/arrow/checked alone" in text
    assert state(client) == before


@pytest.mark.case("surfaces", 887)
@pytest.mark.parametrize(
    "query",
    [
        "dry_run=perhaps",
        "dry_run=",
        "strict_columns=2",
        "dryrun=true",
        "strict=true",
        "dry_run=true&dry_run=true",
    ],
)
def test_a_check_that_is_misspelt_is_refused(client: httpx.Client, query: str) -> None:
    before = state(client)

    error_of(sent(client, f"{CHECKED}?{query}"), 400, "bad_request")
    rows = stream(title=["Saturn"])
    error_of(sent(client, f"/load/arrow/checked?type=Mission&{query}", rows, ARROW), 400, "bad_request")

    assert state(client) == before


@pytest.mark.case("surfaces", 887)
@pytest.mark.parametrize("check", ["dry_run", "strict_columns"])
def test_a_load_with_checks_is_sent_to_no_route_that_an_older_server_has(check: str) -> None:
    missing: Answer = (404, {"error": "there is no such route", "code": "not_found"}, {})
    rows = {"Mission": pa.table({"title": ["Saturn"]})}
    with serving(missing, (200, {"schema_source": ATLAS}, {}), missing) as script, script.remote() as graph:
        for data in (NEW, rows):
            with pytest.raises(NotFoundError):
                graph.load(
                    data, "merge", dry_run=check == "dry_run", strict_columns=check == "strict_columns"
                )

    assert script.asked == [
        f"POST {CHECKED}?mode=merge&{check}=true",
        "GET /schema",
        f"POST /load/arrow/checked?mode=merge&type=Mission&{check}=true",
    ]


@pytest.mark.case("surfaces", 888)
def test_a_dry_run_asks_for_the_rights_of_the_load(graph: Path) -> None:
    policy = policy_of("read", "change; branch_scope: unprotected")
    settings = settings_for(graph, tokens={"ann": TOKEN}, policy=policy)
    with serving_app(settings) as client:
        client.headers["Authorization"] = f"Bearer {TOKEN}"
        before = state(client)
        for query in ("dry_run=true", "dry_run=true&branch=new&from=main", "strict_columns=true"):
            error_of(sent(client, f"{CHECKED}?{query}"), 403, "forbidden")

        assert state(client) == before


@pytest.mark.case("surfaces", 888)
def test_a_dry_run_holds_a_share_of_its_caller(graph: Path) -> None:
    with serving_app(settings_for(graph, limits=ServerLimits(actor_bytes=len(NEW)))) as client:
        assert sent(client, f"{CHECKED}?dry_run=true").status_code == 200
        error_of(sent(client, f"{CHECKED}?dry_run=true", NEW + b"\n"), 429, "too_many_requests")


@pytest.mark.case("surfaces", 888)
def test_the_lost_answer_of_a_dry_run_leaves_nothing_unknown(client: httpx.Client) -> None:
    with store_proxy(str(client.base_url)) as proxy:
        proxy.drops = lambda request: request.kind == "POST"
        with RemoteGraph(Http(ServerUrl.parse(proxy.endpoint), None)) as graph:
            with pytest.raises(TransportError):
                graph.load(NEW, "merge", dry_run=True)
            with pytest.raises(omnigraph.CommitOutcomeUnknown):
                graph.load(NEW, "merge", strict_columns=True)
