"""The routes of a graph: what each answers with, checked against the model that describes it."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pyarrow as pa
import pytest
from pydantic import BaseModel

from omnigraph.wire import responses, schema_responses
from tests.support.atlas import ATLAS, MUTATIONS, craft, lines, mission, place_atlas
from tests.support.http_app import serving_app, settings_for
from tests.support.http_server import error_of

NDJSON = "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"
Ask = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """One open server for the tests of this file; each writes rows and branches of its own."""
    with serving_app(settings_for(place_atlas(tmp_path_factory.mktemp("routes")))) as client:
        yield client


@pytest.fixture(scope="module")
def ask(client: httpx.Client) -> Ask:
    """A request that must succeed; its answer must be what its model says, and nothing more."""

    def asked(
        method: str,
        path: str,
        model: type[BaseModel],
        **request: Any,  # noqa: ANN401 - what httpx takes
    ) -> dict[str, Any]:
        answer = client.request(method, path, **request)
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == "application/json"
        model.model_validate(answer.json(), strict=True)
        document: dict[str, Any] = answer.json()
        return document

    return asked


def mutate(client: httpx.Client, query: str, branch: str = "main", /, **params: str) -> httpx.Response:
    body = {"query": MUTATIONS, "name": query, "params": params, "branch": branch}
    return client.post("/mutate", json=body)


def test_the_server_says_that_it_is_there_and_what_it_shows(ask: Ask) -> None:
    assert ask("GET", "/healthz", responses.HealthOutput) == ask("GET", "/version", responses.HealthOutput)
    assert ask("GET", "/readyz", responses.ReadyOutput)["graphs_ready"] == 1
    flat = ask("GET", "/snapshot", responses.SnapshotOutput)
    assert flat == ask("GET", "/graphs/default/snapshot", responses.SnapshotOutput)
    assert {table["table_key"] for table in flat["tables"]} == {"node:Craft", "node:Mission", "edge:Flew"}


@pytest.mark.case("surfaces", 140)
def test_branches_are_made_listed_and_deleted_with_200(client: httpx.Client, ask: Ask) -> None:
    made = ask("POST", "/branches", responses.BranchCreateOutput, json={"name": "review/june"})

    assert (made["from"], made["name"], made["actor_id"]) == ("main", "review/june", None)
    assert ask("GET", "/branches", responses.BranchListOutput)["branches"] == ["main", "review/june"]
    error_of(client.post("/branches", json={"name": "review/june"}), 409, "conflict")
    deleted = ask("DELETE", "/branches/review%2Fjune", responses.BranchDeleteOutput)
    assert deleted["name"] == "review/june"
    error_of(client.delete("/branches/review%2Fjune"), 404, "not_found")
    error_of(client.delete("/branches/main"), 400, "bad_request")
    error_of(client.get("/branches/merge"), 405, "method_not_allowed")


@pytest.mark.case("surfaces", 133)
def test_a_merge_says_what_it_did_or_what_stands_in_its_way(client: httpx.Client, ask: Ask) -> None:
    client.post("/branches", json={"name": "left"})
    assert mutate(client, "rename", "left", code="VGR-1", name="from left").status_code == 200
    merged = ask("POST", "/branches/merge", responses.BranchMergeOutput, json={"source": "left"})
    again = ask("POST", "/branches/merge", responses.BranchMergeOutput, json={"source": "left"})
    assert (merged["outcome"], again["outcome"]) == ("fast_forward", "already_up_to_date")
    mutate(client, "rename", "left", code="VGR-2", name="left again")
    mutate(client, "rename", "main", code="VGR-2", name="main again")
    before = client.get("/commits?limit=1").json()

    dry = {"source": "left", "dry_run": True}
    planned = ask("POST", "/branches/merge", responses.BranchMergeOutput, json=dry)
    refused = client.post("/branches/merge", json={"source": "left", "target": "main"})

    error_of(refused, 409, "conflict")
    responses.ErrorOutput.model_validate(refused.json(), strict=True)
    (conflict,) = refused.json()["merge_conflicts"]
    assert conflict == planned["conflicts"][0]
    assert (conflict["table_key"], conflict["row_id"]) == ("node:Craft", "VGR-2")
    assert conflict["kind"] == "divergent_update"
    assert client.get("/commits?limit=1").json() == before
    ask("DELETE", "/branches/left", responses.BranchDeleteOutput)


@pytest.mark.case("surfaces", 141)
@pytest.mark.case("surfaces", 214)
def test_commits_are_listed_narrowed_down_and_shown(client: httpx.Client, ask: Ask) -> None:
    client.post("/branches", json={"name": "listed"})
    mutate(client, "add_craft", "listed", code="L-1", name="l")

    on_branch = ask("GET", "/commits?branch=listed", responses.CommitListOutput)["commits"]
    on_main = ask("GET", "/commits", responses.CommitListOutput)["commits"]

    assert on_branch[0]["manifest_branch"] == "listed"
    assert on_branch[1:] == on_main
    newest = ask("GET", f"/commits/{on_branch[0]['graph_commit_id']}", responses.CommitOutput)
    assert newest == on_branch[0]
    error_of(client.get("/commits/nope"), 404, "not_found")
    seeded = ask("GET", "/commits?actor=act-seed", responses.CommitListOutput)["commits"]
    assert {commit["actor_id"] for commit in seeded} == {"act-seed"}
    assert ask("GET", "/commits?merge=true&since=2999-01-01", responses.CommitListOutput)["commits"] == []
    assert (
        ask("GET", "/commits?until=2999-01-01&limit=1", responses.CommitListOutput)["commits"] == on_main[:1]
    )
    for wrong in ("since=soon", "merge=perhaps", "limit=-1", "limit=x", "limit=1&limit=2", "until=9999999"):
        error_of(client.get(f"/commits?{wrong}"), 400, "bad_request")


@pytest.mark.case("surfaces", 134)
@pytest.mark.case("surfaces", 218)
def test_a_load_is_one_commit_and_builds_what_is_missing(client: httpx.Client, ask: Ask) -> None:
    body = {"data": lines(craft("LD-1"), craft("LD-2")), "mode": "append", "message": "two", "index": False}

    loaded = ask("POST", "/load", responses.IngestOutput, json=body)
    conflict = client.post("/load", json={**body, "index": True})

    assert loaded["base_branch"] is None
    assert loaded["tables"] == [{"table_key": "node:Craft", "rows_loaded": 2}]
    assert loaded["commit"]["message"] == "two"
    assert loaded["index_commit"] is None
    error_of(conflict, 409, "conflict")
    assert conflict.json()["key_conflict"] == {"table_key": "node:Craft", "row_id": "LD-1"}


@pytest.mark.case("surfaces", 136)
@pytest.mark.case("surfaces", 137)
def test_loads_say_which_branch_and_which_line_is_wrong(client: httpx.Client, ask: Ask) -> None:
    head = client.get("/commits?limit=1").json()
    as_json = client.post("/load/ndjson", content=b"{}", headers={"Content-Type": "application/json"})
    error_of(as_json, 415, "bad_request")
    bad = (lines(craft("B-1")) + "nonsense\n").encode()
    refused = client.post("/load/ndjson?mode=append", content=bad, headers={"Content-Type": NDJSON})
    assert "line 2" in error_of(refused, 400, "bad_request")
    missing = client.post("/load", json={"data": lines(craft("B-2")), "branch": "fresh"})
    assert "pass from to create it" in error_of(missing, 404, "not_found")
    error_of(client.post("/load", json={"data": "", "mode": "perhaps"}), 400, "bad_request")
    assert client.get("/commits?limit=1").json() == head

    raw = ask(
        "POST",
        "/load/ndjson?branch=fresh&from=main&mode=append&index=false&message=m",
        responses.LoadOutput,
        content=lines(craft("B-3")).encode(),
        headers={"Content-Type": f"{NDJSON}; charset=utf-8"},
    )
    assert (raw["branch"], raw["base_branch"], raw["branch_created"]) == ("fresh", "main", True)
    lenient = '// a remark\n{"type": "Mission",\n "data": {"title": "Saturn"}, "comment": 5}\n\n' + lines(
        mission("Uranus")
    )
    body = {"data": lenient, "branch": "older"}
    ingested = client.post("/ingest", json=body)
    assert ingested.status_code == 200, ingested.text
    assert ingested.headers["link"] == '<load>; rel="successor-version"'
    responses.IngestOutput.model_validate(ingested.json(), strict=True)
    assert (ingested.json()["base_branch"], ingested.json()["branch_created"]) == ("main", True)
    assert ingested.json()["tables"] == [{"table_key": "node:Mission", "rows_loaded": 2}]
    wrong = client.post("/ingest", json={"data": '// one\n\n{"type": "Misson", "data": {}}'})
    assert "line 3" in error_of(wrong, 400, "bad_request")
    cut = client.post("/ingest", json={"data": '{"type": "Mission",\n'})
    assert "line 1" in error_of(cut, 400, "bad_request")


@pytest.mark.case("engine", 115)
@pytest.mark.parametrize(
    ("title", "data"),
    [
        ("Over lines", '{"type": "Mission",\n "data": {"title": "Over lines"}}\n'),
        ("Remarked", "// a remark\n" + lines(mission("Remarked"))),
    ],
    ids=["lines", "remark"],
)
def test_only_the_lenient_reader_takes_records_over_lines_and_remarks(
    client: httpx.Client, title: str, data: str
) -> None:
    head = client.get("/commits?limit=1").json()

    for refused in (
        client.post("/load", json={"data": data, "mode": "merge"}),
        client.post("/load/ndjson?mode=merge", content=data.encode(), headers={"Content-Type": NDJSON}),
    ):
        assert "line 1" in error_of(refused, 400, "bad_request")
    assert client.get("/commits?limit=1").json() == head
    ingested = client.post("/ingest", json={"data": data, "mode": "merge"})

    assert ingested.status_code == 200, ingested.text
    read = {
        "query": "query q($t: String) { match { $m: Mission { title: $t } } return { $m.title as title } }"
    }
    assert client.post("/query", json={**read, "params": {"t": title}}).json()["rows"] == [{"title": title}]


@pytest.mark.case("surfaces", 332)
def test_rows_of_one_type_are_loaded_from_a_stream_of_arrow(client: httpx.Client, ask: Ask) -> None:
    def stream(table: pa.Table) -> bytes:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return sink.getvalue().to_pybytes()

    rows = pa.table({"code": ["AR-1", "AR-2"], "name": ["a", "b"], "mass_kg": [1.5, None]})
    headers = {"Content-Type": ARROW}

    loaded = ask(
        "POST",
        "/load/arrow?type=Craft&mode=append",
        responses.LoadOutput,
        content=stream(rows),
        headers=headers,
    )

    assert loaded["tables"] == [{"table_key": "node:Craft", "rows_loaded": 2}]
    edges = pa.table({"from": ["AR-1"], "to": ["nowhere"]})
    dangling = client.post("/load/arrow?type=Flew&mode=append", content=stream(edges), headers=headers)
    assert "nowhere" in error_of(dangling, 400, "bad_request")
    garbage = client.post("/load/arrow?type=Craft", content=b"garbage", headers=headers)
    assert "cannot read the body" in error_of(garbage, 400, "bad_request")
    for type_ in ("Nope", "Craft=x", ""):
        unknown = client.post("/load/arrow", params={"type": type_}, content=stream(rows), headers=headers)
        error_of(unknown, 400, "bad_request")
    error_of(
        client.post("/load/arrow?type=Craft", content=b"", headers={"Content-Type": NDJSON}),
        415,
        "bad_request",
    )


def test_a_caller_without_a_token_cannot_take_a_name(client: httpx.Client) -> None:
    body = {"query": MUTATIONS, "name": "add_craft", "params": {"code": "NOBODY", "name": "n"}}

    made = client.post("/mutate", json=body, headers={"X-Actor-Id": "act-mira"})

    assert made.status_code == 200, made.text
    assert made.json()["actor_id"] is None
    assert made.json()["commit"]["actor_id"] is None


@pytest.mark.case("surfaces", 138)
def test_an_export_is_ndjson_that_can_be_loaded(client: httpx.Client) -> None:
    everything = client.post("/export", json={})
    empty = client.post("/export", headers={"Content-Type": "application/json"})
    by_key = client.post("/export", json={"table_keys": ["node:Craft"]})
    by_name = client.post("/export", json={"type_names": ["Craft"]})

    assert everything.status_code == 200
    assert everything.headers["content-type"] == "application/x-ndjson; charset=utf-8"
    assert empty.content == everything.content
    records = [json.loads(line) for line in everything.text.splitlines()]
    assert [("edge" in record) for record in records] == sorted("edge" in record for record in records)
    assert by_key.content == by_name.content
    assert by_key.content in everything.content
    error_of(client.post("/export", json={"type_names": ["Nope"]}), 400, "bad_request")
    error_of(client.post("/export", json={"branch": "nope"}), 404, "not_found")
    again = client.post(
        "/load/ndjson?branch=copy&from=main&mode=overwrite",
        content=everything.content,
        headers={"Content-Type": NDJSON},
    )
    assert again.status_code == 200, again.text
    assert client.post("/export", json={"branch": "copy"}).content == everything.content


@pytest.mark.case("surfaces", 142)
@pytest.mark.case("surfaces", 464)
def test_a_schema_is_shown_planned_and_applied(client: httpx.Client, ask: Ask) -> None:
    client.post("/branches", json={"name": "wider"})
    wider = ATLAS.replace("    mass_kg: F64?\n", "    mass_kg: F64?\n    crew: I32?\n")
    assert ask("GET", "/schema", schema_responses.SchemaOutput)["schema_source"] == ATLAS

    request = {"schema_source": wider, "branch": "wider"}
    planned = ask("POST", "/schema/plan", schema_responses.SchemaPlanOutput, json=request)
    applied = ask(
        "POST", "/schema/apply", schema_responses.SchemaApplyOutput, json={**request, "message": "crew"}
    )

    assert planned["supported"] is True
    assert (applied["applied"], applied["step_count"]) == (True, planned["step_count"])
    assert applied["commit"]["message"] == "crew"
    assert ask("GET", "/schema?branch=wider", schema_responses.SchemaOutput)["schema_source"] == wider
    branched = {**request, "schema_source": ATLAS}
    base = ask("GET", "/commits?branch=wider&limit=2", responses.CommitListOutput)["commits"][1]
    stale = client.post("/schema/apply", json={**branched, "base": base["graph_commit_id"]})
    assert f"changed after {base['graph_commit_id']}: " in error_of(stale, 409, "conflict")
    assert ask("GET", "/schema?branch=wider", schema_responses.SchemaOutput)["schema_source"] == wider
    unsupported = {"schema_source": ATLAS.replace("F64?", "String?")}
    assert "OG-MF-106" in error_of(client.post("/schema/apply", json=unsupported), 400, "bad_request")
    named = error_of(
        client.post("/schema/apply", json={"schema_source": "/etc/atlas.pg"}), 400, "bad_request"
    )
    assert named.startswith("parse error")
    planned_by_name = client.post("/schema/plan", json={"schema_source": "x.pg"})
    assert error_of(planned_by_name, 400, "bad_request").startswith("parse error")


def test_a_query_file_is_checked_against_the_schema(ask: Ask) -> None:
    good = ask("POST", "/query/check", responses.LintOutput, json={"query": MUTATIONS})
    wrong = {"query": "query q() { match { $c: Craft } return { $c.bogus } }"}
    bad = ask("POST", "/query/check", responses.LintOutput, json=wrong)

    assert (good["status"], bad["status"], bad["errors"]) == ("ok", "error", 1)


def test_recoveries_are_listed(ask: Ask) -> None:
    assert ask("GET", "/recoveries?limit=3", responses.RecoveryListOutput)["recoveries"] == []


@pytest.mark.case("surfaces", 147)
def test_the_changes_of_a_commit_have_both_images(client: httpx.Client, ask: Ask) -> None:
    renamed = mutate(client, "rename", code="GLL-1", name="galileo").json()["commit"]
    genesis = client.get("/commits").json()["commits"][-1]["graph_commit_id"]

    shown = ask("GET", f"/commits/{renamed['graph_commit_id']}/changes", responses.CommitChangesOutput)
    first = client.get(f"/commits/{genesis}/changes")

    (change,) = shown["changes"]
    assert change["before"]["properties"]["name"] == "gll-1"
    assert change["after"]["properties"]["name"] == "galileo"
    assert shown["cause"]["graph_commit_id"] == renamed["graph_commit_id"]
    error_of(first, 409, "conflict")
    assert first.json()["change_diff_refusal"]["reason"] == "parentless_commit"
    error_of(client.get("/commits/01ARZ3NDEKTSV4RRFFQ69G5FAV/changes"), 404, "not_found")


@pytest.mark.case("surfaces", 148)
@pytest.mark.case("surfaces", 149)
def test_a_feed_pages_to_its_end_and_then_waits(client: httpx.Client, ask: Ask) -> None:
    client.post("/branches", json={"name": "fed"})
    page = ask("GET", "/changes?branch=fed&start=beginning&limit=2", responses.ChangeFeedOutput)
    pages = 1
    while "next_page_token" in page:
        assert "cursor" not in page
        token = {"branch": "fed", "page_token": page["next_page_token"], "limit": "2"}
        page = ask("GET", "/changes", responses.ChangeFeedOutput, params=token)
        pages += 1
    cursor = {"branch": "fed", "cursor": page["cursor"]}
    assert pages > 2
    idle = ask("GET", "/changes", responses.ChangeFeedOutput, params=cursor)
    assert (idle["blocks"], idle["caught_up"]) == ([], True)

    commit = mutate(client, "add_craft", "fed", code="F-1", name="f").json()["commit"]

    (block,) = ask("GET", "/changes", responses.ChangeFeedOutput, params=cursor)["blocks"]
    assert block["cause"]["graph_commit_id"] == commit["graph_commit_id"]
    for wrong in ("bogus=1", "limit=0", "cursor=x&start=now", "op=perhaps", "start=sometime", "kind=Node"):
        error_of(client.get(f"/changes?{wrong}"), 400, "bad_request")
    tampered = client.get("/changes", params={**cursor, "cursor": page["cursor"][:-4] + "AAAA"})
    assert error_of(tampered, 400, "bad_request").startswith("change cursor rejected:")
    large = client.get("/changes?limit=99999")
    error_of(large, 413, "bad_request")
    assert large.json()["resource_limit"]["limit"] == 8_192


def test_a_baseline_ends_with_the_cursor_to_continue_from(client: httpx.Client, ask: Ask) -> None:
    taken = client.post("/changes/baseline", json={"branch": "main", "kind": ["node"], "type": ["Craft"]})
    *records, end = [json.loads(line) for line in taken.text.splitlines()]

    assert {record["type"] for record in records} == {"Craft"}
    cursor = {"cursor": end["baseline"]["resume_cursor"], "kind": "node", "type": "Craft"}
    assert ask("GET", "/changes", responses.ChangeFeedOutput, params=cursor)["blocks"] == []


@pytest.mark.case("surfaces", 333)
def test_a_comparison_is_paged_over_the_same_two_commits(client: httpx.Client, ask: Ask) -> None:
    client.post("/branches", json={"name": "compared"})
    for code in ("D-1", "D-2", "D-3"):
        assert mutate(client, "add_craft", "compared", code=code, name="d").status_code == 200
    sides = {"from": "main", "to": "compared", "limit": "2"}
    whole = ask("GET", "/diff", responses.DiffOutput, params={**sides, "limit": "100"})

    first = ask("GET", "/diff", responses.DiffOutput, params=sides)
    mutate(client, "add_craft", "compared", code="D-0", name="d")
    token = {**sides, "page_token": first["next_page_token"]}
    second = ask("GET", "/diff", responses.DiffOutput, params=token)

    assert first["changes"] + second["changes"] == whole["changes"]
    assert "next_page_token" not in second
    assert whole["stats"] == {"node:Craft": {"inserted": 3, "updated": 0, "deleted": 0}}
    for wrong in (
        {**token, "to": "main"},
        {**token, "page_token": "x"},
        {**token, "op": "insert"},
        {"from": "main"},
    ):
        error_of(client.get("/diff", params=wrong), 400, "bad_request")
    error_of(client.get("/diff", params={"from": "main", "to": "nope"}), 404, "not_found")


@pytest.mark.case("surfaces", 120)
@pytest.mark.case("surfaces", 216)
@pytest.mark.parametrize("path", ["/runs", "/runs/1/publish", "/mcp", "/console", "/", "/query/", "//query"])
def test_routes_that_do_not_exist_are_not_found(path: str, client: httpx.Client) -> None:
    error_of(client.get(path), 404, "not_found")
    error_of(client.post(path, json={}), 404, "not_found")


@pytest.mark.case("surfaces", 117)
@pytest.mark.case("surfaces", 118)
@pytest.mark.case("surfaces", 119)
def test_graphs_are_not_listed_for_everybody(client: httpx.Client) -> None:
    error_of(client.get("/graphs"), 403, "forbidden")
    assert error_of(client.get("/graphs/nope/snapshot"), 404, "not_found") == "graph 'nope' not found"
    error_of(client.get("/graphs/bad!id/snapshot"), 400, "bad_request")
    error_of(client.get("/graphs/graphs/snapshot"), 400, "bad_request")
    assert client.get("/snapshot").status_code == 200
