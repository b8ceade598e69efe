"""People and who knows whom, as files to load: the same rows as Parquet and as NDJSON, in no order."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

SEED = 20_265
PART_ROWS = 1_048_576  # made at a time
GROUP_ROWS = 131_072  # of a row group: what a task may take on its own
CITIES = 500
MOST_EDGES = 10_000  # of one source, in the schema with bounds: none has so many

_PERSON = "node Person { handle: String @key  name: String  age: I32  city: String  score: F64? }"
_KNOWS = "edge Knows: Person -> Person {card} {{ since: I32  weight: F64 }}"
OPEN_SCHEMA = f"{_PERSON}\n{_KNOWS.format(card='')}\n"
BOUNDED_SCHEMA = f"{_PERSON}\n{_KNOWS.format(card=f'@card(0..{MOST_EDGES})')}\n"


@dataclass(frozen=True, slots=True)
class Size:
    """How many people and edges there are."""

    people: int
    edges: int


@dataclass(frozen=True, slots=True)
class Files:
    """One graph as two files."""

    people: Path
    knows: Path

    @property
    def bytes(self) -> int:
        """How large both are."""
        return self.people.stat().st_size + self.knows.stat().st_size


def write_parquet(folder: Path, size: Size, *, with_ids: bool) -> Files:
    """Write the graph as Parquet; edges have ids of their own where asked."""
    files = Files(folder / "Person.parquet", folder / "Knows.parquet")
    folder.mkdir(parents=True, exist_ok=True)
    for path, parts in ((files.people, _people(size)), (files.knows, _knows(size, with_ids=with_ids))):
        writer = None
        for table in parts:
            writer = writer or pq.ParquetWriter(path, table.schema)
            writer.write_table(table, row_group_size=GROUP_ROWS)
        assert writer is not None, "there are rows"
        writer.close()
    return files


def write_ndjson(folder: Path, size: Size) -> Files:
    """Write the graph as NDJSON, without ids of edges."""
    files = Files(folder / "people.jsonl", folder / "knows.jsonl")
    folder.mkdir(parents=True, exist_ok=True)
    with files.people.open("wb") as file:
        for table in _people(size):
            file.write(_lines('{"type":"Person","data":{', table, "}}\n"))
    with files.knows.open("wb") as file:
        for table in _knows(size, with_ids=False):
            ends = _members(table.select(["from", "to"]))
            data = _members(table.drop_columns(["from", "to"]))
            file.write(_joined('{"edge":"Knows",', ends, ',"data":{', data, "}}\n"))
    return files


def _people(size: Size) -> Iterator[pa.Table]:
    rng = np.random.default_rng(SEED)
    for start in range(0, size.people, PART_ROWS):
        count = min(PART_ROWS, size.people - start)
        numbers = np.arange(start, start + count)
        yield pa.table(
            {
                "handle": _handles(numbers),
                "name": _named("Person ", numbers),
                "age": pa.array(rng.integers(18, 90, count), pa.int32()),
                "city": _named("city ", rng.integers(0, CITIES, count)),
                "score": pa.array(rng.random(count)),
            }
        )


def _knows(size: Size, *, with_ids: bool) -> Iterator[pa.Table]:
    rng = np.random.default_rng(SEED + 1)
    for start in range(0, size.edges, PART_ROWS):
        count = min(PART_ROWS, size.edges - start)
        ids = {"id": _named("edge-", np.arange(start, start + count))} if with_ids else {}
        yield pa.table(
            {
                **ids,
                "from": _handles(rng.integers(0, size.people, count)),
                "to": _handles(rng.integers(0, size.people, count)),
                "since": pa.array(rng.integers(1990, 2026, count), pa.int32()),
                "weight": pa.array(rng.random(count)),
            }
        )


def _handles(numbers: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> pa.Array:
    return _named("person-", numbers)


def _named(prefix: str, numbers: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> pa.Array:
    return pc.binary_join_element_wise(prefix, pa.array(numbers).cast(pa.utf8()), "")


def _lines(before: str, table: pa.Table, behind: str) -> memoryview:
    return _joined(before, _members(table), behind)


def _members(table: pa.Table) -> pa.Array:
    """Return the members of one object for each row."""
    parts: list[object] = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        whole = column.combine_chunks()
        is_text = pa.types.is_string(whole.type)
        quote = '"' if is_text else ""
        parts += [f'{"," if parts else ""}"{name}":{quote}', whole.cast(pa.utf8()), quote]
    return pc.binary_join_element_wise(*parts, "")


def _joined(*parts: object) -> memoryview:
    """Return the texts of all rows, one behind the other."""
    lines = pc.binary_join_element_wise(*parts, "").cast(pa.large_utf8())
    _, offsets, data = lines.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)
    return memoryview(data)[int(ends[0]) : int(ends[-1])]
