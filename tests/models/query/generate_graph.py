"""Random small graphs: parallel edges, self-loops, isolated nodes, nulls, empty types, odd values."""

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime
from random import Random

from tests.models.query.oracle import single
from tests.models.query.shape import Cell, Data, Edge, EdgeType, Node, NodeType, Schema, Type
from tests.models.query.words import VOCABULARY

_INDEXED = "@index"
TEXTS = ("bio", "motto", "body")  # properties that hold words of the vocabulary
NULL_SHARE = 0.25

WORLD = Schema(
    nodes={
        "Person": NodeType(
            "Person",
            ("handle",),
            {
                "handle": Type("String", is_nullable=False, index="@key"),
                "name": Type("String", index=_INDEXED),
                "motto": Type("String"),
                "bio": Type("String", index=_INDEXED),
                "age": Type("I32", index=_INDEXED),
                "big": Type("I64"),
                "tall": Type("U32"),
                "huge": Type("U64", index=_INDEXED),
                "score": Type("F64", index=_INDEXED),
                "weight": Type("F32", index=_INDEXED),
                "active": Type("Bool", index=_INDEXED),
                "born": Type("Date", index=_INDEXED),
                "seen": Type("DateTime"),
                "mood": Type("String", members=("calm", "glad", "x-1"), index=_INDEXED),
                "tags": Type("String", is_list=True),
                "nums": Type("I32", is_list=True),
                "spot": Type("F32", dimension=3, index=_INDEXED),
            },
        ),
        "Place": NodeType(
            "Place",
            ("code",),
            {
                "code": Type("I32", is_nullable=False, index="@key"),
                "label": Type("String", is_nullable=False),
                "area": Type("F32"),
                "opened": Type("DateTime", index=_INDEXED),
                "at": Type("F32", dimension=2),
            },
        ),
        "Pair": NodeType(
            "Pair",
            ("a", "b"),
            {
                "a": Type("String", is_nullable=False),
                "b": Type("I32", is_nullable=False),
                "note": Type("String"),
            },
            "@key(a, b)",
        ),
        "Memo": NodeType(
            "Memo",
            (),
            {
                "body": Type("String", index=_INDEXED),
                "rank": Type("I64", index=_INDEXED),
                "flag": Type("Bool"),
            },
        ),
        "Ghost": NodeType(
            "Ghost",
            ("name",),
            {"name": Type("String", is_nullable=False, index="@key"), "level": Type("I32")},
        ),
    },
    edges={
        "Knows": EdgeType(
            "Knows",
            "Person",
            "Person",
            {"since": Type("Date"), "trust": Type("F64"), "kind": Type("String", members=("new", "old"))},
        ),
        "Follows": EdgeType("Follows", "Person", "Person"),
        "LivesIn": EdgeType("LivesIn", "Person", "Place", {"years": Type("I32"), "remark": Type("String")}),
        "Near": EdgeType("Near", "Place", "Place", {"far": Type("F32")}),
        "Wrote": EdgeType("Wrote", "Person", "Memo"),
        "On": EdgeType("On", "Memo", "Pair", {"since": Type("DateTime"), "huge": Type("U64")}),
        "Haunts": EdgeType("Haunts", "Ghost", "Person", {"tags": Type("String", is_list=True)}),
    },
)

NODES_MAX = {"Person": 24, "Place": 12, "Pair": 8, "Memo": 12, "Ghost": 3}
EDGES_MAX = {"Knows": 45, "Follows": 35, "LivesIn": 25, "Near": 20, "Wrote": 15, "On": 8, "Haunts": 2}

STRINGS = (
    *(
        "",
        "a",
        "A",
        "ab",
        "abc",
        "b",
        "B",
        "Z",
        "zz",
        "O'Brien",
        "''",
        'say "hi"',
        "back\\slash",
        "new\nline",
    ),
    *(
        "tab\t.",
        "naïve",
        "É",
        "é",
        "日本",
        "日本語",
        "😀",
        "\uff5e",
        "%",
        "_",
        "a%b",
        "a_b",
        "null",
        " ",
        "1",
        "$a",
    ),
)
KEYS = (
    *(
        "p1",
        "p2",
        "p10",
        "P1",
        "1",
        "2",
        "-3",
        "10",
        "O'Neil",
        'q"t',
        "日",
        "😀",
        "\uff5e",
        "a b",
        "é",
        "back\\",
    ),
    *("x", "y", "z", "X", "%", "_", "null", "true", "zoë", "a'b\"c"),
)
I32 = (-(2**31), -7, -1, 0, 1, 2, 3, 7, 30, 120, 2**31 - 1)
I64 = (-(2**63), -(2**53) - 1, -1, 0, 1, 3, 2**31, 2**53 - 1, 2**53, 2**53 + 1, 2**63 - 1)
U32 = (0, 1, 3, 7, 2**31, 2**32 - 1)
U64 = (0, 1, 3, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1)
F64 = (-1e300, -2.5, -1.0, 0.0, 0.1, 0.5, 1.0, 2.5, 3.0, 1e-7, 2.0**53, 2.0**63, 1e300, 5e-324)
F32 = tuple(single(value) for value in (-2.5, 0.0, 0.1, 0.3, 0.5, 1.0, 2.5, 3.0, 16777216.0, 3e38, 1e-40))
NUMBERS: dict[str, Sequence[float]] = {"I32": I32, "I64": I64, "U32": U32, "U64": U64, "F64": F64, "F32": F32}
DATES = tuple(
    date.fromisoformat(text)
    for text in (
        "0001-01-01",
        "1969-12-31",
        "1970-01-01",
        "2020-02-29",
        "2020-03-01",
        "2021-05-05",
        "9999-12-31",
    )
)
MOMENTS = tuple(
    datetime.fromisoformat(text).replace(tzinfo=UTC)
    for text in (
        *(
            "1969-12-31T23:59:59.999",
            "1970-01-01T00:00:00",
            "2020-02-29T12:00:00.001",
            "2020-02-29T12:00:00.002",
        ),
        *("2021-05-05T00:00:00", "9999-12-31T23:59:59.999", "0001-01-01T00:00:00"),
    )
)
HALVES = (-2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0)  # squares and their sums are exact in F32


