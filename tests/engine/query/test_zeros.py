"""The two zeros of floats are one value: which of them comes out depends on nothing but the query."""

from math import copysign
from pathlib import Path

import pytest

from tests.support.engine import new_graph, node
from tests.support.reading import ask, values

SCHEMA = "node Reading { name: String @key  place: String  value: F64?  small: F32? }"
ZEROS = {"plus": (0.0, -0.0), "minus": (-0.0, 0.0)}


@pytest.mark.parametrize("first", ZEROS)
@pytest.mark.parametrize("tail", ["", "$r.place, "], ids=["one group", "groups"])
@pytest.mark.parametrize("column", ["value", "small"])
def test_the_least_and_the_greatest_zero_have_no_sign(
    tmp_path: Path, first: str, tail: str, column: str
) -> None:
    records = [
        node("Reading", name=f"r{number}", place="here", **{column: value})
        for number, value in enumerate(ZEROS[first])
    ]
    with new_graph(tmp_path / "graph", SCHEMA, *records) as graph:
        (row,) = values(
            ask(graph, "$r: Reading", f"return {{ {tail}min($r.{column}) as l, max($r.{column}) as g }}")
        )

    assert [(value, copysign(1, value)) for value in row[-2:]] == [(0.0, 1.0), (0.0, 1.0)]
