"""Several errors of one schema are reported together, in order, each at its place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.core.limits import DIAGNOSTICS_MAX
from omnigraph.core.source_errors import ParseError
from omnigraph.core.span import Source
from omnigraph.language.schema_parser import parse_schema
from tests.support.library import LIB, parse_failure, pointed_at

BROKEN = """\
node book {}
node Good { a: String }
node Bad { a: Strng  b: String, c: [Blob?] }
edge E Good -> Good
interface I { @key(a) }
edge F: Good -> Good @card(1)
"""


def culprits(error: ParseError) -> list[str]:
    return [pointed_at(error, index) for index in range(len(error.diagnostics))]


def test_every_broken_declaration_and_item_is_reported_in_order() -> None:
    error = parse_failure(BROKEN)

    spans = [diagnostic.span for diagnostic in error.diagnostics if diagnostic.span]
    lines = [error.source.position(span.start)[0] for span in spans]
    assert culprits(error) == ["book", "Strng", ",", "?", "Good", "@", ")"]
    assert lines == [1, 3, 3, 3, 4, 5, 6]
    assert error.position == (1, 6)


def test_an_error_in_a_body_costs_that_item_alone() -> None:
    error = parse_failure("node N {\n  a: Strng\n  b: Int\n  @key(1x)\n  c: String\n  @unique(c,)\n}")

    assert culprits(error) == ["Strng", "Int", "1x", ")"]


def test_a_body_that_never_closes_is_one_error() -> None:
    error = parse_failure("node N { a: String\nnode M { b: String }")

    assert len(error.diagnostics) == 1
    assert error.position is not None
    assert error.position[0] == 2


def test_a_string_that_never_closes_is_one_error_where_it_starts() -> None:
    error = parse_failure('node N @description("open { a: String }\nnode M {}')

    assert culprits(error) == ['"']
    assert error.position == (1, 21)


def test_at_most_twenty_errors_are_reported() -> None:
    error = parse_failure("node N lower {}\n" * 50)

    assert len(error.diagnostics) == DIAGNOSTICS_MAX == 20
    assert error.position == (1, 8)


def test_at_most_twenty_broken_rules_are_reported() -> None:
    error = parse_failure("node N { " + "xs: [Blob] " * 50 + "}")

    assert len(error.diagnostics) == DIAGNOSTICS_MAX


def test_rules_are_not_checked_while_the_grammar_is_broken() -> None:
    error = parse_failure("node N { v: Vector(0) }\nnode m {}")

    assert culprits(error) == ["m"]


def test_an_error_at_the_end_of_the_text_points_behind_it() -> None:
    error = parse_failure("node N {")

    assert error.span == (8, 9)
    assert "end of the text" in str(error)


def refusal(text: str) -> ParseError | None:
    """Return why a text does not parse, or none."""
    try:
        parse_schema(Source(text))
    except ParseError as error:
        return error
    return None


@pytest.mark.parametrize("length", range(1, len(LIB), 37))
def test_a_schema_cut_short_is_parsed_or_refused_within_its_text(length: int) -> None:
    error = refusal(LIB[:length])

    assert error is None or (error.span is not None and 0 <= error.span[0] < error.span[1] <= length + 1)


@given(
    st.lists(
        st.sampled_from([*"{}()[]@:,.?-", "->", "..", "node", "edge", "N", "a", "1", '"s"', "enum", "#"])
    )
)
def test_any_tokens_are_parsed_or_refused_with_diagnostics_in_order(words: list[str]) -> None:
    error = refusal(" ".join(words))

    diagnostics = error.diagnostics if error else ()
    starts = [diagnostic.span.start for diagnostic in diagnostics if diagnostic.span]
    assert len(starts) == len(diagnostics) <= DIAGNOSTICS_MAX
    assert starts == sorted(starts)
