"""Instances of pydantic models and dataclasses as the records of a load.

J1  A field is the property of its alias or name; a name that ends with `_`, as `class_` must, also stands for
    the one without it, as does the name of a class. The ends of an edge are `from` (or `from_`) and `to`, or
    `src` and `dst`.
J2  None is null. For `id`, and for a property with a default, it is nothing at all: the graph makes the id,
    and the schema has the default.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from omnigraph.catalog.model import Catalog, EdgeType, NodeType
from omnigraph.core.errors import BadRequest
from omnigraph.core.names import names_of
from omnigraph.core.nearest import hinting
from omnigraph.core.values import named
from omnigraph.operations.load.given_records import plain_record, record_lines
from omnigraph.operations.load.model import RecordInput
from omnigraph.operations.load.plain_values import is_object

INPUT_NAME = "objects"
_SOURCE, _TARGET = ("from", "src"), ("to", "dst")


@dataclass(frozen=True, slots=True)
class ClassShape:
    """How instances of a class become entities: the property of each attribute, and the ends of an edge."""

    type: NodeType | EdgeType
    properties: Mapping[str, str]
    ends: tuple[str, str] | None = None


def objects_input(
    catalog: Catalog, objects: Iterable[object], types: Mapping[type, str] | None = None
) -> RecordInput:
    """Return objects as an input; the type of one is what `types` says of its class, else the class's name.

    Raises:
        BadRequest: one is not an object of a known type, or has a value that cannot be stored.
    """
    if types is not None and not isinstance(types, Mapping):
        raise BadRequest(f"types must be names of types by class, not {named(types)}")
    # An array without a dimension has no items.
    if is_object(objects) or not isinstance(objects, Iterable) or getattr(objects, "ndim", None) == 0:
        raise BadRequest(f"expected objects in a list, not {named(objects)}")
    return RecordInput(record_lines(_records(catalog, objects, types or {})), INPUT_NAME)


def _records(
    catalog: Catalog, objects: Iterable[object], types: Mapping[type, str]
) -> Iterator[dict[str, object]]:
    shapes: dict[type, ClassShape] = {}
    for place, item in enumerate(objects, 1):
        where, kind = f"{INPUT_NAME}:{place}", type(item)
        if not is_object(item):
            raise BadRequest(f"{where}: {named(item)} is not an instance of a pydantic model or a dataclass")
        shape = shapes.get(kind)
        if shape is None:
            shape = shapes[kind] = _shape(catalog, kind, types.get(kind, kind.__name__), where)
        yield _record(shape, item, where)


def _record(shape: ClassShape, item: object, where: str) -> dict[str, object]:
    known = shape.type.properties
    data: dict[str, object] = {}
    for attribute, name in shape.properties.items():
        value = _value(item, attribute, where)
        if value is None and (name == "id" or (name in known and known[name].default is not None)):  # J2
            continue
        data[name] = value
    data |= getattr(item, "__pydantic_extra__", None) or {}
    ends = None
    if shape.ends is not None:
        ends = (_value(item, shape.ends[0], where), _value(item, shape.ends[1], where))
    return plain_record(shape.type, data, ends, where)


def _value(item: object, attribute: str, where: str) -> object:
    try:
        return getattr(item, attribute)
    except AttributeError as error:  # a field that the constructor does not set, and nobody else did
        raise BadRequest(f"{where}: {type(item).__name__}.{attribute} was never set") from error


def _shape(catalog: Catalog, kind: type, type_name: str, where: str) -> ClassShape:
    found = next((type_ for name in names_of(type_name) if (type_ := _type(catalog, name))), None)
    if found is None:
        hint = hinting(type_name, [*catalog.nodes, *catalog.edges])
        raise BadRequest(
            f"{where}: there is no type '{type_name}' for the class {kind.__name__}{hint}; "
            f"types={{{kind.__name__}: '…'}} says which is meant"
        )
    written = dict(field_names(kind))
    if not isinstance(found, EdgeType):
        return ClassShape(found, _properties(found, written))
    source, target = (_end(written, words) for words in (_SOURCE, _TARGET))
    if source is None or target is None:
        raise BadRequest(
            f"{where}: {found.name} is an edge, and {kind.__name__} has no "
            f"{'from_' if source is None else 'to'}: an edge has the ids of its nodes as from_ and to, "
            "or as src and dst"
        )
    rest = {attribute: names for attribute, names in written.items() if attribute not in {source, target}}
    return ClassShape(found, _properties(found, rest), (source, target))


def _type(catalog: Catalog, name: str) -> NodeType | EdgeType | None:
    kind, _, word = name.rpartition(":")
    node = catalog.nodes.get(word) if kind in {"", "node"} else None
    return node or (catalog.edges.get(word) if kind in {"", "edge"} else None)


def field_names(kind: type) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the attributes of a class, each with the names it may stand for, the likeliest first (J1)."""
    fields: Mapping[str, Any] | None = getattr(kind, "__pydantic_fields__", None)
    if fields is None:
        for item in dataclasses.fields(cast("Any", kind)):
            yield item.name, names_of(item.name)
        return
    for name, info in fields.items():
        aliases = [alias for alias in (info.serialization_alias, info.alias) if isinstance(alias, str)]
        yield name, (*dict.fromkeys([*aliases, *names_of(name)]),)


def _properties(type_: NodeType | EdgeType, written: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    known = {"id", *type_.properties}
    return {
        attribute: next((name for name in names if name in known), names[0])
        for attribute, names in written.items()
    }


def _end(written: Mapping[str, tuple[str, ...]], words: tuple[str, ...]) -> str | None:
    found = (attribute for word in words for attribute, names in written.items() if word in names)
    return next(found, None)
