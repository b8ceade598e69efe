"""Every entry asks first; what the engine starts by itself does not ask again."""

from collections.abc import Callable
from pathlib import Path

import pytest

from omnigraph.core.errors import BadRequest, PolicyDenied, RecoveryRequired
from omnigraph.core.failpoint import failpoint
from omnigraph.core.span import Source
from omnigraph.graph.graph import Graph
from omnigraph.graph.opening import open as open_graph
from omnigraph.operations.init import init_graph
from omnigraph.operations.open import make_parts
from tests.engine.changes.test_entries import ENTRIES as ENTRIES_OF_CHANGES
from tests.engine.counting import listings
from tests.support.engine import PEOPLE, chain, counts, files, head, ids, ndjson, node
from tests.support.queries import mutation, read
from tests.support.seam import internals

ANN = mutation('insert Person { name: "ann" }')
RECORDS = ndjson([node("Person", name="ann")])


class Policy:
    """Denies, or allows, and notes what it was asked."""

    def __init__(self, *, is_open: bool) -> None:
        self.is_open = is_open
        self.asked: list[tuple[str | None, str, str]] = []

    def __call__(self, actor: str | None, action: str, resource: str) -> None:
        self.asked.append((actor, action, resource))
        if not self.is_open:
            raise PolicyDenied(action=action, actor=actor, branch=resource)


def install(graph: Graph, *, is_open: bool) -> Policy:
    """Put a policy in place of the one that allows everything."""
    policy = Policy(is_open=is_open)
    internals(graph).authorize = policy
    return policy


READ = read("$p: Person", "return { $p.name }")
ENTRIES: dict[str, tuple[str, Callable[[Graph, Path], object]]] = {
    "mutate": ("change", lambda graph, _: graph.mutate(ANN, actor="ann")),
    "load bytes": ("change", lambda graph, _: graph.load(RECORDS, "append", actor="ann")),
    "load a file": ("change", lambda graph, path: graph.load(path / "missing", "append", actor="ann")),
    "load files": ("change", lambda graph, path: graph.load([path / "missing"], "append", actor="ann")),
    "embed": ("change", lambda graph, _: graph.embed(actor="ann")),
    "plan_schema": ("read", lambda graph, _: graph.plan_schema(PEOPLE)),
    "apply_schema": ("schema_apply", lambda graph, _: graph.apply_schema(PEOPLE, actor="ann")),
    "upgrade_branch": ("schema_apply", lambda graph, _: graph.upgrade_branch("main", actor="ann")),
    "catalog_on": ("read", lambda graph, _: graph.catalog_on("main")),
    "ensure_indices": ("admin", lambda graph, _: graph.ensure_indices(actor="ann")),
    "repair": ("admin", lambda graph, _: graph.repair(actor="ann")),
    "rebuild_index": ("admin", lambda graph, _: graph.rebuild_index("Person", "name", actor="ann")),
    "queries": ("read", lambda graph, _: graph.queries()),
    "invoke": ("invoke_query", lambda graph, _: graph.invoke("everybody", actor="ann")),
    "optimize": ("admin", lambda graph, _: graph.optimize(actor="ann")),
    "query": ("read", lambda graph, _: graph.query(READ)),
    "explain": ("read", lambda graph, _: graph.explain(READ)),
    "at": ("read", lambda graph, _: graph.at("x")),
    "index_status": ("read", lambda graph, _: graph.index_status()),
    "refresh": ("read", lambda graph, _: graph.refresh()),
    "snapshot": ("read", lambda graph, _: graph.snapshot()),
    "commits": ("read", lambda graph, _: graph.commits()),
    "commit": ("read", lambda graph, _: graph.commit("x")),
    "recoveries": ("read", lambda graph, _: graph.recoveries()),
    "schema": ("read", lambda graph, _: graph.schema()),
    "describe": ("read", lambda graph, _: graph.describe("Person")),
    "status": ("read", lambda graph, _: graph.status()),
    "table": ("read", lambda graph, _: graph.table("Person")),
    "verify": ("read", lambda graph, _: graph.verify()),
    "load_tables of Arrow": ("change", lambda graph, _: graph.load_tables({}, "append", actor="ann")),
    "load_dataframes": ("change", lambda graph, _: graph.load_dataframes({}, "append", actor="ann")),
    "export": ("export", lambda graph, _: graph.export(actor="ann")),
    "branches": ("read", lambda graph, _: graph.branches()),
    "entity_at": ("read", lambda graph, _: graph.entity_at("Person", "x")),
    "branch that exists": ("read", lambda graph, _: graph.branch("june").__enter__()),
    "branch from another": ("branch_create", lambda graph, _: graph.branch("june", "main").__enter__()),
    "create_branch": ("branch_create", lambda graph, _: graph.create_branch("june", actor="ann")),
    "delete_branch": ("branch_delete", lambda graph, _: graph.delete_branch("june", actor="ann")),
    "cleanup": ("admin", lambda graph, _: graph.cleanup(1, actor="ann")),
    "merge": ("branch_merge", lambda graph, _: graph.merge("june", actor="ann")),
}
OF_A_BRANCH = {"branch_create", "branch_delete"}  # what is asked about the branch that the call names


