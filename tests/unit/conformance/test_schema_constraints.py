"""Languages specification, 7.2: constraints of schemas."""

import pytest

from omnigraph.catalog.model import Bounds
from omnigraph.core.source_errors import ParseError
from omnigraph.language.schema_ast import Embed
from tests.support.library import compile_item, compile_text, parse_failure, pointed_at, wrap

NODE = "node N { k: String @key }\n"


def edge(declaration: str) -> str:
    """Return a schema with an edge from N to N."""
    return f"{NODE}edge E: N -> N {declaration}"


def assert_names(error: ParseError, *names: str) -> None:
    assert [name for name in names if f"'{name}'" not in str(error)] == []


@pytest.mark.case("languages", 29)
@pytest.mark.parametrize(
    ("card", "bounds"), [("@card(0..1)", (0, 1)), ("@card(1..)", (1, None)), ("@card(2..2)", (2, 2))]
)
def test_an_edge_has_a_cardinality(card: str, bounds: tuple[int, int | None]) -> None:
    declared = compile_text(edge(card)).edges["E"]

    assert (declared.low, declared.high) == bounds


@pytest.mark.case("languages", 30)
def test_the_minimum_of_a_cardinality_is_not_above_its_maximum() -> None:
    error = parse_failure(edge("@card(2..1)"))

    assert pointed_at(error) == "@card(2..1)"
    assert_names(error, "E")


@pytest.mark.case("languages", 31)
@pytest.mark.parametrize(("card", "culprit"), [("@card(1)", ")"), ("@card(..1)", ".."), ("@card(0..*)", "*")])
def test_a_cardinality_is_written_with_its_lower_bound_and_dots(card: str, culprit: str) -> None:
    error = parse_failure(edge(card))

    assert pointed_at(error) == culprit


@pytest.mark.case("languages", 32)
def test_a_cardinality_stands_before_every_other_annotation() -> None:
    error = parse_failure(edge('@description("d") @card(0..1)'))

    assert pointed_at(error) == "card"


@pytest.mark.case("languages", 33)
@pytest.mark.parametrize("item", ["@key(k)", "a: String @key"])
def test_a_node_has_one_key(item: str) -> None:
    error = parse_failure(wrap(item))

    assert pointed_at(error) == ("@key(k)" if item == "@key(k)" else "@key")
    assert error.span == (wrap(item).rindex("@"), wrap(item).rindex("@") + len(pointed_at(error)))
    assert_names(error, "N")


@pytest.mark.case("languages", 34)
def test_a_key_is_never_null() -> None:
    error = parse_failure("node M { a: String?  @key(a) }")

    assert pointed_at(error) == "a"
    assert error.position == (1, 27)
    assert_names(error, "a")


@pytest.mark.case("languages", 35)
def test_a_float_may_be_a_key() -> None:
    assert compile_text("node M { a: F64 @key }").nodes["M"].key == ("a",)


@pytest.mark.case("languages", 36)
def test_a_vector_is_no_key() -> None:
    error = parse_failure("node M { v: Vector(2) @key }")

    assert pointed_at(error) == "@key"
    assert_names(error, "v")


@pytest.mark.case("languages", 37)
def test_a_list_is_no_key() -> None:
    error = parse_failure("node M { t: [String] @key }")

    assert pointed_at(error) == "@key"
    assert_names(error, "t")


@pytest.mark.case("languages", 38)
@pytest.mark.parametrize(
    ("item", "culprit"),
    [("c: Blob @index", "@index"), ("c: Blob  @unique(k, c)", "c"), ("c: Blob @unique", "@unique")],
)
def test_a_blob_is_neither_indexed_nor_unique(item: str, culprit: str) -> None:
    error = parse_failure(wrap(item))

    assert pointed_at(error) == culprit
    assert_names(error, "c")


@pytest.mark.case("languages", 39)
@pytest.mark.parametrize("constraint", ["@unique(nope)", "@index(nope)", "@key(nope)"])
def test_a_constraint_names_properties_that_exist(constraint: str) -> None:
    error = parse_failure(f"node N {{ k: String  {constraint} }}")

    assert pointed_at(error) == "nope"
    assert_names(error, "nope")


@pytest.mark.case("languages", 40)
def test_a_unique_constraint_takes_names_and_not_strings() -> None:
    error = parse_failure(wrap('email: String @unique("x")'))

    assert pointed_at(error) == '"x"'
    assert "@unique" in str(error)


@pytest.mark.case("languages", 41)
@pytest.mark.parametrize(
    ("constraint", "columns"), [("@unique(src, dst)", ("dst", "src")), ("@unique(src)", ("src",))]
)
def test_an_edge_may_be_unique_by_its_endpoints(constraint: str, columns: tuple[str, ...]) -> None:
    assert compile_text(edge(f"{{ {constraint} }}")).edges["E"].unique == (columns,)


@pytest.mark.case("languages", 41)
def test_a_node_has_no_endpoints_to_be_unique_by() -> None:
    error = parse_failure("node M { a: String @unique(src) }")

    assert pointed_at(error) == "src"
    assert_names(error, "src")


@pytest.mark.case("languages", 42)
def test_an_edge_property_may_be_unique() -> None:
    assert compile_text(edge("{ w: I32 @unique }")).edges["E"].unique == (("w",),)


@pytest.mark.case("languages", 42)
@pytest.mark.parametrize(("body", "culprit"), [("{ w: I32 @key }", "@key"), ("{ @key(src) }", "@key(src)")])
def test_an_edge_has_no_key(body: str, culprit: str) -> None:
    error = parse_failure(edge(body))

    assert pointed_at(error) == culprit
    assert "@key" in str(error)


