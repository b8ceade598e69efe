"""A read's answer as a table for people."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

from omnigraph.cli.render.cells import cut, pad, plain, width, wrap
from omnigraph.cli.steering import on_one_line
from omnigraph.client.answer import ReadAnswer

NO_ROWS = "(no rows)"
_BAR = " | "
_CROSS = "-+-"


@dataclass(frozen=True, slots=True)
class TableLayout:
    """What becomes of cells that are wider than a column may be."""

    max_column_width: int = 80
    cell_layout: Literal["truncate", "wrap"] = "truncate"

    def lines(self, text: str) -> list[str]:
        """Return the lines of a cell."""
        if self.cell_layout == "wrap":
            return wrap(text, self.max_column_width)
        return [cut(text, self.max_column_width)]


def table_lines(answer: ReadAnswer, layout: TableLayout | None = None) -> Iterator[str]:
    """Yield the title, the head, a rule and the rows; columns of numbers are aligned to the right."""
    yield answer.title
    if not answer.columns:
        yield NO_ROWS
        return
    layout = layout or TableLayout()
    head = _cells(answer.columns, layout)
    body = [_cells(row, layout) for row in answer.rows]
    widths = [
        max(width(line) for cell in column for line in cell) for column in zip(head, *body, strict=True)
    ]
    is_number = [_is_number(answer.rows, place) for place in range(len(head))]
    yield from _joined(head, widths, is_number)
    yield _CROSS.join("-" * cells for cells in widths)
    for row in body:
        yield from _joined(row, widths, is_number)


def _cells(values: Sequence[object], layout: TableLayout) -> list[list[str]]:
    return [layout.lines(on_one_line(plain(value))) for value in values]


def _joined(cells: list[list[str]], widths: list[int], is_number: list[bool]) -> Iterator[str]:
    """Yield the lines of one row: as many as its tallest cell has."""
    for line in zip_longest(*cells, fillvalue=""):
        padded = [
            pad(text, wide, to_the_right=number)
            for text, wide, number in zip(line, widths, is_number, strict=True)
        ]
        yield _BAR.join(padded).rstrip()


def _is_number(rows: Sequence[Sequence[object]], place: int) -> bool:
    """Return whether a column holds numbers, and apart from them only nulls."""
    kinds = {type(row[place]) for row in rows} - {type(None)}
    return bool(kinds) and kinds <= {int, float}