@pytest.mark.case("engine", 359)
@pytest.mark.parametrize("entry", ENTRIES)
def test_a_denied_call_does_no_io(graph: Graph, tmp_path: Path, entry: str) -> None:
    action, call = ENTRIES[entry]
    policy = install(graph, is_open=False)
    before, on_disk = counts(graph), files(Path(graph.uri))

    with listings() as listed, pytest.raises(PolicyDenied) as caught:
        call(graph, tmp_path)

    assert listed == []
    assert caught.value.action == action
    is_named = action in OF_A_BRANCH or entry == "branch that exists"
    actor = None if action == "read" or entry == "branch from another" else "ann"
    assert policy.asked == [(actor, action, "june" if is_named else "main")]
    assert counts(graph) == before
    assert files(Path(graph.uri)) == on_disk


@pytest.mark.case("engine", 359)
def test_a_denied_init_does_no_io(tmp_path: Path) -> None:
    policy = Policy(is_open=False)
    parts = make_parts(str(tmp_path / "denied"))

    with listings() as listed, pytest.raises(PolicyDenied):
        init_graph(parts, Source(PEOPLE), actor="ann", authorize=policy)

    assert (listed, files(tmp_path)) == ([], {})
    assert policy.asked == [("ann", "admin", "main")]
    assert not (tmp_path / "denied").exists()


@pytest.mark.case("engine", 359)
def test_every_public_entry_is_here() -> None:
    public = {name for name in dir(Graph) if not name.startswith("_")} - {"close", "uri", "catalog"}

    covered = {name.split()[0] for name in (*ENTRIES, *ENTRIES_OF_CHANGES)}
    assert covered == public


@pytest.mark.case("engine", 359)
def test_healing_index_builds_and_upkeep_run_under_the_grant_of_their_caller(graph: Graph) -> None:
    with pytest.raises(RecoveryRequired), failpoint("write.post_finalize_pre_publisher", "raise"):
        graph.mutate(ANN)
    policy = install(graph, is_open=True)

    graph.load(ndjson([node("Person", name="bob")]), "append", actor="bob")
    assert policy.asked == [("bob", "change", "main")]
    policy.asked.clear()
    for number in range(64):
        graph.mutate(mutation(f'insert Person {{ name: "p{number}" }}'), actor="ann")
    assert policy.asked == [("ann", "change", "main")] * 64

    assert {"ann", "bob"} <= set(ids(graph, "Person"))
    internals(graph).authorize = Policy(is_open=True)
    authors = [commit.actor_id for commit in chain(graph)]
    assert authors.count("omnigraph:recovery") == 1
    assert authors.count("omnigraph:maintenance") == 2
    assert head(graph).manifest_version > 64


def test_a_commit_is_read_on_behalf_of_its_branch(graph: Graph) -> None:
    graph.mutate(ANN)
    graph.create_branch("june")
    commit = graph.mutate(mutation('insert Person { name: "ben" }'), branch="june").commit
    assert commit is not None
    policy = install(graph, is_open=True)

    graph.entity_at("Person", "ben", commit.graph_commit_id)

    assert [branch for _, _, branch in policy.asked] == ["main", "june"]


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