@pytest.mark.case("languages", 43)
@pytest.mark.parametrize(
    ("written", "low", "high"), [("0..200", 0, 200), ("-40..60", -40, 60), ("0..", 0, None), ("..9", None, 9)]
)
def test_a_range_has_one_bound_or_two(written: str, low: int | None, high: int | None) -> None:
    ranges = compile_item(f"n: I32?  @range(n, {written})").nodes["N"].ranges

    assert dict(ranges) == {"n": (Bounds(low, high),)}


@pytest.mark.case("languages", 44)
def test_the_bounds_of_a_range_may_be_decimals() -> None:
    ranges = compile_item("f: F64  @range(f, -1.5..2.5)").nodes["N"].ranges

    assert dict(ranges) == {"f": (Bounds(-1.5, 2.5),)}


@pytest.mark.case("languages", 45)
def test_only_a_number_has_a_range() -> None:
    error = parse_failure(wrap("s: String  @range(s, 0..1)"))

    assert pointed_at(error) == "s"
    assert "@range" in str(error)
    assert_names(error, "s")


@pytest.mark.case("languages", 46)
@pytest.mark.parametrize(("constraint", "culprit"), [("@range(n, 9..1)", "9..1"), ("@range(n, 5)", ")")])
def test_a_range_goes_upwards_and_is_a_range(constraint: str, culprit: str) -> None:
    error = parse_failure(wrap(f"n: I32  {constraint}"))

    assert pointed_at(error) == culprit


@pytest.mark.case("languages", 47)
def test_only_a_string_is_checked() -> None:
    error = parse_failure(wrap('n: I32  @check(n, "x")'))

    assert pointed_at(error) == "n"
    assert "@check" in str(error)
    assert_names(error, "n")


@pytest.mark.case("languages", 48)
def test_the_pattern_of_a_check_compiles() -> None:
    error = parse_failure(wrap('s: String  @check(s, "(")'))

    assert pointed_at(error) == '"("'
    assert "@check" in str(error)
    assert_names(error, "s")


@pytest.mark.case("languages", 49)
def test_an_edge_has_no_ranges() -> None:
    error = parse_failure(edge("{ w: I32  @range(w, 0..1) }"))

    assert pointed_at(error) == "@range(w, 0..1)"
    assert_names(error, "E")


@pytest.mark.case("languages", 50)
@pytest.mark.parametrize(
    ("text", "culprit"), [("node M @index { a: String }", "@index"), (edge("@unique"), "@unique")]
)
def test_a_type_itself_is_neither_indexed_nor_unique(text: str, culprit: str) -> None:
    error = parse_failure(text)

    assert pointed_at(error) == culprit
    assert culprit in str(error)


@pytest.mark.case("languages", 51)
@pytest.mark.parametrize(("annotation", "model"), [("@embed(t)", None), ('@embed("t", model="m")', "m")])
def test_a_vector_is_embedded_from_a_text(annotation: str, model: str | None) -> None:
    node = compile_item(f"t: String  v: Vector(3) {annotation}").nodes["N"]

    assert node.properties["v"].embed == Embed("t", model)


@pytest.mark.case("languages", 52)
@pytest.mark.parametrize(
    ("item", "culprit", "name"),
    [
        ("v: Vector(3) @embed", "@embed", "v"),
        ('v: Vector(3) @embed("zz")', '@embed("zz")', "zz"),
        ("n: I32  v: Vector(3) @embed(n)", "@embed(n)", "n"),
        ("t: String @embed(t)", "@embed(t)", "t"),
    ],
)
def test_an_embedding_is_a_vector_with_a_source_that_is_text(item: str, culprit: str, name: str) -> None:
    error = parse_failure(wrap(item))

    assert pointed_at(error) == culprit
    assert_names(error, name)


@pytest.mark.case("languages", 53)
def test_an_embedding_knows_no_keyword_but_model() -> None:
    error = parse_failure(wrap('t: String  v: Vector(3) @embed("t", dims="3")'))

    assert pointed_at(error) == '@embed("t", dims="3")'
    assert_names(error, "v", "dims")


@pytest.mark.case("languages", 54)
def test_an_edge_property_is_not_embedded() -> None:
    error = parse_failure(edge("{ v: Vector(3) @embed(v) }"))

    assert pointed_at(error) == "@embed(v)"
    assert "@embed" in str(error)


@pytest.mark.case("languages", 55)
def test_a_property_has_no_instruction() -> None:
    error = parse_failure(wrap('x: String @instruction("i")'))

    assert pointed_at(error) == '@instruction("i")'
    assert_names(error, "x")


@pytest.mark.case("languages", 56)
@pytest.mark.parametrize(
    ("hint", "culprit"),
    [
        ("@rename_from", "@rename_from"),
        ('@rename_from(" ")', '@rename_from(" ")'),
        ('@rename_from("A", "B")', '"B"'),
        ('@rename_from("A", k="b")', '@rename_from("A", k="b")'),
        ('@rename_from("A") @rename_from("B")', '@rename_from("B")'),
    ],
)
@pytest.mark.parametrize(
    "template", ["node N {{ x: String {} }}", "node N {} {{ }}", NODE + "edge E: N -> N {}"]
)
def test_a_rename_hint_is_one_name(template: str, hint: str, culprit: str) -> None:
    template = template.replace(NODE, NODE.replace("{", "{{").replace("}", "}}"))

    error = parse_failure(template.format(hint))

    assert pointed_at(error) == culprit
