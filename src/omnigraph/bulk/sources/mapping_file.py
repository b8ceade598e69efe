"""The mapping file of a load: which files become which types, and which columns which properties.

    sources:
      - path: people/*.parquet
        type: Person
        columns: {handle: user_name, age: age_years}
      - path: friends.csv
        type: Knows
        from: a
        to: {type: Person, columns: [first, last]}   # or {type: Person, columns: {first: f, last: l}}
        columns: {since: started}
        constants: {source: crm}

M1  Paths are relative to the file; `s3://` addresses are used as given.
M2  A member, type or property that does not exist is an error that names the nearest one, before anything is
    read; so is a column that a file lacks, when that file's turn comes.
M3  The columns of a key of several parts are listed in the order in which the schema writes the key, or they
    are named by part; users need not know the order of the members of an id.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from omnigraph.bulk.files import is_object, refuse_other_stores
from omnigraph.bulk.sources.model import ColumnMap, EndColumns, SourceInput
from omnigraph.bulk.sources.names import find_type, resolve_name, typed_files
from omnigraph.catalog.model import Catalog, EdgeType, NodeType
from omnigraph.core.errors import BadRequest
from omnigraph.core.nearest import hinting, nearest_name
from omnigraph.core.yaml_text import read_yaml
from omnigraph.validate.coerce import coerce_column

_TYPED_MEMBERS = ("path", "type", "columns", "constants", "key", "id")
_EDGE_MEMBERS = ("path", "type", "columns", "constants", "id", "from", "to")


def read_mapping(path: Path, catalog: Catalog) -> Iterator[SourceInput]:
    """Yield the files of a mapping, not yet placed among the inputs (M1, M2).

    Raises:
        BadRequest: the file cannot be read, is not a mapping, or names what does not exist.
    """
    document = _Place(str(path)).mapping(read_yaml(path), ("sources",))
    sources = document.get("sources")
    if not isinstance(sources, Sequence) or isinstance(sources, str) or not sources:
        raise BadRequest(f"{path}: 'sources' must be a list of at least one source")
    for number, source in enumerate(sources, 1):
        yield from _source(source, _Place(f"{path}: source {number}"), path.parent, catalog)


def _source(given: object, place: "_Place", folder: Path, catalog: Catalog) -> Iterator[SourceInput]:
    members = place.mapping(given, tuple(dict.fromkeys((*_TYPED_MEMBERS, *_EDGE_MEMBERS))))
    named = place.text(members, "path")
    refuse_other_stores(named)
    path = named if is_object(named) else str(folder / named)
    if "type" not in members:
        others = [name for name in members if name != "path"]
        if others:
            place.fail(f"'{others[0]}' needs a 'type'")
        yield from resolve_name(path, catalog)
        return
    type_ = find_type(place.text(members, "type"), catalog, place.name)
    place.mapping(given, _EDGE_MEMBERS if isinstance(type_, EdgeType) else _TYPED_MEMBERS)
    mapping = _column_map(members, type_, place, catalog)
    for source in typed_files(path, type_):
        yield replace(source, mapping=mapping)


def _column_map(
    members: Mapping[str, object], type_: NodeType | EdgeType, place: "_Place", catalog: Catalog
) -> ColumnMap:
    columns = {}
    for name, column in place.properties(members, "columns", type_).items():
        if not isinstance(column, str):
            place.fail(f"the column of '{name}' must be a name")
        columns[name] = column
    constants = place.properties(members, "constants", type_)
    for name, value in constants.items():
        _, problems = coerce_column([value], type_.properties[name], f"{type_.name}.{name}")
        if problems:
            place.fail(problems[0][1])
    if "id" in members:
        columns["id"] = place.text(members, "id")
    if isinstance(type_, NodeType) and "key" in members:
        columns |= _key_columns(members["key"], type_, place)
    both = sorted(columns.keys() & constants.keys())
    if both:
        place.fail(f"'{both[0]}' has both a column and a constant")
    if not isinstance(type_, EdgeType):
        return ColumnMap(columns, constants)
    ends = {"from": type_.source, "to": type_.target}
    source, target = (
        _end(members.get(name), name, place, catalog.nodes[node]) for name, node in ends.items()
    )
    return ColumnMap(columns, constants, source, target)


def _key_columns(given: object, node: NodeType, place: "_Place") -> dict[str, str]:
    """Return the columns of a key's properties (M3)."""
    if node.key is None:
        place.fail(f"{node.name} has no key: name the column of its ids with 'id'")
    return dict(zip(node.key, _parts(given, "key", place, node), strict=True))


def _end(given: object, name: str, place: "_Place", node: NodeType) -> EndColumns | None:
    """Return what an end is made from: a column with ids, or the columns of the node's key."""
    if given is None or isinstance(given, str):
        return None if given is None else EndColumns((given,))
    inner = _Place(f"{place.name}: '{name}'")
    if isinstance(given, list) or (isinstance(given, Mapping) and given.keys() == {*(node.key or ())}):
        given = {"columns": given}
    members = inner.mapping(given, ("type", "columns"))
    if members.get("type", node.name) != node.name:
        inner.fail(f"this end is a {node.name}, not a {members['type']}")
    if node.key is None:
        inner.fail(f"{node.name} has no key: name one column with its ids")
    return EndColumns(_parts(members.get("columns"), "columns", inner, node), is_key=True)


def _parts(given: object, name: str, place: "_Place", node: NodeType) -> tuple[str, ...]:
    """Return the columns of a key's parts in the order of the id's members (M3)."""
    assert node.key is not None, "a type without a key was refused"
    assert node.written_key is not None, "a key is written somewhere"
    if isinstance(given, Mapping):
        by_part = dict(given)
    else:
        listed = given if isinstance(given, list) else [given]
        by_part = dict(zip(node.written_key, listed, strict=True)) if len(listed) == len(node.key) else {}
    if by_part.keys() != {*node.key} or not all(isinstance(column, str) for column in by_part.values()):
        parts = ", ".join(node.written_key)
        place.fail(f"'{name}' needs one column for each part of the key of {node.name}: {parts}")
    return tuple(by_part[part] for part in node.key)


class _Place:
    """A part of the file, for errors, and the reading of its members."""

    def __init__(self, name: str) -> None:
        self.name = name

    def fail(self, message: str) -> NoReturn:
        raise BadRequest(f"{self.name}: {message}")

    def mapping(self, given: object, known: Sequence[str]) -> Mapping[str, object]:
        """Return an object all of whose members are known."""
        if not isinstance(given, Mapping):
            self.fail(f"expected an object with {', '.join(known)}")
        for name in given:
            if name not in known:
                help = nearest_name(str(name), known)
                self.fail(f"unknown member '{name}'; {help or 'the members are ' + ', '.join(known)}")
        return given

    def text(self, members: Mapping[str, object], name: str) -> str:
        value = members.get(name)
        if not isinstance(value, str) or not value:
            self.fail(
                f"'{name}' must be a text that is not empty" if name in members else f"'{name}' is missing"
            )
        return value

    def properties(
        self, members: Mapping[str, object], name: str, type_: NodeType | EdgeType
    ) -> dict[str, object]:
        """Return an object whose members are properties of a type."""
        given = members.get(name, {})
        if not isinstance(given, Mapping):
            self.fail(f"'{name}' must be an object keyed by property")
        for key in given:
            if key not in type_.properties:
                hint = hinting(str(key), type_.properties)
                self.fail(f"{type_.name} has no property '{key}'{hint}")
        return dict(given)
