"""Results as frames of pandas: nulls take no digits of an integer, and a Bool stays one."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph

SCHEMA = """\
node Meter {
    code: String @key
    small: I32?
    reading: I64?
    positive: U32?
    total: U64?
    is_open: Bool?
    share: F64?
    full: I64
}
"""
LARGE = 2**53 + 1  # the first integer that a float of 64 bits does not hold
ROWS = [
    {
        "code": "a",
        "small": 1,
        "reading": LARGE,
        "positive": 2,
        "total": 2**64 - 1,
        "is_open": True,
        "full": 7,
    },
    {"code": "b", "full": LARGE},
]
ALL = "order { $m.code }"


@pytest.fixture(scope="module")
def meters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    root: Path = tmp_path_factory.mktemp("meters") / "graph"
    with omnigraph.init(root, SCHEMA, durability="process") as graph:
        lines = "".join(json.dumps({"type": "Meter", "data": row}) + "\n" for row in ROWS)
        graph.load(lines.encode(), "append", index=False)
        yield graph


def query(returned: str) -> str:
    return f"query q() {{ match {{ $m: Meter }} return {{ {returned} }} {ALL} }}"


@pytest.mark.case("surfaces", 240)
def test_columns_with_a_null_keep_integers_and_booleans(meters: Graph) -> None:
    names = ("small", "reading", "positive", "total", "is_open", "share", "full")

    frame = meters.query(query(", ".join(f"$m.{name} as {name}" for name in names))).to_pandas()

    assert [str(dtype) for dtype in frame.dtypes] == [
        "Int32", "Int64", "UInt32", "UInt64", "boolean", "float64", "int64",
    ]  # fmt: skip
    assert frame["reading"].tolist()[0] == LARGE
    assert frame["total"].tolist()[0] == 2**64 - 1
    assert frame["is_open"].tolist()[0] is True
    assert frame["full"].tolist() == [7, LARGE]
    assert frame.isna().sum().to_dict() == dict.fromkeys(names, 1) | {"share": 2, "full": 0}


def test_columns_without_a_null_are_the_plain_ones(meters: Graph) -> None:
    text = query("$m.reading as reading, $m.is_open as is_open").replace("Meter", 'Meter { code: "a" }')

    frame = meters.query(text).to_pandas()

    assert [str(dtype) for dtype in frame.dtypes] == ["int64", "bool"]


@pytest.mark.case("surfaces", 240)
def test_columns_of_one_name_and_whole_entities_keep_them_too(meters: Graph) -> None:
    frame = meters.query(query("$m.reading as n, $m.full as n, $m")).to_pandas()

    assert [str(dtype) for dtype in frame.dtypes][:2] == ["Int64", "int64"]
    assert frame.iloc[0, 0] == frame.iloc[1, 1] == LARGE
    assert [row["reading"] for row in frame["m"]] == [LARGE, None]


def test_rows_of_python_keep_them(meters: Graph) -> None:
    rows = meters.query(query("$m.reading as reading, $m.is_open as is_open, $m")).to_pylist()

    assert [(row["reading"], row["is_open"]) for row in rows] == [(LARGE, True), (None, None)]


@pytest.mark.case("surfaces", 241)
def test_a_frame_of_a_result_is_loaded_as_it_is(meters: Graph) -> None:
    names = ("code", "small", "reading", "positive", "total", "is_open", "share", "full")
    before = meters.table("Meter")

    frame = meters.query(query(", ".join(f"$m.{name} as {name}" for name in names))).to_pandas()
    result = meters.load_tables({"Meter": frame}, "merge", index=False)

    assert result.cleared == ()
    assert meters.table("Meter") == before
