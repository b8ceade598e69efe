"""The answer of a read, as programs print it: names, JSON values, and what was read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from omnigraph.client.understood import understood

if TYPE_CHECKING:
    from omnigraph.graph.result import Result


Document = dict[str, Any]  # a JSON object that came over the wire, or could have


@dataclass(frozen=True, slots=True)
class ReadAnswer:
    """Rows in the order of the columns, whose names may repeat; every value is a JSON value.

    The target has the `branch` whose newest state was read, or the commit of a `snapshot`; the other is None.
    """

    query_name: str
    target: Mapping[str, str | None]
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    commit_id: str | None = None

    @staticmethod
    def of(result: "Result") -> "ReadAnswer":
        """Return what the library answered."""
        return ReadAnswer(
            result.query_name, result.target, result.columns, result.json_rows(), result.commit_id
        )

    @staticmethod
    def of_document(document: Document) -> "ReadAnswer":
        """Return what a server answered; of columns with the same name it has the last one alone."""
        with understood():
            rows: list[Document] = document["rows"]
            columns = document.get("columns")
            names = [_text(name) for name in ((rows[0] if rows else ()) if columns is None else columns)]
            answer = ReadAnswer(
                _text(document["query_name"]),
                {kind: None if name is None else _text(name) for kind, name in document["target"].items()},
                names,
                [[row.get(name) for name in names] for row in rows],
                document.get("graph_commit_id"),
            )
            next(name for name in answer.target.values() if name is not None)  # what was read has one
        return answer

    @property
    def title(self) -> str:
        """The first line for people: how many rows, and from where."""
        place = next(f"{kind} {name}" for kind, name in self.target.items() if name is not None)
        noun = "row" if len(self.rows) == 1 else "rows"
        return f"{len(self.rows)} {noun} from {place} via {self.query_name}"

    def row_object(self, row: Sequence[object]) -> Document:
        """Return a row by column name; of columns with the same name, the last one wins."""
        return dict(zip(self.columns, row, strict=True))

    def document(self) -> Document:
        """Return the document with which every surface answers a read."""
        return {
            "query_name": self.query_name,
            "target": dict(self.target),
            "row_count": len(self.rows),
            "columns": list(self.columns),
            "rows": [self.row_object(row) for row in self.rows],
            "graph_commit_id": self.commit_id,
        }


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value
