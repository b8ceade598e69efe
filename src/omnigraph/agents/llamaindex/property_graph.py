"""Entities, chunks and relations as LlamaIndex's property graph store.

Labels are what a model writes, and relations name nodes by their id alone. So there is one type of nodes and
one of edges, and labels are values: a new label changes no schema.
"""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from llama_index.core.graph_stores.types import (
    ChunkNode,
    EntityNode,
    LabelledNode,
    PropertyGraphStore,
    Relation,
    Triplet,
)
from llama_index.core.vector_stores.types import VectorStoreQuery

from omnigraph.agents.arguments import check_finite
from omnigraph.agents.conditions import OneOf, PropertyTest, clauses
from omnigraph.agents.declarations import EdgeWanted, NodeWanted, declare
from omnigraph.agents.parameters import QueryParameters, row_limit
from omnigraph.agents.place import GraphPlace, GraphRecord, edge_record, node_record
from omnigraph.agents.texts import json_object, json_text
from omnigraph.agents.typed_graph import edge_id
from omnigraph.core.errors import BadRequest, KeyConflict, UnsupportedError
from omnigraph.core.values import named
from omnigraph.graph.arguments import given_names
from omnigraph.operations.retry import RetryTime

if TYPE_CHECKING:
    from omnigraph.agents.place import AnyGraph

NODE, EDGE = "Entity", "Related"
ENTITY, CHUNK = "entity", "chunk"
WAIT_S = 30.0  # for others who make the ends of the same relations

_NODE_PROPERTIES = {
    "key": "String @key",
    "kind": "String",
    "label": "String @index",
    "text": "String @index",
    "properties": "String?",
}
_EDGE_PROPERTIES = {"label": "String", "properties": "String?"}

EntityRow = dict[str, Any]


