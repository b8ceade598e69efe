"""Languages specification, 7.1: lexing, grammar and types of schemas."""

from collections.abc import Sequence

import pyarrow as pa
import pytest

from omnigraph.catalog.arrow_schema import arrow_schema
from omnigraph.catalog.model import Property
from omnigraph.core.span import Source
from omnigraph.core.values import Scalar, ValueType
from omnigraph.language.parser import tokenize
from omnigraph.language.schema_ast import Note
from tests.support.library import (
    LIB,
    catalog,
    compile_item,
    compile_text,
    parse_failure,
    pointed_at,
    wrap,
)

BOOK_PROPERTIES = {
    "added": "DateTime",
    "blurb": "String?",
    "code": "String",
    "cover": "Blob?",
    "embedding": "Vector(4)?",
    "format": "enum(audio, ebook, paper)",
    "pages": "I32?",
    "price": "F64",
    "published": "Date?",
    "stock": "U32?",
    "tags": "[String]?",
    "title": "String",
    "weight": "F32?",
}


def texts(notes: Sequence[Note]) -> list[tuple[str, object]]:
    """Return name and value of the annotations that a catalog carries along."""
    return [(document["name"], document["value"]) for document in (note.to_json() for note in notes)]


def wrapped(item: str, name: str = "x") -> Property:
    return compile_item(item).nodes["N"].properties[name]


@pytest.mark.case("languages", 1)
def test_the_library_schema_is_a_catalog() -> None:
    library = catalog()

    assert list(library.interfaces) == ["Catalogued"]
    assert list(library.nodes) == ["Author", "Book", "Note", "Shelf"]
    assert list(library.edges) == ["About", "Cites", "Mentors", "StoredOn", "Wrote"]
    book = library.nodes["Book"]
    assert len(book.properties) == 13
    assert {name: str(item.type) for name, item in book.properties.items()} == BOOK_PROPERTIES
    assert book.key == ("code",)


@pytest.mark.case("languages", 2)
def test_an_empty_source_is_an_empty_catalog() -> None:
    empty = compile_text("")

    assert (dict(empty.interfaces), dict(empty.nodes), dict(empty.edges)) == ({}, {}, {})


@pytest.mark.case("languages", 3)
def test_a_node_without_properties_has_the_id_column_alone() -> None:
    node = compile_text("node N {}").nodes["N"]

    assert arrow_schema(node) == pa.schema([pa.field("id", pa.utf8(), nullable=False)])


@pytest.mark.case("languages", 4)
@pytest.mark.parametrize(
    "comment", ["// c\n", "/* c */", "/* c\nover lines */", " // a // b\n /* c // d */ "]
)
def test_comments_may_stand_between_any_two_tokens(comment: str) -> None:
    tokens = [token.text for token in tokenize(Source(LIB)).tokens]
    commented = (comment + comment.join(tokens)).replace(f"@{comment}card", "@card")  # `@card` is one token

    assert commented.count(comment) == len(tokens) - 2
    assert compile_text(commented) == catalog()


@pytest.mark.case("languages", 5)
def test_a_hash_starts_no_comment() -> None:
    error = parse_failure("# c")

    assert error.span == (0, 1)
    assert pointed_at(error) == "#"


@pytest.mark.case("languages", 6)
def test_a_comment_must_be_closed() -> None:
    error = parse_failure("/* open")

    assert pointed_at(error) == "/*"


@pytest.mark.case("languages", 7)
@pytest.mark.parametrize(
    ("text", "culprit"), [("node book { }", "book"), ("node Book { Title: String }", "Title")]
)
def test_types_start_upper_case_and_properties_lower_case(text: str, culprit: str) -> None:
    error = parse_failure(text)

    assert pointed_at(error) == culprit
    assert f"'{culprit}'" in str(error)


@pytest.mark.case("languages", 8)
def test_a_node_without_a_name_is_refused_where_the_name_is_missing() -> None:
    error = parse_failure("node { }")

    assert error.span == (5, 6)
    assert error.position == (1, 6)


@pytest.mark.case("languages", 9)
def test_a_comma_does_not_separate_properties() -> None:
    error = parse_failure(wrap("a: String, b: String"))

    assert pointed_at(error) == ","


@pytest.mark.case("languages", 10)
def test_an_enum_is_not_declared_at_top_level() -> None:
    error = parse_failure("enum Fmt { a }")

    assert error.span == (0, 4)


@pytest.mark.case("languages", 11)
def test_the_values_of_an_enum_are_stored_sorted() -> None:
    assert wrapped("x: enum(c, a, b)").type.enum_values == ("a", "b", "c")


@pytest.mark.case("languages", 12)
def test_an_enum_value_may_hold_hyphens_and_start_with_a_digit() -> None:
    assert wrapped("x: enum(soft-back, 2nd, x_1)").type.enum_values == ("2nd", "soft-back", "x_1")


@pytest.mark.case("languages", 13)
def test_an_enum_lists_no_value_twice() -> None:
    text = wrap("x: enum(a, a)")

    error = parse_failure(text)

    assert "'a'" in str(error)
    assert "'x'" in str(error)
    assert error.span == (text.rindex("a"), text.rindex("a") + 1)


