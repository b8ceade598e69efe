"""The accepted schema: its files agree with each other and with the manifest, or the graph is not served."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from omnigraph.core.errors import SchemaContractConflict
from omnigraph.graph.graph import Graph
from omnigraph.history.contract import SCHEMA_SOURCE, SCHEMA_STATE, check_against_manifest, compiled
from omnigraph.history.identity import TableIdentity
from tests.support.engine import PEOPLE, new_graph, reopen
from tests.support.seam import internals


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return new_graph(tmp_path / "graph")


@pytest.mark.parametrize("name", ["schema_ir_hash", "schema_shape_hash", "schema_identity_domain"])
def test_a_state_file_of_another_schema_is_refused(graph: Graph, name: str) -> None:
    path = Path(graph.uri, SCHEMA_STATE)
    path.write_text(json.dumps(json.loads(path.read_text()) | {name: "another"}))

    with pytest.raises(SchemaContractConflict, match=f"records {name} another"):
        reopen(graph)


def test_a_source_that_was_changed_by_hand_is_refused(graph: Graph) -> None:
    Path(graph.uri, SCHEMA_SOURCE).write_text(PEOPLE.replace("age: I32?", "age: I64?"))

    with pytest.raises(SchemaContractConflict, match="schema_shape_hash"):
        reopen(graph)


@pytest.mark.case("engine", 689)
@pytest.mark.parametrize("mode", ["ro", "rw"])
def test_a_source_that_is_older_than_its_document_was_edited(graph: Graph, mode: Literal["rw", "ro"]) -> None:
    path = Path(graph.uri, SCHEMA_SOURCE)
    graph.apply_schema(PEOPLE.replace("age: I32?", "age: I64?"), index=False)
    accepted = path.read_text()
    path.write_text(PEOPLE)

    with pytest.raises(SchemaContractConflict, match=r"_schema\.pg was edited: it declares an earlier"):
        reopen(graph, mode=mode)

    assert path.read_text() == PEOPLE
    path.write_text(accepted)
    reopen(graph, mode=mode).close()


def test_a_manifest_with_another_table_of_the_name_is_refused(graph: Graph) -> None:
    contract, snapshot = internals(graph).contract, graph.snapshot()
    check_against_manifest(contract, snapshot)
    stranger = replace(snapshot.entry("node:Person"), identity=TableIdentity(99, 1))

    with pytest.raises(SchemaContractConflict, match="node:Person in the manifest is not the table"):
        check_against_manifest(contract, snapshot.showing({"node:Person": stranger}))


def test_a_process_compiles_a_schema_once_and_another_text_anew(graph: Graph) -> None:
    before = compiled.cache_info().misses

    graph.refresh()
    reopen(graph).close()
    reopen(graph, mode="ro").close()

    assert compiled.cache_info().misses == before
    Path(graph.uri, SCHEMA_SOURCE).write_text(f"// who we know, {graph.uri}\n{PEOPLE}")
    graph.refresh()
    assert compiled.cache_info().misses == before + 1
