"""Arrow and Parquet files with single bytes put wrong, as a bad disk or a hostile hand would."""

import struct
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

NAMES = ["anna", "bert", "carla", "dora"]
BAD_TEXT = b"\xff\xfe\xfd\xfc"  # as long as the first names, and no UTF-8


def rows() -> pa.Table:
    """Return four people, with a column of every layout that can lie."""
    return pa.table(
        {
            "name": pa.array(NAMES),
            "age": pa.array([41, None, 7, None], pa.int32()),
            "group": pa.DictionaryArray.from_arrays(
                pa.array([0, 1, 2, 1], pa.int8()), pa.array(["red", "blue", "gray"])
            ),
            "tags": pa.array([["t111"], ["t222", "t333"], [], ["t444"]], pa.list_(pa.utf8())),
        }
    )


def write_arrow(path: Path, table: pa.Table, *, is_stream: bool = False) -> None:
    """Write a table as one batch, unpacked, as a file or as a stream."""
    make = pa.ipc.new_stream if is_stream else pa.ipc.new_file
    with make(str(path), table.schema) as writer:
        writer.write_table(table)


def write_parquet(path: Path, table: pa.Table) -> None:
    """Write a table so that its texts stand in the file as they are."""
    pq.write_table(table, path, compression="none", use_dictionary=False, write_statistics=False)


def replace_once(path: Path, old: bytes, new: bytes) -> None:
    """Put other bytes in the place of some that stand in a file exactly once."""
    data = path.read_bytes()
    assert data.count(old) == 1, f"{old!r} stands {data.count(old)} times in {path.name}"
    assert len(old) == len(new)
    path.write_bytes(data.replace(old, new))


def offsets(*ends: int) -> bytes:
    """Return offsets as Arrow keeps them."""
    return struct.pack(f"<{len(ends)}i", *ends)


def node(length: int, null_count: int) -> bytes:
    """Return what the head of a batch says of one column."""
    return struct.pack("<qq", length, null_count)


DAMAGES = {
    "offset far out": (offsets(0, 4, 8, 13, 17), offsets(0, 4, 2**30, 13, 17), 2, "name"),
    "offset behind the end": (offsets(0, 4, 8, 13, 17), offsets(0, 4, 8, 13, 2**31 - 1), 4, "name"),
    "offset below zero": (offsets(0, 4, 8, 13, 17), offsets(0, 4, -8, 13, 17), 2, "name"),
    "offsets that fall": (offsets(0, 4, 8, 13, 17), offsets(0, 12, 8, 13, 17), 2, "name"),
    "offset of a list": (offsets(0, 1, 3, 3, 4), offsets(0, 1, 3, 2**28, 4), 3, "tags"),
    "index without an entry": (bytes([0, 1, 2, 1]) + bytes(4), bytes([0, 1, 99, 1]) + bytes(4), 3, "group"),
    "index below zero": (bytes([0, 1, 2, 1]) + bytes(4), bytes([0, 255, 2, 1]) + bytes(4), 2, "group"),
    "count of nulls": (node(4, 2), node(4, 1), 1, "age"),
}
"""By name: bytes of an Arrow file of `rows()`, what is put in their place, the row and the column."""
