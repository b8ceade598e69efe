"""The inputs of a load by name: from what is written on the command line or in Python to the files meant.

The rules for names are in `bulk.sources.names`, those for mapping files in `bulk.sources.mapping_file`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import BinaryIO, TypeAlias, cast

from omnigraph.bulk.sources.mapping_file import read_mapping
from omnigraph.bulk.sources.names import resolve_name
from omnigraph.bulk.sources.sources import SourceInput
from omnigraph.catalog.model import Catalog
from omnigraph.core.errors import BadRequest
from omnigraph.core.values import named
from omnigraph.operations.load.given_records import records_input
from omnigraph.operations.load.load import FrameInput, LoadInput, RecordInput, TableInput
from omnigraph.operations.load.rejects import refuse_mapping
from omnigraph.operations.load.tables import table_input
from omnigraph.operations.settings import read_limits
from omnigraph.validate.records import BLOCK_BYTES

STDIN = "-"
_EXPECTED = (
    "a load takes paths, NDJSON as bytes, records as dicts, or by type name tables or lists of dicts, "
    "as in {'Person': table}; load_objects takes instances of classes"
)

GivenData: TypeAlias = (
    str
    | Path
    | bytes
    | Mapping[str, object]
    | Iterable[str | Path | LoadInput | Mapping[str, object]]
    | Callable[[Catalog], Iterable[LoadInput]]  # asked once the caller may know the types
)


def read_inputs(
    names: Iterable[str],
    catalog: Catalog,
    stdin: BinaryIO,
    *,
    mapping: Path | None = None,
    rejects: Path | None = None,
) -> Iterator[LoadInput]:
    """Yield what the names stand for, then the files of a mapping.

    A name is a file, a folder, a pattern, `-`, or `Type=path` for rows of one type, where the path may also
    be a folder or a pattern. Standard input is read when its turn comes. A single file of records gets no
    name: its errors give just the line.

    Raises:
        BadRequest: a name matches nothing, a file cannot be read, or a type is not in the schema.
        ResourceLimit: a line of standard input is above a limit.
    """
    found: list[SourceInput | None] = []
    for name in names:
        found.extend([None] if name == STDIN else resolve_name(name, catalog))
    if mapping is not None:
        found.extend(_mapped(mapping, catalog, rejects))
    is_only = len(found) == 1
    for place, source in enumerate(found):
        if source is None:
            shown = None if is_only else "<stdin>"
            yield RecordInput(read_all(stdin, shown), shown)
        else:
            is_unnamed = is_only and source.table_key is None
            yield replace(source, name=None if is_unnamed else source.path, file=place)


def read_all(stdin: BinaryIO, name: str | None) -> bytes:
    """Return what comes through a pipe, which may never end: its lines must.

    Raises:
        ResourceLimit: a line is above a limit.
    """
    limits, line, begun = read_limits(), 1, 0
    pieces: list[bytes] = []
    while piece := stdin.read(BLOCK_BYTES):
        pieces.append(piece)
        ends = piece.count(b"\n")
        begun = len(piece) - piece.rfind(b"\n") - 1 if ends else begun + len(piece)
        line += ends
        limits.check_line(begun, file_name=name, line=line)
    return b"".join(pieces)


def needs_types(data: GivenData, mapping: str | Path | None) -> bool:
    """Return whether it takes the types of a branch to tell what is meant: records name their own."""
    return mapping is not None or not isinstance(data, bytes)


def given_inputs(
    catalog: Catalog,
    data: GivenData,
    mapping: str | Path | None,
    rejects: Path | None,
) -> Iterator[LoadInput]:
    """Yield what a Python user gives to a load, then the files of a mapping.

    Raises:
        BadRequest: a value is not an input, a name matches nothing, or a type is not in the schema.
    """
    yield from _data(catalog, data)
    if mapping is not None:
        yield from mapped_sources(mapping, catalog, rejects)


def _data(catalog: Catalog, data: GivenData) -> Iterator[LoadInput]:
    if isinstance(data, bytes):
        yield RecordInput(data)
    elif isinstance(data, str | Path):
        yield from named_sources(data, catalog)
    elif isinstance(data, Mapping):
        for name, table in data.items():
            yield table_input(catalog, name, table)
    elif callable(data) and not isinstance(data, type):
        yield from data(catalog)
    elif isinstance(data, Iterable) and getattr(data, "ndim", None) != 0:  # such an array has no items
        yield from _items(catalog, data)
    else:
        raise BadRequest(f"{named(data)} cannot be loaded; {_EXPECTED}")


def _items(
    catalog: Catalog, data: Iterable[str | Path | LoadInput | Mapping[str, object]]
) -> Iterator[LoadInput]:
    for are_records, items in groupby(data, lambda item: isinstance(item, Mapping)):
        if are_records:
            yield records_input(catalog, cast("Iterable[Mapping[str, object]]", items))
            continue
        for item in items:
            if isinstance(item, str | Path):
                yield from named_sources(item, catalog)
            elif isinstance(item, RecordInput | TableInput | FrameInput | SourceInput):
                yield item
            else:
                raise BadRequest(f"{named(item)} among the data is not a path; {_EXPECTED}")


def named_sources(name: str | Path, catalog: Catalog) -> Iterator[SourceInput]:
    """Yield the files that a name stands for, each with its path as the name in errors.

    Raises:
        BadRequest: the name matches nothing, or a type is not in the schema.
    """
    return (replace(source, name=source.path) for source in resolve_name(str(name), catalog))


def mapped_sources(path: str | Path, catalog: Catalog, rejects: Path | None = None) -> Iterator[SourceInput]:
    """Yield the files of a mapping, each with its path as the name in errors.

    Raises:
        BadRequest: the mapping cannot be read, or names what does not exist.
    """
    if not isinstance(path, str | Path):
        raise BadRequest(f"a mapping is the path of a file, not {named(path)}")
    return (replace(source, name=source.path) for source in _mapped(Path(path), catalog, rejects))


def _mapped(path: Path, catalog: Catalog, rejects: Path | None) -> Iterable[SourceInput]:
    if rejects is not None:
        refuse_mapping(rejects, path)
    return read_mapping(path, catalog)
