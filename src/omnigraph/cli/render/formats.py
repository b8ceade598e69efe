"""The output formats of a read: each turns an answer into lines, as late as it can."""

import re
from collections.abc import Callable, Iterator, Sequence

from omnigraph.cli.render.cells import compact, plain
from omnigraph.cli.render.table import NO_ROWS, table_lines
from omnigraph.cli.steering import on_lines, on_one_line
from omnigraph.client.answer import ReadAnswer

_NEEDS_QUOTES = re.compile('[,"\r\n]')


def kv_lines(answer: ReadAnswer) -> Iterator[str]:
    """Yield the title, and each row as a block of `column: value` lines."""
    yield answer.title
    if not answer.rows:
        yield NO_ROWS
    for number, row in enumerate(answer.rows, 1):
        if number > 1:
            yield ""
        yield f"row {number}"
        for name, value in zip(answer.columns, row, strict=True):
            yield f"{on_one_line(name)}: {on_lines(plain(value))}"


def csv_lines(answer: ReadAnswer) -> Iterator[str]:
    """Yield the names of the columns and then the rows, for programs: values are as they are stored."""
    yield _record(answer.columns)
    for row in answer.rows:
        yield _record([plain(value) for value in row])


def jsonl_lines(answer: ReadAnswer) -> Iterator[str]:
    """Yield an object about the answer, and then one for each row."""
    yield compact(
        {
            "kind": "metadata",
            "query_name": answer.query_name,
            "target": dict(answer.target),
            "row_count": len(answer.rows),
        }
    )
    for row in answer.rows:
        yield compact(answer.row_object(row))


LINES: dict[str, Callable[[ReadAnswer], Iterator[str]]] = {
    "table": table_lines,
    "kv": kv_lines,
    "csv": csv_lines,
    "jsonl": jsonl_lines,
}


def _record(fields: Sequence[str]) -> str:
    # Most readers do not take an empty line for a record: a lone empty text is quoted.
    return ",".join(map(_field, fields)) if list(fields) != [""] else '""'


def _field(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if _NEEDS_QUOTES.search(text) else text
