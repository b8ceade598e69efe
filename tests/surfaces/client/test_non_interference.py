"""Nobody sees what they may not see: two graphs that differ in nothing else give them the same answers.

One graph is a copy of the other, so that ids and times are the same in both, and then gets a hidden branch
with rows, commits and another schema. Whoever may not read that branch is answered alike by both, through
every route and every method, whether they name it or not. Not in question is what is documented to be told:
how many branches that the caller may not read stand in the way of a change, and how far the graph has counted
its types.
"""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pyarrow as pa
import pytest

from omnigraph.core.errors import OmnigraphError
from omnigraph.graph.graph import Graph
from omnigraph.graph.opening import open as open_graph
from omnigraph.graph.result import Result
from omnigraph.graph.stored_files import DeclaredQueries, NamedQuery
from omnigraph.policy.model import Policy
from omnigraph.server.app import graph_routes
from tests.support.atlas import ATLAS, place_atlas
from tests.support.commands import write
from tests.support.gates import policy_text
from tests.support.http_app import serving_app, settings_for
from tests.support.http_requests import ADD
from tests.support.method_calls import SCHEMA, call, methods_of
from tests.support.method_calls import SOURCES as COPIED
from tests.support.method_calls import places_in as places_of
from tests.support.route_requests import SOURCES, Names, places_in, process_routes, send, visible

TOKEN = "token-of-ann-0123456789"
POLICY = Policy.parse(
    policy_text(
        "read, export, change; branch_scope: unprotected",
        "branch_create, branch_merge, branch_delete, schema_apply; target_branch_scope: unprotected",
        "invoke_query",
        protected="main, secret",
        actors="ann",
    )
)
STORED = """\
query titles() { match { $m: Mission } return { $m.title } }
query listed() { match { $m: Mission } return { $m.title } }
query record() { insert Mission { title: "Recorded" } }
"""
HIDDEN = "secret"
HIDDEN_SCHEMA = ATLAS + "\nnode Hidden { word: String @key }\n"
# What differs between any two runs: ids of what is made, times, and what holds these: tokens, digests. The
# numbers of types come from one counter of the graph, so that branches can be merged.
NEW = re.compile(
    r"\b[0-9A-HJKMNP-TV-Z]{26}\b|\b\d{16}\b|\d{4}-\d\d-\d\d[T ][\d:.]+|[\w-]{120,}|[0-9a-f]{32,}|0x[0-9a-f]+"
    r"|\b(?:id|incarnation)=\d+"
)
VALUES = {"createBranch": {"name": "made"}, "deleteBranch": {"branch": "made"}}
WORDS = {"Nonsense": "Mission", "nonsense": SCHEMA}
READ_ROUTES = {
    *("query", "read", "explainQuery", "checkQuery", "export", "captureChangeBaseline", "getTable"),
    *("describeType", "pollChanges", "getCommitChanges", "diffBranches", "getSchema", "planSchema"),
    *("getSnapshot", "listCommits", "invoke_query", "health", "version", "ready"),
}
WRITE_ROUTES = {
    *("mutate", "change", "load", "loadNdjson", "ingest", "applySchema"),
    *("createBranch", "mergeBranches", "deleteBranch"),
}
ENDLESS = "streamCommits"  # what it tells is in the answer of `listCommits`


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """Two graphs of one history: the second has a hidden branch as well."""
    plain = place_atlas(tmp_path / "plain")
    with open_graph(plain) as graph:
        for name in ("june", "july"):
            graph.create_branch(name)
            graph.mutate(ADD % f"on {name}", branch=name)
    other = tmp_path / "other" / plain.name
    shutil.copytree(plain, other)
    with open_graph(other) as graph:
        graph.create_branch(HIDDEN)
        graph.apply_schema(HIDDEN_SCHEMA, branch=HIDDEN)
        for number in range(3):
            graph.mutate(f'query q() {{ insert Hidden {{ word: "w{number}" }} }}', branch=HIDDEN)
            graph.mutate(ADD % f"hidden {number}", branch=HIDDEN)
    return plain, other


