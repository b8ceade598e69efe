"""The inputs of a load by name: files, folders and patterns of NDJSON, and Parquet files of one type.

N1  A name is taken or refused: of a folder, every file whose suffix says that it is data, and at least one.
N2  The order of inputs is the order of records: as given, and by name inside of a folder or pattern.
"""

import glob
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.catalog.model import Catalog
from omnigraph.core.errors import BadRequest
from omnigraph.operations.load import LoadInput, RecordInput, TableInput

STDIN = "-"
RECORD_SUFFIXES = frozenset({".jsonl", ".ndjson"})
TABLE_SUFFIX = ".parquet"
_TYPED = re.compile(r"(?P<type>[A-Za-z_][A-Za-z0-9_]*)=(?P<path>.+)", re.DOTALL)


def read_inputs(names: Iterable[str], catalog: Catalog, stdin: BinaryIO) -> Iterator[LoadInput]:
    """Yield what the names stand for, each read when its turn comes.

    A name is a file of NDJSON, a folder, a pattern, `-`, or `Type=path` for Parquet, where the path may be a
    folder or a pattern as well. A single file of records goes without a name: its errors say the line.

    Raises:
        BadRequest: a name stands for nothing, a file cannot be read, or a type is not in the schema.
    """
    found = [(path, table_key) for name in names for path, table_key in _resolve(name, catalog)]
    for path, table_key in found:
        shown = str(path) if len(found) > 1 else None
        if table_key is not None:
            yield TableInput(table_key, _table(path), str(path))
        elif str(path) == STDIN:
            yield RecordInput(stdin.read(), shown and "<stdin>")
        else:
            yield RecordInput(_bytes(path), shown)


def _resolve(name: str, catalog: Catalog) -> Iterator[tuple[Path, str | None]]:
    """Yield the files of a name, and for Parquet the table that they go to."""
    typed = None if name == STDIN or Path(name).exists() else _TYPED.fullmatch(name)
    if typed is not None:
        table_key = _table_key(typed["type"], catalog, name)
        yield from ((path, table_key) for path in _files(typed["path"], frozenset({TABLE_SUFFIX})))
        return
    for path in _files(name, RECORD_SUFFIXES | {TABLE_SUFFIX}):
        yield path, _type_by_place(path, name, catalog) if path.suffix == TABLE_SUFFIX else None


def _files(name: str, suffixes: frozenset[str]) -> list[Path]:
    """Return the files of a name, sorted; a file that is named itself may be called as it likes."""
    path = Path(name)
    if path.is_dir():
        found = [file for file in path.rglob("*") if file.suffix in suffixes and file.is_file()]
        if not found:
            raise BadRequest(f"no {' or '.join(sorted(suffixes))} file in {name}")
        return sorted(found)
    if not path.exists() and glob.has_magic(name):
        found = [Path(match) for match in glob.glob(name, recursive=True)]  # noqa: PTH207 - absolute or not
        found = [file for file in found if file.is_file()]
        if not found:
            raise BadRequest(f"no file matches {name}")
        return sorted(found)
    return [path]


def _type_by_place(path: Path, name: str, catalog: Catalog) -> str:
    """Return the table that a Parquet file of a folder goes to: `Type.parquet` or `Type/part.parquet`."""
    if path == Path(name):
        raise BadRequest(f"{path} holds rows of one type: say which, as in {path.stem}={path}")
    is_known = path.stem in catalog.nodes or catalog.edge(path.stem) is not None
    return _table_key(path.stem if is_known else path.parent.name, catalog, str(path))


def _table_key(type_name: str, catalog: Catalog, where: str) -> str:
    """Return the table of a type, as records name types: nodes exactly, edges in any case."""
    found = catalog.nodes.get(type_name) or catalog.edge(type_name)
    if found is None:
        raise BadRequest(f"{where}: unknown type '{type_name}'")
    return found.table_key


def _table(path: Path) -> pa.Table:
    try:
        return pq.ParquetFile(path).read()
    except OSError as error:
        raise BadRequest(f"cannot read {path}: {error.strerror or error}") from error
    except pa.ArrowException as error:
        raise BadRequest(f"cannot read {path} as Parquet: {error}") from error


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadRequest(f"cannot read {path}: {error.strerror}") from error
