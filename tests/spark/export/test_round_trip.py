"""What an export writes, a load reads back: every type, every format, on either engine."""

import json
from base64 import b64encode
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import omnigraph
from omnigraph.bulk.export.files import ExportFormat
from omnigraph.core.errors import BadRequest
from omnigraph.graph.graph import Graph
from tests.support.engine import edge, ndjson, node

EVERY_TYPE = """\
node Thing {
    code: String @key
    text: String?
    kind: enum(big, small)?
    on: Bool?
    i32: I32?
    i64: I64?
    u32: U32?
    u64: U64?
    f32: F32?
    f64: F64?
    day: Date?
    at: DateTime?
    raw: Blob?
    words: [String]?
    longs: [I64]?
    days: [Date]?
    moments: [DateTime]?
    halves: [F32]?
    where: Vector(3)?
}

node Loose {
    note: String?
}

edge Near: Thing -> Thing {
    weight: F64?
    since: DateTime?
}
"""
FULL: dict[str, object] = {
    "text": 'a "quoted", two-lined\n\ttext\r\n with 🌍, \\ and \u2028',
    "kind": "big",
    "on": False,
    "i32": -(2**31),
    "i64": str(-(2**63)),
    "u32": 2**32 - 1,
    "u64": str(2**64 - 1),
    "f32": 0.1,
    "f64": 1e-300,
    "day": "0001-01-01",
    "at": "9999-12-31T23:59:59.999Z",
    "raw": "base64:AAEC/w==",
    "words": ["", "a,b", '"'],
    "longs": [str(2**63 - 1), 0],
    "days": ["2020-02-29"],
    "moments": ["1969-12-31T23:59:59.999Z"],
    "halves": [0.1, -0.0],
    "where": [3.0, 4.0, 0.1],
}
RECORDS = [
    node("Thing", code="full", **FULL),
    node("Thing", code="bare"),
    node("Thing", code="", text="", words=[], longs=[], raw="base64:"),
    node("Loose", id="given"),
    node("Loose", note="made"),
    edge("Near", "full", "bare", weight=0.5, since="2021-01-01T00:00:00Z"),
    edge("Near", "bare", "", id="kept"),
]


def make(path: Path, records: list[dict[str, object]]) -> Graph:
    """Return a new graph with some records."""
    graph = omnigraph.init(path, EVERY_TYPE, durability="process")
    graph.load(ndjson(records), "append", index=False)
    return graph


def lines_of(graph: Graph) -> list[bytes]:
    """Return what a graph exports, line by line."""
    return b"".join(graph.export().lines()).splitlines()


@pytest.mark.case("engine", 124)
def test_an_export_is_loaded_into_an_equal_graph(tmp_path: Path) -> None:
    graph = make(tmp_path / "one.omni", RECORDS)
    graph.export().to_file(tmp_path / "all.jsonl")

    other = omnigraph.init(tmp_path / "two.omni", EVERY_TYPE, durability="process")
    other.load(tmp_path / "all.jsonl", "overwrite", index=False)

    assert lines_of(other) == lines_of(graph)
    for type_name in ("Thing", "Loose", "Near"):
        assert other.table(type_name).equals(graph.table(type_name))


@pytest.mark.parametrize("format_", [ExportFormat.CSV, ExportFormat.PARQUET])
def test_a_folder_of_tables_is_loaded_into_an_equal_graph(format_: ExportFormat, tmp_path: Path) -> None:
    graph = make(tmp_path / "one.omni", RECORDS)
    written = graph.export().to_folder(tmp_path / "out", format_)

    other = omnigraph.init(tmp_path / "two.omni", EVERY_TYPE, durability="process")
    other.load(tmp_path / "out", "overwrite", engine="local", index=False)

    assert [(item.table_key, item.rows) for item in written] == [
        ("node:Loose", 2),
        ("node:Thing", 3),
        ("edge:Near", 2),
    ]
    assert lines_of(other) == lines_of(graph)


def test_records_are_nodes_first_by_type_and_id_with_the_values_of_json_but_for_times(tmp_path: Path) -> None:
    graph = make(tmp_path / "one.omni", RECORDS)

    found = list(graph.export())
    records = [json.loads(line) for line in lines_of(graph)]

    assert [(record.get("type") or record["edge"]) for record in records] == [
        *["Loose"] * 2,
        *["Thing"] * 3,
        *["Near"] * 2,
    ]
    things = [record["data"] for record in records if record.get("type") == "Thing"]
    assert [data["id"] for data in things] == ["", "bare", "full"]
    assert things[2] == {"id": "full", "code": "full", **FULL}
    assert set(things[1].values()) == {"bare", None}
    near = records[-1]
    assert list(near) == ["edge", "from", "to", "data"]
    data = found[4]["data"]
    assert isinstance(data, dict)
    times = {name: value for name, value in data.items() if value != FULL.get(name, value)}
    assert times == {
        "day": date(1, 1, 1),
        "days": [date(2020, 2, 29)],
        "at": datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC),
        "moments": [datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)],
    }


