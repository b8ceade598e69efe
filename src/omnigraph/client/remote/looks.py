"""What a server says of a type and of a plan, as the values that a graph in its storage gives."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from omnigraph.catalog.arrow_schema import arrow_type, with_moments
from omnigraph.catalog.build import compile_schema
from omnigraph.client.answer import Document
from omnigraph.client.remote.json_rows import typed
from omnigraph.core.span import Source
from omnigraph.core.values import ValueType
from omnigraph.graph.encode import python_rows
from omnigraph.history.identity import stored_name
from omnigraph.operations.describe.columns import ColumnSummary
from omnigraph.operations.describe.degrees import Degrees
from omnigraph.operations.describe.describe import (
    EndDescription,
    PropertyDescription,
    TouchingEdge,
    TypeDescription,
)


@dataclass(frozen=True, slots=True)
class RemoteExplanation:
    """A plan that a server made, as it shows it."""

    _text: str
    _document: dict[str, Any] = field(repr=False)

    def to_text(self) -> str:
        """Return the operators in the order they run, one per line, each with its estimate."""
        return self._text

    def to_json(self) -> dict[str, Any]:
        """Return the plan as a document."""
        return dict(self._document)


def explanation_of(document: Document) -> RemoteExplanation:
    """Return a plan."""
    return RemoteExplanation(str(document["text"]), dict(document["plan"]))


def description_of(document: Document) -> TypeDescription:
    """Return a type with what its rows hold."""
    return TypeDescription(
        document["name"],
        document["table_key"],
        stored_name(document["branch"]),
        document["commit_id"],
        document["row_count"],
        tuple(document["annotations"]),
        tuple(_property(item) for item in document["properties"]),
        tuple(document.get("interfaces") or ()),
        tuple(
            TouchingEdge(item["name"], item["source"], item["target"]) for item in document.get("edges") or ()
        ),
        *(_end(document.get(name)) for name in ("source", "target")),
    )


def _property(item: Document) -> PropertyDescription:
    # A type is written as a schema has it, so a schema of one property reads it.
    type_ = compile_schema(Source(f"node T {{ p: {item['type']} }}")).nodes["T"].properties["p"].type
    low, high, *samples = _values(type_, [item["min"], item["max"], *item["samples"]])
    return PropertyDescription(
        item["name"],
        type_,
        tuple(item["annotations"]),
        ColumnSummary(item["nulls"], item["distinct"], item["approximate"], low, high, tuple(samples)),
    )


def _values(type_: ValueType, values: Sequence[object]) -> list[object]:
    """Return JSON values as those of Python that a property of a type has."""
    stored = arrow_type(type_)
    column = pa.array([typed(value, stored) for value in values], stored)
    return [value for (value,) in python_rows(with_moments(pa.table({"p": column})))]


def _end(document: Document | None) -> EndDescription | None:
    if document is None:
        return None
    found = Degrees(
        document["nodes"],
        document["nodes_without"],
        document["min"],
        float(document["median"]),
        float(document["mean"]),
        document["max"],
    )
    return EndDescription(document["type_name"], found)
