"""However a file is cut, its slices give the same rows, lines and violations as the whole."""

import gzip
import json
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.bulk.sources.sources import (
    WHOLE,
    Compression,
    Format,
    Slice,
    SourceInput,
    needs_survey,
    place,
    plan_slices,
    read_slice,
    survey,
)
from omnigraph.bulk.sources.text import read_blocks, survey_text
from omnigraph.catalog.build import compile_schema
from omnigraph.core.errors import BadRequest
from omnigraph.core.span import Source
from omnigraph.validate.violations import ViolationLog

CATALOG = compile_schema(
    Source(
        """\
node Person {
    name: String @key
    age: I32?
    score: F64?
    tags: [String]?
    born: Date?
}

edge Knows: Person -> Person {
    since: Date?
}
"""
    )
)
Found = tuple[list[tuple[int, dict[str, object]]], list[tuple[int, str]]]


def read(source: SourceInput, target_bytes: int = WHOLE) -> Found:
    """Return the rows of a file with their lines, and what is wrong with others."""
    slices = plan_slices([source], target_bytes=target_bytes)
    return read_all(place(slices, [survey(slice_) for slice_ in needs_survey(slices)]))


def read_all(slices: Sequence[Slice]) -> Found:
    """Return the rows of slices; ids that are made count upwards."""
    log = ViolationLog()
    rows: list[tuple[int, dict[str, object]]] = []
    made = iter(range(10_000))
    for slice_ in slices:
        for found in read_slice(slice_, CATALOG, make_id=lambda: f"made-{next(made)}", log=log):
            rows += zip(found.lines.tolist(), found.table.to_pylist(), strict=True)
    rows.sort(key=lambda row: row[0])  # each block has its rows type by type
    return rows, [(violation.line, violation.message) for violation in log.first_violations()]


def file(path: Path, data: bytes, format_: Format, packing: Compression | None = None) -> SourceInput:
    """Write a file and return it as an input; CSV has people."""
    path.write_bytes(data)
    table_key = "node:Person" if format_ is Format.CSV else None
    return SourceInput(str(path), format_, path.name, packing, table_key)


ENDS = st.sampled_from([b"\n", b"\r\n"])
RECORDS = st.sampled_from(
    [
        b'{"type": "Person", "data": {"name": "ann"}}',
        b'{"type": "Person", "data": {"name": "b\\nob", "age": 7}}',
        b'{"edge": "Knows", "from": "ann", "to": "x"}',
        b"",
        b"   ",
        b"{]",
        b'{"type": "Person", "data": {"name": "' + b"long" * 30 + b'"}}',
    ]
)
FIELDS = st.sampled_from(
    [b"ann", b"", b'""', b'"a ""b"" c"', b'"two\nlines"', b'"\r\n"', b"5", b"\xff", b"a,b"]
)


@st.composite
def texts(draw: st.DrawFn, records: st.SearchStrategy[bytes]) -> bytes:
    """Return lines with one or the other end; the last may have none."""
    lines = draw(st.lists(st.tuples(records, ENDS), max_size=12))
    text = b"".join(record + end for record, end in lines)
    return text if draw(st.booleans()) else text.rstrip(b"\r\n")


def test_a_line_belongs_to_the_slice_of_its_first_byte(tmp_path: Path) -> None:
    source = file(tmp_path / "x.jsonl", b"aa\nbb\ncc", Format.NDJSON)

    def lines(start: int, end: int, number: int, before: int) -> list[tuple[int, bytes]]:
        return list(read_blocks(Slice(source, number, start, end, end - start, before)))

    assert lines(0, 3, 0, 0) == [(1, b"aa\n")]
    assert lines(3, 8, 1, 1) == [(2, b"bb\ncc")]
    assert lines(2, 3, 1, 0) == []
    assert lines(4, 6, 1, 1) == []
    assert lines(4, 7, 1, 1) == [(3, b"cc")]
    assert lines(0, 4, 0, 0) == [(1, b"aa\nbb\n")]


