"""Types: how they are displayed and which fit together."""

import pytest

from omnigraph.core.values import NUMBERS, SCALAR_WORDS, Scalar, ValueType

STRING = ValueType(Scalar.STRING)
ENUM = ValueType(Scalar.STRING, enum_values=("a", "b"))
STRINGS = ValueType(Scalar.STRING, is_list=True)
VECTOR = ValueType(Scalar.VECTOR, dimension=4)


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        (ValueType(Scalar.I32, nullable=True), "I32?"),
        (STRINGS, "[String]"),
        (ValueType(Scalar.DATE, nullable=True, is_list=True), "[Date]?"),
        (VECTOR, "Vector(4)"),
        (
            ValueType(Scalar.STRING, nullable=True, enum_values=("audio", "ebook", "paper")),
            "enum(audio, ebook, paper)?",
        ),
        (ValueType(Scalar.DATETIME), "DateTime"),
    ],
)
def test_a_type_is_displayed_as_it_is_written(type_: ValueType, text: str) -> None:
    assert str(type_) == text


def test_eleven_words_are_scalars() -> None:
    assert set(SCALAR_WORDS) == {
        "String", "Blob", "Bool", "I32", "I64", "U32", "U64", "F32", "F64", "Date", "DateTime",
    }  # fmt: skip


@pytest.mark.parametrize("one", sorted(NUMBERS))
@pytest.mark.parametrize("other", sorted(NUMBERS))
def test_numbers_of_any_width_fit_together(one: Scalar, other: Scalar) -> None:
    assert ValueType(one).accepts(ValueType(other, nullable=True))
    assert ValueType(one, is_list=True).accepts(ValueType(other, is_list=True))


def test_an_enum_and_a_string_fit_together() -> None:
    assert ENUM.accepts(STRING)
    assert STRING.accepts(ENUM)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (STRING, STRINGS),
        (STRING, ValueType(Scalar.BOOL)),
        (ValueType(Scalar.DATE), ValueType(Scalar.DATETIME)),
        (ValueType(Scalar.DATE), STRING),
        (ValueType(Scalar.I32), STRING),
        (VECTOR, ValueType(Scalar.VECTOR, dimension=3)),
        (VECTOR, ValueType(Scalar.F32, is_list=True)),
    ],
)
def test_other_types_do_not_fit_together(one: ValueType, other: ValueType) -> None:
    assert not one.accepts(other)
    assert not other.accepts(one)


def test_a_list_is_neither_a_number_nor_a_text() -> None:
    numbers = ValueType(Scalar.I32, is_list=True)

    assert (numbers.is_number, numbers.item.is_number) == (False, True)
    assert (STRINGS.is_plain_string, STRINGS.item.is_plain_string) == (False, True)
    assert (ENUM.is_plain_string, VECTOR.is_vector, VECTOR.is_number) == (True, True, False)