def test_a_type_without_rows_is_an_empty_file_that_a_load_empties_the_type_with(tmp_path: Path) -> None:
    empty = omnigraph.init(tmp_path / "empty.omni", EVERY_TYPE, durability="process")
    graph = make(tmp_path / "one.omni", RECORDS)
    empty.export().to_folder(tmp_path / "out", ExportFormat.PARQUET)

    graph.load(tmp_path / "out", "overwrite", engine="local", index=False)

    assert lines_of(graph) == []
    assert pq.read_table(tmp_path / "out" / "Near.parquet").column_names == [
        "id",
        "from",
        "to",
        "since",
        "weight",
    ]


def test_some_types_alone_are_exported_and_an_unknown_one_is_refused(tmp_path: Path) -> None:
    graph = make(tmp_path / "one.omni", RECORDS)

    named = [record["data"] for record in graph.export(types=["Loose"])]
    by_key = [record["data"] for record in graph.export(types=["node:Loose"])]

    assert named == by_key
    assert len(named) == 2
    assert len(list(graph.export(types=["near"]))) == 2
    with pytest.raises(BadRequest, match="unknown type 'Thang'; did you mean 'Thing'"):
        graph.export(types=["Thang"])
    with pytest.raises(BadRequest, match="unknown type 'edge:Thing'"):
        graph.export(types=["edge:Thing"])


def test_an_export_reads_the_snapshot_of_its_beginning(tmp_path: Path) -> None:
    graph = make(tmp_path / "one.omni", RECORDS)
    pinned = graph.export(types=["Thing"])

    graph.load(ndjson([node("Thing", code="later")]), "append", index=False)

    assert len(list(pinned)) == 3
    assert len(list(graph.export(types=["Thing"]))) == 4


def test_a_folder_with_something_in_it_is_refused(tmp_path: Path) -> None:
    graph = make(tmp_path / "one.omni", RECORDS)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "Other.csv").write_text("x\n")

    with pytest.raises(BadRequest, match="is not empty"):
        graph.export().to_folder(tmp_path / "out", ExportFormat.CSV)


def test_an_export_that_fails_leaves_an_earlier_file_as_it_was(tmp_path: Path) -> None:
    graph = make(tmp_path / "one.omni", RECORDS)
    (tmp_path / "all.jsonl").write_bytes(b"earlier")

    with pytest.raises(BadRequest, match="cannot write"):
        graph.export().to_file(tmp_path / "missing" / "all.jsonl")
    graph.export(types=["Loose"]).to_file(tmp_path / "all.jsonl")

    assert len((tmp_path / "all.jsonl").read_bytes().splitlines()) == 2
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


SINGLES = st.floats(width=32, allow_nan=False, allow_infinity=False)
VALUES = st.fixed_dictionaries(
    {},
    optional={
        "text": st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
        "i64": st.integers(-(2**63), 2**63 - 1).map(str),
        "u64": st.integers(0, 2**64 - 1).map(str),
        "f32": SINGLES,
        "f64": st.floats(allow_nan=False, allow_infinity=False),
        "day": st.dates().map(str),
        "at": st.integers(-62135596800000, 253402300799999),
        "raw": st.binary(max_size=4).map(lambda data: "base64:" + b64encode(data).decode()),
        "words": st.lists(st.text('ab,"\n\r ', max_size=3), max_size=3),
        "halves": st.lists(SINGLES, max_size=3),
        "where": st.lists(SINGLES, min_size=3, max_size=3),
    },
)


@settings(max_examples=10)
@given(rows=st.lists(VALUES, min_size=1, max_size=30))
def test_any_values_come_back(
    rows: list[dict[str, object]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("any")
    graph = make(folder / "one.omni", [node("Thing", code=f"{n}", **row) for n, row in enumerate(rows)])
    other = omnigraph.init(folder / "two.omni", EVERY_TYPE, durability="process")

    for format_ in ExportFormat:
        graph.export(types=["Thing"]).to_folder(folder / format_, format_)
        other.load(folder / format_, "overwrite", engine="local", index=False)
        assert other.table("Thing").to_pylist() == graph.table("Thing").to_pylist(), format_
