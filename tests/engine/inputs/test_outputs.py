"""What is written for a user never lands on a file of a graph, nor on what is being read."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph
from omnigraph.bulk.export.files import ExportFormat
from omnigraph.core.errors import BadRequest
from omnigraph.embedding.seed import EmbedSpec, TypeSpec
from omnigraph.graph.graph import Graph
from omnigraph.operations.embed.file import EmbedFile, embed_file
from tests.support.atlas import digest
from tests.support.in_process import invoke

SCHEMA = "node P { name: String @key }\n"
BAD = b'{"type": "Q", "data": {"name": "a"}}\n'


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    place = tmp_path_factory.mktemp("outputs")
    omnigraph.init(place / "other", SCHEMA, durability="process").close()
    graph = omnigraph.init(place / "graph", SCHEMA, durability="process")
    graph.load(b'{"type": "P", "data": {"name": "a"}}', "append", index=False)
    (place / "in.jsonl").write_bytes(BAD)
    (place / "link.pg").symlink_to(place / "other" / "_schema.pg")
    (place / "inside").symlink_to(place / "other" / "nodes")
    return graph


def rejects(graph: Graph, place: Path) -> None:
    graph.load(BAD, "append", on_error="skip", rejects=place)


def embedded(_graph: Graph, place: Path) -> None:
    source = place.parent / "in.jsonl"
    source = source if source.exists() else place.parents[1] / "in.jsonl"
    embed_file(EmbedFile(source, place, EmbedSpec(2, {"P": TypeSpec("v", ("name",))}), clean=True))


WRITERS: dict[str, Callable[[Graph, Path], object]] = {
    "export": lambda graph, place: graph.export().to_file(place),
    "export-csv": lambda graph, place: graph.export().to_folder(place, ExportFormat.CSV),
    "rejects": rejects,
    "embed": embedded,
}


@pytest.mark.case("surfaces", 245)
@pytest.mark.parametrize("place", ["graph/_schema.pg", "other/new.jsonl", "link.pg", "inside/x", "graph"])
@pytest.mark.parametrize("writer", WRITERS)
def test_an_output_inside_a_graph_is_refused(graph: Graph, writer: str, place: str) -> None:
    root = Path(graph.uri).parent
    before = digest(root)

    with pytest.raises(
        BadRequest, match=r"it lies inside the graph .*/(graph|other): choose a place elsewhere"
    ):
        WRITERS[writer](graph, root / place)

    assert digest(root) == before


@pytest.mark.case("surfaces", 245)
def test_fmt_does_not_rewrite_the_schema_of_a_graph(tmp_path: Path) -> None:
    omnigraph.init(tmp_path / "graph", "node P{name:String @key}", durability="process").close()
    before = digest(tmp_path)

    outcome = invoke("fmt", "graph/_schema.pg", cwd=tmp_path)

    assert outcome.code == 1
    assert "it lies inside the graph" in outcome.stderr
    assert digest(tmp_path) == before


@pytest.mark.case("surfaces", 245)
@pytest.mark.parametrize("name", ["in.jsonl", "./in.jsonl", "link.jsonl", "hard.jsonl"])
def test_the_rejects_file_is_none_of_the_inputs(graph: Graph, tmp_path: Path, name: str) -> None:
    (tmp_path / "in.jsonl").write_bytes(BAD)
    (tmp_path / "link.jsonl").symlink_to("in.jsonl")
    os.link(tmp_path / "in.jsonl", tmp_path / "hard.jsonl")
    load = ["load", graph.uri, "--mode", "append", "--on-error", "skip", "--engine", "local"]

    outcome = invoke(*load, "--data", "in.jsonl", "--rejects", name, cwd=tmp_path)

    assert outcome.code == 1
    assert "is an input of this load" in outcome.stderr
    assert (tmp_path / "in.jsonl").read_bytes() == BAD


@pytest.mark.case("surfaces", 245)
@pytest.mark.parametrize("name", ["load.yaml", "./load.yaml", "link.yaml"])
def test_the_rejects_file_is_not_the_mapping(graph: Graph, tmp_path: Path, name: str) -> None:
    (tmp_path / "people.csv").write_text("who\n")
    mapping = "sources:\n  - path: people.csv\n    type: Person\n"
    (tmp_path / "load.yaml").write_text(mapping)
    (tmp_path / "link.yaml").symlink_to("load.yaml")
    load = ["load", graph.uri, "--mode", "append", "--on-error", "skip", "--engine", "local"]

    outcome = invoke(*load, "--mapping", "load.yaml", "--rejects", name, cwd=tmp_path)

    assert outcome.code == 1
    assert "is an input of this load" in outcome.stderr
    assert (tmp_path / "load.yaml").read_text() == mapping


@pytest.mark.case("surfaces", 245)
def test_a_rejected_record_names_its_file_even_if_it_is_the_only_one(graph: Graph, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(BAD)
    load = ["load", graph.uri, "--mode", "append", "--on-error", "skip", "--engine", "local"]

    outcome = invoke(*load, "--data", "in.jsonl", "--rejects", "out.jsonl", cwd=tmp_path)

    assert outcome.code == 0, outcome
    assert json.loads((tmp_path / "out.jsonl").read_text())["file"] == "in.jsonl"


@pytest.mark.parametrize(
    "address", ["gs://b/x", "az://b/x", "AZ://b/x", "http://b/x", "file:///x", "gs:/b/x"]
)
@pytest.mark.parametrize("kind", ["export", "export-csv", "rejects", "load", "mapping"])
def test_an_address_that_is_not_supported_is_refused(
    graph: Graph, tmp_path: Path, kind: str, address: str
) -> None:
    rows, mapping = tmp_path / "in.jsonl", tmp_path / "map.yaml"
    rows.write_bytes(b'{"type": "P", "data": {"name": "b"}}\n')
    mapping.write_text(f"sources:\n  - path: '{address}'\n")
    before = sorted(tmp_path.rglob("*"))
    arguments = {
        "export": ["export", graph.uri, "--out", address],
        "export-csv": ["export", graph.uri, "--out", address, "--format", "csv"],
        "rejects": ["load", graph.uri, "--data", str(rows), "--on-error", "skip", "--rejects", address],
        "load": ["load", graph.uri, "--data", address],
        "mapping": ["load", graph.uri, "--mapping", str(mapping)],
    }[kind]

    outcome = invoke(*arguments, *(["--mode", "append"] if arguments[0] == "load" else []), cwd=tmp_path)

    assert outcome.code != 0
    assert "data files are paths, or s3://bucket/key" in outcome.stderr
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.case("surfaces", 322)
@pytest.mark.parametrize("writer", ["export", "export-csv", "rejects"])
def test_an_output_below_thousands_of_folders_is_refused(graph: Graph, tmp_path: Path, writer: str) -> None:
    with pytest.raises(BadRequest, match="it lies in more than 256 folders"):
        WRITERS[writer](graph, Path(f"{tmp_path}{'/a' * 1_900}"))
