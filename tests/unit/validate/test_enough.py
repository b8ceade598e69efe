"""Input that is wrong without end is read to a point where that is known, and no further."""

import re
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.bulk.sources.model import Format, SourceInput
from omnigraph.bulk.sources.sources import read_source
from omnigraph.catalog.model import Property
from omnigraph.core.values import Scalar, ValueType
from omnigraph.server.lenient import strict_lines
from omnigraph.validate.coerce import coerce_column
from omnigraph.validate.records import read_ndjson
from omnigraph.validate.soundness import sound_rows
from omnigraph.validate.values import check_values
from omnigraph.validate.violations import COUNTED_MAX, ViolationLog
from tests.support.library import catalog
from tests.unit.validate.memory_view import type_named

MANY = 60_000
READ_MAX = 20_000  # rows: twice as many as are enough
INVALID = pa.Array.from_buffers(
    pa.utf8(),
    MANY,
    [None, pa.py_buffer(np.arange(MANY + 1, dtype="i4").tobytes()), pa.py_buffer(b"\xff" * MANY)],
)


def read_arrow(folder: Path, table: pa.Table, table_key: str, log: ViolationLog) -> int:
    """Write a table as one batch, read it, check its values, and return how many rows there were."""
    file = folder / "rows.arrow"
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    ids = count()
    source, rows = SourceInput(str(file), Format.ARROW, table_key=table_key), 0
    for part in read_source(source, catalog(), make_id=lambda: str(next(ids)), log=log):
        rows += part.count
        check_values(part, log)
    return rows


@pytest.mark.case("engine", 891)
@pytest.mark.parametrize("line", [b"x", b"{}", b"[]", b"0", b"\xff", b'{"type":"Nope"}', b"1e999"])
def test_lines_that_are_no_records_are_read_up_to_ten_thousand(line: bytes) -> None:
    log = ViolationLog()
    taken = 0

    def blocks() -> Iterator[bytes]:
        nonlocal taken
        for _ in range(20):
            taken += 1
            yield (line + b"\n") * (5 * 1024 * 1024 // len(line))

    read_ndjson(blocks(), file=0, file_name=None, catalog=catalog(), make_id=lambda: "1", log=log)

    assert COUNTED_MAX <= log.total < READ_MAX
    assert taken <= 2
    assert [item.line for item in log.first_violations()] == list(range(1, 101))


WRONG: dict[str, tuple[str, Callable[[], pa.Table]]] = {
    "no text": ("node:Note", lambda: pa.table({"body": pa.array(np.zeros(MANY, dtype=np.bool_))})),
    "null": ("node:Note", lambda: pa.table({"body": pa.nulls(MANY)})),
    "no ends": ("edge:Cites", lambda: pa.table({"from": pa.nulls(MANY), "to": pa.nulls(MANY)})),
    "not UTF-8": ("node:Note", lambda: pa.table({"body": INVALID})),
    "not UTF-8 in lists": (
        "node:Book",
        lambda: pa.table({"tags": pa.ListArray.from_arrays(_places(), INVALID)}),
    ),
    "not UTF-8 in a dictionary": (
        "node:Note",
        lambda: pa.table({"body": pa.DictionaryArray.from_arrays(_places().slice(0, MANY), INVALID)}),
    ),
    "one text of a dictionary": (
        "node:Note",
        lambda: pa.table(
            {
                "body": pa.DictionaryArray.from_arrays(
                    pa.array(np.zeros(MANY, "i1"), pa.int8()), INVALID.slice(0, 1)
                )
            }
        ),
    ),
}


def _places() -> Any:  # noqa: ANN401 - any array of Arrow
    return pa.array(np.arange(MANY + 1, dtype="i4"))


@pytest.mark.case("engine", 891)
@pytest.mark.parametrize("name", WRONG)
def test_rows_of_one_batch_are_read_up_to_ten_thousand_wrong_ones(name: str, tmp_path: Path) -> None:
    log = ViolationLog()
    table_key, made = WRONG[name]

    rows = read_arrow(tmp_path, made(), table_key, log)

    assert log.has_enough
    assert log.total < READ_MAX
    assert rows < READ_MAX
    assert [item.line for item in log.first_violations()] == list(range(1, 101))


@pytest.mark.case("engine", 891)
@pytest.mark.parametrize("form", ["plain", "list", "dictionary"])
def test_one_wrong_text_among_many_is_named_and_the_others_are_read(form: str) -> None:
    size, wrong = 1_000_000, 777_777
    data = bytearray(b"a" * size)
    data[wrong] = 0xFF
    places: Any = pa.array(np.arange(size + 1, dtype="i4"))
    texts: Any = pa.Array.from_buffers(
        pa.utf8(), size, [None, places.buffers()[1], pa.py_buffer(bytes(data))]
    )
    if form == "list":
        texts = pa.ListArray.from_arrays(places, texts)
    if form == "dictionary":
        texts = pa.DictionaryArray.from_arrays(places.slice(0, size), texts)
    log = ViolationLog()

    found, lines = sound_rows(pa.table({"body": texts}), type_named("Note"), file=0, file_name=None, log=log)

    assert [(item.line, item.message) for item in log.first_violations()] == [
        (wrong + 1, "invalid UTF-8 in column 'body'")
    ]
    assert found.num_rows == len(lines) == size - 1


def test_a_log_that_keeps_all_is_given_all() -> None:
    log = ViolationLog(limit=10**9)

    read_ndjson(b"x\n" * 30_000, file=0, file_name=None, catalog=catalog(), make_id=lambda: "1", log=log)
    sound_rows(pa.table({"body": INVALID}), type_named("Note"), file=1, file_name=None, log=log)

    assert log.total == len(log.first_violations()) == 30_000 + MANY


@pytest.mark.case("engine", 892)
def test_of_a_list_the_first_item_that_does_not_fit_is_named_and_none_behind_it_is_read() -> None:
    class Unseen(str):
        def encode(self, *_: str) -> bytes:
            raise AssertionError("behind an item that does not fit")

    texts = Property("p", ValueType(Scalar.STRING, is_list=True), 1)

    column, problems = coerce_column([["a", 1, Unseen()], ["b"], None, [None]], texts, "T.p")

    assert problems == [(0, "T.p: item 2: expected String, got number")]
    assert column.to_pylist() == [None, ["b"], None, [None]]


@pytest.mark.case("surfaces", 905)
@pytest.mark.parametrize("record", ["{}", "1", '"a"', "{}\n", '{"from":""}'])
def test_values_of_older_clients_that_are_no_records_are_looked_at_up_to_ten_thousand(record: str) -> None:
    lines = strict_lines(f"{record} " * 30_000 + "nonsense")

    assert lines.count(b"\n") <= 2 * COUNTED_MAX
    assert len(re.findall(rb"[^\n]+", lines)) == COUNTED_MAX


@pytest.mark.case("surfaces", 905)
def test_what_older_clients_write_between_records_keeps_the_lines() -> None:
    text = (
        '// one\n\n  // two {"a"\n{"type":\n"Note", "x": 1}// three\n\t\r\n{"type":"Note"} {"type":"Note"}//'
    )

    assert strict_lines(text) == b'\n\n\n{"type": "Note"}\n\n\n{"type":"Note"}\n{"type":"Note"}\n'
