"""A closed handle refuses every verb, and so does everything that reads through it."""

import gc
import inspect
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from omnigraph.core.errors import HandleClosed
from omnigraph.graph.graph import Graph
from omnigraph.graph.snapshot_view import SnapshotView
from tests.support.engine import counts
from tests.support.people_graph import people_graph

READ = "query q() { match { $p: Person } return { $p.name } }"
WRITE = 'query q() { insert Person { name: "z" } }'
PEOPLE = pa.table({"name": ["z"]})

VERBS: dict[str, Callable[[Graph], object]] = {
    "at": lambda graph: graph.at("main"),
    "baseline": lambda graph: graph.baseline(),
    "branch": lambda graph: graph.branch("june").__enter__(),
    "branches": lambda graph: graph.branches(),
    "changes": lambda graph: graph.changes(),
    "commit": lambda graph: graph.commit("x"),
    "commit_changes": lambda graph: graph.commit_changes("x"),
    "commit_changes_page": lambda graph: graph.commit_changes_page("x"),
    "commits": lambda graph: graph.commits(),
    "create_branch": lambda graph: graph.create_branch("june"),
    "delete_branch": lambda graph: graph.delete_branch("june"),
    "diff": lambda graph: graph.diff("main"),
    "embed": lambda graph: graph.embed(),
    "plan_schema": lambda graph: graph.plan_schema("node A { b: String }"),
    "apply_schema": lambda graph: graph.apply_schema("node A { b: String }"),
    "upgrade_branch": lambda graph: graph.upgrade_branch("june"),
    "catalog_on": lambda graph: graph.catalog_on("main"),
    "ensure_indices": lambda graph: graph.ensure_indices(),
    "entity_at": lambda graph: graph.entity_at("Person", "a"),
    "explain": lambda graph: graph.explain(READ),
    "export": lambda graph: graph.export(),
    "commit_log": lambda graph: graph.commit_log(),
    "require_load": lambda graph: graph.require_load(branch="june", from_="main"),
    "acting_as": lambda graph: graph.acting_as("ann"),
    "index_status": lambda graph: graph.index_status(),
    "repair": lambda graph: graph.repair(),
    "load": lambda graph: graph.load(b'{"type": "Person", "data": {"name": "z"}}\n', "append"),
    "load_objects": lambda graph: graph.load_objects([], "append"),
    "load_networkx": lambda graph: graph.load_networkx(object(), "append"),
    "to_networkx": lambda graph: graph.to_networkx(),
    "duckdb": lambda graph: graph.duckdb(),
    "scan": lambda graph: graph.scan("Person"),
    "blob": lambda graph: graph.blob("node", "Person", "a", "name"),
    "load_dataframes": lambda graph: graph.load_dataframes({"Person": PEOPLE}, "append"),
    "load_tables": lambda graph: graph.load_tables({"Person": PEOPLE}, "append"),
    "merge": lambda graph: graph.merge("june"),
    "mutate": lambda graph: graph.mutate(WRITE),
    "rebuild_index": lambda graph: graph.rebuild_index("Person", "name"),
    "queries": lambda graph: graph.queries(),
    "invoke": lambda graph: graph.invoke("everybody"),
    "optimize": lambda graph: graph.optimize(),
    "poll_changes": lambda graph: graph.poll_changes(),
    "query": lambda graph: graph.query(READ),
    "recoveries": lambda graph: graph.recoveries(),
    "refresh": lambda graph: graph.refresh(),
    "schema": lambda graph: graph.schema(),
    "snapshot": lambda graph: graph.snapshot(),
    "describe": lambda graph: graph.describe("Person"),
    "status": lambda graph: graph.status(),
    "table": lambda graph: graph.table("Person"),
    "cleanup": lambda graph: graph.cleanup(1),
    "verify": lambda graph: graph.verify(),
}
VIEW_VERBS: dict[str, Callable[[SnapshotView], object]] = {
    "blob": lambda view: view.blob("node", "Person", "a", "name"),
    "describe": lambda view: view.describe("Person"),
    "explain": lambda view: view.explain(READ),
    "query": lambda view: view.query(READ),
    "schema": lambda view: view.schema(),
}


def methods(cls: type) -> set[str]:
    """Return the names of the public methods of a class."""
    return {name for name, _ in inspect.getmembers(cls, inspect.isfunction) if not name.startswith("_")}


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    graph = people_graph(tmp_path_factory.mktemp("closed") / "graph")
    graph.close()
    return graph


def test_every_verb_is_tried() -> None:
    assert methods(Graph) - {"close"} == VERBS.keys()
    assert methods(SnapshotView) == VIEW_VERBS.keys()


@pytest.mark.case("engine", 377)
def test_a_closed_handle_refuses_every_verb_before_any_input_or_output(closed: Graph) -> None:
    gc.collect()  # what a table has read is counted when it is let go
    before = counts(closed)

    for call in VERBS.values():
        with pytest.raises(HandleClosed, match="open the graph again"):
            call(closed)

    gc.collect()
    assert counts(closed) == before
    closed.close()


def test_what_was_made_from_a_handle_is_closed_with_it(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "graph")
    commit = graph.mutate(WRITE).commit
    assert commit is not None
    view = graph.at(commit.graph_commit_id)
    uses: dict[str, Callable[[], object]] = {
        "view.query": lambda: VIEW_VERBS["query"](view),
        "view.explain": lambda: VIEW_VERBS["explain"](view),
    }
    export, baseline = graph.export(), graph.baseline()
    diff = graph.diff("main", commit.parent_commit_id or "")
    changes = graph.commit_changes(commit.graph_commit_id)
    feed = graph.changes(start="beginning")
    uses |= {
        "export": lambda: list(export),
        "export.lines": lambda: list(export.lines()),
        "baseline": lambda: list(baseline),
        "diff": lambda: list(diff),
        "diff.stat": diff.stat,
        "commit_changes": lambda: list(changes),
        "changes": lambda: list(feed),
    }
    graph.create_branch("june")
    with graph.branch("june") as bound:
        uses["a bound handle"] = lambda: bound.table("Person")
        for use in uses.values():
            use()

        graph.close()

        for use in uses.values():
            with pytest.raises(HandleClosed):
                use()
