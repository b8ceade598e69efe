"""What a load sends to a server: NDJSON as it is; tables, dicts and objects as they are read for a storage.

One table goes as a stream of Arrow's, which keeps its types. Several have to be one commit, and go as NDJSON.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import orjson
import pyarrow as pa

from omnigraph.catalog.model import Catalog, EdgeType, NodeType
from omnigraph.core.errors import BadRequest, UnsupportedError
from omnigraph.core.values import named
from omnigraph.graph.encode import json_rows
from omnigraph.graph.source import read_file
from omnigraph.operations.load.given_records import records_input
from omnigraph.operations.load.model import LoadInput, RecordInput, TableInput
from omnigraph.operations.load.tables import table_input

NDJSON_SUFFIXES = (".jsonl", ".ndjson", ".json")
_PHYSICAL = frozenset({"id", "from", "to"})

RemoteData: TypeAlias = (
    str
    | Path
    | bytes
    | Mapping[str, object]
    | Iterable[str | Path | Mapping[str, object]]
    | Callable[[Catalog], LoadInput]  # asked with the types of the branch
)


@dataclass(frozen=True, slots=True)
class ArrowRows:
    """A stream with rows of one type."""

    type_name: str
    content: bytes


def given_rows(data: object, mode: str, ask: Callable[[], Catalog]) -> ArrowRows | bytes:
    """Return what a load was given as it is sent; `ask` returns the types, where they are needed.

    Raises:
        BadRequest: it cannot be loaded: an unknown type, a value that cannot be stored, an unreadable file.
        UnsupportedError: it is something that only a load into storage takes.
    """
    match data:
        case bytes():
            return data
        case str() | Path():
            return _file(data)
        case Mapping():
            catalog = ask()
            inputs = [table_input(catalog, name, table) for name, table in data.items()]
            if mode == "overwrite" and len(inputs) > 1:
                _refuse_emptied(inputs)
            return _joined(catalog, inputs)
        case _ if callable(data) and not isinstance(data, type):
            catalog = ask()
            return _joined(catalog, [data(catalog)])
        case Iterable() if getattr(data, "ndim", None) != 0:  # such an array has no items
            return _items(list(data), ask)
        case _:
            raise BadRequest(
                "a load takes a path, NDJSON as bytes, records as dicts, or tables by type name as in "
                f"{{'Person': table}}, not {named(data)}"
            )


def _items(listed: list[object], ask: Callable[[], Catalog]) -> bytes:
    records = [item for item in listed if isinstance(item, Mapping)]
    if records and len(records) == len(listed):
        return records_input(ask(), records).data
    match listed:
        case [str() | Path() as path]:
            return _file(path)
        case _:
            raise UnsupportedError(
                "load: a server takes one input: join files of NDJSON, or give tables to load_tables"
            )


def _refuse_emptied(inputs: Sequence[LoadInput]) -> None:
    """Refuse tables without rows among several, which in NDJSON would leave what they are to replace."""
    for item in inputs:
        if isinstance(item, TableInput) and not item.table.num_rows:
            raise UnsupportedError(
                f"load: a server empties a type by a load of one table: load {item.name}, which has no rows, "
                "alone"
            )


def _joined(catalog: Catalog, inputs: Sequence[LoadInput]) -> ArrowRows | bytes:
    """Return inputs of a load as one body."""
    match inputs:
        case [TableInput(table_key, table)]:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table)
            return ArrowRows(catalog.type_of(table_key).name, sink.getvalue().to_pybytes())
        case _:
            return b"".join(piece for item in inputs for piece in _pieces(catalog, item))


def _pieces(catalog: Catalog, item: LoadInput) -> Iterator[bytes]:
    match item:
        case RecordInput(data):
            yield data
        case TableInput(table_key, table):
            yield from _lines(catalog.type_of(table_key), table)
        case _:
            raise UnsupportedError("load: a server takes no Spark DataFrame: load it into the storage")


def _file(path: str | Path) -> bytes:
    if not str(path).endswith(NDJSON_SUFFIXES):
        raise UnsupportedError(
            f"load: a server takes NDJSON, and {path} does not end in {', '.join(NDJSON_SUFFIXES)}: "
            "read it into a table and give that to load_tables"
        )
    return read_file(path)


def _lines(type_: NodeType | EdgeType, table: pa.Table) -> Iterator[bytes]:
    names = table.column_names
    for values in json_rows(table):
        row = dict(zip(names, values, strict=True))
        if isinstance(type_, EdgeType):
            data = {name: value for name, value in row.items() if name not in _PHYSICAL or name == "id"}
            record = {"edge": type_.name, "from": row.get("from"), "to": row.get("to"), "data": data}
        else:
            data = row
            record = {"type": type_.name, "data": data}
        if data.get("id", "") is None:  # as good as none: an id is made, or derived from the key
            del data["id"]
        yield orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)
