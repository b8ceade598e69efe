"""Texts with vectors and metadata: the nodes of one type, found by meaning, by words, or by both.

A node has a key, a text, a vector, and metadata. What the type declares as a property of its own is stored
there, and can be filtered by; the rest of the metadata is JSON in one text.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from omnigraph.agents.arguments import check_finite
from omnigraph.agents.conditions import AllOf, WantedNodes, clauses
from omnigraph.agents.declarations import NodeWanted, declare, property_word, type_word
from omnigraph.agents.parameters import QueryParameters, row_limit
from omnigraph.agents.place import GraphPlace, GraphRecord, node_record
from omnigraph.catalog.model import NodeType
from omnigraph.core.errors import BadRequest, BranchNotFound
from omnigraph.core.values import Scalar, named

TextRanking = Literal["vector", "text", "both"]
EVERYTHING = AllOf(())


@dataclass(frozen=True, slots=True)
class TextNames:
    """The type of the nodes, and which of its properties hold what; without `metadata`, no other is kept."""

    type_name: str = "Document"
    key: str = "key"
    text: str = "text"
    vector: str = "embedding"
    metadata: str | None = "metadata"


@dataclass(frozen=True, slots=True)
class TextRow:
    """A text to be stored."""

    key: str
    text: str
    vector: Sequence[float] | None
    metadata: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FoundText:
    """A text that was found; `score` is a distance for a search by vector, else higher is better."""

    key: str
    text: str
    metadata: dict[str, Any]
    score: float | None = None
    vector: list[float] | None = None


@dataclass(frozen=True, slots=True)
class FoundTexts:
    """Texts by rank, and the commit that they were read from; None if there is no type yet."""

    rows: list[FoundText]
    commit_id: str | None


class Texts:
    """The nodes of one type at one place."""

    def __init__(self, place: GraphPlace, names: TextNames, needed: Mapping[str, str] | None = None) -> None:
        """Take where the nodes are, and nullable properties that the type gets before anything is written."""
        self.place, self.names, self._needed = place, names, needed or {}

    def put(self, rows: Sequence[TextRow], *, index: bool = True) -> None:
        """Store texts as one commit; one whose key is there replaces it.

        The type is made if there is none, for vectors as long as these.

        Raises:
            BadRequest: the type cannot hold texts like these, or a vector has what is no number.
        """
        if not rows:
            return
        for row in rows:  # before the type is made
            check_finite(f"the vector of '{row.key}'", row.vector)
        type_ = self._declared(rows)
        records = [node_record(type_.name, self._data(type_, row)) for row in rows]
        self.place.load(records, index=index)

    def delete(self, keys: Iterable[str]) -> int:
        """Delete texts as one commit, with every edge that touches them; return how many there were."""
        wanted = list(dict.fromkeys(keys))
        if not wanted or self.type_if_any() is None:
            return 0
        parameters = QueryParameters()
        statements = [
            f"    delete {self.names.type_name} where {self.names.key} = {parameters.add(key, 'String')}"
            for key in wanted
        ]
        done = self.place.graph.mutate(
            parameters.query("\n".join(statements)), None, parameters.values, branch=self.place.branch
        )
        return done.affected_nodes

    def clear(self) -> None:
        """Delete every text, as one commit."""
        if self.type_if_any() is not None:
            parameters = QueryParameters()  # no text is smaller than the empty one
            everything = f"{self.names.key} >= {parameters.add('', 'String')}"
            text = parameters.query(f"    delete {self.names.type_name} where {everything}")
            self.place.graph.mutate(text, None, parameters.values, branch=self.place.branch)

    def get(self, keys: Sequence[str]) -> list[FoundText]:
        """Return the texts of these keys that are there, in the order of the keys."""
        if not keys:
            return []
        parameters = QueryParameters()
        within = f"{parameters.add(list(keys), '[String]')} contains $d.{self.names.key}"
        type_ = self.type_if_any()
        if type_ is None:
            return []
        found = {row.key: row for row in self._read(type_, [within], parameters, "").rows}
        return [found[key] for key in dict.fromkeys(keys) if key in found]

    def where(self, wanted: WantedNodes) -> list[FoundText]:
        """Return the texts that a filter holds for, by key."""
        type_ = self.type_if_any()
        if type_ is None:
            return []
        parameters = QueryParameters()
        tail = f"\n    order {{ $d.{self.names.key} }}"
        return self._read(type_, clauses(wanted, type_, "$d", parameters), parameters, tail).rows

    def search(
        self,
        *,
        ranking: TextRanking,
        count: int,
        vector: Sequence[float] | None = None,
        words: str | None = None,
        wanted: WantedNodes = EVERYTHING,
        with_vectors: bool = False,
    ) -> FoundTexts:
        """Return the best texts by vector, by words, or by both fused (`rrf`), best first, in one query.

        Conditions apply before ranking.
        """
        limit = row_limit("k", count)
        type_ = self.type_if_any()
        if type_ is None:
            return FoundTexts([], None)
        parameters = QueryParameters()
        conditions = clauses(wanted, type_, "$d", parameters)
        ranked = self._ranking(type_, ranking, vector, words, parameters)
        tail = f"\n    order {{ {ranked} }}\n    limit {limit}"
        return self._read(type_, conditions, parameters, tail, score=ranked, with_vectors=with_vectors)

    def type_if_any(self) -> NodeType | None:
        """Return the type, if the branch and its schema have it.

        Raises:
            BadRequest: it is not one that holds texts under these names.
        """
        try:
            found = self.place.catalog.nodes.get(self.names.type_name)
        except BranchNotFound:
            return None
        if found is not None:
            check_type(found, self.names)
        return found

    def metadata_names(self, type_: NodeType) -> list[str]:
        """Return the properties that hold metadata of their own."""
        names = self.names
        used = {names.key, names.text, names.vector, names.metadata}
        kinds = {name: item.type.scalar for name, item in type_.properties.items() if name not in used}
        return [name for name, scalar in kinds.items() if scalar not in {Scalar.BLOB, Scalar.VECTOR}]

    def of_entity(self, type_: NodeType, data: Mapping[str, Any]) -> FoundText:
        """Return a whole node of the type as a text."""
        names = self.names
        metadata = json_object(None if names.metadata is None else data[names.metadata])
        metadata |= {name: data[name] for name in self.metadata_names(type_) if data[name] is not None}
        return FoundText(data[names.key], data[names.text], metadata)

    # Reading

    def _read(
        self,
        type_: NodeType,
        conditions: Sequence[str],
        parameters: QueryParameters,
        tail: str,
        *,
        score: str | None = None,
        with_vectors: bool = False,
    ) -> FoundTexts:
        names = self.names
        own = self.metadata_names(type_)
        columns = {"key": names.key, "text": names.text}
        columns |= {"metadata": names.metadata} if names.metadata else {}
        columns |= {"vector": names.vector} if with_vectors else {}
        columns |= {f"own{place}": name for place, name in enumerate(own)}
        shown = [f"$d.{name} as {alias}" for alias, name in columns.items()]
        shown += [f"{score} as score"] if score else []
        lines = [
            "    match {",
            f"        $d: {type_.name}",
            *(f"        {text}" for text in conditions),
            "    }",
        ]
        lines += ["    return {", *(f"        {text}" for text in shown), "    }"]
        result = self.place.read(parameters.query("\n".join(lines) + tail), parameters.values)
        return FoundTexts([_found(row, own) for row in result.rows], result.commit_id)

    def _ranking(
        self,
        type_: NodeType,
        ranking: TextRanking,
        vector: Sequence[float] | None,
        words: str | None,
        parameters: QueryParameters,
    ) -> str:
        dimension = type_.properties[self.names.vector].type.dimension
        near = bm25 = ""
        if ranking != "text":
            if vector is None:
                raise BadRequest("a search by vector needs one")
            if len(vector) != dimension:
                raise BadRequest(
                    f"{type_.name}.{self.names.vector} has vectors of {dimension} numbers, not {len(vector)}"
                )
            given = parameters.add([float(item) for item in vector], f"Vector({dimension})")
            near = f"nearest($d.{self.names.vector}, {given})"
        if ranking != "vector":
            bm25 = f"bm25($d.{self.names.text}, {parameters.add(words or '', 'String')})"
        return f"rrf({near}, {bm25})" if near and bm25 else near or bm25

    # Writing

    def _declared(self, rows: Sequence[TextRow]) -> NodeType:
        names = self.names
        found = self.type_if_any()
        if found is not None:
            if self._needed:
                declare(self.place, lambda _: [NodeWanted(names.type_name, self._needed)])
            return self.type_if_any() or found
        if type_word(names.type_name, "type") != names.type_name:
            raise BadRequest(f"no type can be called '{names.type_name}'")
        for name in (names.key, names.text, names.vector, names.metadata):
            if name is not None and property_word(name) != name:
                raise BadRequest(f"no property can be called '{name}'")
        dimension = next((len(row.vector) for row in rows if row.vector is not None), None)
        if dimension is None:
            raise BadRequest(f"there is no type {names.type_name} yet, and no vector to make it for")
        properties = {
            names.key: "String @key",
            names.text: "String @index",
            names.vector: f"Vector({dimension})? @index",
        }
        properties |= {names.metadata: "String?"} if names.metadata else {}
        properties |= self._needed
        declare(self.place, lambda _: [NodeWanted(names.type_name, properties)])
        made = self.type_if_any()
        assert made is not None, names.type_name
        return made

    def _data(self, type_: NodeType, row: TextRow) -> GraphRecord:
        """Return the properties of a row: metadata goes to properties of its name, the rest becomes JSON."""
        names = self.names
        own = set(self.metadata_names(type_))
        data: GraphRecord = {names.key: row.key, names.text: row.text}
        if row.vector is not None:
            data[names.vector] = [float(item) for item in row.vector]
        rest = {}
        for name, value in row.metadata.items():
            if name in own and value is not None:
                data[name] = value
            else:
                rest[name] = value
        if rest and names.metadata is None:
            raise BadRequest(
                f"{type_.name} has no property for the metadata {', '.join(map(str, rest))} of '{row.key}': "
                f"add them to the schema, or name a text property that holds the rest as JSON"
            )
        if names.metadata is not None and rest:
            data[names.metadata] = json_text(rest, f"the metadata of '{row.key}'")
        return data


def check_type(type_: NodeType, names: TextNames) -> None:
    """Make sure that a type holds texts under these names.

    Raises:
        BadRequest: it does not; the message says what is missing.
    """
    if type_.key != (names.key,) or not _is(type_, names.key, Scalar.STRING):
        raise BadRequest(f"{type_.name} must have the key '{names.key}: String @key', and no other")
    for name in (names.text, names.metadata):
        if name is not None and not _is(type_, name, Scalar.STRING):
            raise BadRequest(f"{type_.name} must have a property '{name}' of type String")
    if not _is(type_, names.vector, Scalar.VECTOR):
        raise BadRequest(f"{type_.name} must have a property '{names.vector}' of type Vector")


def json_text(value: object, what: str) -> str:
    """Return a value as JSON, the same text for equal values.

    Raises:
        BadRequest: it has no form in JSON.
    """
    try:
        return json.dumps(value, ensure_ascii=False, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise BadRequest(f"{what} cannot be stored as JSON: {error}") from error


def json_object(text: object) -> dict[str, Any]:
    """Return what a stored text of JSON says; nothing for null.

    Raises:
        BadRequest: it is not the text of an object.
    """
    if text is None:
        return {}
    try:
        value = json.loads(str(text))
    except ValueError as error:
        raise BadRequest(f"stored metadata is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise BadRequest(f"stored metadata is no object but {named(value)}")
    return value


def _found(row: Mapping[str, Any], own: Sequence[str]) -> FoundText:
    metadata = json_object(row.get("metadata"))
    for place, name in enumerate(own):
        if row[f"own{place}"] is not None:
            metadata[name] = row[f"own{place}"]
    return FoundText(row["key"], row["text"], metadata, row.get("score"), row.get("vector"))


def _is(type_: NodeType, name: str, scalar: Scalar) -> bool:
    found = type_.properties.get(name)
    return found is not None and found.type.scalar is scalar and not found.type.is_list
