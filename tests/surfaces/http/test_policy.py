"""A policy over HTTP: what each route needs, in which order it refuses, and that a refusal tells nothing."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from omnigraph.core.ids import new_ulid
from omnigraph.graph.stored_files import DeclaredQueries, NamedQuery
from omnigraph.policy.model import Policy
from omnigraph.server.settings import ServerLimits
from tests.support.atlas import place_atlas
from tests.support.commands import write
from tests.support.http_app import serving_app, settings_for
from tests.support.http_requests import ADD, ARROW, LINE, NDJSON, READ
from tests.support.http_server import error_of

TOKENS = {name: f"token-of-{name}-0123456789" for name in ("mira", "ines", "rita", "ivo", "eve", "kim")}
POLICY = """\
version: 1
groups:
  crew: [mira]
  control: [ines]
  readers: [rita]
  callers: [ivo]
  loaders: [kim]
protected_branches: [main, secret, gone]
rules:
  - id: crew-work
    allow: { actors: { group: crew }, actions: [read, export, change], branch_scope: unprotected }
  - id: crew-branches
    allow:
      actors: { group: crew }
      actions: [branch_create, branch_merge]
      target_branch_scope: unprotected
  - id: control
    allow:
      actors: { group: control }
      actions: [branch_merge, schema_apply]
      target_branch_scope: protected
  - id: readers
    allow: { actors: { group: readers }, actions: [read] }
  - id: callers
    allow: { actors: { group: callers }, actions: [invoke_query, read] }
  - id: loaders
    allow: { actors: { group: loaders }, actions: [change] }
"""
SERVER_POLICY = """\
version: 1
kind: server
groups: { readers: [rita] }
rules:
  - { id: list, allow: { actors: { group: readers }, actions: [graph_list] } }
"""
STORED = """\
query add() { insert Mission { title: "Stored" } }
query titles() { match { $m: Mission } return { $m.title } }
"""
LOAD_LIMIT = 4_096


class Callers:
    """The actors of one server."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def send(
        self,
        actor: str | None,
        method: str,
        path: str,
        **given: Any,  # noqa: ANN401 - what httpx takes
    ) -> httpx.Response:
        headers = dict(given.pop("headers", {}))
        if actor is not None:
            headers["Authorization"] = f"Bearer {TOKENS[actor]}"
        return self._client.request(method, path, headers=headers, **given)

    def denied(self, actor: str, method: str, path: str, **given: Any) -> str:  # noqa: ANN401
        """Return what a refusal says."""
        return error_of(self.send(actor, method, path, **given), 403, "forbidden")

    def done(self, actor: str, method: str, path: str, **given: Any) -> Any:  # noqa: ANN401
        """Return what is answered."""
        response = self.send(actor, method, path, **given)
        assert response.status_code == 200, response.text
        return response.json() if response.headers["content-type"] == "application/json" else response.text


@pytest.fixture(scope="module")
def callers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callers]:
    """One server of one graph with branches june and secret."""
    folder = tmp_path_factory.mktemp("policy")
    path = place_atlas(folder)
    from omnigraph.graph.opening import open as open_graph

    with open_graph(path) as graph:
        for name in ("june", "secret"):
            graph.create_branch(name)
            graph.mutate(ADD % f"on {name}", branch=name)
    file = write(folder, "stored.gq", STORED)
    stored = DeclaredQueries(named=(NamedQuery("add", file), NamedQuery("titles", file)))
    settings = settings_for(
        path,
        tokens=TOKENS,
        limits=ServerLimits(load_body_bytes=LOAD_LIMIT),
        queries=stored,
        policy=Policy.parse(POLICY, "atlas"),
        server_policy=Policy.parse(SERVER_POLICY, "server"),
    )
    with serving_app(settings) as client:
        yield Callers(client)


@pytest.mark.case("surfaces", 117)
@pytest.mark.case("surfaces", 549)
def test_graphs_are_listed_for_whom_the_servers_policy_lets(callers: Callers) -> None:
    assert [graph["graph_id"] for graph in callers.done("rita", "GET", "/graphs")["graphs"]] == ["default"]
    callers.denied("mira", "GET", "/graphs")
    assert "omnigraph_http_requests_total" in callers.done("rita", "GET", "/metrics")
    callers.denied("mira", "GET", "/metrics")
    error_of(callers.send(None, "GET", "/graphs"), 401, "unauthorized")


@pytest.mark.case("surfaces", 157)
@pytest.mark.case("surfaces", 160)
def test_a_crew_writes_to_what_is_not_protected(callers: Callers) -> None:
    callers.done("mira", "POST", "/mutate", json={"query": ADD % "by mira", "branch": "june"})
    for name in ("main", " main ", None):
        text = callers.denied("mira", "POST", "/mutate", json={"query": ADD % "x", "branch": name})
        assert text == "policy denied action 'change' on branch 'main' for actor 'mira'"
    assert "on june" in callers.done("mira", "POST", "/export", json={"branch": "june"})
    callers.denied("mira", "POST", "/export", json={"branch": "secret"})


