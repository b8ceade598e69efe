"""Times in what a server sends as JSON: as texts there, and as dates and aware datetimes to a program here.

A text of a type or a property that the schema does not have stays one: a change may be older than the schema.
"""

from collections.abc import Callable, Mapping
from datetime import date, timedelta
from functools import cached_property

from omnigraph.catalog.model import Catalog, EdgeType, NodeType
from omnigraph.core.errors import OmnigraphError
from omnigraph.core.temporal import moment_of_micros, parse_date, parse_datetime
from omnigraph.core.values import Scalar

_EPOCH = date(1970, 1, 1)


class Times:
    """Which properties of a schema are times; the schema is asked for when the first value is read."""

    def __init__(self, ask: Callable[[], Catalog]) -> None:
        """Take what returns the types."""
        self._ask = ask

    def told(self, kind: str, type_name: str, properties: Mapping[str, object]) -> dict[str, object]:
        """Return the properties of a `node` or an `edge`, with its times as Python's."""
        scalars = self._scalars.get((kind, type_name), {})
        return {
            name: _time(value, scalars[name]) if name in scalars else value
            for name, value in properties.items()
        }

    def record(self, record: dict[str, object]) -> dict[str, object]:
        """Return the record of an export with its times as Python's."""
        kind = "edge" if "edge" in record else "node"
        name, data = record.get("edge", record.get("type")), record.get("data")
        if not isinstance(name, str) or not isinstance(data, dict):
            return record
        return record | {"data": self.told(kind, name, data)}

    @cached_property
    def _scalars(self) -> dict[tuple[str, str], dict[str, Scalar]]:
        catalog = self._ask()
        return {
            **{("node", name): _times_of(type_) for name, type_ in catalog.nodes.items()},
            **{("edge", name): _times_of(type_) for name, type_ in catalog.edges.items()},
        }


def _times_of(type_: NodeType | EdgeType) -> dict[str, Scalar]:
    scalars = {name: item.type.scalar for name, item in type_.properties.items()}
    return {name: scalar for name, scalar in scalars.items() if scalar in {Scalar.DATE, Scalar.DATETIME}}


def _time(value: object, scalar: Scalar) -> object:
    if isinstance(value, list):  # of values, if it is one of a property: no deeper
        return [item if isinstance(item, list) else _time(item, scalar) for item in value]
    if not isinstance(value, str):
        return value
    try:
        if scalar is Scalar.DATE:
            return _EPOCH + timedelta(days=parse_date(value))
        return moment_of_micros(parse_datetime(value) * 1_000)
    except (ValueError, OmnigraphError):
        return value  # it was a text when this was written
