"""The answer of a read, as the output formats see it: names, JSON values, and what was read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnigraph.cli.render.columns import count

if TYPE_CHECKING:
    from omnigraph.graph.result import Result


@dataclass(frozen=True, slots=True)
class ReadAnswer:
    """Rows in the order of the columns, whose names may repeat; every value is a JSON value.

    The target has the `branch` whose newest state was read, or the commit of a `snapshot`; the other is None.
    """

    query_name: str
    target: Mapping[str, str | None]
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]

    @staticmethod
    def of(result: "Result") -> "ReadAnswer":
        """Return what the library answered."""
        return ReadAnswer(result.query_name, result.target, result.columns, result.json_rows())

    @property
    def title(self) -> str:
        """The first line for people: how many rows, and from where."""
        place = next(f"{kind} {name}" for kind, name in self.target.items() if name is not None)
        return f"{count(len(self.rows), 'row')} from {place} via {self.query_name}"

    def row_object(self, row: Sequence[object]) -> dict[str, object]:
        """Return a row by column name; of columns with the same name, the last one wins."""
        return dict(zip(self.columns, row, strict=True))
