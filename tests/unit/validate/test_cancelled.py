"""Reading for somebody who has gone: whatever the input is, it ends at the next look."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from omnigraph.bulk.sources.csv import read_csv
from omnigraph.bulk.sources.model import Format, Slice, SourceInput
from omnigraph.bulk.sources.tables import read_tables
from omnigraph.catalog.model import Property
from omnigraph.core.cancellation import CallCancelled, Cancellation, cancellable
from omnigraph.core.values import Scalar, ValueType
from omnigraph.server.lenient import strict_lines
from omnigraph.validate.coerce import coerce_column
from omnigraph.validate.records import read_ndjson
from omnigraph.validate.tables import read_table
from omnigraph.validate.violations import ViolationLog
from tests.support.library import catalog


def csv(folder: Path, log: ViolationLog, text: str) -> None:
    """Read CSV, whose refused rows go nowhere."""
    file = folder / "rows.csv"
    file.write_text(text)
    slice_ = Slice(SourceInput(str(file), Format.CSV), 0, 0, len(text), len(text), header=("a", "b"))
    list(read_csv(slice_, lambda _line, _message: None))


def arrow(folder: Path, log: ViolationLog) -> None:
    """Read a stream of Arrow's."""
    file, table = folder / "rows.arrow", pa.table({"a": [1]})
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    list(read_tables(Slice(SourceInput(str(file), Format.ARROW), 0, 0, None, file.stat().st_size), None))


def ndjson(folder: Path, log: ViolationLog) -> None:
    """Read a bad line."""
    read_ndjson(b"x\n", file=0, file_name=None, catalog=catalog(), make_id=lambda: "1", log=log)


def table(folder: Path, log: ViolationLog) -> None:
    """Read a table of edges without ends."""
    rows, type_ = pa.table({"from": ["a"], "to": pa.array([None], pa.utf8())}), catalog().edges["Cites"]
    read_table(rows, type_, file=0, file_name=None, make_id=lambda: "1", log=log)


def values(folder: Path, log: ViolationLog) -> None:
    """Convert values one by one."""
    coerce_column(["x", 1], Property("p", ValueType(Scalar.I32), 1), "T.p")


def lists(folder: Path, log: ViolationLog) -> None:
    """Convert lists one by one."""
    coerce_column([["x"]], Property("p", ValueType(Scalar.STRING, is_list=True), 1), "T.p")


READINGS: dict[str, Callable[[Path, ViolationLog], object]] = {
    "NDJSON": ndjson,
    "NDJSON of older clients": lambda _folder, _log: strict_lines('{"type":"Note"}'),
    "CSV": lambda folder, log: csv(folder, log, "1,2\n"),
    "CSV whose rows are not lines": lambda folder, log: csv(folder, log, '"1\n",2\n'),
    "Arrow": arrow,
    "a table": table,
    "values": values,
    "lists": lists,
}


@pytest.mark.case("surfaces", 334)
@pytest.mark.parametrize("name", READINGS)
def test_nothing_is_read_for_a_caller_who_has_gone(name: str, tmp_path: Path) -> None:
    log, cancellation = ViolationLog(), Cancellation()
    with cancellable(cancellation):
        READINGS[name](tmp_path, log)
        so_far = log.total
        cancellation.ask()

        with pytest.raises(CallCancelled):
            READINGS[name](tmp_path, log)

    assert log.total == so_far