class OmnigraphPropertyGraphStore(PropertyGraphStore):
    """A property graph of `Entity` nodes and `Related` edges, which are made with the first of them.

    A node that is there is replaced, and its relations stay. One relation of a label leads
    from a node to another.
    """

    supports_structured_queries = True
    supports_vector_queries = True

    def __init__(self, graph: "AnyGraph", *, branch: str | None = None) -> None:
        """Take the graph, in its storage or behind a server."""
        self._place = GraphPlace(graph, branch)

    @property
    def client(self) -> Any:  # noqa: ANN401 - the signature of LlamaIndex
        """The graph."""
        return self._place.graph

    # Writing

    def upsert_nodes(self, nodes: Sequence[LabelledNode]) -> None:
        """Store nodes as one commit.

        Raises:
            BadRequest: one is no node, properties have no form in JSON, or vectors are no numbers or not as
                long as those that are there.
        """
        if not nodes:
            return
        records = {data["key"]: node_record(NODE, data) for data in map(_data, nodes)}
        self._declare(next((len(node.embedding) for node in nodes if node.embedding is not None), None))
        self._place.load(records.values(), index=True)

    def upsert_relations(self, relations: list[Relation]) -> None:
        """Store relations as one commit, after one with the nodes at their ends that are not there."""
        if not relations:
            return
        self._declare(None)
        ends = list(dict.fromkeys(end for item in relations for end in (item.source_id, item.target_id)))
        self._make_ends(ends)
        records = {
            (item.label, item.source_id, item.target_id): edge_record(
                EDGE,
                item.source_id,
                item.target_id,
                {
                    "id": edge_id(item.label, item.source_id, item.target_id),
                    "label": item.label,
                    "properties": _json(item.properties, f"the properties of {item.label}"),
                },
            )
            for item in relations
        }
        self._place.load(records.values())

    def _make_ends(self, ends: Sequence[str]) -> None:
        """Insert nodes that are not there; one that another program inserts first is kept as it is."""
        time = RetryTime(WAIT_S)
        while True:
            parameters = QueryParameters()
            within = f"{parameters.add(list(ends), '[String]')} contains $n.key"
            body = _match([f"$n: {NODE}", within], "$n.key as key", "order { key }")
            rows = self._place.read(parameters.query(body), parameters.values).rows
            there = {row["key"] for row in rows}
            missing = [end for end in ends if end not in there]
            if not missing:
                return
            records = [node_record(NODE, _data(EntityNode(name=end)) | {"key": end}) for end in missing]
            try:
                self._place.load(records, "append")
            except KeyConflict:
                if time.is_over:
                    raise
                time.pause()
            else:
                return

    def delete(
        self,
        entity_names: list[str] | None = None,
        relation_names: list[str] | None = None,
        properties: dict[str, Any] | None = None,
        ids: list[str] | None = None,
    ) -> None:
        """Delete nodes by name, by id or by any of some properties, and relations by label, as one commit.

        Raises:
            BadRequest: names or ids are no lists of texts.
        """
        names, identities = given_names("entity_names", entity_names), given_names("ids", ids)
        labels = given_names("relation_names", relation_names)
        if NODE not in self._place.catalog.nodes:
            return
        keys = [name.replace('"', " ") for name in names or ()] + list(identities or ())
        keys += [node.id for node in self.get(properties=properties)] if properties else []
        parameters = QueryParameters()
        statements = [
            f"    delete {NODE} where key = {parameters.add(key, 'String')}" for key in dict.fromkeys(keys)
        ]
        statements += [
            f"    delete {EDGE} where label = {parameters.add(label, 'String')}" for label in labels or ()
        ]
        if statements:
            text = parameters.query("\n".join(statements))
            self._place.graph.mutate(text, None, parameters.values, branch=self._place.branch)

    # Reading

    def get(
        self, properties: dict[str, Any] | None = None, ids: list[str] | None = None
    ) -> list[LabelledNode]:
        """Return the nodes of some ids, or with any of some properties, or both; without either, all.

        Raises:
            BadRequest: the ids are no list of texts.
        """
        identities = given_names("ids", ids)
        type_ = self._place.catalog.nodes.get(NODE)
        if type_ is None:
            return []
        parameters = QueryParameters()
        conditions = (
            [] if identities is None else [f"{parameters.add(list(identities), '[String]')} contains $n.key"]
        )
        if properties:
            tests = OneOf(
                tuple(PropertyTest("properties", "contains", text) for text in _fragments(properties))
            )
            conditions += clauses(tests, type_, "$n", parameters)
        body = _match([f"$n: {NODE}", *conditions], "$n", "order { $n.key }")
        rows = self._place.read(parameters.query(body), parameters.values).rows
        nodes = [_node(row["n"]) for row in rows]
        return [node for node in nodes if not properties or _has_any(node.properties, properties)]

    def get_triplets(
        self,
        entity_names: list[str] | None = None,
        relation_names: list[str] | None = None,
        properties: dict[str, Any] | None = None,
        ids: list[str] | None = None,
    ) -> list[Triplet]:
        """Return relations with their ends that satisfy all that is given; without any of it, none.

        Raises:
            BadRequest: names or ids are no lists of texts.
        """
        names, identities = given_names("entity_names", entity_names), given_names("ids", ids)
        labels = given_names("relation_names", relation_names)
        if not (names or labels or properties or identities):
            return []
        wanted = [{name.replace('"', " ") for name in names}] if names else []
        wanted += [set(identities)] if identities else []
        found = self._triplets(sorted(wanted[0]) if wanted else None, labels or None)
        return [
            triplet
            for triplet in found.values()
            if all({triplet[0].id, triplet[2].id} & keys for keys in wanted)
            and (not properties or any(_has_any(part.properties, properties) for part in triplet))
        ]

    def get_rel_map(
        self,
        graph_nodes: list[LabelledNode],
        depth: int = 2,
        limit: int = 30,
        ignore_rels: list[str] | None = None,
    ) -> list[Triplet]:
        """Return the relations around nodes, both ways, up to some hops away: each once, nearest first.

        Raises:
            BadRequest: a number is none from 0 on, or the labels to leave out are no list of texts.
        """
        row_limit("depth", depth)
        row_limit("limit", limit)
        ignored = given_names("ignore_rels", ignore_rels) or ()
        frontier = {node.id for node in graph_nodes}
        seen = set(frontier)
        found: dict[str, Triplet] = {}
        for _ in range(depth):
            if not frontier or len(found) >= limit:
                break
            step = self._triplets(sorted(frontier), None)
            kept = {key: item for key, item in step.items() if item[1].label not in ignored}
            found |= {key: item for key, item in kept.items() if key not in found}
            frontier = {end.id for item in kept.values() for end in (item[0], item[2])} - seen
            seen |= frontier
        return list(found.values())[:limit]

    def structured_query(self, query: str, param_map: dict[str, Any] | None = None) -> Any:  # noqa: ANN401
        """Return the rows of a read, given as the text of `.gq`, never as a file; a mutation is refused."""
        return self._place.read(query, param_map or {}).rows

    def vector_query(self, query: VectorStoreQuery, **kwargs: Any) -> tuple[list[LabelledNode], list[float]]:  # noqa: ANN401, ARG002
        """Return the nodes closest to a vector, with similarities: 1 − d²/2, as of a vector store.

        Raises:
            UnsupportedError: filters are given: properties of these nodes are JSON.
            BadRequest: there is no vector, or it is not as long as those that are there.
        """
        if query.filters is not None and query.filters.filters:
            raise UnsupportedError(
                "a property graph store has no filters: use an OmnigraphNodeStore, which has"
            )
        if query.query_embedding is None:
            raise BadRequest("a query by vector needs one")
        type_ = self._place.catalog.nodes.get(NODE)
        if type_ is None or "embedding" not in type_.properties:
            return [], []
        dimension = type_.properties["embedding"].type.dimension
        parameters = QueryParameters()
        near = f"nearest($n.embedding, {parameters.add(list(query.query_embedding), f'Vector({dimension})')})"
        tail = f"order {{ {near} }}\n    limit {row_limit('similarity_top_k', query.similarity_top_k)}"
        body = _match([f"$n: {NODE}"], f"$n {near} as distance", tail)
        rows: list[EntityRow] = self._place.read(parameters.query(body), parameters.values).rows
        return [_node(row["n"]) for row in rows], [1.0 - row["distance"] ** 2 / 2.0 for row in rows]

    def get_schema(self, refresh: bool = False) -> str:  # noqa: ARG002 - it is always the newest
        """Return the schema of the graph, as its authors wrote it."""
        return self._place.graph.schema(branch=self._place.branch)

    def _triplets(self, ends: list[str] | None, labels: Sequence[str] | None) -> dict[str, Triplet]:
        """Return relations by id: of some labels, and with some nodes at either end."""
        if EDGE not in self._place.catalog.edges:
            return {}
        found: dict[str, Triplet] = {}
        for side in ("$a", "$b") if ends is not None else ("",):
            parameters = QueryParameters()
            conditions = [f"$a: {NODE}", f"$b: {NODE}", "$a $r:related $b"]
            conditions += [f"{parameters.add(ends, '[String]')} contains {side}.key"] if side else []
            conditions += [f"{parameters.add(list(labels), '[String]')} contains $r.label"] if labels else []
            body = _match(conditions, "$a $r $b", "order { $a.key, $b.key, $r.label }")
            rows: list[EntityRow] = self._place.read(parameters.query(body), parameters.values).rows
            found |= {row["r"]["id"]: (_node(row["a"]), _relation(row["r"]), _node(row["b"])) for row in rows}
        return found

    def _declare(self, dimension: int | None) -> None:
        vector = {} if dimension is None else {"embedding": f"Vector({dimension})? @index"}
        node = NodeWanted(NODE, _NODE_PROPERTIES | vector)
        declare(self._place, lambda _: [node, EdgeWanted(EDGE, NODE, NODE, _EDGE_PROPERTIES)])

    # The same, beside an event loop

    async def aget(
        self, properties: dict[str, Any] | None = None, ids: list[str] | None = None
    ) -> list[LabelledNode]:
        """Do what `get` does, on a thread."""
        return await asyncio.to_thread(self.get, properties, ids)

    async def aget_triplets(
        self,
        entity_names: list[str] | None = None,
        relation_names: list[str] | None = None,
        properties: dict[str, Any] | None = None,
        ids: list[str] | None = None,
    ) -> list[Triplet]:
        """Do what `get_triplets` does, on a thread."""
        return await asyncio.to_thread(self.get_triplets, entity_names, relation_names, properties, ids)

    async def aget_rel_map(
        self,
        graph_nodes: list[LabelledNode],
        depth: int = 2,
        limit: int = 30,
        ignore_rels: list[str] | None = None,
    ) -> list[Triplet]:
        """Do what `get_rel_map` does, on a thread."""
        return await asyncio.to_thread(self.get_rel_map, graph_nodes, depth, limit, ignore_rels)

    async def aupsert_nodes(self, nodes: list[LabelledNode]) -> None:
        """Do what `upsert_nodes` does, on a thread."""
        await asyncio.to_thread(self.upsert_nodes, nodes)

    async def aupsert_relations(self, relations: list[Relation]) -> None:
        """Do what `upsert_relations` does, on a thread."""
        await asyncio.to_thread(self.upsert_relations, relations)

    async def avector_query(
        self,
        query: VectorStoreQuery,
        **kwargs: Any,  # noqa: ANN401
    ) -> tuple[list[LabelledNode], list[float]]:
        """Do what `vector_query` does, on a thread."""
        return await asyncio.to_thread(self.vector_query, query, **kwargs)


