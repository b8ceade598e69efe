"""Vectors that are too wide for a schema that is given, and defaults that want quotes."""

import pytest

from omnigraph.catalog.build import read_schema, reread_schema
from omnigraph.core.limits import VECTOR_DIMENSION_MAX
from omnigraph.core.source_errors import ParseError
from omnigraph.core.span import Source

ENUM = "node N { k: String @key  e: enum(Paper, 2nd, b-c, true, 2)? @default(%s) }"


@pytest.mark.case("languages", 260)
def test_a_new_vector_has_at_most_so_many_dimensions() -> None:
    read_schema(Source(f"node N {{ v: Vector({VECTOR_DIMENSION_MAX})? }}"))

    for dimension in (VECTOR_DIMENSION_MAX + 1, 2**31 - 1):
        source = Source(f"node N {{ v: Vector({dimension})? }}")
        with pytest.raises(ParseError, match="the dimension of 'v' is not between 1 and 65536"):
            read_schema(source)
        assert reread_schema(source).shape.types, "a graph that has it goes on"


@pytest.mark.case("languages", 261)
@pytest.mark.parametrize("value", ["Paper", "2nd", "b-c"])
def test_a_value_that_is_no_plain_name_is_offered_quotes(value: str) -> None:
    with pytest.raises(ParseError) as caught:
        read_schema(Source(ENUM % value))

    assert "in quotes" in str(caught.value.diagnostics[0].help)
    read_schema(Source(ENUM % f'"{value}"'))


@pytest.mark.case("languages", 261)
@pytest.mark.parametrize("value", ["true", "2"])
def test_a_value_that_looks_like_another_literal_is_offered_quotes(value: str) -> None:
    with pytest.raises(ParseError, match=rf'{value} is written in quotes here, as in @default\("{value}"\)'):
        read_schema(Source(ENUM % value))

    read_schema(Source(ENUM % f'"{value}"'))