@pytest.mark.case("surfaces", 158)
@pytest.mark.case("surfaces", 547)
def test_the_control_merges_what_the_crew_made(callers: Callers) -> None:
    callers.done("mira", "POST", "/branches", json={"name": "work", "from": "june"})
    callers.done("mira", "POST", "/mutate", json={"query": ADD % "work", "branch": "work"})
    merge = {"source": "work", "target": "main", "delete_branch": True}
    text = callers.denied("mira", "POST", "/branches/merge", json=merge)
    assert text == "policy denied action 'branch_merge' on branch 'main' for actor 'mira'"

    merged = callers.done("ines", "POST", "/branches/merge", json=merge)

    assert (merged["branch_deleted"], merged["branch_delete_refusal"]) == (False, "forbidden")
    callers.denied("ines", "DELETE", "/branches/work")
    nowhere = callers.denied("mira", "POST", "/branches/merge", json={"source": "nowhere", "target": "main"})
    assert nowhere == text


@pytest.mark.case("surfaces", 136)
@pytest.mark.case("surfaces", 159)
@pytest.mark.case("surfaces", 546)
def test_a_load_that_makes_a_branch_needs_the_right_to_make_it(callers: Callers) -> None:
    made = callers.done(
        "mira", "POST", "/load/ndjson?mode=append&branch=loaded&from=main", content=LINE, headers=NDJSON
    )
    assert made["branch_created"] is True
    too_much = LINE.encode() * (LOAD_LIMIT // len(LINE) + 1)  # whoever reads it refuses it with 413
    for actor, path in (
        ("mira", "/load/ndjson?mode=append"),
        ("kim", "/load/ndjson?mode=append&branch=new&from=main"),
    ):
        error_of(callers.send(actor, "POST", path, content=too_much, headers=NDJSON), 403, "forbidden")
    more = LINE.replace("Loaded", "More").encode()
    kept = callers.done(
        "kim", "POST", "/load/ndjson?mode=append&branch=june&from=main", content=more, headers=NDJSON
    )
    assert kept["branch_created"] is False
    for route in ("/load", "/ingest"):
        text = callers.denied("kim", "POST", route, json={"data": LINE, "branch": "new", "from": "main"})
        assert "'branch_create' on branch 'new'" in text
    assert "'branch_create'" in callers.denied("kim", "POST", "/ingest", json={"data": LINE, "branch": "new"})
    assert "new" not in callers.done("rita", "GET", "/branches")["branches"]


@pytest.mark.case("surfaces", 548)
def test_rows_of_arrow_are_loaded_without_the_right_to_read(callers: Callers) -> None:
    import pyarrow as pa

    table = pa.table({"title": ["from Arrow"]})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    given = {"content": sink.getvalue().to_pybytes(), "headers": {"Content-Type": ARROW}}

    callers.done("kim", "POST", "/load/arrow?mode=append&type=Mission&branch=june", **given)

    text = callers.denied("mira", "POST", "/load/arrow?mode=append&type=Nonsense", **given)
    assert "Nonsense" not in text
    assert error_of(
        callers.send("kim", "POST", "/load/arrow?mode=append&type=Nonsense", **given), 400, "bad_request"
    )


@pytest.mark.case("surfaces", 144)
def test_who_may_not_call_stored_queries_cannot_tell_which_there_are(callers: Callers) -> None:
    def answer(actor: str, name: str) -> tuple[int, bytes]:
        response = callers.send(actor, "POST", f"/queries/{name}", json={})
        return response.status_code, response.content

    assert answer("mira", "titles") == answer("mira", "unknown") == answer("rita", "add")
    assert answer("mira", "titles")[0] == 404
    assert answer("ivo", "titles")[0] == 200
    assert answer("ivo", "unknown") == answer("mira", "unknown")
    assert "'change' on branch 'main'" in callers.denied("ivo", "POST", "/queries/add", json={})
    listed = callers.done("rita", "GET", "/queries")["queries"]
    assert [query["name"] for query in listed] == ["add", "titles"]
    callers.denied("mira", "GET", "/queries")


@pytest.mark.case("surfaces", 161)
@pytest.mark.case("surfaces", 544)
def test_a_hidden_commit_is_answered_like_one_that_is_not_there(callers: Callers) -> None:
    def head(branch: str) -> str:
        commits = callers.done("rita", "GET", f"/commits?branch={branch}&limit=1")["commits"]
        return str(commits[0]["graph_commit_id"])

    hidden, unknown = head("secret"), new_ulid()

    def answers(method: str, path: str, **given: object) -> list[tuple[int, str]]:
        found = []
        for commit in (hidden, unknown):
            sent = json.loads(json.dumps(given).replace("COMMIT", commit))
            response = callers.send("mira", method, path.replace("COMMIT", commit), **sent)
            found.append((response.status_code, response.text.replace(commit, "COMMIT")))
        return found

    for method, path, given, status in (
        ("POST", "/query", {"json": {"query": READ, "snapshot": "COMMIT"}}, 403),
        ("POST", "/read", {"json": {"query_source": READ, "snapshot": "COMMIT"}}, 403),
        ("GET", "/commits/COMMIT", {}, 403),
        ("GET", "/commits/COMMIT/changes", {}, 404),
        ("GET", "/diff?from=COMMIT&to=june", {}, 404),
        ("GET", "/diff?from=june&to=COMMIT", {}, 404),
        ("GET", "/changes?branch=june&start=after:COMMIT", {}, 404),
    ):
        first, second = answers(method, path, **given)
        assert first == second, path
        assert first[0] == status, path
    assert callers.done("mira", "POST", "/query", json={"query": READ, "snapshot": head("june")})["rows"]
    assert callers.done("rita", "POST", "/query", json={"query": READ, "snapshot": hidden})["rows"]
    assert callers.done("mira", "GET", f"/commits/{head('june')}/changes")["changes"]


@pytest.mark.case("surfaces", 545)
def test_later_pages_of_a_comparison_need_what_the_first_needed(callers: Callers) -> None:
    for name in ("left", "right"):
        callers.done("mira", "POST", "/branches", json={"name": name, "from": "june"})
    callers.done("mira", "POST", "/mutate", json={"query": ADD % "a", "branch": "left"})
    callers.done("mira", "POST", "/mutate", json={"query": ADD % "b", "branch": "left"})

    first = callers.done("mira", "GET", "/diff?from=right&to=left&limit=1")
    second = callers.done(
        "mira",
        "GET",
        "/diff",
        params={"from": "right", "to": "left", "limit": 1, "page_token": first["next_page_token"]},
    )

    assert [len(page["changes"]) for page in (first, second)] == [1, 1]
    assert first["changes"] != second["changes"]
    assert second.get("next_page_token") is None


@pytest.mark.case("surfaces", 142)
def test_a_schema_is_changed_by_whom_the_policy_lets(callers: Callers) -> None:
    schema = callers.done("rita", "GET", "/schema")["schema_source"]
    given = {"schema_source": schema + "\nnode Pad { name: String @key }\n"}

    text = callers.denied("mira", "POST", "/schema/apply", json=given)
    assert text == "policy denied action 'schema_apply' on branch 'main' for actor 'mira'"
    assert callers.done("ines", "POST", "/schema/apply", json=given)["applied"] is True
    callers.denied("mira", "GET", "/schema")
    assert callers.done("mira", "GET", "/schema?branch=june")["schema_source"] == schema


@pytest.mark.case("surfaces", 551)
def test_decisions_are_logged_without_tokens(callers: Callers, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "omnigraph.policy"):
        callers.done("mira", "POST", "/mutate", json={"query": ADD % "logged", "branch": "june"})
        callers.denied("eve", "POST", "/query", json={"query": READ})

    told = [record.getMessage() for record in caplog.records if record.name == "omnigraph.policy"]
    assert any("allowed actor='mira' action='change' branch='june'" in line for line in told)
    assert any("denied actor='eve' action='read' branch='main'" in line for line in told)
    assert all(token not in line for line in told for token in TOKENS.values())


@pytest.mark.case("surfaces", 114)
def test_who_wrote_is_who_has_the_token_whatever_a_header_says(callers: Callers) -> None:
    for number, header in enumerate(("X-Actor-Id", "x-actor-id", "X-Forwarded-User", "Omnigraph-Actor")):
        body = {"query": ADD % f"by mira {number}", "branch": "june"}

        made = callers.done("mira", "POST", "/mutate", json=body, headers={header: "ines"})

        listed = callers.done("rita", "GET", f"/commits/{made['commit']['graph_commit_id']}")
        assert made["actor_id"] == made["commit"]["actor_id"] == "mira"
        assert "ines" not in json.dumps(listed)
        assert json.dumps(listed).count('"actor_id": "mira"') == 1


@pytest.mark.case("surfaces", 808)
def test_who_may_only_change_asks_for_their_own_writes_and_for_no_other(callers: Callers) -> None:
    name = {"Omnigraph-Write-Id": "a-write-of-kim-0001"}
    made = callers.done("kim", "POST", "/mutate", json={"query": ADD % "by kim"}, headers=name)

    known = callers.done("kim", "GET", "/writes/a-write-of-kim-0001")

    assert (known["state"], known["status"]) == ("done", 200)
    assert known["answer"]["commit"] == made["commit"]
    callers.denied("kim", "GET", "/writes/a-write-of-nobody-1")
    callers.denied("eve", "GET", "/writes/a-write-of-kim-0001")
    error_of(callers.send("rita", "GET", "/writes/a-write-of-kim-0001"), 404, "not_found")
