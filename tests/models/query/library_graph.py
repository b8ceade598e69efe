"""LIB and the data set of the languages specification (sections 0 and 7) in the oracle's own words."""

from datetime import UTC, date, datetime

from tests.models.query.oracle import single
from tests.models.query.shape import Cell, Data, Edge, EdgeType, Node, NodeType, Schema, Type

_TEXT, _DATE = Type("String"), Type("Date")

LIBRARY_SCHEMA = Schema(
    nodes={
        "Book": NodeType(
            "Book",
            ("code",),
            {
                "code": _TEXT,
                "title": _TEXT,
                "pages": Type("I32"),
                "price": Type("F64"),
                "weight": Type("F32"),
                "stock": Type("U32"),
                "tags": Type("String", is_list=True),
                "format": Type("String", members=("audio", "ebook", "paper")),
                "published": _DATE,
                "added": Type("DateTime"),
                "blurb": _TEXT,
                "embedding": Type("F32", dimension=4),
            },
        ),
        "Author": NodeType(
            "Author", ("handle",), {"handle": _TEXT, "name": _TEXT, "born": _DATE, "email": _TEXT}
        ),
        "Shelf": NodeType("Shelf", ("room", "slot"), {"room": _TEXT, "slot": Type("I32"), "label": _TEXT}),
        "Note": NodeType("Note", (), {"body": _TEXT, "made": Type("DateTime")}),
    },
    edges={
        "Wrote": EdgeType("Wrote", "Author", "Book", {"role": _TEXT, "share": Type("F64")}),
        "Cites": EdgeType("Cites", "Book", "Book", {"page": Type("I32"), "remark": _TEXT}),
        "StoredOn": EdgeType("StoredOn", "Book", "Shelf"),
        "Mentors": EdgeType("Mentors", "Author", "Author", {"since": _DATE}),
        "About": EdgeType("About", "Note", "Book"),
    },
)


def _node(type_name: str, node_id: str, **values: Cell) -> Node:
    names = LIBRARY_SCHEMA.nodes[type_name].properties
    return Node(type_name, node_id, {name: values.get(name) for name in names})


def _book(day: int, code: str, title: str, price: float, **values: Cell) -> Node:
    added = datetime(2021, 1, day, tzinfo=UTC)
    return _node("Book", code, code=code, title=title, price=price, added=added, **values)


def _edge(type_name: str, edge_id: str, source: str, target: str, **values: Cell) -> Edge:
    names = LIBRARY_SCHEMA.edges[type_name].properties
    return Edge(type_name, edge_id, source, target, {name: values.get(name) for name in names})


LIBRARY_DATA = Data(
    nodes=(
        _node("Author", "ada", handle="ada", name="Ada Quill", born=date(1950, 1, 5), email="ada@x.org"),
        _node("Author", "ben", handle="ben", name="Ben Ode"),
        _node("Author", "cy", handle="cy", name="Cy Verse", born=date(1990, 12, 31), email="cy@x.org"),
        _node("Author", "dot", handle="dot", name="Dot Stanza"),
        _book(
            1,
            "AA-1",
            "Glass Rivers",
            12.5,
            pages=300,
            weight=single(0.1),
            format="paper",
            tags=["river", "glass"],
            published=date(2020, 5, 1),
            blurb="A survey of rivers and glass making",
            embedding=[1.0, 0.0, 0.0, 0.0],
        ),
        _book(
            2,
            "AA-2",
            "Quiet Machines",
            8.0,
            pages=120,
            format="ebook",
            tags=["machine"],
            published=date(2018, 1, 1),
            blurb="Notes on silent machines",
            embedding=[0.0, 1.0, 0.0, 0.0],
        ),
        _book(3, "BB-1", "River Songs", 8.0, format="audio"),
        _book(
            4,
            "BB-2",
            "Machine Songs",
            20.0,
            pages=120,
            weight=0.5,
            format="paper",
            tags=[],
            published=date(2022, 7, 7),
            blurb="Songs for machines and rivers",
            embedding=[single(0.9), single(0.1), 0.0, 0.0],
        ),
        _node("Shelf", '["north","1"]', room="north", slot=1, label="A"),
        _node("Shelf", '["north","2"]', room="north", slot=2),
        _node("Note", "n1", body="check"),
    ),
    edges=(
        _edge("Wrote", "w1", "ada", "AA-1", role="main", share=1.0),
        _edge("Wrote", "w2", "ada", "BB-1", role="editor"),
        _edge("Wrote", "w3", "ben", "AA-2", role="main"),
        _edge("Wrote", "w4", "cy", "BB-2", role="main", share=0.6),
        _edge("Wrote", "w5", "cy", "BB-2", role="translator", share=0.4),
        _edge("Cites", "c1", "AA-1", "AA-2", page=10),
        _edge("Cites", "c2", "AA-2", "BB-2"),
        _edge("Cites", "c3", "BB-2", "AA-1"),
        _edge("Cites", "c4", "BB-1", "BB-1"),
        _edge("StoredOn", "s1", "AA-1", '["north","1"]'),
        _edge("Mentors", "m1", "ada", "ben", since=date(2001, 1, 1)),
        _edge("Mentors", "m2", "ben", "cy"),
        _edge("About", "a1", "n1", "AA-1"),
    ),
)
