"""Loads that make their branch, in process and on Spark."""

import json
import logging
from pathlib import Path

import pytest

from omnigraph.core.errors import BranchNotFound, ValidationError
from omnigraph.graph.graph import Graph
from tests.engine.branches.steps import everything, insert, names, owners, refs
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


ULID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
OUTPUTS = (  # each with its exit code
    (0, ["branch", "list"]),
    (1, ["branch", "create", "june"]),
    (0, ["branch", "create", "july", "--from", "june"]),
    (1, ["branch", "delete", "june"]),
    (0, ["snapshot", "--branch", "june"]),
    (0, ["commit", "list", "--branch", "june"]),
    (0, ["index", "status", "--branch", "june"]),
    (0, ["index", "ensure", "--branch", "june"]),
    (0, ["recovery", "list"]),
    (0, ["query", "-e", "query q() { match { $p: Person } return { $p.name } }", "--branch", "june"]),
    (0, ["explain", "-e", "query q() { match { $p: Person } return { $p.name } }", "--branch", "june"]),
    (0, ["mutate", "-e", 'query q() { insert Person { name: "z" } }', "--branch", "june"]),
    (1, ["mutate", "-e", 'query q() { insert Knows { from: "z", to: "no" } }', "--branch", "june"]),
    (
        4,
        [
            "mutate",
            "-e",
            'query q() { delete Person where name = "z" }',
            "--branch",
            "june",
            "--if-commit",
            ULID,
        ],
    ),
    (0, ["changes", "poll", "--start", "beginning", "--branch", "june"]),
    (1, ["load", "--data", "bad.jsonl", "--mode", "append", "--branch", "june"]),
    (0, ["load", "--data", "good.jsonl", "--mode", "merge", "--branch", "june"]),
    (0, ["export", "--branch", "june", "--out", "june.jsonl"]),
    (0, ["export", "--branch", "june", "--format", "csv", "--out", "csv"]),
    (0, ["export", "--branch", "june", "--format", "parquet", "--out", "parquet"]),
    (0, ["diff", "june"]),
    (0, ["diff", "june", "--stat"]),
    (1, ["branch", "merge", "june"]),
    (0, ["branch", "delete", "july"]),
    (0, ["branch", "delete", "june"]),
    (1, ["snapshot", "--branch", "june"]),
)


@pytest.mark.case("surfaces", 211)
@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
def test_no_output_names_a_ref(
    graph: Graph, tmp_path: Path, form: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    """Responses of a server are still to come."""
    caplog.set_level(logging.INFO)
    made = graph.create_branch("june")
    insert(graph, "new", "june")
    insert(graph, "new", age=9)  # a conflict for the merge
    (tmp_path / "bad.jsonl").write_bytes(ndjson([edge("Knows", "ann", "no")]))
    (tmp_path / "good.jsonl").write_bytes(ndjson([edge("Knows", "ann", "eve", id="k9")]))
    told, known = [], {made.ref}
    for code, words in OUTPUTS:
        has_json = "export" not in words and "explain" not in words
        outcome = invoke(*words, "--store", graph.uri, *(form if has_json else ()), cwd=tmp_path)
        assert outcome.code == code, (words, outcome)
        told += [outcome.stdout, outcome.stderr]
        if "june" in graph.branches():
            known |= {owner for owner in owners(graph, "june").values() if owner is not None}
    told += [record.getMessage() for record in caplog.records]
    written = [tmp_path / "june.jsonl", *tmp_path.glob("csv/*"), *tmp_path.glob("parquet/*")]
    told += [path.read_bytes().decode(errors="replace") for path in written]

    assert len(known) > 2
    assert len(written) > 4
    assert [(ref, text) for ref in known for text in told if ref in text] == []
    assert any("june" in text for text in told)


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
