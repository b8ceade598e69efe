"""Ids of keyed nodes: canonical texts (languages 1.9) and the promise E1."""

import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.catalog.model import KeyValue, NodeType, derive_id
from omnigraph.core.errors import ExecutionError
from tests.support.library import compile_text, evolved_catalog


def keyed(type_: str) -> NodeType:
    return compile_text(f"node M {{ a: {type_} @key }}").nodes["M"]


F32, F64, PAIR = (
    keyed("F32"),
    keyed("F64"),
    compile_text("node M { a: String  b: I64  @key(a, b) }").nodes["M"],
)


def single(value: float) -> float:
    """Return a value as a column of single-precision floats stores it."""
    stored: float = struct.unpack("f", struct.pack("f", value))[0]
    return stored


@pytest.mark.parametrize(
    ("type_", "value", "text"),
    [
        ("String", "", ""),
        ("String", ' a"b\n', ' a"b\n'),
        ("enum(x, y)", "x", "x"),
        ("I32", -7, "-7"),
        ("I64", -(2**63), "-9223372036854775808"),
        ("U64", 2**64 - 1, "18446744073709551615"),
        ("Bool", False, "false"),
        ("Date", -1, "-1"),
        ("DateTime", 1_000, "1000"),
    ],
)
def test_a_value_that_is_no_float_has_its_plain_text(type_: str, value: KeyValue, text: str) -> None:
    assert derive_id(keyed(type_), {"a": value}) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (0.5, "0.5"),
        (0.1, "0.1"),
        (-2.50, "-2.5"),
        (0.0, "0"),
        (-0.0, "0"),
        (100.0, "100"),
        (1e22, "1" + "0" * 22),
        (1e23, "1" + "0" * 23),
        (1e-7, "0.0000001"),
        (5e-324, "0." + "0" * 323 + "5"),
        (123456789.125, "123456789.125"),
        (7, "7"),
    ],
)
def test_a_double_is_its_shortest_decimal_without_exponent(value: float, text: str) -> None:
    assert derive_id(F64, {"a": value}) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"),
        (-0.0, "0"),
        (16777216.0, "16777216"),
        (1e-7, "0.0000001"),
        (1e22, "1" + "0" * 22),
        (3.4028234663852886e38, "34028235" + "0" * 31),
        (1.401298464324817e-45, "0." + "0" * 44 + "1"),
        (2.0**-96, "0.000000000000000000000000000012621775"),
        (2.0**87, "15474251" + "0" * 19),
        (2.0**90, "12379401" + "0" * 20),
    ],
)
def test_a_single_is_its_shortest_decimal_at_that_width(value: float, text: str) -> None:
    assert derive_id(F32, {"a": single(value)}) == text


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_single_has_the_text_that_numpy_finds_shortest(value: float) -> None:
    text = derive_id(F32, {"a": value})

    assert text == np.format_float_positional(np.float32(value + 0.0), unique=True, trim="-")
    assert single(float(text)) == value


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_is_read_back_from_its_text(value: float) -> None:
    text = derive_id(F64, {"a": value})

    assert float(text) == value
    assert "e" not in text.lower()
    assert not text.endswith((".", ".0"))


@pytest.mark.parametrize("node", [F32, F64], ids=["F32", "F64"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_key_is_finite(node: NodeType, value: float) -> None:
    with pytest.raises(ExecutionError, match=r"M\.a"):
        derive_id(node, {"a": value})


@pytest.mark.parametrize("values", [{"a": "x", "b": None}, {"a": "x"}, {"a": None, "b": 1}])
def test_a_key_cannot_contain_null(values: dict[str, KeyValue | None]) -> None:
    with pytest.raises(ExecutionError, match="cannot contain null"):
        derive_id(PAIR, values)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('a"b', r'["a\"b","1"]'),
        ("a\\b", r'["a\\b","1"]'),
        ("é日😀", '["é日😀","1"]'),
        ("a\nb\t\x01", r'["a\nb\t\u0001","1"]'),
        ("a/b", '["a/b","1"]'),
    ],
)
def test_a_composite_id_is_compact_json_that_keeps_other_scripts(text: str, expected: str) -> None:
    assert derive_id(PAIR, {"a": text, "b": 1}) == expected


def test_other_properties_take_no_part_in_an_id() -> None:
    assert derive_id(PAIR, {"b": 2, "z": "ignored", "a": "x"}) == '["x","2"]'


def test_a_rename_that_turns_the_order_of_names_keeps_every_id() -> None:
    first = "node M { alpha: String  zeta: I32  @key(alpha, zeta) }"
    second = 'node M { zz: String @rename_from("alpha")  zeta: I32  @key(zz, zeta) }'
    third = 'node Q @rename_from("M") { zz: String  aa: I32 @rename_from("zeta")  @key(aa, zz) }'

    before = evolved_catalog(first).nodes["M"]
    renamed = evolved_catalog(first, second).nodes["M"]
    twice = evolved_catalog(first, second, third).nodes["Q"]

    assert (before.key, renamed.key, twice.key) == (("alpha", "zeta"), ("zz", "zeta"), ("zz", "aa"))
    assert derive_id(before, {"alpha": "x", "zeta": 1}) == '["x","1"]'
    assert derive_id(renamed, {"zz": "x", "zeta": 1}) == '["x","1"]'
    assert derive_id(twice, {"zz": "x", "aa": 1}) == '["x","1"]'


def test_a_fresh_schema_orders_the_members_of_a_key_by_name() -> None:
    fresh = compile_text("node M { zz: String  aa: I32  @key(zz, aa) }").nodes["M"]

    assert fresh.key == ("aa", "zz")
