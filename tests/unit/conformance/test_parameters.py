"""Cases 181 to 187 and 222 of languages.md: JSON to parameters."""

import json

import pytest

from omnigraph.catalog.params import ParameterInput, bind_parameters
from omnigraph.core.errors import ParameterError
from tests.support.queries import bind_text, books


def bind_json(declaration: str, document: str | None) -> dict[str, ParameterInput]:
    """Return the parameters of a query, given as JSON text or not at all."""
    declared = bind_text(books(params=declaration)).parameters
    return bind_parameters(declared, None if document is None else json.loads(document))


def refusal(declaration: str, document: str | None) -> ParameterError:
    """Return the execution error that parameters are refused with."""
    with pytest.raises(ParameterError) as caught:
        bind_json(declaration, document)
    assert str(caught.value).startswith("execution error: ")
    return caught.value


@pytest.mark.case("languages", 181)
@pytest.mark.parametrize("value", ["7", '"7"'])
def test_an_i32_is_a_number_or_a_text_of_digits(value: str) -> None:
    assert bind_json("$n: I32", f'{{"n": {value}}}') == {"n": 7}


@pytest.mark.case("languages", 181)
@pytest.mark.parametrize("value", ["2147483648", "7.5", "true", "null"])
def test_an_i32_is_nothing_else(value: str) -> None:
    error = refusal("$n: I32", f'{{"n": {value}}}')

    assert error.name == "n"
    assert "param 'n': " in str(error)


@pytest.mark.case("languages", 182)
@pytest.mark.parametrize(("type_text", "value"), [("U32", "-1"), ("U64", '"9223372036854775808"')])
def test_an_unsigned_integer_has_bounds(type_text: str, value: str) -> None:
    assert refusal(f"$n: {type_text}", f'{{"n": {value}}}').name == "n"


@pytest.mark.case("languages", 183)
def test_a_float_is_a_number() -> None:
    bound = bind_json("$f: F64", '{"f": 3}')

    assert bound == {"f": 3.0}
    assert isinstance(bound["f"], float)
    assert refusal("$f: F64", '{"f": "3"}').name == "f"


@pytest.mark.case("languages", 184)
@pytest.mark.parametrize("value", ["[1, 2, 3]", '[1, 2, 3, "x"]'])
def test_a_vector_has_so_many_numbers(value: str) -> None:
    assert refusal("$v: Vector(4)", f'{{"v": {value}}}').name == "v"


@pytest.mark.case("languages", 185)
@pytest.mark.parametrize("value", ['"a"', "[null]"])
def test_a_list_is_an_array_without_null(value: str) -> None:
    assert refusal("$t: [String]", f'{{"t": {value}}}').name == "t"


@pytest.mark.case("languages", 186)
@pytest.mark.parametrize("document", [None, "null", "{}"])
def test_a_parameter_that_is_not_nullable_is_given(document: str | None) -> None:
    error = refusal("$x: String", document)

    assert "parameter 'x' not provided" in str(error)


@pytest.mark.case("languages", 186)
@pytest.mark.parametrize("document", [None, "null", "{}"])
def test_an_omitted_nullable_parameter_is_null(document: str | None) -> None:
    assert bind_json("$x: String?", document) == {"x": None}


@pytest.mark.case("languages", 186)
def test_parameters_are_an_object() -> None:
    refusal("$x: String?", "[1]")


@pytest.mark.case("languages", 186)
def test_an_undeclared_parameter_is_named() -> None:
    error = refusal("$x: String?", '{"y": 1}')

    assert error.name == "y"
    assert "'y'" in str(error)


def test_a_large_integer_is_the_same_as_number_and_as_text() -> None:
    """The static part of case 187."""
    number = bind_json("$n: I64", '{"n": 9007199254740993}')
    text = bind_json("$n: I64", '{"n": "9007199254740993"}')

    assert number == text == {"n": 9007199254740993}


@pytest.mark.case("languages", 222)
def test_a_misspelled_nullable_parameter_does_not_pass_for_null() -> None:
    error = refusal("$d: Date?", '{"dd": null}')

    assert error.name == "dd"
    assert "'dd'" in str(error)