def random_graph(seed: int, schema: Schema = WORLD) -> Data:
    """Return the graph of a seed."""
    rng = Random(f"graph {seed}")
    nodes = tuple(node for kind in schema.nodes.values() for node in _nodes(rng, kind))
    ids = {name: [node.id for node in nodes if node.type_name == name] for name in schema.nodes}
    return Data(nodes, tuple(edge for kind in schema.edges.values() for edge in _edges(rng, kind, ids)))


def random_value(rng: Random, name: str, kind: Type) -> Cell:
    """Return a value of a type that is not null."""
    if kind.dimension:
        return [rng.choice(HALVES) for _ in range(kind.dimension)]
    if kind.is_list:
        pool: Sequence[Cell] = STRINGS[:12] if kind.scalar == "String" else NUMBERS[kind.scalar]
        return [rng.choice(pool) for _ in range(rng.randrange(4))]
    if name in TEXTS:
        return random_text(rng)
    return rng.choice(pool_of(kind))


def pool_of(kind: Type) -> Sequence[Cell]:
    """Return the values that a scalar is drawn from."""
    if kind.members:
        return kind.members
    other: dict[str, Sequence[Cell]] = {
        "String": STRINGS,
        "Bool": (False, True),
        "Date": DATES,
        "DateTime": MOMENTS,
    }
    return other.get(kind.scalar) or NUMBERS[kind.scalar]


def random_text(rng: Random) -> str:
    """Return words of the vocabulary, in any case and with any separators."""
    forms = (str, str.upper, str.title, _with_accents)
    words = [rng.choice(forms)(rng.choice(VOCABULARY)) for _ in range(rng.randint(0, 7))]
    return "".join(word + rng.choice((" ", " ", ", ", "-", "_", "\n", "'", "… ")) for word in words)


def _with_accents(word: str) -> str:
    return word.replace("a", "á").replace("o", "ö")


def _nodes(rng: Random, kind: NodeType) -> list[Node]:
    share_empty = 0.8 if kind.name == "Ghost" else 0.08
    count = 0 if rng.random() < share_empty else rng.randint(1, NODES_MAX[kind.name])
    found = dict[str, Node]()
    for at in range(count):
        values = {name: _maybe(rng, name, each) for name, each in kind.properties.items()}
        values |= {name: rng.choice(KEYS) for name in kind.key if kind.properties[name].is_string}
        parts = [str(values[name]) for name in sorted(kind.key)]
        composite = json.dumps(parts, ensure_ascii=False, separators=(",", ":"))
        node_id = f"m{at}" if not parts else parts[0] if len(parts) == 1 else composite
        found.setdefault(node_id, Node(kind.name, node_id, values))
    return list(found.values())


def _edges(rng: Random, kind: EdgeType, ids: dict[str, list[str]]) -> list[Edge]:
    sources, targets = ids[kind.source], ids[kind.target]
    if not sources or not targets or rng.random() < 0.08:
        return []
    # Some nodes take no part, so that there are isolated ones and dense corners.
    sources = rng.sample(sources, rng.randint(1, len(sources)))
    targets = sources if kind.source == kind.target else rng.sample(targets, rng.randint(1, len(targets)))
    edges = list[Edge]()
    for at in range(rng.randint(1, EDGES_MAX[kind.name])):
        source, target = rng.choice(sources), rng.choice(targets)
        if edges and rng.random() < 0.15:
            source, target = edges[-1].source, edges[-1].target
        elif kind.source == kind.target and rng.random() < 0.12:
            target = source
        values = {name: _maybe(rng, name, each) for name, each in kind.properties.items()}
        edges.append(Edge(kind.name, f"{kind.name[0].lower()}{at}", source, target, values))
    return edges


def _maybe(rng: Random, name: str, kind: Type) -> Cell:
    return None if kind.is_nullable and rng.random() < NULL_SHARE else random_value(rng, name, kind)
