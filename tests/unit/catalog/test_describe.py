"""The operation descriptor: fields of the result, and what a query reads and writes."""

import pytest

from tests.support.library import compile_text
from tests.support.queries import BM25, NEAREST, books, describe_text, facts, mutation, read

EVERY_TYPE = """
node All {
    text: String   text_: String?   flag: Bool   small: I32   natural: U32   big: I64   bigger: U64?
    single: F32    double: F64      day: Date?   moment: DateTime
    kind: enum(a, b)                place: Vector(3)             place_: Vector(3)?
    texts: [String]                 flags: [Bool]?               days: [Date]     bigs: [U64]
    data: Blob?
}
"""


def field(name: str, kind: str, nullable: bool, **more: object) -> dict[str, object]:
    """Return a field of a descriptor."""
    return {"name": name, "kind": kind, **more, "nullable": nullable}


# Fields


@pytest.mark.parametrize(
    ("name", "described"),
    [
        ("text", field("text", "string", False)),
        ("text_", field("text_", "string", True)),
        ("flag", field("flag", "bool", False)),
        ("small", field("small", "int", False)),
        ("natural", field("natural", "int", False)),
        ("big", field("big", "bigint", False)),
        ("bigger", field("bigger", "bigint", True)),
        ("single", field("single", "float", False)),
        ("double", field("double", "float", False)),
        ("day", field("day", "date", True)),
        ("moment", field("moment", "datetime", False)),
        ("kind", field("kind", "string", False)),
        ("place", field("place", "vector", False, vector_dim=3)),
        ("place_", field("place_", "vector", True, vector_dim=3)),
        ("texts", field("texts", "list", False, item_kind="string")),
        ("flags", field("flags", "list", True, item_kind="bool")),
        ("days", field("days", "list", False, item_kind="date")),
        ("bigs", field("bigs", "list", False, item_kind="bigint")),
    ],
)
def test_a_property_has_the_kind_of_its_type(name: str, described: dict[str, object]) -> None:
    operation = describe_text(read("$x: All", f"return {{ $x.{name} }}"), compile_text(EVERY_TYPE))

    assert operation["result"] == [described]


@pytest.mark.parametrize(
    ("type_text", "described"),
    [
        ("String", field("p", "string", False)),
        ("I32?", field("p", "int", True)),
        ("U64", field("p", "bigint", False)),
        ("F32?", field("p", "float", True)),
        ("DateTime", field("p", "datetime", False)),
        ("[I32]?", field("p", "list", True, item_kind="int")),
        ("Vector(2)", field("p", "vector", False, vector_dim=2)),
    ],
)
def test_a_parameter_has_its_declared_nullability(type_text: str, described: dict[str, object]) -> None:
    operation = describe_text(books(tail="return { $p }", params=f"$p: {type_text}"))

    assert operation["result"] == [described]


@pytest.mark.parametrize(
    ("projection", "described"),
    [
        ("$b", field("b", "object", False)),
        ("$w", field("w", "object", False)),
        ("$w.role", field("role", "string", True)),
        ("5", field("literal", "bigint", False)),
        ("5.5", field("literal", "float", False)),
        ('"x"', field("literal", "string", False)),
        ("true", field("literal", "bool", False)),
        ('date("2020-01-01")', field("literal", "date", False)),
        ("[1, 2]", field("literal", "list", False, item_kind="bigint")),
        ("now()", field("now", "datetime", False)),
        (NEAREST, field("nearest", "float", False)),
        (BM25, field("bm25", "float", False)),
        (f"rrf({NEAREST}, {BM25})", field("rrf", "float", False)),
        ("count($b)", field("count", "bigint", True)),
        ("sum($b.pages)", field("sum", "float", True)),
        ("avg($b.price)", field("avg", "float", True)),
        ("min($b.pages)", field("min", "int", True)),
        ("max($b.price)", field("max", "float", True)),
        ("min($b.format)", field("min", "string", True)),
        ("max(5)", field("max", "bigint", True)),
        ("$b.pages as x", field("x", "int", True)),
        ("count($b) as n", field("n", "bigint", True)),
        ("$b as x", field("x", "object", False)),
    ],
)
def test_every_projection_is_described(projection: str, described: dict[str, object]) -> None:
    operation = describe_text(read("$a $w:wrote $b", f"return {{ {projection} }}"))

    assert operation["result"] == [described]