def head_of(path: Path, branch: str) -> str:
    with open_graph(path, mode="ro") as graph:
        return graph.commits(branch=branch, limit=1)[0].graph_commit_id


def seen(text: str, path: Path) -> str:
    """Return a text but for what differs between any two runs."""
    return NEW.sub("NEW", text.replace(str(path), "PLACE"))


@pytest.mark.case("surfaces", 693)
def test_every_route_answers_as_if_what_is_hidden_were_not_there(pair: tuple[Path, Path]) -> None:
    head, hidden = head_of(pair[0], "june"), head_of(pair[1], HIDDEN)
    file = write(pair[0].parent, "stored.gq", STORED)
    stored = DeclaredQueries(named=tuple(NamedQuery(name, file) for name in ("titles", "listed", "record")))

    plain, other = (route_answers(path, stored, head, hidden) for path in pair)

    assert [told for told in zip(plain, other, strict=True) if told[0] != told[1]] == []
    assert {name for name, _, status, *_ in plain if status == 200} >= READ_ROUTES | WRITE_ROUTES


def route_answers(path: Path, stored: DeclaredQueries, head: str, hidden: str) -> list[tuple[object, ...]]:
    """Return what routes answer: about what the caller may see, and about what is hidden in one graph."""
    settings = settings_for(path, tokens={"ann": TOKEN}, queries=stored, policy=POLICY)
    with serving_app(settings) as client:
        client.headers["Authorization"] = f"Bearer {TOKEN}"
        poll = client.get("/changes", params={"branch": "june"}).json()
        names = Names(HIDDEN, hidden, "titles", "a-write-of-nobody-01", poll["cursor"])
        found: list[tuple[object, ...]] = [
            (own.id, "", *told(client.request(own.method, own.path), path)) for own in process_routes()
        ]
        for route in graph_routes():
            values = visible(route, head) | VALUES.get(route.id, {})
            asked = [] if route.id == ENDLESS else [("", values)]
            for field, place in places_in(route):
                if f"{route.id}.{field}" not in SOURCES:
                    asked.append((field, {**values, field: place(names)}))
            for field, given in asked:
                if field == "snapshot":
                    given.pop("branch", None)
                found.append((route.id, field, *told(send(client, route, given, words=WORDS), path)))
    return found


def told(response: httpx.Response, path: Path) -> tuple[int, str, list[tuple[str, str]]]:
    """Return all of an answer that may not depend on what is hidden."""
    headers = [item for item in response.headers.multi_items() if item[0] not in {"date", "x-request-id"}]
    return (
        response.status_code,
        seen(response.text, path),
        [(name, seen(value, path)) for name, value in headers],
    )


@pytest.mark.case("surfaces", 693)
def test_every_method_answers_as_if_what_is_hidden_were_not_there(pair: tuple[Path, Path]) -> None:
    hidden = head_of(pair[1], HIDDEN)

    plain, other = ([*method_answers(path, hidden)] for path in pair)

    assert [told for told in zip(plain, other, strict=True) if told[0] != told[1]] == []
    assert sum(how == "returned" for _, _, how, _ in plain) >= 25


def method_answers(path: Path, hidden: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield how every call ends: about what the caller may see, and about what is hidden in one graph."""
    with open_graph(path, actor="ann", policy=POLICY) as graph:
        names = Names(HIDDEN, hidden, "unheard_of", "", str(graph.poll_changes(branch="june").cursor))
        for method, _ in methods_of(Graph):
            if method not in {"close", "acting_as"}:
                yield method, "", *ended(graph, path, method)
        for method, argument, place in places_of(Graph):
            if f"{method}.{argument}" not in COPIED:
                yield method, argument, *ended(graph, path, method, **{argument: place(names)})


def ended(graph: Graph, path: Path, method: str, **names: str) -> tuple[str, str]:
    try:
        found = call(graph, method, **names)
    except OmnigraphError as error:
        return type(error).__name__, seen(str(error), path)
    if isinstance(found, pa.Table):
        found = found.to_pylist()
    if isinstance(found, Result):
        found = found.rows
    return "returned", seen(repr(found), path)
