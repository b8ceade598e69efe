"""Literals against columns of every type: typed to the column, with an index and without, the same rows."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from omnigraph import Graph
from omnigraph.storage.tables.filter import Compare, to_lance
from omnigraph.storage.tables.filter import LeafOperator as Comparing
from omnigraph.storage.tables.handle import TableAddress
from tests.support.engine import ndjson, new_graph, node
from tests.support.queries import read
from tests.support.reading import values
from tests.support.seam import internals

SCHEMA = """\
node Plain {
    k: String @key  i: I32?  u: U32?  l: I64?  f: F32?  d: F64?  day: Date?  at: DateTime?  b: Bool?
}
node Fast {
    k: String @key  i: I32? @index  u: U32? @index  l: I64? @index  f: F32? @index
    d: F64? @index  day: Date? @index  at: DateTime? @index  b: Bool? @index
}
"""
ROWS = [
    {"i": number * 10 - 20, "u": number, "l": 2**53 + number, "f": number / 10, "d": number / 2,
     "day": f"2020-01-0{number + 1}", "at": f"2020-01-01T00:00:0{number}.500Z", "b": number % 2 == 0}
    for number in range(8)
]  # fmt: skip
SIGNS: dict[str, Comparing] = {"=": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
LITERALS: dict[str, list[tuple[str, int | float | bool]]] = {
    "i": [("10", 10), ("2.7", 2.7), ("10.0", 10.0), ("30.5", 30.5), ("3000000000", 3_000_000_000)],
    "u": [("3", 3), ("2.7", 2.7), ("5000000000", 5_000_000_000), ("0", 0)],
    "l": [(str(2**53 + 1), 2**53 + 1), (f"{2**53}.0", 2.0**53), ("1.5", 1.5)],
    "f": [("0.1", 0.1), ("0.30000000000000004", 0.30000000000000004), ("1", 1)],
    "d": [("1.5", 1.5), ("1", 1), ("0.1", 0.1)],
    "day": [('date("2020-01-03")', 18_264)],
    "at": [('datetime("2020-01-01T00:00:03.500Z")', 1_577_836_803_500)],
    "b": [("true", True)],
}


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    root: Path = tmp_path_factory.mktemp("numbers") / "graph"
    records = [node(name, k=str(at), **row) for name in ("Plain", "Fast") for at, row in enumerate(ROWS)]
    records += [node(name, k="none") for name in ("Plain", "Fast")]
    with new_graph(root, SCHEMA, *records) as graph:
        graph.ensure_indices()
        late = [node(name, k="late", i=10, u=3) for name in ("Plain", "Fast")]
        graph.load(ndjson(late), "append", index=False)
        yield graph


@pytest.mark.case("engine", 260)
@pytest.mark.parametrize(("column", "sign"), list(product(LITERALS, SIGNS)))
def test_every_way_to_a_literal_finds_the_same_rows(numbers: Graph, column: str, sign: str) -> None:
    store = internals(numbers).parts.store
    for text, value in LITERALS[column]:
        found: dict[tuple[str, object], list[str]] = {}
        for name, is_turned in product(("Plain", "Fast"), (False, True)):
            match = _match(name, column, sign, text, is_turned)
            found[name, is_turned] = sorted(values(numbers.query(read(match, "return { $x.k }"))))
        where = Compare(column, SIGNS[sign], value)
        for name in ("Plain", "Fast"):
            handle = store.open_at(*_pin(numbers, name))
            found[name, "scan"] = sorted(
                map(str, store.scan(handle, columns=["k"], filter=where)["k"].to_pylist())
            )
        assert len({tuple(rows) for rows in found.values()}) == 1, (text, found)


@pytest.mark.case("engine", 260)
def test_what_a_type_cannot_hold_keeps_its_meaning(numbers: Graph) -> None:
    def rows(condition: str) -> list[str]:
        return sorted(values(numbers.query(read(f"$x: Fast $x.{condition}", "return { $x.k }"))))

    everyone = sorted([*map(str, range(8)), "late"])
    assert rows("i = 2.7") == []
    assert rows("i > 30.5") == rows("i >= 31") == ["6", "7"]
    assert rows("i < 3000000000") == everyone
    assert rows("u > 5000000000") == []
    assert rows("f = 0.1") == ["1"]


@pytest.mark.case("engine", 260)
@pytest.mark.parametrize(("column", "sign"), [("i", "="), ("u", "="), ("i", ">"), ("u", "<="), ("f", "=")])
def test_typed_literals_use_the_index(numbers: Graph, column: str, sign: str) -> None:
    handle = internals(numbers).parts.store.open_at(*_pin(numbers, "Fast"))
    filter = to_lance(Compare(column, SIGNS[sign], LITERALS[column][0][1]), handle.schema)

    assert "ScalarIndexQuery" in handle._dataset.scanner(filter=filter).explain_plan()


def _match(name: str, column: str, sign: str, text: str, is_turned: bool) -> str:
    shown = f"{text} {MIRRORED[sign]} $x.{column}" if is_turned else f"$x.{column} {sign} {text}"
    return f"$x: {name} {shown}"


def _pin(graph: Graph, name: str) -> tuple[TableAddress, int]:
    entry = graph.snapshot().entry(f"node:{name}")
    return internals(graph).parts.address(entry), entry.version
