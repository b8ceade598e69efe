"""JSON to the parameters of a query, type by type."""

import math

import pytest

from omnigraph.catalog.params import ParameterInput, bind_parameters
from omnigraph.core.errors import ExecutionError, ParameterError
from omnigraph.core.values import Scalar, ValueType
from tests.support.queries import bind_text, books

ANY_TYPE = [
    "String",
    "Bool",
    "I32",
    "I64",
    "U32",
    "U64",
    "F32",
    "F64",
    "Date",
    "DateTime",
    "Blob",
    "[I32]",
    "Vector(2)",
]


def declared(type_text: str) -> ValueType:
    """Return the type of a parameter from its text."""
    return bind_text(books(params=f"$p: {type_text}")).parameters["p"]


def bind_value(type_text: str, value: object) -> ParameterInput:
    """Return one value as a parameter of a type."""
    return bind_parameters({"p": declared(type_text)}, {"p": value})["p"]


def refusal(type_text: str, value: object) -> ParameterError:
    """Return the error that one value is refused with; it names the parameter."""
    with pytest.raises(ParameterError) as caught:
        bind_value(type_text, value)
    error = caught.value
    assert isinstance(error, ExecutionError)
    assert error.name == "p"
    assert str(error).startswith("execution error: param 'p': ")
    return error


# Integers


@pytest.mark.parametrize(
    ("type_text", "low", "high"),
    [
        ("I32", -(2**31), 2**31 - 1),
        ("I64", -(2**63), 2**63 - 1),
        ("U32", 0, 2**32 - 1),
        ("U64", 0, 2**63 - 1),
    ],
)
def test_an_integer_has_bounds_as_number_and_as_text(type_text: str, low: int, high: int) -> None:
    for value in (low, high, 0, 1):
        assert bind_value(type_text, value) == value
        assert bind_value(type_text, str(value)) == value
    for value in (low - 1, high + 1):
        refusal(type_text, value)
        refusal(type_text, str(value))


@pytest.mark.parametrize("type_text", ["I32", "I64", "U32", "U64"])
@pytest.mark.parametrize(
    "value",
    [
        True,
        False,
        1.0,
        7.5,
        -0.0,
        math.nan,
        math.inf,
        "",
        "seven",
        "1e3",
        "7.0",
        "7.5",
        " 7 ",
        "7\n",
        "+7",
        "--7",
        "1_000",
        "0x7",
        "true",
        "\N{ARABIC-INDIC DIGIT SEVEN}",
        "\N{SUPERSCRIPT TWO}",
        "9" * 5_000,
        10**5_000,
        [7],
        {"n": 7},
    ],
    ids=lambda value: repr(value)[:20] if not isinstance(value, int) or value < 10**6 else "huge",
)
def test_an_integer_is_nothing_else(type_text: str, value: object) -> None:
    refusal(type_text, value)


@pytest.mark.parametrize(("text", "value"), [("007", 7), ("-0", 0), ("-7", -7)])
def test_a_text_of_digits_is_read_as_a_decimal(text: str, value: int) -> None:
    bound = bind_value("I64", text)

    assert bound == value
    assert type(bound) is int


# Floats


@pytest.mark.parametrize("type_text", ["F32", "F64"])
@pytest.mark.parametrize("value", [0, 3, -3, 0.1, -0.0, 1e308, 2**53 + 1])
def test_a_float_is_any_number(type_text: str, value: float) -> None:
    bound = bind_value(type_text, value)

    assert bound == float(value)
    assert type(bound) is float


@pytest.mark.parametrize("type_text", ["F32", "F64"])
@pytest.mark.parametrize(
    "value", [True, "3", "3.5", "NaN", [3.0], {}, math.nan, math.inf, -math.inf, 10**400]
)
def test_a_float_is_a_finite_number(type_text: str, value: object) -> None:
    refusal(type_text, value)


# Texts and truth


@pytest.mark.parametrize("value", ["", "a", "null", "é\n"])
def test_a_text_is_a_string(value: str) -> None:
    assert bind_value("String", value) == value


@pytest.mark.parametrize("value", [1, 1.5, True, ["a"], {"a": "b"}])
def test_a_text_is_nothing_else(value: object) -> None:
    refusal("String", value)


@pytest.mark.parametrize("value", [True, False])
def test_truth_is_a_boolean(value: bool) -> None:
    assert bind_value("Bool", value) is value


@pytest.mark.parametrize("value", [0, 1, "true", "", [True], 1.0])
def test_truth_is_nothing_else(value: object) -> None:
    refusal("Bool", value)


@pytest.mark.parametrize("value", ["base64:AAAA", "s3://bucket/key"])
def test_a_blob_is_a_string(value: str) -> None:
    assert bind_value("Blob", value) == value
    refusal("Blob", [1, 2])
    refusal("Blob", 5)


# Dates


def test_a_date_becomes_days_and_a_time_milliseconds() -> None:
    assert bind_value("Date", "1970-01-02") == 1
    assert bind_value("Date", "1970-01-02T23:00:00-01:00") == 2
    assert bind_value("DateTime", "1970-01-01T01:00:00.0019+01:00") == 1
    assert bind_value("DateTime", "1970-01-02") == 86_400_000
    assert bind_value("[Date]", ["1970-01-01", "1969-12-31"]) == [0, -1]


