"""Changes of schemas on an S3-compatible server: the same outcomes, and recovery by another process."""

from itertools import product

import pytest

import omnigraph
from omnigraph.core.errors import SchemaApplyInProgress
from omnigraph.core.failpoint import ENVIRONMENT, EXIT_STATUS, failpoint
from omnigraph.graph.graph import Graph
from omnigraph.graph.snapshot_view import SnapshotView
from omnigraph.storage.control.uri import GraphRoot
from tests.support.forked import Forked
from tests.support.protocol import BEFORE, EVOLVED, SCHEMA, records
from tests.support.seam import internals

pytestmark = [pytest.mark.slow, pytest.mark.case("engine", 557)]

TOWN = EVOLVED + "\nnode Town {\n    name: String @key\n}\n\nedge In: Company -> Town\n"
APPLY = """
import sys
import omnigraph
omnigraph.open(sys.argv[1]).apply_schema(sys.argv[2], branch=sys.argv[3], index=False)
"""
OLD = (
    "schema_apply.post_lock_pre_plan",
    "schema_apply.post_sidecar_pre_commit",
    "schema_apply.post_table_commit",
)
NEW = ("schema_apply.before_manifest_commit", "schema_apply.after_manifest_commit")
OF_MAIN = "schema_apply.mid_promote"  # which alone has schema files


@pytest.fixture
def graph(people_graph: Graph) -> Graph:
    return people_graph


def names(graph: Graph, type_name: str, branch: str | None = None) -> set[str]:
    return {str(row["name"]) for row in graph.table(type_name, branch=branch).to_pylist()}


WITH_AGE = "node Person {\n    name: String @key\n    age: I32?\n}\n"
WITHOUT_AGE = "node Person {\n    name: String @key\n}\n"
AGES = "query q() { match { $p: Person } return { $p.name, $p.age } }"


def ages(place: Graph | SnapshotView, branch: str | None = None) -> dict[object, object]:
    found = place.query(AGES) if isinstance(place, SnapshotView) else place.query(AGES, branch=branch)
    return {row["p.name"]: row["p.age"] for row in found.rows}


@pytest.mark.case("engine", 857)
def test_a_property_that_is_made_again_has_no_values_of_before(root: GraphRoot) -> None:
    update = "query q($n: String, $a: I32) { update Person set { age: $a } where name = $n }"
    with omnigraph.init(root.uri, WITH_AGE) as graph:
        graph.mutate('query q() { insert Person { name: "ann", age: 7 } }')
        before = graph.mutate('query q() { insert Person { name: "bob", age: 8 } }').commit
        assert before is not None
        graph.create_branch("june")
    with omnigraph.open(root.uri) as graph:  # with what the note of the other has
        graph.apply_schema(WITHOUT_AGE)
        notes = internals(graph).parts.coordinator.notes
        assert notes is not None
        notes.finish()
        graph.apply_schema(WITH_AGE)
        graph.mutate('query q() { insert Person { name: "cid", age: 1 } }')
        graph.create_branch("july")
        graph.mutate(update, params={"n": "ann", "a": 7}, branch="july")
        graph.mutate(update, params={"n": "bob", "a": 99}, branch="july")
        graph.mutate('query q() { insert Person { name: "dan", age: 2 } }')
    for mode in ("ro", "rw"):
        with omnigraph.open(root.uri, mode=mode) as graph:
            assert ages(graph) == {"ann": None, "bob": None, "cid": 1, "dan": 2}
            assert ages(graph, "june") == ages(graph.at(before.graph_commit_id)) == {"ann": 7, "bob": 8}
            assert ages(graph, "july") == {"ann": 7, "bob": 99, "cid": 1}
    with omnigraph.open(root.uri) as graph:
        graph.merge("july")
        assert ages(graph) == {"ann": 7, "bob": 99, "cid": 1, "dan": 2}
        table = graph.table("Person")
        assert dict(zip(table["name"].to_pylist(), table["age"].to_pylist(), strict=True)) == ages(graph)


def test_a_schema_is_applied_upgraded_to_and_merged(graph: Graph) -> None:
    graph.create_branch("june")
    graph.mutate('query q() { insert Person { name: "dee" } }', branch="june")

    graph.apply_schema(TOWN)

    assert (graph.schema(), graph.schema(branch="june")) == (TOWN, SCHEMA)
    assert graph.upgrade_branch("june", index=False).applied
    assert graph.schema(branch="june") == TOWN
    graph.mutate('query q() { insert Town { name: "Bonn" } }', branch="june")
    longer = TOWN.replace("email: String?", "email: String?\n    phone: String?")
    graph.apply_schema(longer, branch="june", index=False)
    graph.merge("june")
    assert graph.schema() == longer
    assert names(graph, "Town") == {"Bonn"}
    assert "dee" in names(graph, "Person")
    with omnigraph.open(graph.uri, mode="ro") as reader:
        assert reader.schema() == longer
        assert names(reader, "Person") == names(graph, "Person")


@pytest.mark.parametrize(
    ("point", "branch"),
    [*product((*OLD, *NEW), ("main", "june")), (OF_MAIN, "main")],
)
def test_a_killed_change_is_settled_by_another_process(graph: Graph, point: str, branch: str) -> None:
    graph.create_branch("june")
    uri = graph.uri
    graph.close()
    with Forked(APPLY, uri, TOWN, branch, **{ENVIRONMENT: f"{point}=exit"}) as script:
        assert script.wait() == EXIT_STATUS

    with omnigraph.open(uri) as other:
        assert other.schema(branch=branch) == (SCHEMA if point in OLD else TOWN)
        assert other.apply_schema(TOWN, branch=branch, index=False).applied == (point in OLD)
        other.load(records(BEFORE), "merge", branch=branch, index=False)
        assert names(other, "Person", branch) == {"ann", "bob", "cid"}
        assert names(other, "Town", branch) == set()
    with omnigraph.open(uri, mode="ro") as reader:
        assert reader.schema(branch=branch) == TOWN


def test_a_living_change_in_another_process_is_waited_for_by_nobody(graph: Graph) -> None:
    with omnigraph.open(graph.uri) as other:

        def meanwhile() -> None:
            with pytest.raises(SchemaApplyInProgress):
                other.apply_schema(TOWN)
            other.mutate('query q() { insert Company { name: "zed" } }')

        with failpoint("schema_apply.post_lock_pre_plan", "call", meanwhile):
            graph.apply_schema(EVOLVED, index=False)

        assert other.schema() == EVOLVED
        assert "zed" in names(graph, "Company")
