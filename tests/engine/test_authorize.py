"""Every entry asks first; what the engine starts by itself does not ask again."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from omnigraph.core.errors import BadRequest, PolicyDenied, RecoveryRequired
from omnigraph.core.failpoint import failpoint
from omnigraph.core.span import Source
from omnigraph.graph.graph import Graph
from omnigraph.graph.opening import open as open_graph
from omnigraph.graph.snapshot_view import SnapshotView
from omnigraph.operations.init import init_graph
from omnigraph.operations.open import make_parts
from omnigraph.policy.request import AccessRequest, Action
from tests.engine.changes.test_entries import ENTRIES as ENTRIES_OF_CHANGES
from tests.engine.counting import listings
from tests.support.engine import PEOPLE, chain, counts, files, head, ids, ndjson, node
from tests.support.gates import NotingGate, note
from tests.support.queries import mutation, read

ANN = mutation('insert Person { name: "ann" }')
RECORDS = ndjson([node("Person", name="ann")])


READ = read("$p: Person", "return { $p.name }")
ENTRIES: dict[str, tuple[AccessRequest, Callable[[Graph, Path], object]]] = {
    "mutate": (AccessRequest("ann", Action.CHANGE, "main"), lambda graph, _: graph.mutate(ANN, actor="ann")),
    "load bytes": (
        AccessRequest("ann", Action.CHANGE, "main"),
        lambda graph, _: graph.load(RECORDS, "append", actor="ann"),
    ),
    "load a file": (
        AccessRequest("ann", Action.CHANGE, "main"),
        lambda graph, path: graph.load(path / "missing", "append", actor="ann"),
    ),
    "load files": (
        AccessRequest("ann", Action.CHANGE, "main"),
        lambda graph, path: graph.load([path / "missing"], "append", actor="ann"),
    ),
    "embed": (AccessRequest("ann", Action.CHANGE, "main"), lambda graph, _: graph.embed(actor="ann")),
    "plan_schema": (AccessRequest(None, Action.READ), lambda graph, _: graph.plan_schema(PEOPLE)),
    "apply_schema": (
        AccessRequest("ann", Action.SCHEMA_APPLY, None, "main"),
        lambda graph, _: graph.apply_schema(PEOPLE, actor="ann"),
    ),
    "upgrade_branch": (
        AccessRequest("ann", Action.SCHEMA_APPLY, None, "main"),
        lambda graph, _: graph.upgrade_branch("main", actor="ann"),
    ),
    "commit_log": (AccessRequest(None, Action.READ, "main"), lambda graph, _: graph.commit_log()),
    "require_load": (
        AccessRequest("ann", Action.CHANGE, "june"),
        lambda graph, _: graph.require_load(branch="june", from_="main", actor="ann"),
    ),
    "catalog": (AccessRequest(None, Action.READ), lambda graph, _: graph.catalog),
    "catalog_on": (AccessRequest(None, Action.READ, "main"), lambda graph, _: graph.catalog_on("main")),
    "ensure_indices": (
        AccessRequest("ann", Action.ADMIN, "main"),
        lambda graph, _: graph.ensure_indices(actor="ann"),
    ),
    "repair": (AccessRequest("ann", Action.ADMIN, "main"), lambda graph, _: graph.repair(actor="ann")),
    "rebuild_index": (
        AccessRequest("ann", Action.ADMIN, "main"),
        lambda graph, _: graph.rebuild_index("Person", "name", actor="ann"),
    ),
    "queries": (AccessRequest(None, Action.READ, "main"), lambda graph, _: graph.queries()),
    "invoke": (
        AccessRequest("ann", Action.INVOKE_QUERY, "main"),
        lambda graph, _: graph.invoke("everybody", actor="ann"),
    ),
    "optimize": (AccessRequest("ann", Action.ADMIN, "main"), lambda graph, _: graph.optimize(actor="ann")),
    "query": (AccessRequest(None, Action.READ, "main"), lambda graph, _: graph.query(READ)),
    "explain": (AccessRequest(None, Action.READ, "main"), lambda graph, _: graph.explain(READ)),
    "at": (AccessRequest(None, Action.READ), lambda graph, _: graph.at("x")),
    "index_status": (AccessRequest(None, Action.READ, "main"), lambda graph, _: graph.index_status()),
    "refresh": (AccessRequest(None, Action.READ, "main"), lambda graph, _: graph.refresh()),
    "snapshot": (AccessRequest(None, Action.READ, "main"), lambda graph, _: graph.snapshot()),
    "commits": (AccessRequest(None, Action.READ, "main"), lambda graph, _: graph.commits()),
    "commit": (AccessRequest(None, Action.READ), lambda graph, _: graph.commit("x")),
    "recoveries": (AccessRequest(None, Action.READ, "main"), lambda graph, _: graph.recoveries()),
    "schema": (AccessRequest(None, Action.READ), lambda graph, _: graph.schema()),
    "describe": (AccessRequest(None, Action.READ, "main"), lambda graph, _: graph.describe("Person")),
    "status": (AccessRequest(None, Action.READ), lambda graph, _: graph.status()),
    "table": (AccessRequest(None, Action.READ, "main"), lambda graph, _: graph.table("Person")),
    "verify": (AccessRequest(None, Action.READ), lambda graph, _: graph.verify()),
    "load_tables of Arrow": (
        AccessRequest("ann", Action.CHANGE, "main"),
        lambda graph, _: graph.load_tables({}, "append", actor="ann"),
    ),
    "load_dataframes": (
        AccessRequest("ann", Action.CHANGE, "main"),
        lambda graph, _: graph.load_dataframes({}, "append", actor="ann"),
    ),
    "load_objects": (
        AccessRequest("ann", Action.CHANGE, "main"),
        lambda graph, _: graph.load_objects([object()], "append", actor="ann"),
    ),
    "load_networkx": (
        AccessRequest("ann", Action.CHANGE, "main"),
        lambda graph, _: graph.load_networkx(object(), "append", actor="ann"),
    ),
    "blob": (
        AccessRequest("ann", Action.READ, "main"),
        lambda graph, _: graph.blob("node", "Person", "x", "name", actor="ann"),
    ),
    "blob of a snapshot": (
        AccessRequest("ann", Action.READ),
        lambda graph, _: graph.blob("node", "Person", "x", "name", snapshot="x", actor="ann"),
    ),
    "duckdb": (AccessRequest("ann", Action.READ, "main"), lambda graph, _: graph.duckdb(actor="ann")),
    "duckdb of a snapshot": (
        AccessRequest("ann", Action.READ),
        lambda graph, _: graph.duckdb(snapshot="x", actor="ann"),
    ),
    "scan": (AccessRequest("ann", Action.READ, "main"), lambda graph, _: graph.scan("x", actor="ann")),
    "scan of a snapshot": (
        AccessRequest("ann", Action.READ),
        lambda graph, _: graph.scan("Person", snapshot="x", actor="ann"),
    ),
    "to_networkx": (
        AccessRequest("ann", Action.READ, "main"),
        lambda graph, _: graph.to_networkx(actor="ann"),
    ),
    "export": (AccessRequest("ann", Action.EXPORT, "main"), lambda graph, _: graph.export(actor="ann")),
    "branches": (AccessRequest(None, Action.READ), lambda graph, _: graph.branches()),
    "entity_at": (AccessRequest(None, Action.READ), lambda graph, _: graph.entity_at("Person", "x")),
    "branch that exists": (
        AccessRequest(None, Action.READ, "june"),
        lambda graph, _: graph.branch("june").__enter__(),
    ),
    "branch from another": (
        AccessRequest(None, Action.BRANCH_CREATE, "main", "june"),
        lambda graph, _: graph.branch("june", "main").__enter__(),
    ),
    "create_branch": (
        AccessRequest("ann", Action.BRANCH_CREATE, "main", "june"),
        lambda graph, _: graph.create_branch("june", actor="ann"),
    ),
    "delete_branch": (
        AccessRequest("ann", Action.BRANCH_DELETE, None, "june"),
        lambda graph, _: graph.delete_branch("june", actor="ann"),
    ),
    "cleanup": (AccessRequest("ann", Action.ADMIN), lambda graph, _: graph.cleanup(1, actor="ann")),
    "merge": (
        AccessRequest("ann", Action.BRANCH_MERGE, "june", "main"),
        lambda graph, _: graph.merge("june", actor="ann"),
    ),
}


@pytest.mark.case("engine", 359)
@pytest.mark.parametrize("entry", ENTRIES)
def test_a_denied_call_does_no_io(graph: Graph, tmp_path: Path, entry: str) -> None:
    request, call = ENTRIES[entry]
    gate = note(graph, is_open=False)
    before, on_disk = counts(graph), files(Path(graph.uri))

    with listings() as listed, pytest.raises(PolicyDenied) as caught:
        call(graph, tmp_path)

    assert listed == []
    assert (caught.value.action, caught.value.actor) == (request.action, request.actor)
    assert gate.asked == [request]
    assert counts(graph) == before
    assert files(Path(graph.uri)) == on_disk


OF_ITS_BRANCH = {"catalog", "plan_schema", "schema"}  # of a bound handle; else of all branches
OF_THE_NAMED = {"branch from another", "catalog_on", "merge", "queries", "recoveries", "upgrade_branch"}


def of_bound(entry: str, request: AccessRequest) -> AccessRequest:
    """Return what a handle that is bound to july and acts for zoe asks, where another one asks this."""
    asked = replace(request, actor=request.actor or "zoe")
    if entry in OF_ITS_BRANCH:
        return replace(asked, branch="july")
    if entry in OF_THE_NAMED:
        return asked
    branch, target = ("july" if name == "main" else name for name in (asked.branch, asked.target_branch))
    return replace(asked, branch=branch, target_branch=target)


@pytest.mark.case("engine", 359)
@pytest.mark.case("surfaces", 696)
def test_a_denied_call_of_a_bound_handle_that_acts_for_somebody_does_no_io(
    graph: Graph, tmp_path: Path
) -> None:
    graph.create_branch("july")
    with graph.acting_as("zoe").branch("july") as bound:
        for entry, (request, call) in ENTRIES.items():
            gate = note(graph, is_open=False)
            before, on_disk = counts(graph), files(Path(graph.uri))

            with listings() as listed, pytest.raises(PolicyDenied):
                call(bound, tmp_path)

            assert (gate.asked, listed) == ([of_bound(entry, request)], []), entry
            assert counts(graph) == before, entry
            assert files(Path(graph.uri)) == on_disk, entry


@pytest.mark.case("engine", 359)
@pytest.mark.case("surfaces", 696)
def test_a_denied_call_of_a_view_does_no_io(graph: Graph) -> None:
    graph.mutate(ANN)
    view = graph.acting_as("zoe").at(head(graph).graph_commit_id)
    calls: dict[str, Callable[[], object]] = {
        "query": lambda: view.query(READ),
        "explain": lambda: view.explain(READ),
        "describe": lambda: view.describe("Person"),
        "schema": view.schema,
        "blob": lambda: view.blob("node", "Person", "ann", "name"),
    }
    assert {name for name in dir(SnapshotView) if not name.startswith("_")} - {"snapshot"} == {*calls}

    for name, call in calls.items():
        gate = note(graph, is_open=False)
        before = counts(graph)

        with listings() as listed, pytest.raises(PolicyDenied):
            call()

        assert (gate.asked, listed) == ([AccessRequest("zoe", Action.READ)], []), name
        assert counts(graph) == before, name


@pytest.mark.case("engine", 359)
def test_a_denied_init_does_no_io(tmp_path: Path) -> None:
    gate = NotingGate()
    parts = make_parts(str(tmp_path / "denied"))

    with listings() as listed, pytest.raises(PolicyDenied):
        init_graph(parts, Source(PEOPLE), actor="ann", gate=gate)

    assert (listed, files(tmp_path)) == ([], {})
    assert gate.asked == [AccessRequest("ann", Action.ADMIN)]
    assert not (tmp_path / "denied").exists()


@pytest.mark.case("engine", 359)
def test_every_public_entry_is_here() -> None:
    public = {name for name in dir(Graph) if not name.startswith("_")} - {"close", "uri", "acting_as"}

    covered = {name.split()[0] for name in (*ENTRIES, *ENTRIES_OF_CHANGES)}
    assert covered == public


@pytest.mark.case("engine", 359)
def test_healing_index_builds_and_upkeep_run_under_the_grant_of_their_caller(graph: Graph) -> None:
    with pytest.raises(RecoveryRequired), failpoint("write.post_finalize_pre_publisher", "raise"):
        graph.mutate(ANN)
    gate = note(graph, is_open=True)

    graph.load(ndjson([node("Person", name="bob")]), "append", actor="bob")
    assert gate.asked == [AccessRequest("bob", Action.CHANGE, "main")]
    gate.asked.clear()
    for number in range(64):
        graph.mutate(mutation(f'insert Person {{ name: "p{number}" }}'), actor="ann")
    assert gate.asked == [AccessRequest("ann", Action.CHANGE, "main")] * 64

    assert {"ann", "bob"} <= set(ids(graph, "Person"))
    authors = [commit.actor_id for commit in chain(graph)]
    assert authors.count("omnigraph:recovery") == 1
    assert authors.count("omnigraph:maintenance") == 2
    assert head(graph).manifest_version > 64


def test_a_commit_is_read_on_behalf_of_its_branch(graph: Graph) -> None:
    graph.mutate(ANN)
    graph.create_branch("june")
    commit = graph.mutate(mutation('insert Person { name: "ben" }'), branch="june").commit
    assert commit is not None
    gate = note(graph, is_open=True)

    graph.entity_at("Person", "ben", commit.graph_commit_id)

    assert [request.branch for request in gate.asked] == [None]


def test_a_handle_acts_for_whoever_opened_it(graph: Graph) -> None:
    with open_graph(graph.uri, actor="mira") as opened:
        opened.mutate(ANN)
        opened.mutate(mutation('insert Person { name: "ben" }'), actor="theo")
        assert [commit.actor_id for commit in opened.commits(limit=2)] == ["theo", "mira"]


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb"])
def test_half_a_surrogate_pair_is_no_actor_and_no_message(graph: Graph, text: str) -> None:
    with pytest.raises(BadRequest, match="actor"):
        graph.mutate(ANN, actor=text)
    with pytest.raises(BadRequest, match="message"):
        graph.mutate(ANN, message=text)


def test_a_mode_is_one_of_two(graph: Graph) -> None:
    with pytest.raises(BadRequest, match="'rx'"):
        open_graph(graph.uri, mode="rx")  # type: ignore[arg-type]
