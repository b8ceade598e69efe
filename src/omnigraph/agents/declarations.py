"""The types that an adapter needs, added to the schema of a graph that has not got them (A3)."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from omnigraph.agents.place import GraphPlace
from omnigraph.catalog.build import compile_schema
from omnigraph.catalog.model import Catalog, EdgeType, NodeType
from omnigraph.core.errors import BadRequest, ConflictError
from omnigraph.core.span import Source
from omnigraph.core.values import shown
from omnigraph.language.schema_ast import Edge, Interface, Node
from omnigraph.language.schema_parser import parse_schema
from omnigraph.operations.retry import RetryTime

WAIT_S = 30.0  # for others who change the schema at the same time

_TYPE_NAME = re.compile(r"[A-Z][A-Za-z0-9_]*")
_PROPERTY_NAME = re.compile(r"[a-z_][A-Za-z0-9_]*")
_PARTS = re.compile(r"[A-Za-z0-9]+")
_TAKEN = frozenset({"id", "src", "dst", "from", "to"})


@dataclass(frozen=True, slots=True)
class NodeWanted:
    """A node type, and its properties as a schema has them after the colon: `{"text": "String @index"}`."""

    name: str
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def head(self) -> str:
        """The declaration up to its body."""
        return f"node {self.name}"


@dataclass(frozen=True, slots=True)
class EdgeWanted:
    """An edge type between two node types, and its properties."""

    name: str
    source: str
    target: str
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def head(self) -> str:
        """The declaration up to its body."""
        return f"edge {self.name}: {self.source} -> {self.target}"


TypeWanted = NodeWanted | EdgeWanted


def declare(place: GraphPlace, wanted_of: Callable[[Catalog], Sequence[TypeWanted]]) -> Catalog:
    """Return the types of a branch after those that are missing were added to its schema.

    What is missing is asked for again if another program has changed the schema meanwhile.

    Raises:
        ConflictError: the schema kept changing.
    """
    time = RetryTime(WAIT_S)
    while True:
        catalog = place.catalog
        if not _missing(catalog, wanted_of(catalog)):
            return catalog
        base = place.graph.commits(branch=place.branch, limit=1)[0].graph_commit_id
        # What is missing is asked of the text that is extended: the schema may be another one by now.
        text = place.graph.schema(branch=place.branch)
        catalog = compile_schema(Source(text))
        missing = _missing(catalog, wanted_of(catalog))
        try:
            place.graph.apply_schema(extended(text, missing), branch=place.branch, base=base)
        except ConflictError:
            if time.is_over:
                raise
            time.pause()


def extended(text: str, missing: Sequence[TypeWanted]) -> str:
    """Return a schema with properties added to the types it has, and with types that it has not."""
    declared = {_key(item): item for item in parse_schema(Source(text)).declarations}
    inserts: list[tuple[int, str]] = []
    added: list[str] = []
    for wanted in missing:
        lines = "".join(f"    {name}: {type_}\n" for name, type_ in wanted.properties.items())
        found = declared.get((type(wanted) is NodeWanted, wanted.name))
        if found is None:
            added.append(f"{wanted.head} {{\n{lines}}}\n" if lines else f"{wanted.head}\n")
        elif text[found.span.end - 1] == "}":
            line_break = "" if text[: found.span.end - 1].endswith("\n") else "\n"
            inserts.append((found.span.end - 1, f"{line_break}{lines}"))
        else:
            inserts.append((found.span.end, f" {{\n{lines}}}"))
    for position, insert in sorted(inserts, reverse=True):
        text = f"{text[:position]}{insert}{text[position:]}"
    return "\n".join([text.rstrip("\n") + "\n" if text.strip() else "", *added]).lstrip("\n")


def type_word(label: object, what: str) -> str:
    """Return the name of a type for a label of people or models: `WORKS_AT` and `works at` are `WorksAt`.

    Raises:
        BadRequest: it has no letter to begin with.
    """
    if isinstance(label, str) and _TYPE_NAME.fullmatch(label) and label != label.upper():
        return label
    parts = _PARTS.findall(label) if isinstance(label, str) else []
    word = "".join(part[0].upper() + (part[1:].lower() if part.isupper() else part[1:]) for part in parts)
    if not _TYPE_NAME.fullmatch(word):
        raise BadRequest(
            f"the {what} {shown(label)} is no name of a type: it needs a letter from A to Z first"
        )
    return word


def property_word(name: object) -> str:
    """Return the name of a property for a word that people or models write: `First Name` is `first_name`.

    Raises:
        BadRequest: it has no letter.
    """
    if isinstance(name, str) and _PROPERTY_NAME.fullmatch(name):
        word = name
    else:
        word = "_".join(_PARTS.findall(name)).lower() if isinstance(name, str) else ""
    if not _PROPERTY_NAME.fullmatch(word):
        raise BadRequest(f"{shown(name)} is no name of a property: it needs a letter from a to z first")
    return f"{word}_" if word in _TAKEN else word


def _missing(catalog: Catalog, wanted: Sequence[TypeWanted]) -> list[TypeWanted]:
    """Return what a catalog has not: whole types, and properties of types that it has."""
    found: list[TypeWanted] = []
    for item in wanted:
        there: NodeType | EdgeType | None
        is_node = isinstance(item, NodeWanted)
        there = catalog.nodes.get(item.name) if is_node else catalog.edges.get(item.name)
        if there is None:
            found.append(item)
            continue
        lacking = {name: type_ for name, type_ in item.properties.items() if name not in there.properties}
        if lacking and isinstance(item, NodeWanted):
            found.append(NodeWanted(item.name, lacking))
        elif lacking and isinstance(item, EdgeWanted):
            found.append(EdgeWanted(item.name, item.source, item.target, lacking))
    return found


def _key(item: Node | Edge | Interface) -> tuple[bool, str] | None:
    return None if isinstance(item, Interface) else (isinstance(item, Node), item.name.text)