@pytest.mark.parametrize("type_text", ["Date", "DateTime"])
@pytest.mark.parametrize("value", [5, 5.0, True, ["2020-01-01"], {}])
def test_a_date_is_a_string(type_text: str, value: object) -> None:
    refusal(type_text, value)


@pytest.mark.parametrize("type_text", ["Date", "DateTime"])
@pytest.mark.parametrize(
    "value", ["", "soon", "2020-02-30", "2020-1-1", "01.02.2020", "2020-01-01T25:00:00Z"]
)
def test_a_date_that_does_not_exist_is_quoted(type_text: str, value: str) -> None:
    error = refusal(type_text, value)

    assert f"invalid {type_text} '{value}'" in str(error)


# Lists and vectors


@pytest.mark.parametrize(
    ("type_text", "value", "bound"),
    [
        ("[String]", ["a", ""], ["a", ""]),
        ("[String]", [], []),
        ("[I32]", [1, "2"], [1, 2]),
        ("[U64]", ["9223372036854775807"], [2**63 - 1]),
        ("[F64]", [1, 2.5], [1.0, 2.5]),
        ("[Bool]", [True, False], [True, False]),
        ("[Blob]", ["base64:AAAA"], ["base64:AAAA"]),
    ],
)
def test_a_list_is_an_array_of_values(type_text: str, value: list[object], bound: list[object]) -> None:
    assert bind_value(type_text, value) == bound


@pytest.mark.parametrize(
    ("type_text", "value"),
    [
        ("[String]", "a"),
        ("[String]", {"a": "b"}),
        ("[String]", [1]),
        ("[String]", ["a", None]),
        ("[String]?", ["a", None]),
        ("[String]", [["a"]]),
        ("[I32]", [1, True]),
        ("[I32]", [1, 2.0]),
        ("[I32]", [2**31]),
        ("[I32]", ["x"]),
        ("[U32]", [-1]),
        ("[F64]", ["1"]),
        ("[F64]", [math.nan]),
        ("[Bool]", [1]),
        ("[Date]", ["soon"]),
    ],
)
def test_every_item_of_a_list_is_checked(type_text: str, value: object) -> None:
    refusal(type_text, value)


def test_an_error_says_which_item_is_wrong() -> None:
    assert "[1]" in str(refusal("[I32]", [1, "x", 3]))
    assert "[2]" in str(refusal("Vector(3)", [1, 2, None]))


def test_a_vector_is_a_list_of_floats() -> None:
    bound = bind_value("Vector(4)", [1, 0.5, -2, 0])

    assert bound == [1.0, 0.5, -2.0, 0.0]
    assert isinstance(bound, list)
    assert {type(item) for item in bound} == {float}


@pytest.mark.parametrize(
    "value",
    [
        [],
        [1],
        [1, 2, 3],
        [1, None],
        [1, "2"],
        [1, True],
        [[1], [2]],
        [1, math.nan],
        [1, math.inf],
        "12",
        12,
        {},
    ],
)
def test_a_vector_has_exactly_so_many_numbers(value: object) -> None:
    refusal("Vector(2)", value)


# Null, missing and undeclared


@pytest.mark.parametrize("type_text", ANY_TYPE)
def test_null_is_for_nullable_parameters(type_text: str) -> None:
    assert bind_value(f"{type_text}?", None) is None
    assert bind_parameters({"p": declared(f"{type_text}?")}, {}) == {"p": None}
    refusal(type_text, None)


@pytest.mark.parametrize("type_text", ANY_TYPE)
def test_a_parameter_that_is_not_nullable_is_provided(type_text: str) -> None:
    with pytest.raises(ParameterError, match="parameter 'p' not provided") as caught:
        bind_parameters({"p": declared(type_text)}, {})

    assert caught.value.name == "p"


@pytest.mark.parametrize("given", [None, {}])
def test_a_query_without_parameters_needs_none(given: object) -> None:
    assert bind_parameters({}, given) == {}


@pytest.mark.parametrize("given", [[], [1], "p", 5, True, 0, ""])
def test_parameters_are_an_object(given: object) -> None:
    with pytest.raises(ParameterError) as caught:
        bind_parameters({}, given)

    assert caught.value.name is None


def test_an_undeclared_parameter_is_named_with_the_one_that_was_meant() -> None:
    with pytest.raises(ParameterError) as caught:
        bind_parameters({"handle": ValueType(Scalar.STRING, nullable=True)}, {"handel": "ada"})

    assert caught.value.name == "handel"
    assert "param 'handel': " in str(caught.value)
    assert "'handle'" in str(caught.value)


def test_an_undeclared_parameter_is_reported_before_a_missing_one() -> None:
    """The misspelling explains why the other one is missing."""
    with pytest.raises(ParameterError) as caught:
        bind_parameters({"handle": ValueType(Scalar.STRING)}, {"handel": "ada"})

    assert caught.value.name == "handel"


def test_every_declared_parameter_is_bound_in_the_order_declared() -> None:
    types = {
        "b": ValueType(Scalar.I32),
        "a": ValueType(Scalar.STRING, nullable=True),
        "c": ValueType(Scalar.BOOL),
    }

    bound = bind_parameters(types, {"c": True, "b": 1})

    assert list(bound.items()) == [("b", 1), ("a", None), ("c", True)]
