"""One content, three graphs: adjacency resident, index hops only, and rows that no index covers.

W1  All ways hold the same entities under the same ids.
W2  The fragmented graph was written in steps by a handle that had already answered traversals. It held
    entities that are gone and values that were replaced.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

import omnigraph
from tests.models.query.generate_graph import random_value
from tests.models.query.render import ndjson, schema_text
from tests.models.query.shape import Cell, Data, Edge, Entity, Node, Schema

CSR, INDEXED, FRAGMENTED = "csr", "indexed", "fragmented"
WAYS = (CSR, INDEXED, FRAGMENTED)
MODE = "OMNIGRAPH_TRAVERSAL_MODE"

INSERT_PLACE = """\
query insert_place($code: I32, $label: String, $area: F32?, $opened: DateTime?, $at: Vector(2)?) {
    insert Place { code: $code, label: $label, area: $area, opened: $opened, at: $at }
}
"""
DELETE_DECOYS = "query delete_decoys($decoy: String) { delete Person where handle = $decoy }"
DECOYS = ("decoy 1", "decoy 2")


@contextmanager
def open_ways(
    folder: Path, schema: Schema, data: Data, seed: int, *, only: str | None = None
) -> Iterator[dict[str, omnigraph.Graph]]:
    """Make the graphs of a content, and open them; or only one of them."""
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        graphs = dict[str, omnigraph.Graph]()
        if only != FRAGMENTED:
            omnigraph.init(folder / "whole", schema_text(schema), durability="process").close()
            for way in (CSR, INDEXED):
                patch.setenv(MODE, way)
                graphs[way] = stack.enter_context(omnigraph.open(folder / "whole", durability="process"))
            graphs[CSR].load(ndjson(schema, data), "append")
        if only in (None, FRAGMENTED):
            omnigraph.init(folder / "parts", schema_text(schema), durability="process").close()
            mode = Random(f"mode {seed}").choice((CSR, INDEXED, None))
            patch.setenv(MODE, mode) if mode else patch.delenv(MODE, raising=False)
            graphs[FRAGMENTED] = stack.enter_context(omnigraph.open(folder / "parts", durability="process"))
            _write_in_steps(graphs[FRAGMENTED], schema, data, Random(f"steps {seed}"))
        yield graphs


def _write_in_steps(graph: omnigraph.Graph, schema: Schema, data: Data, rng: Random) -> None:
    early, late = _split(data, rng)
    stale, fresh = _stale(schema, early, rng)
    graph.load(ndjson(schema, _with_decoys(schema, early, stale, rng)), "append")
    for name, edge in schema.edges.items():
        word = name[0].lower() + name[1:]
        graph.query(
            f"query warm() {{ match {{ $a: {edge.source}  $a {word} $b }} return {{ count($a) as n }} }}"
        )
    if fresh.nodes or fresh.edges:
        graph.load(ndjson(schema, fresh), "merge", index=False)
    inserted = [node for node in late.nodes if node.type_name == "Place"][:2]
    for node in inserted:
        given = {name: value for name, value in node.values.items() if value is not None}
        graph.mutate(INSERT_PLACE, params={name: _as_parameter(value) for name, value in given.items()})
    for decoy in DECOYS:
        graph.mutate(DELETE_DECOYS, params={"decoy": decoy})
    rest = Data(tuple(node for node in late.nodes if node not in inserted), late.edges)
    if rest.nodes or rest.edges:
        graph.load(ndjson(schema, rest), "append", index=False)


def _as_parameter(value: Cell) -> Cell:
    return value.isoformat() if hasattr(value, "isoformat") else value


def _split(data: Data, rng: Random) -> tuple[Data, Data]:
    """Split in two; an edge comes with the second half if one of its ends does."""
    early = [node for node in data.nodes if rng.random() < 0.6]
    ids = {node.id for node in data.nodes} - {node.id for node in data.nodes if node not in early}
    edges = [edge for edge in data.edges if {edge.source, edge.target} <= ids and rng.random() < 0.7]
    late_nodes = tuple(node for node in data.nodes if node not in early)
    return Data(tuple(early), tuple(edges)), Data(late_nodes, tuple(e for e in data.edges if e not in edges))


def _stale(schema: Schema, early: Data, rng: Random) -> tuple[dict[Entity, Entity], Data]:
    """Choose entities to be written with other values first, and return those and the true ones."""
    stale = dict[Entity, Entity]()
    for node in early.nodes:
        if rng.random() < 0.2:
            stale[node] = replace(node, values=_other_values(schema, node, rng))
    ids = {name: [node.id for node in early.nodes if node.type_name == name] for name in schema.nodes}
    for edge in early.edges:
        if rng.random() < 0.15:
            target = rng.choice(ids[schema.edges[edge.type_name].target])
            stale[edge] = replace(edge, target=target, values=_other_values(schema, edge, rng))
    nodes = tuple(each for each in stale if isinstance(each, Node))
    return stale, Data(nodes, tuple(each for each in stale if isinstance(each, Edge)))


def _other_values(schema: Schema, entity: Entity, rng: Random) -> dict[str, Cell]:
    kinds = schema.properties(entity.type_name)
    key = schema.nodes[entity.type_name].key if isinstance(entity, Node) else ()
    return {n: entity.values[n] if n in key else random_value(rng, n, kind) for n, kind in kinds.items()}


def _with_decoys(schema: Schema, early: Data, stale: dict[Entity, Entity], rng: Random) -> Data:
    kinds = schema.nodes["Person"].properties
    people = [node.id for node in early.nodes if node.type_name == "Person"]
    decoys = [
        Node(
            "Person",
            decoy,
            {n: decoy if n == "handle" else random_value(rng, n, k) for n, k in kinds.items()},
        )
        for decoy in DECOYS
    ]
    followed = [
        Edge("Follows", f"decoy {at}", rng.choice((*DECOYS, *people)), rng.choice(DECOYS), {})
        for at in range(4)
    ]
    entities: list[Entity] = [*early.nodes, *early.edges]
    written = [stale.get(each, each) for each in entities]
    nodes = [each for each in written if isinstance(each, Node)]
    edges = [each for each in written if isinstance(each, Edge)]
    return Data((*nodes, *decoys), (*edges, *followed))
