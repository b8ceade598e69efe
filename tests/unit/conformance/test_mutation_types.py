"""Cases of 7.9 of languages.md that are decided before anything runs, and the static part of others."""

import pytest

from omnigraph.core.source_errors import MixedMutation
from tests.support.queries import bind_text, execution_error, mutation, parse_error, type_error

BOOK = 'code: "CC-1", title: "T", price: 8.0, format: "paper", added: now()'


@pytest.mark.case("languages", 194)
def test_an_insert_of_a_book_has_a_price() -> None:
    error = type_error(mutation('insert Book { code: "CC-1", title: "T", format: "paper", added: now() }'))

    assert error.type_code == "T12"
    assert "'price'" in str(error)


@pytest.mark.case("languages", 194)
def test_an_insert_of_an_edge_has_both_ends() -> None:
    error = type_error(mutation('insert Wrote { from: "ada" }'))

    assert error.type_code == "T12"
    assert "'to'" in str(error)


@pytest.mark.case("languages", 194)
def test_an_unknown_type_is_not_inserted() -> None:
    error = type_error(mutation("insert Nope { a: 1 }"))

    assert error.type_code == "T10"
    assert "'Nope'" in str(error)


@pytest.mark.case("languages", 194)
@pytest.mark.parametrize(
    ("assignment", "code", "name"),
    [
        ('isbn: "x"', "T11", "'isbn'"),
        ('code: "CC-2"', "T13", "code"),
        ("blurb: $x", "T14", "'$x'"),
        ("embedding: [1, 2]", "T3", ""),
        ("published: now()", "T7", "published"),
    ],
)
def test_an_assignment_fits_its_property(assignment: str, code: str, name: str) -> None:
    error = type_error(mutation(f"insert Book {{ {BOOK}, {assignment} }}"))

    assert error.type_code == code
    assert name in str(error)


@pytest.mark.case("languages", 194)
def test_an_enum_takes_its_own_values() -> None:
    error = type_error(mutation(f"insert Book {{ {BOOK.replace('paper', 'vinyl')} }}"))

    assert error.type_code == "T3"
    assert "'vinyl'" in str(error)


def test_a_key_is_not_updated_even_where_nothing_matches() -> None:
    """The static part of case 196."""
    error = execution_error(mutation('update Book set { code: "ZZ-1" } where code = "none"'))

    assert "key" in str(error)
    assert "code" in str(error)


@pytest.mark.parametrize(
    ("statement", "code", "name"),
    [
        ('update Wrote set { role: "main" } where from = "ada"', "T16", "'Wrote'"),
        ('update Book set { price: 1.0 } where cover = "x"', "T11", "cover"),
    ],
)
def test_edges_are_not_updated_and_blobs_select_nothing(statement: str, code: str, name: str) -> None:
    """The static part of case 196."""
    error = type_error(mutation(statement))

    assert error.type_code == code
    assert name in str(error)


@pytest.mark.parametrize(
    "statements",
    [
        'update Book set { price: 1.0 } where code = "AA-1" delete Book where code = "AA-1"',
        'delete Book where code = "AA-1" update Book set { price: 1.0 } where code = "AA-1"',
    ],
)
def test_an_update_and_a_delete_do_not_mix_in_either_order(statements: str) -> None:
    """The static part of case 206."""
    error = parse_error(mutation(statements))

    assert isinstance(error, MixedMutation)
    assert "'m'" in str(error)
    assert "split it into separate mutations" in str(error)


@pytest.mark.parametrize("assignment", ["pages: 1.5", "pages: 3000000000", "pages: 0"])
def test_numbers_are_left_to_execution(assignment: str) -> None:
    """The static part of case 195: these are execution errors, and the checker must not refuse them."""
    assert bind_text(mutation(f"insert Book {{ {BOOK}, {assignment} }}")).name == "m"
