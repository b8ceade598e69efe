"""Odd objects of Python libraries: stored as they are, or refused in words of ours."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import networkx  # type: ignore[import-untyped] # it has no stubs
import numpy as np
import pandas as pd
import polars as pl
import pytest

import omnigraph
from omnigraph.core.errors import BadRequest, OmnigraphError
from omnigraph.graph.graph import Graph

SCHEMA = """\
node Thing {
    k: String @key
    n: I64?
    f: F64?
    d: Date?
    t: DateTime?
    many: [I64]?
    ts: [DateTime]?
}
"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return omnigraph.init(tmp_path_factory.mktemp("odd") / "graph", SCHEMA, durability="process")


@dataclass
class Thing:
    k: str
    n: Any = None
    f: Any = None
    d: Any = None
    t: Any = None
    many: Any = None
    ts: Any = None


@dataclass
class Unset:
    k: str
    n: int = field(init=False)


TABLES: dict[str, Callable[[], object]] = {
    "sparse": lambda: pd.DataFrame({"k": ["a"], "n": pd.arrays.SparseArray(np.array([1]))}),
    "large": lambda: pd.DataFrame({"k": ["a"], "n": [2**70]}),
    "twice": lambda: pd.DataFrame([["a", 1, 2]], columns=["k", "n", "n"]),
    "lazy": lambda: pl.LazyFrame({"k": ["a"]}),
    "series of polars": lambda: pl.Series("k", ["a"]),
    "series of pandas": lambda: pd.Series(["a"], name="k"),
}


@pytest.mark.case("surfaces", 765)
@pytest.mark.parametrize("kind", TABLES)
def test_a_table_that_cannot_be_held_is_refused(graph: Graph, kind: str) -> None:
    with pytest.raises(OmnigraphError, match="Thing"):
        graph.load_tables({"Thing": TABLES[kind]()}, "append", index=False)

    assert graph.table("Thing").num_rows == 0


@pytest.mark.case("surfaces", 765)
def test_a_node_that_is_an_enormous_integer_is_refused(graph: Graph) -> None:
    network = networkx.DiGraph()
    network.add_node(10**5000)

    with pytest.raises(BadRequest, match="integer of more than 128 bits"):
        graph.load_networkx(network, "append", node_type="Thing", index=False)


@pytest.mark.case("surfaces", 765)
def test_a_list_that_contains_itself_is_refused(graph: Graph) -> None:
    loop: list[Any] = [1]
    loop.append(loop)

    with pytest.raises(BadRequest, match=r"objects:1: Thing\.many: a list is nested too deeply"):
        graph.load_objects([Thing("a", many=loop)], "append", index=False)
    with pytest.raises(BadRequest, match="nested too deeply"):
        graph.load([{"type": "Thing", "data": {"k": "a", "many": loop}}], "append", index=False)


@pytest.mark.case("surfaces", 765)
def test_a_field_that_was_never_set_is_named(graph: Graph) -> None:
    with pytest.raises(BadRequest, match=r"objects:1: Unset\.n was never set"):
        graph.load_objects([Unset("a")], "append", types={Unset: "Thing"}, index=False)


REFUSED = {
    "seconds": ("t", np.datetime64("2024-01-01T10:00:00", "s")),
    "milliseconds": ("t", np.datetime64("2024-01-01T10:00:00", "ms")),
    "nanoseconds": ("t", np.datetime64("2024-01-01T10:00:00", "ns")),
    "nanoseconds as a number": ("n", np.datetime64("2024-01-01T10:00:00", "ns")),
    "months": ("d", np.datetime64("2024-01", "M")),
    "no time": ("t", np.datetime64("NaT")),
    "no day": ("d", np.datetime64("NaT", "D")),
    "a span": ("n", np.timedelta64(5, "ns")),
    "an array of times": ("ts", np.array(["2024-01-01"], "datetime64[ns]")),
    "an array of spans": ("many", np.array([5], "timedelta64[ns]")),
    "an array with no time": ("ts", np.array(["2024-01-01", "NaT"], "datetime64[D]")),
    "a record": ("many", np.array([(1, 2)], "i8,i8")[0]),
    "a long float": ("f", np.longdouble(1)),
}


@pytest.mark.case("surfaces", 766)
@pytest.mark.parametrize("kind", REFUSED)
def test_times_of_numpy_without_a_zone_are_refused(graph: Graph, kind: str) -> None:
    name, value = REFUSED[kind]

    with pytest.raises(BadRequest, match=rf"^objects:1: Thing\.{name}: "):
        graph.load_objects([Thing("a", **{name: value})], "append", index=False)

    assert graph.table("Thing").num_rows == 0


@pytest.mark.case("surfaces", 766)
def test_days_of_numpy_are_days_and_integers_are_the_nearest_float_on_every_way(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", SCHEMA, durability="process")
    for number in (2**53 + 1, 10**25 + 1):
        line = f'{{"type":"Thing","data":{{"k":"text","f":{number}}}}}\n'.encode()
        graph.load(line, "merge", index=False)
        graph.load([{"type": "Thing", "data": {"k": "dict", "f": number}}], "merge", index=False)
        graph.load_objects([Thing("object", f=number, d=np.datetime64("2024-02-29"))], "merge", index=False)

        assert graph.table("Thing")["f"].to_pylist() == [float(number)] * 3

    days = [row["d"] for row in graph.table("Thing").to_pylist() if row["k"] == "object"]
    assert days == [date(2024, 2, 29)]
