"""The error tree: labels, places, codes and statuses."""

import pytest

from omnigraph.core.diagnostics import Diagnostic
from omnigraph.core.errors import (
    BadRequest,
    ExecutionError,
    NotFoundError,
    OmnigraphError,
    ParameterError,
    QueryNotFound,
    SchemaError,
)
from omnigraph.core.source_errors import (
    CatalogError,
    MixedMutation,
    ParseError,
    PlanError,
    SourceError,
    TypeCheckError,
)
from omnigraph.core.span import Source, Span

SOURCE = Source("é node n {}\nedge e", "schema.pg")


@pytest.mark.parametrize(
    ("error", "label"),
    [
        (ParseError, "parse error"),
        (CatalogError, "catalog error"),
        (TypeCheckError, "type error"),
        (PlanError, "plan error"),
    ],
)
def test_a_source_error_says_its_class_its_message_and_its_place(
    error: type[SourceError], label: str
) -> None:
    raised = error([Diagnostic("lower-case 'n'", Span(7, 8), "use N")], SOURCE)

    assert type(raised) is error
    assert str(raised) == f"{label}: lower-case 'n' at 1:8"
    assert raised.position == (1, 8)
    assert raised.span == (8, 9)
    assert (raised.code, raised.status, raised.exit_code) == ("bad_request", 400, 1)


def test_the_first_diagnostic_decides_message_and_span() -> None:
    raised = ParseError([Diagnostic("first", Span(12, 16)), Diagnostic("second", Span(0, 1))], SOURCE)

    assert str(raised) == "parse error: first at 2:1"
    assert raised.span == (13, 17)
    assert [diagnostic.message for diagnostic in raised.diagnostics] == ["first", "second"]


def test_every_diagnostic_is_rendered() -> None:
    raised = ParseError([Diagnostic("first", Span(7, 8)), Diagnostic("second", Span(17, 18))], SOURCE)

    first, second = raised.render().split("\n\n")

    assert first.startswith("parse error: first\n --> schema.pg:1:8\n")
    assert second.startswith("parse error: second\n --> schema.pg:2:6\n")


def test_a_source_error_may_have_no_place() -> None:
    raised = CatalogError([Diagnostic("nowhere")], SOURCE)

    assert str(raised) == "catalog error: nowhere"
    assert raised.span is None
    assert raised.position is None


def test_a_type_error_has_the_code_of_its_first_diagnostic() -> None:
    raised = TypeCheckError([Diagnostic("unknown type 'Bok'", Span(0, 1), code="T1")], SOURCE)

    assert raised.type_code == "T1"
    assert str(raised) == "type error: T1: unknown type 'Bok' at 1:1"
    assert TypeCheckError([Diagnostic("no code")], SOURCE).type_code is None


def test_a_mixed_mutation_is_a_parse_error_that_knows_its_query() -> None:
    raised = MixedMutation([Diagnostic("mixed", Span(0, 1))], SOURCE, query_name="q")

    assert isinstance(raised, ParseError)
    assert str(raised).startswith("parse error: mixed")
    assert raised.query_name == "q"


def test_values_fail_with_an_execution_error() -> None:
    raised = ParameterError("parameter 'x' is missing", name="x")

    assert isinstance(raised, ExecutionError)
    assert str(raised) == "execution error: parameter 'x' is missing"
    assert raised.name == "x"
    assert raised.status == 400


def test_an_unsupported_migration_shows_its_reason_and_carries_its_steps() -> None:
    raised = SchemaError("[OG-MF-103] no", steps=["a", "b"])

    assert isinstance(raised, BadRequest)
    assert str(raised) == "[OG-MF-103] no"
    assert raised.steps == ("a", "b")


@pytest.mark.parametrize(("known", "listed"), [(["a", "b"], "'a', 'b'"), ([], "none")])
def test_an_unknown_query_is_quoted_beside_those_that_exist(known: list[str], listed: str) -> None:
    raised = QueryNotFound("zz", known=known)

    assert isinstance(raised, NotFoundError)
    assert str(raised) == f"query 'zz' not found; declared: {listed}"
    assert raised.name == "zz"
    assert (raised.code, raised.status) == ("not_found", 404)


def test_the_root_is_internal() -> None:
    assert (OmnigraphError.code, OmnigraphError.status, OmnigraphError.exit_code) == ("internal", 500, 1)
