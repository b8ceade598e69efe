"""How Lance stores the values of a binary column that asks for no compression, in every layout it chooses.

`storage/files/value_place.py` reads these layouts. If one of these tests fails after a change of the library,
values are read whole, and the memory of a server grows with them: the reader must learn the new layout.
"""

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance import LanceDataset, LanceOperation
from lance.fragment import write_fragments

from omnigraph.catalog.arrow_schema import UNCOMPRESSED
from omnigraph.storage.files.data_file import data_file_name
from omnigraph.storage.files.value_place import find_value

RANDOM = Random(1)
LONG, LONGER = RANDOM.randbytes(100_000), RANDOM.randbytes(300_000)
SHAPES: dict[str, list[bytes | None]] = {
    "of all kinds": [b"small", None, b"", LONG, LONGER, b"x" * 200_000],
    "one": [LONGER],
    "one and null": [LONGER, None],
    "null and one": [None, LONGER],
    "equal ones": [LONGER, LONGER],
    "one and empty": [LONGER, b""],
    "empty": [b""],
    "one byte": [b"x"],
    "repeated": [LONG, LONGER] * 10,
    "one among many short": [b"x" * 300, *[b"y"] * 2_000, LONG],
    "bytes that compress": [bytes(300_000), b"a" * 100_000],
}


def schema(*, is_nullable: bool = True, is_plain: bool = True) -> pa.Schema:
    metadata = UNCOMPRESSED if is_plain else None
    fields: list[pa.Field[Any]] = [
        pa.field("id", pa.utf8(), nullable=False),
        pa.field("data", pa.large_binary(), is_nullable, metadata=metadata),
    ]
    return pa.schema(fields)


def table(values: Sequence[bytes | None], of: pa.Schema) -> pa.Table:
    ids = [str(number) for number in range(len(values))]
    return pa.table({"id": ids, "data": pa.array(values, pa.large_binary())}, schema=of)


def placed(dataset: LanceDataset, row: int, fragment: int = 0) -> bytes | str | None:
    """Return a value as its place in the file says it is; the word `unknown` where no place is found."""
    (file,) = dataset.get_fragments()[fragment].metadata.files
    content = (Path(dataset.uri) / "data" / data_file_name(file)).read_bytes()
    found = find_value(lambda start, end: content[start:end], len(content), file.column_indices[1], row)
    if found is None:
        return "unknown"
    return None if found.is_null else content[found.start : found.start + found.length]


@pytest.mark.case("engine", 800)
@pytest.mark.parametrize("name", SHAPES)
def test_every_layout_of_plain_values_is_known(name: str, tmp_path: Path) -> None:
    values = SHAPES[name]
    dataset = lance.write_dataset(table(values, schema()), tmp_path / "table")

    assert [placed(dataset, row) for row in range(len(values))] == values


def test_values_that_cannot_be_null_have_no_levels(tmp_path: Path) -> None:
    values = [LONG, b"", LONGER]
    dataset = lance.write_dataset(table(values, schema(is_nullable=False)), tmp_path / "table")

    assert [placed(dataset, row) for row in range(3)] == values


@pytest.mark.case("engine", 800)
def test_values_on_several_pages_are_found(tmp_path: Path) -> None:
    values = [Random(number).randbytes(3_000_000) for number in range(6)]
    written = [table([value], schema()) for value in values]
    dataset = lance.write_dataset(pa.concat_tables(written).to_reader(1), tmp_path / "table")

    assert [placed(dataset, row) for row in range(6)] == values


@pytest.mark.case("engine", 800)
def test_the_columns_wish_holds_for_whatever_is_written_to_the_table(tmp_path: Path) -> None:
    """Not for what the rows say: a row of an upsert or a compaction says nothing."""
    zeros = bytes(1_000_000)
    dataset = lance.write_dataset(table([LONG], schema()), tmp_path / "table", enable_stable_row_ids=True)

    added = write_fragments(table([zeros, b"a"], schema(is_plain=False)), dataset)
    dataset = LanceDataset.commit(dataset, LanceOperation.Append(added), read_version=dataset.version)

    assert [placed(dataset, row, fragment=1) for row in (0, 1)] == [zeros, b"a"]
    dataset.optimize.compact_files()
    assert [placed(dataset, row) for row in range(3)] == [LONG, zeros, b"a"]
    branch = dataset.create_branch("other")
    assert branch.schema.field("data").metadata == UNCOMPRESSED


def test_a_table_whose_column_has_no_wish_takes_that_of_the_rows(tmp_path: Path) -> None:
    """So tables of older builds store new values as they are, too."""
    dataset = lance.write_dataset(table([LONG, LONGER], schema(is_plain=False)), tmp_path / "table")
    assert placed(dataset, 0) == "unknown"

    added = write_fragments(table([LONGER, None], schema()), dataset)
    dataset = LanceDataset.commit(dataset, LanceOperation.Append(added), read_version=dataset.version)

    assert [placed(dataset, row, fragment=1) for row in (0, 1)] == [LONGER, None]


@pytest.mark.case("engine", 800)
def test_a_damaged_file_gives_no_place_outside_of_it(tmp_path: Path) -> None:
    dataset = lance.write_dataset(table(SHAPES["of all kinds"], schema()), tmp_path / "table")
    (file,) = dataset.get_fragments()[0].metadata.files
    whole = (Path(dataset.uri) / "data" / data_file_name(file)).read_bytes()
    random, tail = Random(2), 1_000
    content = b""

    def read(start: int, end: int) -> bytes:
        assert 0 <= start <= end <= len(content)
        return content[start:end]

    for _ in range(2_000):
        damaged = bytearray(whole)
        for _ in range(random.randrange(1, 4)):
            damaged[random.randrange(len(whole) - tail, len(whole))] = random.randrange(256)
        content = bytes(damaged[: random.choice([len(whole), random.randrange(len(whole))])])
        found = find_value(read, len(content), 1, random.randrange(8))
        assert found is None or found.start + found.length <= len(content)
