"""Which records or rows `embed` takes: `[Type:]field=value`."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from omnigraph.catalog.model import NodeType, Property
from omnigraph.core.errors import BadRequest
from omnigraph.core.nearest import hinting, nearest_name
from omnigraph.core.values import Scalar, read_json
from omnigraph.storage.tables.filter import Compare, FilterValue, Or, RowFilter
from omnigraph.validate.coerce import coerce_column

EmbedMode = Literal["fill_missing", "reembed_selected", "reembed_all", "clean"]


@dataclass(frozen=True, slots=True)
class Selector:
    """A field and the value that it must have, in one type or in all."""

    type: str | None
    field: str
    value: str

    def __str__(self) -> str:
        """Return the selector as it is written."""
        return f"{'' if self.type is None else f'{self.type}:'}{self.field}={self.value}"

    def matches(self, type_name: str, data: Mapping[str, object]) -> bool:
        """Return whether a record of a type is selected; a value that is not a text is compared as JSON."""
        if self.type not in {None, type_name} or self.field not in data:
            return False
        found = data[self.field]
        return found == self.value if isinstance(found, str) else json.dumps(found) == self._canonical()

    def _canonical(self) -> str | None:
        try:
            return json.dumps(read_json(self.value))
        except ValueError:
            return None


def parse_selector(text: str) -> Selector:
    """Return a selector.

    Raises:
        BadRequest: the text is not a selector.
    """
    left, equals, value = text.partition("=")
    type_name, colon, field = left.rpartition(":")
    if not equals or not field.strip() or (colon and not type_name.strip()):
        raise BadRequest(f"{text!r} selects nothing: write [Type:]field=value")
    return Selector(type_name.strip() or None, field.strip(), value)


def check_types(given: Iterable[str], selectors: Sequence[Selector], known: Iterable[str], of: str) -> None:
    """Refuse the name of a type that cannot be embedded.

    Raises:
        BadRequest: with the nearest name.
    """
    names = list(known)
    for name in [*given, *(selector.type for selector in selectors if selector.type is not None)]:
        if name not in names:
            help = nearest_name(name, names) or (
                f"use one of {', '.join(names)}" if names else "there is none"
            )
            raise BadRequest(f"type '{name}' is not {of}; {help}")


def mode_of(*, reembed_all: bool, selectors: Sequence[Selector]) -> EmbedMode:
    """Return what is done to existing vectors: kept, or recomputed where selected, or everywhere."""
    if reembed_all:
        return "reembed_all"
    return "reembed_selected" if selectors else "fill_missing"


def selected_filter(selectors: Sequence[Selector], type_: NodeType) -> RowFilter | None:
    """Return the filter for the rows of a type that any selector selects; None if no selector can.

    Raises:
        BadRequest: a value does not fit its property, or values of that property cannot be compared.
    """
    found: list[RowFilter] = []
    for selector in selectors:
        if selector.type not in {None, type_.name}:
            continue
        item = type_.properties.get(selector.field)
        if item is not None:
            found.append(Compare(selector.field, "eq", _value(selector, type_, item)))
        elif selector.field == "id":
            found.append(Compare("id", "eq", selector.value))
        elif selector.type is not None:
            hint = hinting(selector.field, type_.properties)
            raise BadRequest(f"{type_.name} has no property '{selector.field}'{hint}")
    return Or(tuple(found)) if found else None


def _value(selector: Selector, type_: NodeType, item: Property) -> FilterValue:
    where = f"{type_.name}.{item.name}"
    if item.type.is_list or item.type.is_vector or item.is_blob:
        raise BadRequest(f"{where} is a {item.type}, which cannot be selected by")
    if item.type.scalar is Scalar.STRING:
        return selector.value
    try:
        given: object = read_json(selector.value)
    except ValueError:
        given = selector.value  # a date, or what the conversion refuses
    column, problems = coerce_column([given], item, where)
    if problems:
        raise BadRequest(problems[0][1])
    if pa.types.is_date(column.type):
        column = column.cast(pa.int32() if pa.types.is_date32(column.type) else pa.int64())
    value: FilterValue = column[0].as_py()
    return value
