"""Of rows that are refused because another one was, the cause comes first and the others are counted."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph
from omnigraph import ValidationError
from omnigraph.cli.render.errors import render_error
from omnigraph.cli.render.writes import render_rejected
from omnigraph.operations.engine import Engine
from omnigraph.operations.settings import KEY_ROWS
from omnigraph.validate.violations import REFUSED_MAX, Consequence, Violation
from tests.support.spark import spark_session

SCHEMA = """\
node Person {
    name: String @key
    age: I32?
    mail: String? @unique
}

edge Knows: Person -> Person
"""
ENGINES = [
    pytest.param("local", 0),
    pytest.param("spark", 0, marks=pytest.mark.slow),
    pytest.param("spark", 1, marks=pytest.mark.slow),
]


def person(name: str, **data: object) -> str:
    return json.dumps({"type": "Person", "data": {"name": name, **data}})


def knows(source: str, target: str) -> str:
    return json.dumps({"edge": "Knows", "from": source, "to": target})


DATA = "\n".join(
    [
        knows("ann", "bo"),
        knows("bo", "ann"),
        person("ann"),
        person("bo", age="old"),
        knows("ann", "bo"),
        knows("ann", "nobody"),
    ]
).encode()


@pytest.fixture
def graph(tmp_path: Path) -> omnigraph.Graph:
    """An empty graph."""
    return omnigraph.init(tmp_path / "g.omni", SCHEMA, durability="process")


def told(error: ValidationError) -> list[tuple[int, str, bool]]:
    """Return line and message of each violation, and whether it follows from another."""
    found = [item for item in error.violations if isinstance(item, Violation)]
    return [(item.line, item.message, isinstance(item, Consequence)) for item in found]


@pytest.mark.case("surfaces", 239)
@pytest.mark.parametrize(("engine", "key_rows"), ENGINES)
def test_the_cause_comes_first_and_what_follows_is_counted(
    engine: Engine, key_rows: int, graph: omnigraph.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if engine == "spark":
        spark_session()
    if key_rows:
        monkeypatch.setenv(KEY_ROWS, str(key_rows))

    with pytest.raises(ValidationError) as caught:
        graph.load(DATA, "append", engine=engine, rejects=tmp_path / "rejects.jsonl")

    error = caught.value
    assert (error.line, error.total, error.consequences) == (4, 5, 3)
    assert told(error) == [
        (4, "Person.age: expected I32, got string 'old'", False),
        (6, "dst 'nobody' not found in Person", False),
        (1, "dst 'bo' was refused", True),
        (2, "src 'bo' was refused", True),
        (5, "dst 'bo' was refused", True),
    ]
    assert render_error(error).splitlines() == [
        "execution error: line 4: Person.age: expected I32, got string 'old'",
        "    and because of it 3 edges to 'bo'",
        "  line 6: dst 'nobody' not found in Person",
    ]
    causes = [
        json.loads(line).get("because_of") for line in (tmp_path / "rejects.jsonl").read_text().splitlines()
    ]
    assert causes == [None, None, *[{"table_key": "node:Person", "row_id": "bo"}] * 3]


@pytest.mark.case("surfaces", 239)
@pytest.mark.parametrize(("engine", "key_rows"), ENGINES)
def test_rows_that_are_left_out_are_told_with_what_follows(
    engine: Engine, key_rows: int, graph: omnigraph.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    if engine == "spark":
        spark_session()
    if key_rows:
        monkeypatch.setenv(KEY_ROWS, str(key_rows))
    twice = "\n".join(
        [knows("cy", "ann"), person("ann", mail="x"), person("cy", mail="x"), person("bo", age="old")]
    ).encode()

    result = graph.load(twice, "append", engine=engine, on_error="skip", index=False)

    assert (dict(result.tables)["node:Person"], result.rejected_rows) == (1, 3)
    assert [(item.line, isinstance(item, Consequence)) for item in result.violations] == [
        (3, False),
        (4, False),
        (1, True),
    ]
    assert "    and because of it 1 edge to 'cy'" in render_rejected(result).splitlines()


def test_a_mutation_says_the_cause_first(graph: omnigraph.Graph) -> None:
    text = """\
query m($mail: String) {
    insert Person { name: "ann" }
    insert Knows { from: "ann", to: "zed" }
    insert Person { name: "bo", mail: $mail }
}
"""

    with pytest.raises(ValidationError, match="dst 'zed' not found in Person"):
        graph.mutate(text, params={"mail": "x"})


def test_edges_that_crowd_an_error_leave_room_for_its_causes(graph: omnigraph.Graph) -> None:
    edges = [knows("bo", "bo") for _ in range(150)]
    data = "\n".join([*edges, person("bo", age="old"), knows("bo", "nobody")]).encode()

    with pytest.raises(ValidationError) as caught:
        graph.load(data, "append", engine="local")

    error = caught.value
    assert [line for line, _, is_consequence in told(error) if not is_consequence] == [151, 152]
    assert (error.total, error.consequences, len(error.violations)) == (303, 301, 100)
    lines = render_error(error).splitlines()
    assert lines[1:] == [
        "    and because of it 98 edges to 'bo'",
        "  line 152: dst 'nobody' not found in Person",
        "  and 203 edges to refused nodes",
    ]


def test_the_refused_nodes_that_are_known_are_bounded(graph: omnigraph.Graph) -> None:
    names = [f"p{number:05d}" for number in range(REFUSED_MAX + 5)]
    people = pa.table({"name": names, "age": ["old"] * len(names)})
    edges = pa.table({"from": names, "to": [names[0]] * len(names)})

    with pytest.raises(ValidationError) as caught:
        graph.load({"Knows": edges, "Person": people}, "append", engine="local")

    assert caught.value.total == 3 * len(names)
    assert caught.value.consequences == 2 * len(names) - 5
