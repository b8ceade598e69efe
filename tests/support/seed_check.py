"""A small, independent check of load records against a catalog: written for clarity, not for speed."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import Catalog, EdgeType, NodeType, Property, derive_id
from omnigraph.core.errors import ExecutionError
from omnigraph.core.temporal import parse_date, parse_datetime
from omnigraph.core.values import FLOATS, INTEGERS, Scalar, ValueType

Record = Mapping[str, Any]
RANGES = {
    Scalar.I32: (-(2**31), 2**31 - 1),
    Scalar.I64: (-(2**63), 2**63 - 1),
    Scalar.U32: (0, 2**32 - 1),
    Scalar.U64: (0, 2**64 - 1),
}
GENERATED = frozenset({"id"})


def violations(catalog: Catalog, records: Iterable[Record]) -> list[str]:
    """Return what is wrong with records that are to be the whole content of a graph."""
    return list(_Check(catalog, list(records)).run())


class _Check:
    def __init__(self, catalog: Catalog, records: list[Record]) -> None:
        self.catalog = catalog
        self.nodes = [record for record in records if "type" in record]
        self.edges = [record for record in records if "edge" in record]
        self.others = len(records) - len(self.nodes) - len(self.edges)
        self.ids: dict[str, set[str]] = defaultdict(set)
        self.taken: Counter[tuple[str, tuple[str, ...], str]] = Counter()

    def run(self) -> Iterator[str]:
        if self.others:
            yield f"{self.others} records are neither nodes nor edges"
        for record in self.nodes:
            yield from self.node(record)
        for record in self.edges:
            yield from self.edge(record)
        yield from self.cardinalities()
        yield from (f"{count} of {what} are equal" for what, count in self.taken.items() if count > 1)

    def node(self, record: Record) -> Iterator[str]:
        node = self.catalog.nodes.get(record["type"])
        if node is None or record.keys() != {"type", "data"}:
            yield f"no such record: {record}"
            return
        data = record["data"]
        yield from self.values(node, data)
        key: dict[str, Any] = {
            name: _stored(node.properties[name].type, data.get(name)) for name in node.key or ()
        }
        entity_id = derive_id(node, key) if node.key else data["id"]
        if "id" in data and data["id"] != entity_id:
            yield f"{node.name} {data['id']} should be {entity_id}"
        if entity_id in self.ids[node.name]:
            yield f"{node.name} {entity_id} twice"
        self.ids[node.name].add(entity_id)
        for name, bounds in node.ranges.items():
            value = data.get(name)
            for bound in bounds if value is not None else ():
                low = value if bound.low is None else bound.low
                high = value if bound.high is None else bound.high
                if not low <= value <= high:
                    yield f"{node.name}.{name} is {value}"
        for name, patterns in node.checks.items():
            for pattern in patterns if data.get(name) is not None else ():
                if not pc.match_substring_regex(pa.scalar(data[name]), pattern=pattern).as_py():
                    yield f"{node.name}.{name} is {data[name]!r}"

    def edge(self, record: Record) -> Iterator[str]:
        edge = self.catalog.edges.get(record["edge"])
        if edge is None or not {"edge", "from", "to"} <= record.keys() <= {"edge", "from", "to", "data"}:
            yield f"no such record: {record}"
            return
        data = record.get("data", {})
        ends = {"src": record["from"], "dst": record["to"]}
        yield from self.values(edge, data, ends)
        for type_name, end in ((edge.source, record["from"]), (edge.target, record["to"])):
            if end not in self.ids[type_name]:
                yield f"{edge.name} names {type_name} {end}, which does not exist"

    def cardinalities(self) -> Iterator[str]:
        counts = Counter((record["edge"], record["from"]) for record in self.edges)
        for edge in self.catalog.edges.values():
            for source in self.ids[edge.source]:
                count = counts[edge.name, source]
                if count < edge.low or (edge.high is not None and count > edge.high):
                    yield f"{edge.source} {source} has {count} of {edge.name}"

    def values(self, owner: NodeType | EdgeType, data: Record, ends: Record | None = None) -> Iterator[str]:
        for name in data.keys() - owner.properties.keys() - GENERATED:
            yield f"{owner.name} has no {name}"
        for item in owner.properties.values():
            yield from _value(owner, item, data.get(item.name))
        for columns in owner.unique:
            values = [({**data, **(ends or {})}).get(column) for column in columns]
            if None not in values:
                self.taken[owner.name, columns, repr(values)] += 1


def _value(owner: NodeType | EdgeType, item: Property, value: object) -> Iterator[str]:
    where = f"{owner.name}.{item.name}"
    if value is None:
        if not item.type.nullable:
            yield f"{where} is missing"
    elif item.type.is_list:
        if not isinstance(value, list) or not all(_fits(item.type, member) for member in value):
            yield f"{where} is {value!r}"
    elif not _fits(item.type, value):
        yield f"{where} is {value!r}"


def _fits(type_: ValueType, value: object) -> bool:
    if type_.scalar in INTEGERS:
        low, high = RANGES[type_.scalar]
        return isinstance(_stored(type_, value), int) and low <= int(str(value)) <= high
    if type_.scalar in FLOATS:
        return isinstance(value, int | float) and not isinstance(value, bool)
    match type_.scalar:
        case Scalar.BOOL:
            return isinstance(value, bool)
        case Scalar.VECTOR:
            return (
                isinstance(value, list)
                and len(value) == type_.dimension
                and all(isinstance(member, int | float) for member in value)
            )
        case Scalar.DATE | Scalar.DATETIME:
            return _is_time(type_.scalar, value)
        case Scalar.BLOB:
            return isinstance(value, str) and value.startswith("base64:")
        case _:
            return isinstance(value, str) and (type_.enum_values is None or value in type_.enum_values)


def _stored(type_: ValueType, value: object) -> object:
    """Return an integer that was spelled as a decimal text as the integer it is."""
    if type_.scalar in INTEGERS and isinstance(value, str) and value.removeprefix("-").isdecimal():
        return int(value)
    return value


def _is_time(scalar: Scalar, value: object) -> bool:
    if not isinstance(value, str):
        return isinstance(value, int) and not isinstance(value, bool)
    try:
        (parse_date if scalar is Scalar.DATE else parse_datetime)(value)
    except ExecutionError:
        return False
    return True