def test_fields_are_in_the_order_of_the_projections() -> None:
    operation = describe_text(books(tail="return { $b.title, $b.code, $b.title as a }"))

    assert [found["name"] for found in operation["result"]] == ["title", "code", "a"]


def test_keys_stand_in_the_order_of_the_specification() -> None:
    operation = describe_text(books(tail="return { $b.tags, $b.embedding }"))

    assert list(operation) == ["result", "reads", "writes"]
    assert [list(found) for found in operation["result"]] == [
        ["name", "kind", "item_kind", "nullable"],
        ["name", "kind", "vector_dim", "nullable"],
    ]


# Reads


@pytest.mark.parametrize(
    ("match", "reads"),
    [
        ("$b: Book", [("node", "Book")]),
        ("$s: Shelf $b: Book $c: Book", [("node", "Book"), ("node", "Shelf")]),
        ("$a wrote $b", [("node", "Author"), ("node", "Book"), ("edge", "Wrote")]),
        ("$x: Book $x wrote $_", [("node", "Author"), ("node", "Book"), ("edge", "Wrote")]),
        ("$_ mentors $_", [("node", "Author"), ("edge", "Mentors")]),
        ("$a <cites>{1,2} $b", [("node", "Book"), ("edge", "Cites")]),
        (
            "$a wrote $b $b cites $c $b storedOn $s",
            [
                ("node", "Author"),
                ("node", "Book"),
                ("node", "Shelf"),
                ("edge", "Cites"),
                ("edge", "StoredOn"),
                ("edge", "Wrote"),
            ],
        ),
        ("$b: Book not { $x: Note $x.body = $b.code }", [("node", "Book"), ("node", "Note")]),
        (
            "$b: Book not { $b cites $x not { $n about $x } }",
            [("node", "Book"), ("node", "Note"), ("edge", "About"), ("edge", "Cites")],
        ),
    ],
)
def test_a_read_names_every_type_it_looks_at_once(match: str, reads: list[tuple[str, str]]) -> None:
    operation = describe_text(read(match, "return { 1 }"))

    assert facts(operation["reads"]) == reads
    assert operation["writes"] == []


# Writes


@pytest.mark.parametrize(
    ("statements", "reads", "writes"),
    [
        ('insert Note { body: "x" }', [("node", "Note")], [("node", "Note")]),
        (
            'update Book set { price: 1 } where code = "x"',
            [("node", "Book")],
            [("node", "Book")],
        ),
        (
            'insert Wrote { from: "a", to: "b" }',
            [("node", "Author"), ("node", "Book"), ("edge", "Wrote")],
            [("edge", "Wrote")],
        ),
        (
            'insert Mentors { from: "a", to: "b" }',
            [("node", "Author"), ("edge", "Mentors")],
            [("edge", "Mentors")],
        ),
        ('delete Wrote where from = "a"', [("edge", "Wrote")], [("edge", "Wrote")]),
        (
            'delete Author where handle = "x"',
            [("node", "Author"), ("edge", "Mentors"), ("edge", "Wrote")],
            [("node", "Author"), ("edge", "Mentors"), ("edge", "Wrote")],
        ),
        (
            'delete Shelf where slot = 1 delete Note where body = "x"',
            [("node", "Note"), ("node", "Shelf"), ("edge", "About"), ("edge", "StoredOn")],
            [("node", "Note"), ("node", "Shelf"), ("edge", "About"), ("edge", "StoredOn")],
        ),
        (
            'insert Note { body: "x" } insert About { from: "a", to: "b" } insert Note { body: "y" }',
            [("node", "Book"), ("node", "Note"), ("edge", "About")],
            [("node", "Note"), ("edge", "About")],
        ),
    ],
)
def test_a_mutation_names_what_it_reads_and_writes(
    statements: str, reads: list[tuple[str, str]], writes: list[tuple[str, str]]
) -> None:
    operation = describe_text(mutation(statements))

    assert facts(operation["reads"]) == reads
    assert facts(operation["writes"]) == writes
    assert operation["result"] == []


def test_a_node_and_an_edge_of_one_name_are_two_facts() -> None:
    catalog = compile_text("node Same { text: String } edge Same: Same -> Same")

    operation = describe_text(mutation('delete Same where text = "x"'), catalog)

    assert operation["writes"] == [
        {"kind": "node", "type_name": "Same"},
        {"kind": "edge", "type_name": "Same"},
    ]
