"""Ids of columns are the ids of their rows."""

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.catalog.arrow_schema import arrow_type
from omnigraph.catalog.model import NodeType, derive_id
from omnigraph.validate.columns import Column
from omnigraph.validate.ids import derive_ids
from tests.support.library import compile_text

KEYED = compile_text("""\
node Text { k: String @key }
node Count { k: I64 @key }
node Flag { k: Bool @key }
node Day { k: Date @key }
node Moment { k: DateTime @key }
node Half { k: F32 @key }
node Whole { k: F64 @key }
node Pair { a: String  b: I32  c: Date  @key(a, b, c) }
node Mixed { a: String  x: F64  @key(a, x) }
""").nodes

TEXTS = st.text(max_size=6) | st.sampled_from(['"', "\\", "\x00", "\n", "é", "\x7f", "/", "\u2028", "😀"])


def columns_of(node: NodeType, rows: list[Mapping[str, Any]]) -> dict[str, Column]:
    """Return stored columns; dates are given as numbers."""
    columns: dict[str, Column] = {}
    for name, item in node.properties.items():
        type_: Any = arrow_type(item.type)
        numbers: Any = {pa.date32(): pa.int32(), pa.date64(): pa.int64()}.get(type_, type_)
        columns[name] = pa.array([row[name] for row in rows], numbers).cast(type_)
    return columns


def same_ids(name: str, rows: list[Mapping[str, Any]]) -> None:
    node = KEYED[name]
    assert derive_ids(node, columns_of(node, rows)).to_pylist() == [derive_id(node, row) for row in rows]


@given(st.lists(TEXTS, max_size=4))
def test_texts(values: list[str]) -> None:
    same_ids("Text", [{"k": value} for value in values])


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=4))
def test_integers(values: list[int]) -> None:
    same_ids("Count", [{"k": value} for value in values])


@given(st.lists(st.integers(-719_162, 2_932_896), max_size=4))
def test_dates(values: list[int]) -> None:
    same_ids("Day", [{"k": value} for value in values])
    same_ids("Moment", [{"k": value * 86_400_000 + 1} for value in values])


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=4))
def test_floats(values: list[float]) -> None:
    same_ids("Whole", [{"k": value} for value in values])


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32), max_size=4))
def test_single_floats(values: list[float]) -> None:
    same_ids("Half", [{"k": value} for value in values])


def test_booleans() -> None:
    same_ids("Flag", [{"k": True}, {"k": False}])


@given(st.lists(st.tuples(TEXTS, st.integers(-5, 5), st.integers(-5, 5)), max_size=4))
def test_composite_keys(values: list[tuple[str, int, int]]) -> None:
    same_ids("Pair", [{"a": text, "b": number, "c": day} for text, number, day in values])
    same_ids("Mixed", [{"a": text, "x": number / 4} for text, number, _ in values])


def test_a_composite_id_is_compact_json() -> None:
    node = KEYED["Pair"]

    ids = derive_ids(node, columns_of(node, [{"a": "é", "b": 1, "c": 2}, {"a": '"', "b": 1, "c": 2}]))

    assert ids.to_pylist()[0] == '["é","1","2"]'
    assert [json.loads(text) for text in ids.to_pylist()] == [["é", "1", "2"], ['"', "1", "2"]]


def test_a_key_without_a_value_gives_no_id() -> None:
    node, mixed, whole = KEYED["Pair"], KEYED["Mixed"], KEYED["Whole"]

    assert derive_ids(node, columns_of(node, [{"a": None, "b": 1, "c": 2}])).to_pylist() == [None]
    assert derive_ids(node, columns_of(node, [{"a": '"', "b": None, "c": 2}])).to_pylist() == [None]
    assert derive_ids(mixed, columns_of(mixed, [{"a": "a", "x": None}])).to_pylist() == [None]
    assert derive_ids(whole, columns_of(whole, [{"k": float("nan")}, {"k": 1.5}])).to_pylist() == [
        None,
        "1.5",
    ]
