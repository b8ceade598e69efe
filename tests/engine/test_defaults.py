"""A row gets the defaults of what it does not mention, whichever way it comes; a null that is said stays."""

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph import ColumnsLeftOut, ValidationError
from omnigraph.core.cleared_property import ClearedProperty
from omnigraph.operations.engine import Engine
from omnigraph.operations.settings import KEY_ROWS
from tests.support.spark import spark_session

SCHEMA = """\
node D {
    k: String @key
    s: String @default("new")
    n: I32? @default(7)
}
"""
EVERY_TYPE = """\
interface Dated { day: Date @default("2020-05-01") }
node All implements Dated {
    k: String @key
    b: Bool @default(true)
    e: enum(paper, soft-back) @default("soft-back")
    f: F32 @default(0.5)
    i: I64 @default(-9007199254740993)
    l: [F64]? @default([1, -2.5])
    m: DateTime @default("2021-01-01T01:00:00+01:00")
    none: [String] @default([])
    u: U64 @default(18446744073709551615)
}
edge Of: All -> All { share: F64 @default(1) }
"""
ENGINES = ["local", pytest.param("spark", marks=pytest.mark.slow)]
INSERT = "query put($k: String) { insert D { k: $k } }"


@pytest.fixture
def graph(tmp_path: Path) -> omnigraph.Graph:
    return omnigraph.init(tmp_path / "g.omni", SCHEMA, durability="process")


def rows_of(graph: omnigraph.Graph) -> dict[str, tuple[Any, Any]]:
    """Return `s` and `n` of every row, by key."""
    return {row["k"]: (row["s"], row["n"]) for row in graph.table("D").to_pylist()}


def load(
    graph: omnigraph.Graph,
    data: "bytes | str | dict[str, pa.Table]",
    mode: omnigraph.LoadMode,
    engine: Engine,
    *,
    strict_columns: bool = False,
) -> omnigraph.LoadResult:
    if engine == "spark":
        spark_session()
    return graph.load(data, mode, engine=engine, index=False, strict_columns=strict_columns)


# Mutations


@pytest.mark.case("languages", 238)
def test_an_insert_gets_the_default_of_what_it_does_not_assign(graph: omnigraph.Graph) -> None:
    graph.mutate(INSERT, params={"k": "a"})
    graph.mutate('query put($n: I32?) { insert D { k: "b", n: $n } }', params={"n": None})

    with pytest.raises(ValidationError, match=r"missing required property D\.s"):
        graph.mutate('query put($s: String?) { insert D { k: "c", s: $s } }', params={"s": None})
    assert rows_of(graph) == {"a": ("new", 7), "b": ("new", None)}


@pytest.mark.case("languages", 239)
def test_a_replaced_row_gets_defaults_and_an_updated_one_keeps_its_values(graph: omnigraph.Graph) -> None:
    graph.mutate('query put() { insert D { k: "a", s: "old", n: 1 } insert D { k: "b", s: "old", n: 1 } }')

    graph.mutate(INSERT, params={"k": "a"})
    graph.mutate('query set_n() { update D set { n: 2 } where k = "b" }')

    assert rows_of(graph) == {"a": ("new", 7), "b": ("old", 2)}