@pytest.mark.case("languages", 14)
def test_an_enum_has_a_value() -> None:
    error = parse_failure(wrap("x: enum()"))

    assert pointed_at(error) == ")"


@pytest.mark.case("languages", 15)
def test_a_vector_is_a_fixed_size_list_of_floats() -> None:
    node = compile_item("x: Vector(3)?").nodes["N"]

    field = arrow_schema(node).field("x")

    assert field.type == pa.list_(pa.field("item", pa.float32(), nullable=True), 3)
    assert field.nullable


@pytest.mark.case("languages", 16)
@pytest.mark.case("languages", 17)
@pytest.mark.parametrize("dimension", ["0", "2147483648"])
def test_a_vector_has_a_dimension_that_arrow_can_count(dimension: str) -> None:
    error = parse_failure(wrap(f"x: Vector({dimension})"))

    assert pointed_at(error) == f"Vector({dimension})"
    assert "'x'" in str(error)


@pytest.mark.case("languages", 18)
def test_there_is_no_list_of_blobs() -> None:
    error = parse_failure(wrap("x: [Blob]"))

    assert pointed_at(error) == "[Blob]"
    assert "'x'" in str(error)


@pytest.mark.case("languages", 19)
@pytest.mark.parametrize(
    ("item", "culprit"), [("x: [Vector(3)]", "Vector"), ("x: [enum(a)]", "enum"), ("x: [String?]", "?")]
)
def test_a_list_holds_plain_scalars_alone(item: str, culprit: str) -> None:
    error = parse_failure(wrap(item))

    assert pointed_at(error) == culprit


@pytest.mark.case("languages", 20)
def test_an_unknown_type_word_is_refused() -> None:
    error = parse_failure(wrap("x: Int"))

    assert pointed_at(error) == "Int"
    assert "'Int'" in str(error)


@pytest.mark.case("languages", 21)
@pytest.mark.parametrize(
    ("word", "arrow"),
    [
        ("String", pa.utf8()),
        ("Bool", pa.bool_()),
        ("I32", pa.int32()),
        ("I64", pa.int64()),
        ("U32", pa.uint32()),
        ("U64", pa.uint64()),
        ("F32", pa.float32()),
        ("F64", pa.float64()),
        ("Date", pa.date32()),
        ("DateTime", pa.date64()),
        ("Blob", pa.large_binary()),
    ],
)
def test_every_scalar_has_its_arrow_type(word: str, arrow: pa.DataType) -> None:
    node = compile_item(f"x: {word}  y: {word}?").nodes["N"]

    required, nullable = arrow_schema(node).field("x"), arrow_schema(node).field("y")

    assert (required.type, required.nullable) == (arrow, False)
    assert (nullable.type, nullable.nullable) == (arrow, True)


@pytest.mark.case("languages", 22)
def test_a_string_is_decoded() -> None:
    notes = wrapped(r'x: String @description("a\"b\\c\n")').notes

    assert texts(notes) == [("description", 'a"b\\c\n')]


@pytest.mark.case("languages", 22)
def test_an_unknown_escape_is_named() -> None:
    error = parse_failure(wrap(r'x: String @description("a\q")'))

    assert r"unsupported escape sequence '\q'" in str(error)
    assert pointed_at(error) == r"\q"


@pytest.mark.case("languages", 23)
def test_unknown_annotations_are_kept() -> None:
    item = wrapped('x: String @vendor("z") @flag')

    assert item.type == ValueType(Scalar.STRING)
    assert texts(item.notes) == [("flag", None), ("vendor", "z")]


@pytest.mark.case("languages", 24)
@pytest.mark.parametrize("annotation", ['@description("")', "@description"])
@pytest.mark.parametrize(
    "template",
    ["node N {{ k: String @key  x: String {} }}", "node N {} {{ }}", "node N {{ }} edge E: N -> N {}"],
)
def test_a_description_has_a_text(annotation: str, template: str) -> None:
    error = parse_failure(template.format(annotation))

    assert pointed_at(error) == annotation


@pytest.mark.case("languages", 25)
def test_a_node_has_one_description() -> None:
    error = parse_failure('node N @description("a") @description("b") { }')

    assert pointed_at(error) == '@description("b")'
    assert "@description" in str(error)


@pytest.mark.case("languages", 26)
def test_annotations_of_a_node_come_before_implements() -> None:
    interface = "interface I { a: String } "

    node = compile_text(interface + 'node N @description("d") implements I { }').nodes["N"]
    error = parse_failure(interface + 'node N implements I @description("d") { }')

    assert texts(node.notes) == [("description", "d")]
    assert node.interfaces == ("I",)
    assert pointed_at(error) == "@"


@pytest.mark.case("languages", 27)
@pytest.mark.parametrize("text", ['interface I @description("d") {}', "interface I { a: String @key(a) }"])
def test_an_interface_has_no_annotations_and_no_constraints(text: str) -> None:
    error = parse_failure(text)

    assert pointed_at(error) == "@"


@pytest.mark.case("languages", 28)
def test_an_edge_without_a_body_has_any_number_of_edges() -> None:
    edge = compile_text("node N { k: String @key } edge E: N -> N").edges["E"]

    assert (edge.source, edge.target) == ("N", "N")
    assert (edge.low, edge.high) == (0, None)
    assert dict(edge.properties) == {}
