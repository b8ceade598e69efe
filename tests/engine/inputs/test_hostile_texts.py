"""YAML, JSON, names and branch names that break parsers: typed errors that name what is wrong."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph
from omnigraph.core.errors import BadRequest, ValidationError
from omnigraph.embedding.records import parse_record
from omnigraph.embedding.seed import read_seed, read_spec
from omnigraph.graph.graph import Graph
from tests.support.in_process import invoke

SCHEMA = "node P {\n    name: String @key\n    tags: [String]?\n}\n"
YAMLS = {
    "deep": "[" * 5_000,
    "date": "a: 2020-13-45",
    "bool": "a: !!bool maybe",
    "int": "a: !!int x",
    "float": "a: !!float x",
    "timestamp": "a: !!timestamp x",
    "binary": "a: !!binary '%'",
    "digits": f"a: {'9' * 6_000}",
    "key": "? {a: [b]}\n: c",
    "base": "a: 0b",
    "time": "a: 1:_",
}
LONG = "a" * 5_000


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return omnigraph.init(tmp_path_factory.mktemp("texts") / "graph", SCHEMA, durability="process")


@pytest.mark.case("surfaces", 249)
@pytest.mark.parametrize("text", YAMLS.values(), ids=YAMLS)
def test_a_mapping_or_manifest_that_the_parser_fails_on_is_refused_by_its_name(
    graph: Graph, tmp_path: Path, text: str
) -> None:
    path = tmp_path / "map.yaml"
    path.write_text(text)

    for read in (lambda: graph.load([], "append", mapping=path), lambda: read_seed(path)):
        with pytest.raises(BadRequest, match=r"map\.yaml"):
            read()


@pytest.mark.case("surfaces", 249)
@pytest.mark.parametrize("text", ["[" * 100_000, "9" * 6_000], ids=["deep", "digits"])
def test_a_specification_that_the_parser_fails_on_is_refused_by_its_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "spec.json"
    path.write_text(text)

    with pytest.raises(BadRequest, match=r"spec\.json"):
        read_spec(path)


@pytest.mark.case("surfaces", 249)
@pytest.mark.parametrize("text", ['{"s":' + "[" * 50_000 + "]" * 50_000 + "}", '{"s":' + "9" * 5_000 + "}"])
def test_parameters_that_the_parser_fails_on_are_refused_by_their_flag(graph: Graph, text: str) -> None:
    query = "query q($s: String) { match { $p: P { name: $s } } return { $p.name } }"

    outcome = invoke("query", "-e", query, "--store", graph.uri, "--params", text, cwd=Path(graph.uri))

    assert outcome.code == 1
    assert outcome.stderr.startswith("error: --params is not JSON: ")


@pytest.mark.case("surfaces", 249)
@pytest.mark.parametrize(
    "arguments",
    [
        ["load", "{graph}", "--mode", "append", "--data", f"{LONG}.jsonl"],
        ["load", "{graph}", "--mode", "append", "--data", f"P={LONG}"],
        ["load", "{graph}", "--mode", "append", "--data", f"{LONG}/*"],
        ["export", "{graph}", "--out", LONG],
        ["export", "{graph}", "--format", "csv", "--out", LONG],
        ["query", LONG, "--query", "q.gq", "--store", "{graph}"],
        ["lint", "--schema", LONG, "--query", LONG],
        ["fmt", LONG],
    ],
    ids=lambda arguments: f"{arguments[0]}-{arguments[-1][:5]}",
)
def test_a_name_that_the_system_refuses_is_a_typed_error(graph: Graph, arguments: list[str]) -> None:
    outcome = invoke(*(word.format(graph=graph.uri) for word in arguments), cwd=Path(graph.uri).parent)

    assert outcome.code in {1, 2}
    assert "Traceback" not in outcome.stderr


def test_a_path_of_a_mapping_that_the_system_refuses_is_a_typed_error(graph: Graph, tmp_path: Path) -> None:
    path = tmp_path / "map.yaml"
    path.write_text(f"sources: [{{path: {LONG}}}]")

    with pytest.raises(BadRequest, match="File name too long"):
        graph.load([], "append", mapping=path)


def test_the_search_for_a_repeated_member_looks_at_each_once(graph: Graph) -> None:
    members = ",".join(f'"a{number}":1' for number in range(100_000))
    text = f'{{"type":"P","data":{{"name":"x","tags":[{{{members},"a99999":1}}]}}}}'.encode()

    with pytest.raises(ValidationError, match="member 'a99999' appears twice"):
        graph.load(text, "append")
    with pytest.raises(ValueError, match="member 'a99999' appears twice"):
        parse_record(b'{"data":{' + members.encode() + b',"a99999":1}}')


NAMED: dict[str, Callable[[Graph, object], object]] = {
    "create": lambda graph, name: graph.create_branch(name),  # type: ignore[arg-type]
    "delete": lambda graph, name: graph.delete_branch(name),  # type: ignore[arg-type]
    "merge": lambda graph, name: graph.merge(name),  # type: ignore[arg-type]
    "bind": lambda graph, name: graph.branch(name).__enter__(),  # type: ignore[arg-type]
}
OPTIONAL: dict[str, Callable[[Graph, object], object]] = {
    "from": lambda graph, name: graph.create_branch("new", name),  # type: ignore[arg-type]
    "into": lambda graph, name: graph.merge("main", into=name),  # type: ignore[arg-type]
    "load": lambda graph, name: graph.load(b"", "append", branch=name),  # type: ignore[arg-type]
    "load-from": lambda graph, name: graph.load(b"", "append", branch="new", from_=name),  # type: ignore[arg-type]
    "table": lambda graph, name: graph.table("P", branch=name),  # type: ignore[arg-type]
    "snapshot": lambda graph, name: graph.snapshot(name),  # type: ignore[arg-type]
    "commits": lambda graph, name: graph.commits(branch=name),  # type: ignore[arg-type]
    "export": lambda graph, name: graph.export(branch=name),  # type: ignore[arg-type]
    "verify": lambda graph, name: graph.verify(branch=name),  # type: ignore[arg-type]
    "changes": lambda graph, name: list(graph.changes(branch=name)),  # type: ignore[arg-type]
    "diff": lambda graph, name: graph.diff(name, "main"),  # type: ignore[arg-type]
    "entity": lambda graph, name: graph.entity_at("P", "a", name),  # type: ignore[arg-type]
}


@pytest.mark.case("surfaces", 251)
@pytest.mark.parametrize("verb", [*NAMED, *OPTIONAL])
def test_a_branch_name_that_is_no_text_is_refused(graph: Graph, verb: str) -> None:
    call = (NAMED | OPTIONAL)[verb]

    for name, shown in ((5, r"5 \(int\)"), (["x"], r"\['x'\] \(list\)")):
        with pytest.raises(BadRequest, match=f"the name of a branch must be a text, not {shown}"):
            call(graph, name)
    if verb in NAMED:
        with pytest.raises(BadRequest, match="the name of a branch must be a text, not None"):
            call(graph, None)
    assert graph.branches() == ["main"]


def test_json_of_a_record_is_read_as_before() -> None:
    assert parse_record(json.dumps({"a": 1}).encode()) == {"a": 1}
