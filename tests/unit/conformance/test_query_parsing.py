"""Cases 95 to 111 of languages.md: what parses as a query."""

import pytest

from omnigraph.core.source_errors import MixedMutation
from omnigraph.core.values import Scalar, ValueType
from omnigraph.language.query_ast import Aggregate, PropertyAccess
from tests.support.queries import bind_text, books, mutation, parse, parse_error, parse_one, parse_read, read


@pytest.mark.case("languages", 95)
def test_a_read_of_one_binding_is_accepted() -> None:
    text = "query q() { match { $b: Book } return { $b.code } }"

    file = parse(text)

    assert [query.name.text for query in file.queries] == ["q"]
    assert bind_text(text).name == "q"


@pytest.mark.case("languages", 96)
def test_commas_between_projections_are_optional() -> None:
    text = read("$b: Book", "return { $b.code $b.title as t, count($b) as n }")

    code, title, count = parse_read(text).projections

    assert isinstance(code.expression, PropertyAccess)
    assert code.alias is None
    assert isinstance(title.expression, PropertyAccess)
    assert title.alias is not None
    assert title.alias.text == "t"
    assert isinstance(count.expression, Aggregate)
    assert count.alias is not None
    assert count.alias.text == "n"


@pytest.mark.case("languages", 97)
def test_the_braces_of_a_binding_hold_at_least_one_match() -> None:
    parse_error(read("$b: Book { }"))


@pytest.mark.case("languages", 97)
def test_the_matches_of_a_binding_may_end_with_a_comma() -> None:
    assert bind_text(read('$b: Book { code: "x", }')).name == "q"


@pytest.mark.case("languages", 98)
@pytest.mark.parametrize(
    "text", ["query q() { match { } return { $b.code } }", "query q() { match { $b: Book } return { } }"]
)
def test_a_block_is_not_empty(text: str) -> None:
    parse_error(text)


@pytest.mark.case("languages", 99)
def test_limit_stands_behind_order() -> None:
    parse_error(books(tail="return { $b.code } limit 3 order { $b.code }"))


@pytest.mark.case("languages", 100)
@pytest.mark.parametrize("condition", ["$b.pages = -1", "$b.pages = 1e3"])
def test_a_literal_has_neither_sign_nor_exponent(condition: str) -> None:
    parse_error(books(condition))


@pytest.mark.case("languages", 101)
def test_an_unknown_escape_is_refused() -> None:
    error = parse_error(books(r'$b.title = "a\q"'))

    assert r"\q" in str(error)


@pytest.mark.case("languages", 102)
def test_hop_bounds_need_their_comma() -> None:
    parse_error(books("$b cites{2} $c"))


@pytest.mark.case("languages", 103)
def test_nearest_takes_no_direction() -> None:
    parse_error(
        books(tail="return { $b.code } order { nearest($b.embedding, $q) desc }", params="$q: Vector(4)")
    )


@pytest.mark.case("languages", 104)
def test_rrf_fuses_rankings_only() -> None:
    order = "order { rrf(search($b.title, $q), bm25($b.title, $q)) } limit 3"

    parse_error(books(tail=f"return {{ $b.code }} {order}", params="$q: String"))


@pytest.mark.case("languages", 105)
@pytest.mark.parametrize(("params", "name"), [("$x: String, $x: I32", "$x"), ("$__t: String", "$__t")])
def test_a_parameter_has_a_name_of_its_own_that_is_not_reserved(params: str, name: str) -> None:
    error = parse_error(books(params=params))

    assert f"'{name}'" in str(error)


@pytest.mark.case("languages", 106)
def test_an_instruction_is_given_once() -> None:
    error = parse_error(
        'query q() @instruction("a") @instruction("b") { match { $b: Book } return { $b.code } }'
    )

    assert "@instruction" in str(error)


@pytest.mark.case("languages", 107)
def test_a_predicate_of_a_mutation_has_no_contains() -> None:
    parse_error(mutation("delete Book where tags contains $t", "$t: String"))


@pytest.mark.case("languages", 108)
def test_an_insert_assigns_something() -> None:
    parse_error(mutation("insert Author { }"))


@pytest.mark.case("languages", 109)
def test_null_is_not_a_value() -> None:
    parse_error(mutation('insert Author { email: null, handle: "eve", name: "Eve" }'))


@pytest.mark.case("languages", 110)
def test_white_space_inside_a_vector_type_has_no_meaning() -> None:
    (parameter,) = parse_one(books(params="$v: Vector( 4 ) ?")).parameters

    assert parameter.name == "v"
    assert parameter.type == ValueType(Scalar.VECTOR, nullable=True, dimension=4)


@pytest.mark.case("languages", 111)
def test_a_query_that_inserts_and_deletes_is_refused_by_name() -> None:
    text = 'query m($h: String) { insert Author { handle: $h, name: $h } delete Author where handle = "x" }'

    error = parse_error(text)

    assert isinstance(error, MixedMutation)
    assert error.query_name == "m"
    assert "'m'" in str(error)
    assert "mixes inserts/updates and deletes" in str(error)
    assert "split it into separate mutations" in str(error)
