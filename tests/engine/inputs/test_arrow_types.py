"""Types of Arrow that no property takes, or that Arrow itself cannot convert: refused by file and column."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.core.errors import BadRequest, ValidationError
from omnigraph.graph.graph import Graph

PROPERTIES = {
    "name": "String @key",
    "age": "I32?",
    "f": "F64?",
    "ok": "Bool?",
    "group": "String?",
    "tags": "[String]?",
    "nums": "[I32]?",
    "seen": "DateTime?",
    "born": "Date?",
    "vec": "Vector(2)?",
    "data": "Blob?",
}
SCHEMA = "node Person {\n" + "".join(f"    {name}: {type_}\n" for name, type_ in PROPERTIES.items()) + "}\n"
NAMES = pa.array(["a", "b", "c"])
LISTS = pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.int8()), pa.array([["q"], ["r"]]))
INVALID = pa.array([b"x", b"\xff", b"z"], pa.binary_view()).view(pa.string_view())
REFUSED: dict[str, Any] = {
    "dictionary of lists": LISTS,
    "unknown zone": pa.array([1, 2, 3], pa.timestamp("s", tz="Mars/Phobos")),
    "nanoseconds": pa.array([2**63 - 1, -(2**63), 0], pa.timestamp("ns")),
    "interval": pa.array([(1, 2, 3)] * 3, pa.month_day_nano_interval()),
    "views of invalid text": INVALID,
    "dictionary of views": pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.int8()), INVALID),
    "list of views": pa.array([["x"], ["y"], None], pa.list_(pa.string_view())),
}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return omnigraph.init(tmp_path_factory.mktemp("types") / "graph", SCHEMA, durability="process")


def write(path: Path, table: pa.Table) -> str:
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)
    return f"Person={path}"


@pytest.mark.case("surfaces", 248)
@pytest.mark.parametrize("kind", REFUSED)
def test_no_type_of_arrow_gives_an_error_that_is_not_ours(graph: Graph, tmp_path: Path, kind: str) -> None:
    for name in PROPERTIES:
        columns = {"name": REFUSED[kind]} if name == "name" else {"name": NAMES, name: REFUSED[kind]}
        source = write(tmp_path / "people.arrow", pa.table(columns))
        with suppress(ValidationError, BadRequest):
            graph.load(source, "overwrite", index=False, dry_run=True)


@pytest.mark.case("surfaces", 248)
@pytest.mark.parametrize(
    ("kind", "name", "line", "message"),
    [
        ("dictionary of lists", "tags", 1, "Person.tags: dictionary<values=list"),
        (
            "unknown zone",
            "group",
            1,
            "Person.group: timestamp[s, tz=Mars/Phobos] cannot be converted to String?",
        ),
        ("nanoseconds", "seen", 2, "Person.seen"),
        ("interval", "nums", 1, "Person.nums: expected [I32]?, got month_day_nano_interval"),
        ("views of invalid text", "group", 2, "invalid UTF-8 in column 'group'"),
        ("views of invalid text", "name", 2, "invalid UTF-8 in column 'name'"),
    ],
    ids=["lists", "zone", "nanoseconds", "interval", "view", "key"],
)
def test_the_refusal_names_file_row_and_column(
    graph: Graph, tmp_path: Path, kind: str, name: str, line: int, message: str
) -> None:
    columns = {"name": REFUSED[kind]} if name == "name" else {"name": NAMES, name: REFUSED[kind]}
    table = pa.table(columns)

    for source in (write(tmp_path / "people.arrow", table), {"Person": table}):
        with pytest.raises(ValidationError) as caught:
            graph.load(source, "append", index=False)
        assert message in str(caught.value)
        assert caught.value.line == line


@pytest.mark.case("surfaces", 248)
def test_rows_around_an_invalid_text_in_a_view_are_loaded_if_asked_for(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "graph", SCHEMA, durability="process")

    result = graph.load({"Person": pa.table({"name": INVALID})}, "append", on_error="skip", index=False)

    assert result.rejected_rows == 1
    assert set(graph.table("Person")["name"].to_pylist()) == {"x", "z"}
