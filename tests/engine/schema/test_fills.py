"""What rows get that are older than a property: what its first default was, on every branch, at any time."""

import json
from pathlib import Path

import pytest

from omnigraph.core.errors import MergeConflicts
from omnigraph.core.merge_conflict import MergeConflictKind
from omnigraph.graph.graph import Graph
from omnigraph.history.contract import SCHEMA_IR, accepted_in
from omnigraph.operations.merge.merge import MergeOutcome
from tests.support.engine import new_graph, node
from tests.support.queries import mutation
from tests.support.seam import internals, patched

PART = "node Part { code: String @key  text: String }\n"
LATER = {  # what becomes of `n: I32 @default(3)` on main
    "the same": "n: I32 @default(3)",
    "another": "n: I32 @default(7)",
    "none": "n: I32",
    "none, nullable": "n: I32?",
    "wider": "n: I64 @default(7)",
    "renamed": 'm: I32 @rename_from("n")',
}


def part(*properties: str) -> str:
    return PART.replace("}", "  ".join(("", *properties, "}")))


def numbers(graph: Graph, branch: str | None = None) -> dict[str, object]:
    """Return the value of the property that was added, by id; none where the branch lacks it."""
    rows = graph.table("Part", branch=branch).to_pylist()
    return {row["id"]: row.get("n", row.get("m")) for row in rows}


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    """A graph with a branch that changed, deleted and inserted a row each; main added a property since."""
    rows = [node("Part", code=code, text="x") for code in "abc"]
    graph = new_graph(tmp_path / "graph", PART, *rows)
    graph.create_branch("june")
    graph.mutate(mutation('update Part set { text: "y" } where code = "a"'), branch="june")
    graph.mutate(mutation('delete Part where code = "b"'), branch="june")
    graph.mutate(mutation('insert Part { code: "new", text: "x" }'), branch="june")
    graph.apply_schema(part("n: I32 @default(3)"), index=False)
    return graph


@pytest.mark.case("engine", 680)
@pytest.mark.parametrize("later", LATER.values(), ids=LATER)
def test_an_upgrade_gives_rows_what_main_gave_its_own(graph: Graph, later: str) -> None:
    graph.apply_schema(part(later), index=False)

    graph.upgrade_branch("june", index=False)

    assert numbers(graph, "june") == {"a": 3, "c": 3, "new": 3}
    assert graph.verify(deep=True).is_whole
    graph.mutate(mutation('update Part set { text: "z" } where code = "c"'), branch="june")
    assert graph.merge("june").outcome is MergeOutcome.MERGED
    assert numbers(graph) == {"a": 3, "c": 3, "new": 3}


@pytest.mark.case("engine", 681)
@pytest.mark.parametrize("later", LATER.values(), ids=LATER)
@pytest.mark.parametrize(("source", "target"), [("june", "main"), ("main", "june")])
def test_a_merge_takes_no_default_for_a_change(graph: Graph, later: str, source: str, target: str) -> None:
    graph.apply_schema(part(later), index=False)

    assert graph.merge(source, target).outcome is MergeOutcome.MERGED

    assert numbers(graph, target) == {"a": 3, "c": 3, "new": 3}
    assert graph.verify(deep=True).is_whole


@pytest.mark.case("engine", 682)
@pytest.mark.parametrize("last", [3, 9])
def test_a_default_that_goes_to_and_fro_overwrites_nothing(graph: Graph, last: int) -> None:
    graph.apply_schema(part("n: I32 @default(7)"), index=False)
    graph.upgrade_branch("june", index=False)
    graph.apply_schema(part(f"n: I32 @default({last})"), index=False)
    graph.mutate(mutation('insert Part { code: "d", text: "x" }'))

    assert graph.merge("june").outcome is MergeOutcome.MERGED

    assert numbers(graph) == {"a": 3, "c": 3, "d": last, "new": 3}


@pytest.mark.case("engine", 683)
def test_a_property_that_was_added_without_a_default_is_null_in_older_rows(graph: Graph) -> None:
    graph.apply_schema(part("n: I32 @default(3)", "p: I32?"), index=False)
    graph.apply_schema(part("n: I32 @default(3)", "p: I32? @default(5)"), index=False)

    graph.upgrade_branch("june", index=False)

    assert graph.table("Part", branch="june")["p"].to_pylist() == [None, None, None]
    assert graph.merge("june").outcome is MergeOutcome.MERGED
    assert graph.table("Part")["p"].to_pylist() == [None, None, None]


@pytest.mark.case("engine", 684)
def test_a_fill_is_what_a_narrow_type_made_of_it(graph: Graph) -> None:
    graph.apply_schema(part("n: I32 @default(3)", "f: F32 @default(0.1)"), index=False)
    graph.apply_schema(part("n: I32 @default(3)", "f: F64 @default(0.1)"), index=False)

    graph.upgrade_branch("june", index=False)

    [value] = set(graph.table("Part")["f"].to_pylist())
    assert value != 0.1
    assert set(graph.table("Part", branch="june")["f"].to_pylist()) == {value}
    assert graph.merge("june").outcome is MergeOutcome.MERGED


@pytest.mark.case("engine", 685)
def test_a_document_says_a_fill_where_the_default_does_not(graph: Graph) -> None:
    kept = _document(graph)
    graph.apply_schema(part("n: I32"), index=False)
    changed = _document(graph)

    graph.apply_schema(part("n: I32 @default(3)"), index=False)

    assert "fill" not in kept
    assert changed["fill"] == 3
    assert _document(graph) == kept


@pytest.mark.case("engine", 686)
def test_a_required_property_whose_fill_was_not_kept_waits_for_a_default(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:  # a build that kept no fills took the default away
        patched(earlier, "omnigraph.catalog.identity._kept_fill", lambda *_: None)
        graph.apply_schema(part("n: I32"), index=False)

    with pytest.raises(MergeConflicts) as of_upgrade:
        graph.upgrade_branch("june", index=False)
    with pytest.raises(MergeConflicts) as of_merge:
        graph.merge("june")

    for found in (of_upgrade, of_merge):
        [conflict] = found.value.conflicts
        assert (conflict.kind, conflict.table_key) == (MergeConflictKind.SCHEMA_CONFLICT, "node:Part")
        assert conflict.message.endswith("give it a @default where it is: n")
    assert numbers(graph, "june") == {"a": None, "c": None, "new": None}
    graph.apply_schema(part("n: I32 @default(3)"), index=False)
    assert graph.merge("june").outcome is MergeOutcome.MERGED
    assert numbers(graph) == {"a": 3, "c": 3, "new": 3}


def _document(graph: Graph) -> dict[str, object]:
    """Return what the accepted schema says of the property, without the property's own text."""
    text = internals(graph).state().schema.text
    assert Path(graph.uri, SCHEMA_IR).read_text() == text
    assert accepted_in(text).fills["node", "Part", "n"] == 3  # type: ignore[index]
    [type_] = json.loads(text)["types"]
    [found] = [item for item in type_["properties"] if item["name"] == "n"]
    return dict(found)
