"""Loads that make their branch, in process and on Spark."""

import json
from pathlib import Path

import pytest

from omnigraph.core.errors import BranchNotFound, ValidationError
from omnigraph.graph.graph import Graph
from tests.branches.steps import everything, insert, names, owners, refs
from tests.support.engine import edge, ndjson, node
from tests.support.in_process import document, invoke
from tests.support.spark import spark_session


@pytest.mark.case("engine", 117)
def test_a_missing_branch_is_made_only_from_another(graph: Graph) -> None:
    data = ndjson([node("Person", name="new")])
    with pytest.raises(BranchNotFound):
        graph.load(data, "append", branch="june")
    assert graph.branches() == ["main"]

    made = graph.load(data, "append", branch="june", from_="main")
    assert (made.branch_created, made.base_branch) == (True, "main")
    empty = graph.load(b"", "append", branch="july", from_="june")
    assert (empty.branch_created, empty.base_branch, empty.commit, empty.tables) == (True, "june", None, ())
    assert names(graph, "july") == names(graph, "june") == ["ann", "bob", "eve", "new"]
    assert names(graph) == ["ann", "bob", "eve"]


def test_a_dry_run_makes_no_branch(graph: Graph) -> None:
    data = ndjson([node("Person", name="new")])
    result = graph.load(data, "append", branch="june", from_="main", dry_run=True)

    assert result.is_dry_run
    assert (result.branch_created, graph.branches()) == (False, ["main"])


@pytest.mark.case("surfaces", 23)
def test_the_command_makes_a_branch_only_from_another(graph: Graph, tmp_path: Path) -> None:
    (tmp_path / "new.jsonl").write_bytes(ndjson([node("Person", name="new")]))
    words = ["load", graph.uri, "--data", "new.jsonl", "--mode", "append", "--branch", "june"]

    refused = invoke(*words, cwd=tmp_path)
    assert (refused.code, "branch 'june' not found" in refused.stderr) == (1, True)
    assert graph.branches() == ["main"]

    told = document(*words, "--from", "main", cwd=tmp_path)
    assert (told["branch"], told["base_branch"], told["branch_created"]) == ("june", "main", True)
    again = invoke(*words[:-1], "july", "--from", "june", "--quiet", cwd=tmp_path)
    assert (again.code, "created branch july from june" in again.stdout) == (1, False)  # the id is there


@pytest.mark.case("surfaces", 211)
def test_no_output_names_a_ref(graph: Graph, tmp_path: Path) -> None:
    made = graph.create_branch("june")
    insert(graph, "new", "june")
    fork = owners(graph, "june")["node:Person"]
    texts = [
        invoke(*words, cwd=tmp_path)
        for words in (
            ["branch", "list", graph.uri, "--json"],
            ["snapshot", graph.uri, "--branch", "june", "--json"],
            ["commit", "list", graph.uri, "--branch", "june", "--json"],
            ["export", graph.uri, "--branch", "june"],
            ["diff", graph.uri, "june", "--json"],
            ["branch", "merge", graph.uri, "june", "--json"],
            ["branch", "delete", graph.uri, "june", "--json"],
            ["snapshot", graph.uri, "--branch", "june", "--json"],
        )
    ]
    for outcome in texts:
        for ref in (made.ref, str(fork)):
            assert ref not in outcome.stdout
            assert ref not in outcome.stderr
    assert '"june"' in texts[0].stdout


def test_a_load_on_spark_forks_what_it_writes_and_nothing_else(graph: Graph) -> None:
    spark_session()
    before = everything(graph)
    graph.create_branch("june")
    records = [node("Person", name="new", age=1), edge("Knows", "new", "ann", id="k9")]
    for mode in ("append", "merge"):
        graph.load(ndjson(records), mode, branch="june", engine="spark", index=False)

    touched = {key for key, owner in owners(graph, "june").items() if owner is not None}
    assert touched == {"node:Person", "edge:Knows"}
    assert names(graph, "june") == ["ann", "bob", "eve", "new"]
    assert graph.table("Knows", branch="june")["id"].to_pylist() == ["k1", "k9"]
    assert everything(graph) == before
    for key in ("node:Person", "node:Company", "edge:Knows", "edge:WorksAt"):
        assert len(refs(graph, key)) == (1 if key in touched else 0)

    bad = ndjson([edge("WorksAt", "nobody", "acme")])
    with pytest.raises(ValidationError):
        graph.load(bad, "append", branch="june", engine="spark")
    assert refs(graph, "edge:WorksAt") == set()
    dry = graph.load(
        ndjson([node("Company", name="c")]), "append", branch="june", engine="spark", dry_run=True
    )
    assert json.dumps(dry.tables) == '[["node:Company", 1]]'
    assert refs(graph, "node:Company") == set()