@pytest.mark.parametrize("engine", ["mutation", *ENGINES])
@pytest.mark.case("languages", 242)
def test_every_type_of_default_is_stored_as_a_value_of_its_column(engine: str, tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g.omni", EVERY_TYPE, durability="process")
    if engine == "mutation":
        graph.mutate('query put() { insert All { k: "a" } insert Of { from: "a", to: "a" } }')
    else:
        records = b'{"type": "All", "data": {"k": "a"}}\n{"edge": "Of", "from": "a", "to": "a"}\n'
        load(graph, records, "append", "spark" if engine == "spark" else "local")

    found = graph.query("query q() { match { $a: All $a $o:of $b } return { $a, $o.share as share } }")

    assert found.rows == [
        {
            "a": {
                "id": "a",
                "b": True,
                "day": date(2020, 5, 1),
                "e": "soft-back",
                "f": 0.5,
                "i": -9007199254740993,
                "k": "a",
                "l": [1.0, -2.5],
                "m": datetime(2021, 1, 1, tzinfo=UTC),
                "none": [],
                "u": 18446744073709551615,
            },
            "share": 1.0,
        }
    ]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.case("languages", 242)
def test_a_default_is_checked_like_a_given_value(engine: Engine, tmp_path: Path) -> None:
    schema = 'node U { k: String @key  s: String @default("new") @unique }'
    graph = omnigraph.init(tmp_path / "g.omni", schema, durability="process")
    records = b'{"type": "U", "data": {"k": "a"}}\n{"type": "U", "data": {"k": "b"}}\n'

    with pytest.raises(ValidationError, match=r"@unique violation on U\.s"):
        load(graph, records, "append", engine)


# Loads


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.case("languages", 240)
def test_a_record_gets_the_default_of_what_it_does_not_contain(
    engine: Engine, graph: omnigraph.Graph
) -> None:
    records = b"""\
{"type": "D", "data": {"k": "a"}}
{"type": "D", "data": {"k": "b", "n": null}}
{"type": "D", "data": {"k": "c", "s": "x", "n": 1}}
"""
    result = load(graph, records, "append", engine)

    with pytest.raises(ValidationError, match=r"missing required property D\.s"):
        load(graph, b'{"type": "D", "data": {"k": "d", "s": null}}', "append", engine)
    assert rows_of(graph) == {"a": ("new", 7), "b": ("new", None), "c": ("x", 1)}
    assert dict(result.tables) == {"node:D": 3}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("form", ["arrow", "parquet", "csv"])
@pytest.mark.case("languages", 241)
def test_a_table_without_a_column_gets_its_default(
    form: str, engine: Engine, graph: omnigraph.Graph, tmp_path: Path
) -> None:
    said = pa.table({"k": ["a", "b"], "n": pa.array([None, 1], pa.int32())})
    unsaid = pa.table({"k": ["c"]})

    for table in (said, unsaid):
        load(graph, written(table, form, tmp_path), "append", engine)

    assert rows_of(graph) == {"a": ("new", None), "b": ("new", 1), "c": ("new", 7)}


def written(table: pa.Table, form: str, folder: Path) -> "str | dict[str, pa.Table]":
    """Return a table of D as what a load takes: itself, or a folder with its file."""
    if form == "arrow":
        return {"D": table}
    (inside := folder / f"{table.num_columns} columns").mkdir()
    if form == "parquet":
        pq.write_table(table, inside / "D.parquet")
    else:
        lines = [["" if value is None else str(value) for value in row.values()] for row in table.to_pylist()]
        text = "\n".join(",".join(line) for line in [table.column_names, *lines])
        (inside / "D.csv").write_text(text + "\n")
    return str(inside)


@pytest.mark.parametrize("keys", ["few", "many"])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.case("languages", 243)
def test_an_upsert_replaces_values_with_defaults_unless_columns_are_strict(
    engine: Engine, keys: str, graph: omnigraph.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    if keys == "many":
        monkeypatch.setenv(KEY_ROWS, "1")
    full = b"""\
{"type": "D", "data": {"k": "a", "s": "old", "n": 1}}
{"type": "D", "data": {"k": "b", "s": "old", "n": null}}
{"type": "D", "data": {"k": "c", "s": "old", "n": 2}}
"""
    part = b"""\
{"type": "D", "data": {"k": "a"}}
{"type": "D", "data": {"k": "b"}}
{"type": "D", "data": {"k": "d"}}
"""
    load(graph, full, "append", engine)

    with pytest.raises(ColumnsLeftOut, match=r"clear D\.n of 1 row, D\.s of 2 rows") as caught:
        load(graph, part, "merge", engine, strict_columns=True)
    assert rows_of(graph)["a"] == ("old", 1)
    result = load(graph, part, "merge", engine)

    assert caught.value.cleared == (ClearedProperty("node:D", "n", 1), ClearedProperty("node:D", "s", 2))
    assert result.cleared == ()
    assert rows_of(graph) == {"a": ("new", 7), "b": ("new", 7), "c": ("old", 2), "d": ("new", 7)}
    new = b'{"type": "D", "data": {"k": "e"}}'
    assert load(graph, new, "merge", engine, strict_columns=True).cleared == ()