def _data(node: LabelledNode) -> GraphRecord:
    is_chunk = isinstance(node, ChunkNode)
    if not is_chunk and not isinstance(node, EntityNode):
        raise BadRequest(f"{named(node)} is neither an EntityNode nor a ChunkNode")
    data: GraphRecord = {
        "key": node.id,
        "kind": CHUNK if is_chunk else ENTITY,
        "label": node.label,
        "text": node.text if isinstance(node, ChunkNode) else node.name,  # type: ignore[attr-defined] # checked above
        "properties": _json(node.properties, f"the properties of '{node.id}'"),
    }
    if node.embedding is None:
        return data
    check_finite(f"the vector of '{node.id}'", node.embedding)
    return data | {"embedding": [float(item) for item in node.embedding]}


def _node(data: Any) -> LabelledNode:  # noqa: ANN401 - a whole entity
    properties, embedding = json_object(data["properties"]), data.get("embedding")
    if data["kind"] == CHUNK:
        return ChunkNode(
            text=data["text"],
            id_=data["key"],
            label=data["label"],
            properties=properties,
            embedding=embedding,
        )
    return EntityNode(name=data["text"], label=data["label"], properties=properties, embedding=embedding)


def _relation(data: Any) -> Relation:  # noqa: ANN401 - a whole entity
    return Relation(
        label=data["label"],
        source_id=data["src"],
        target_id=data["dst"],
        properties=json_object(data["properties"]),
    )


def _json(properties: dict[str, Any], what: str) -> str | None:
    return json_text(properties, what) if properties else None


def _fragments(properties: dict[str, Any]) -> list[str]:
    """Return what the JSON of properties contains if it has one of these; what contains it may be another."""
    return [json_text({name: value}, f"the value of {name}")[1:-1] for name, value in properties.items()]


def _has_any(found: dict[str, Any], wanted: dict[str, Any]) -> bool:
    return any(name in found and found[name] == value for name, value in wanted.items())


def _match(lines: Sequence[str], shown: str, tail: str) -> str:
    inner = "\n".join(f"        {line}" for line in lines)
    return f"    match {{\n{inner}\n    }}\n    return {{ {shown} }}\n    {tail}"
