"""Questions about whole tables: the same answers in one part and in many, and as worked out by hand."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.catalog.model import EdgeType
from omnigraph.validate.questions import COUNT, HOLDER, ID, LINE, FoundRows
from omnigraph.validate.table_questions import TableQuestions
from tests.support.library import compile_text
from tests.support.seeds import fixed_seed

SCHEMA = """\
node Person { name: String @key }
edge Likes: Person -> Person @card(2..3)
"""
PARTS = [1, 2, 5, 1_000]
EVERYTHING = 10_000


class MemoryTables:
    """Tables in memory, in batches of a few rows."""

    def __init__(self, **tables: pa.Table) -> None:
        self._tables = {name.replace("_", ":"): table for name, table in tables.items()}
        self.passes: Counter[str] = Counter()

    def count(self, table_key: str) -> int:
        return self._tables[table_key].num_rows

    def batches(self, table_key: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        self.passes[table_key] += 1
        yield from self._tables[table_key].select(list(columns)).to_batches(max_chunksize=3)


def likes() -> EdgeType:
    return compile_text(SCHEMA).edges["Likes"]


def ids(count: int) -> list[str]:
    return [f"i{number:03}" for number in range(count)]


def values(random: Random, kind: str, count: int) -> Any:  # noqa: ANN401 - any array of Arrow
    """Return values of a type with repetitions and nulls; floats have both zeros."""
    chosen: dict[str, tuple[list[object], pa.DataType]] = {
        "text": (["a", "b", "ba", "", "é", "zz"], pa.utf8()),
        "number": ([-5, 0, 1, 2, 10**12], pa.int64()),
        "unsigned": ([0, 1, 2**64 - 1], pa.uint64()),
        "float": ([0.0, -0.0, 1.5, -2.5], pa.float64()),
        "date": ([date(1, 1, 1), date(2020, 5, 1), date(9999, 12, 31)], pa.date32()),
        "bool": ([True, False], pa.bool_()),
    }
    options, type_ = chosen[kind]
    return pa.array([random.choice([None, *options]) for _ in range(count)], type_)


def repeated(rows: list[tuple[object, ...]]) -> dict[int, int]:
    """Return, by the line of each row whose tuple an earlier row has, the line of the first such row."""
    first: dict[tuple[object, ...], int] = {}
    found = {}
    for line, row in enumerate(rows, 1):
        if None not in row:
            key = tuple(0.0 if value == 0 else value for value in row)
            if first.setdefault(key, line) != line:
                found[line] = first[key]
    return found


@pytest.mark.case("engine", 518)
@pytest.mark.parametrize("keys_max", PARTS)
@pytest.mark.parametrize("kind", ["text", "number", "unsigned", "float", "date", "bool"])
@pytest.mark.parametrize("width", [1, 2])
def test_repeated_tuples_are_found_with_the_first_row_that_has_them(
    kind: str, width: int, keys_max: int
) -> None:
    random = Random(fixed_seed("TABLE_QUESTIONS_SEED"))
    columns = {f"c{number}": values(random, kind, 40) for number in range(width)}
    table = pa.table({ID: pa.array(ids(40)), **columns})
    ask = TableQuestions(MemoryTables(node_T=table), EVERYTHING, keys_max)

    found = ask.duplicates("node:T", list(columns))

    expected = repeated(list(zip(*(column.to_pylist() for column in columns.values()), strict=True)))
    told = dict(zip(found.rows[LINE].to_pylist(), found.rows[HOLDER].to_pylist(), strict=True))
    assert told == {line: ids(40)[holder - 1] for line, holder in expected.items()}
    assert found.total == len(expected)


@pytest.mark.case("engine", 518)
@pytest.mark.parametrize("keys_max", PARTS)
def test_ends_without_a_node_are_found(keys_max: int) -> None:
    random = Random(fixed_seed("TABLE_QUESTIONS_SEED"))
    nodes = random.sample(ids(60), 30)
    ends = [(random.choice(ids(60)), random.choice(ids(60))) for _ in range(50)]
    tables = MemoryTables(
        node_Person=pa.table({ID: nodes}),
        edge_Likes=pa.table({ID: ids(50), "src": [s for s, _ in ends], "dst": [d for _, d in ends]}),
    )

    found = TableQuestions(tables, EVERYTHING, keys_max).missing(likes())

    for place, answer in enumerate(found):
        expected = [number for number, pair in enumerate(ends, 1) if pair[place] not in nodes]
        assert answer.rows[LINE].to_pylist() == expected
        assert answer.total == len(expected)


@pytest.mark.case("engine", 518)
@pytest.mark.parametrize("keys_max", PARTS)
def test_sources_with_too_many_or_too_few_edges_are_found(keys_max: int) -> None:
    random = Random(fixed_seed("TABLE_QUESTIONS_SEED"))
    sources = [random.choice(ids(20)) for _ in range(45)]
    tables = MemoryTables(edge_Likes=pa.table({ID: ids(45), "src": sources}))

    beyond, below = TableQuestions(tables, EVERYTHING, keys_max).counts(likes())

    counted = Counter(sources)
    assert pairs(beyond, "src") == {source: n for source, n in counted.items() if n > 3}
    assert pairs(below, ID) == {source: n for source, n in counted.items() if n < 2}
    last = {source: id_ for id_, source in zip(ids(45), sources, strict=True)}
    assert set(beyond.rows[ID].to_pylist()) == {last[source] for source, n in counted.items() if n > 3}


def pairs(found: FoundRows, column: str) -> dict[object, object]:
    return dict(zip(found.rows[column].to_pylist(), found.rows[COUNT].to_pylist(), strict=True))


def test_an_answer_holds_the_first_rows_and_counts_all() -> None:
    table = pa.table({ID: ids(30), "c": ["same"] * 30})

    for keys_max in PARTS:
        found = TableQuestions(MemoryTables(node_T=table), 4, keys_max).duplicates("node:T", ["c"])

        assert found.rows[LINE].to_pylist() == [2, 3, 4, 5]
        assert found.total == 29


def test_tables_without_rows_break_nothing() -> None:
    empty = pa.table({name: pa.array([], pa.utf8()) for name in (ID, "src", "dst")})
    ask = TableQuestions(MemoryTables(node_Person=empty, edge_Likes=empty), EVERYTHING)

    assert ask.duplicates("edge:Likes", ["src", "dst"]).total == 0
    assert [found.total for found in (*ask.missing(likes()), *ask.counts(likes()))] == [0, 0, 0, 0]


def test_edges_to_an_empty_table_have_no_end() -> None:
    empty = pa.table({ID: pa.array([], pa.utf8())})
    edges = pa.table({ID: ["k"], "src": ["a"], "dst": ["b"]})
    ask = TableQuestions(MemoryTables(node_Person=empty, edge_Likes=edges), EVERYTHING)

    assert [found.total for found in ask.missing(likes())] == [1, 1]


@pytest.mark.case("engine", 518)
@pytest.mark.parametrize("keys_max", PARTS)
def test_an_edge_without_an_end_is_in_the_last_part(keys_max: int) -> None:
    edges = pa.table({ID: ["k"], "src": pa.array([None], pa.utf8()), "dst": ["i001"]})
    tables = MemoryTables(node_Person=pa.table({ID: ids(10)}), edge_Likes=edges)

    missing = TableQuestions(tables, EVERYTHING, keys_max).missing(likes())

    assert [found.total for found in missing] == [1, 0]


def test_a_small_table_is_read_once_for_a_question() -> None:
    tables = MemoryTables(node_T=pa.table({ID: ids(30)}))

    TableQuestions(tables, EVERYTHING).duplicates("node:T", [ID])

    assert tables.passes["node:T"] == 1