@settings(max_examples=60)
@given(text=texts(RECORDS), target=st.integers(1, 60), block=st.integers(1, 40))
def test_ndjson_may_be_cut_anywhere(
    text: bytes, target: int, block: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    source = file(tmp_path_factory.getbasetemp() / "x.jsonl", text, Format.NDJSON)
    slices = plan_slices([source], target_bytes=target)
    placed = place(slices, [survey_text(item, block_bytes=block) for item in needs_survey(slices)])

    blocks = [found for item in placed for found in read_blocks(item, block_bytes=block)]

    assert b"".join(data for _, data in blocks) == text
    ends = [0, *accumulate(data.count(b"\n") for _, data in blocks)]
    assert [line - 1 for line, _ in blocks] == ends[:-1]
    assert read_all(placed) == read(source)


@settings(max_examples=60)
@given(rows=st.lists(st.tuples(FIELDS, FIELDS, ENDS), max_size=8), target=st.integers(1, 60))
def test_csv_may_be_cut_anywhere(
    rows: list[tuple[bytes, bytes, bytes]], target: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = b"name,age\n" + b"".join(name + b"," + age + end for name, age, end in rows)
    source = file(tmp_path_factory.getbasetemp() / "x.csv", text, Format.CSV)

    assert read(source, target) == read(source)


def test_a_line_may_be_longer_than_several_slices(tmp_path: Path) -> None:
    long = json.dumps({"type": "Person", "data": {"name": "n" * 10_000}}).encode()
    text = b"\n".join([long, b"", long.replace(b"nn", b"mm"), b"{]"])
    source = file(tmp_path / "x.jsonl", text, Format.NDJSON)

    rows, violations = read(source, 64)

    assert [line for line, _ in rows] == [1, 3]
    assert [line for line, _ in violations] == [4]


@pytest.mark.parametrize("packing", list(Compression))
@pytest.mark.parametrize("format_", [Format.NDJSON, Format.CSV])
def test_a_packed_text_is_one_slice_with_the_same_rows(
    packing: Compression, format_: Format, tmp_path: Path
) -> None:
    texts_ = {
        Format.NDJSON: b'{"type": "Person", "data": {"name": "ann"}}\n\n{]',
        Format.CSV: b'name,age\nann,1\n"two\nlines",\nbob,x\n',
    }
    plain = file(tmp_path / "plain", texts_[format_], format_)
    data = texts_[format_]
    cut = data.index(b"\n") + 1
    packed = (
        gzip.compress(data[:cut]) + gzip.compress(data[cut:])
        if packing is Compression.GZIP
        else pa.compress(data, "zstd", asbytes=True)
    )
    source = file(tmp_path / "packed", packed, format_, packing)

    assert len(plan_slices([source], target_bytes=1)) == 1
    assert read(source) == read(plain)


def test_a_text_that_is_not_packed_as_its_name_says_is_refused(tmp_path: Path) -> None:
    source = file(tmp_path / "x.gz", b"plain", Format.NDJSON, Compression.GZIP)

    with pytest.raises(BadRequest, match=r"cannot read .*x\.gz as gzip"):
        read(source)


@pytest.mark.parametrize("target", [1, 400, WHOLE])
def test_row_groups_of_parquet_are_slices(target: int, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"name": [f"n{n}" for n in range(25)], "age": range(25)}), path, row_group_size=4)
    source = SourceInput(str(path), Format.PARQUET, "x", None, "node:Person")

    rows, violations = read(source, target)

    assert [(line, row["id"]) for line, row in rows] == [(n + 1, f"n{n}") for n in range(25)]
    assert violations == []
    assert len(plan_slices([source], target_bytes=1)) == 7
    assert needs_survey(plan_slices([source], target_bytes=1)) == ()


@pytest.mark.parametrize("is_stream", [False, True])
def test_batches_of_arrow_are_slices_unless_they_are_a_stream(is_stream: bool, tmp_path: Path) -> None:
    path = tmp_path / "x.arrow"
    table = pa.table({"name": [f"n{n}" for n in range(25)], "born": [None, *range(24)]})
    make = pa.ipc.new_stream if is_stream else pa.ipc.new_file
    with pa.OSFile(str(path), "wb") as out, make(out, table.schema) as writer:
        writer.write_table(table, max_chunksize=4)
    source = SourceInput(str(path), Format.ARROW, "x", None, "node:Person")

    rows, _ = read(source, 1)

    assert [(line, row["id"]) for line, row in rows] == [(n + 1, f"n{n}") for n in range(25)]
    assert read(source) == read(source, 1)
    assert len(plan_slices([source], target_bytes=1)) == (1 if is_stream else 7)


def test_wrong_columns_are_one_violation_at_the_first_line_however_many_slices(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"nam": [f"n{n}" for n in range(25)]}), path, row_group_size=4)
    source = SourceInput(str(path), Format.PARQUET, "x", None, "node:Person")

    assert read(source, 1) == ([], [(1, "Person has no property 'nam'; did you mean 'name'?")])
    assert read(source) == read(source, 1)


def test_a_table_without_rows_names_its_type(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"name": pa.array([], pa.utf8())}), path)
    (slice_,) = plan_slices(
        [SourceInput(str(path), Format.PARQUET, "x", None, "node:Person")], target_bytes=WHOLE
    )

    found = list(read_slice(slice_, CATALOG, make_id=str, log=ViolationLog()))

    assert [(rows.type.table_key, rows.count) for rows in found] == [("node:Person", 0)]


@pytest.mark.parametrize(
    ("format_", "said"),
    [
        (Format.PARQUET, "as Parquet"),
        (Format.ARROW, "as Arrow"),
        (Format.CSV, "begins with a byte order mark"),
    ],
)
def test_a_file_that_is_something_else_is_refused(format_: Format, said: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\xef\xbb\xbfname\n")

    with pytest.raises(BadRequest, match=said):
        read(SourceInput(str(tmp_path / "x"), format_, "x", None, "node:Person"))
    with pytest.raises(BadRequest, match="No such file"):
        read(SourceInput(str(tmp_path / "y"), format_, "y", None, "node:Person"))


def test_a_byte_order_mark_before_records_is_refused_at_its_line(tmp_path: Path) -> None:
    text = b'\xef\xbb\xbf{"type": "Person", "data": {"name": "ann"}}\n'

    rows, violations = read(file(tmp_path / "x.jsonl", text, Format.NDJSON))

    assert rows == []
    assert violations == [(1, "invalid JSON: a byte order mark, save the file as UTF-8 without one")]
