"""The files that a name stands for: one file, a folder, a pattern, or `Type=` and any of these.

A name is a path, or an address `s3://bucket/key` in a store, whose keys have folders and names as paths do.

N1  A name is taken or refused: of a folder, every file whose suffix says that it is data, and at least one.
    What begins with a dot or an underscore is not data: writers keep unfinished files there.
N2  The order of files is the order of records: as given, and by name inside a folder or pattern.
N3  A suffix says the format, and a second one the packing; a file of one type in a folder has the type's
    name, or its folder has.
"""

import glob
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from omnigraph.bulk.files import is_folder, is_object, objects_below, objects_like, refuse_other_stores
from omnigraph.bulk.sources.model import Compression, Format, SourceInput
from omnigraph.catalog.model import Catalog, EdgeType, NodeType
from omnigraph.core.errors import BadRequest
from omnigraph.core.nearest import hinting

FORMATS = {
    ".jsonl": Format.NDJSON,
    ".ndjson": Format.NDJSON,
    ".csv": Format.CSV,
    ".parquet": Format.PARQUET,
    ".arrow": Format.ARROW,
    ".feather": Format.ARROW,
}
PACKINGS = {".gz": Compression.GZIP, ".zst": Compression.ZSTD}
_TYPED = re.compile(r"(?P<type>[A-Za-z_][A-Za-z0-9_]*)=(?P<path>.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class FileKind:
    """What the suffixes of a name say, and what is left of it."""

    stem: str
    format: Format | None
    compression: Compression | None


def resolve_name(name: str, catalog: Catalog) -> Iterator[SourceInput]:
    """Yield the files of a name, not yet with names for errors and places among the inputs (N1, N2, N3).

    Raises:
        BadRequest: the name matches nothing, or the type of a file is not given or not in the schema.
    """
    if not name:
        raise BadRequest("the name of a file to load is empty")
    typed = None if _is_there(name) else _TYPED.fullmatch(name)
    if typed is not None:
        yield from typed_files(typed["path"], find_type(typed["type"], catalog, name))
        return
    for path in find_files(name):
        found = kind_of(path)
        if found.format in {None, Format.NDJSON}:
            yield SourceInput(path, Format.NDJSON, compression=found.compression)
        else:
            yield _one(path, _type_by_place(path, name, catalog), found)


def typed_files(name: str, type_: NodeType | EdgeType) -> Iterator[SourceInput]:
    """Yield the files of a name that hold rows of one type; one without a known suffix is Parquet.

    Raises:
        BadRequest: there is no file, or a file names the types of its records itself.
    """
    for path in find_files(name):
        found = kind_of(path)
        if found.format is Format.NDJSON:
            raise BadRequest(f"{path} has records that name their types: give it without '{type_.name}='")
        yield _one(path, type_, found)


def find_files(name: str) -> list[str]:
    """Return the files of a name, sorted; a file that is given directly may have any name (N1, N2).

    Raises:
        BadRequest: a folder or a pattern has no files, or the store cannot be read.
    """
    refuse_other_stores(name)
    try:
        if is_folder(name):
            files = objects_below(name) if is_object(name) else _files_below(Path(name))
            found = [file for file in files if _is_data(file, name)]
            if not found:
                raise BadRequest(f"no data in {name}: data files end in {', '.join(FORMATS)}")
            return found
        if glob.has_magic(name) and not _is_there(name):
            found = objects_like(name) if is_object(name) else _files_like(name)
            if not found:
                raise BadRequest(f"no file matches {name}")
            return found
    except OSError as error:
        raise BadRequest(f"cannot read {name}: {error.strerror or error}") from error
    return [name if is_object(name) else str(Path(name))]


def _is_there(name: str) -> bool:
    return os.path.exists(name)  # noqa: PTH110 - an impossible name counts as a missing file


def _files_below(folder: Path) -> list[str]:
    return [str(file) for file in sorted(folder.rglob("*")) if file.is_file()]


def _files_like(pattern: str) -> list[str]:
    found = (Path(match) for match in glob.glob(pattern, recursive=True))  # noqa: PTH207 - absolute or not
    return [str(file) for file in sorted(found) if file.is_file()]


def kind_of(name: str) -> FileKind:
    """Return what the suffixes of a file say (N3)."""
    path = PurePosixPath(name)
    compression = PACKINGS.get(path.suffix)
    rest = path.name if compression is None else path.stem
    format_ = FORMATS.get(Path(rest).suffix)
    return FileKind(rest if format_ is None else Path(rest).stem, format_, compression)


def find_type(type_name: str, catalog: Catalog, where: str) -> NodeType | EdgeType:
    """Return a type, as records name types: nodes exactly, edges in any case.

    Raises:
        BadRequest: there is no such type.
    """
    found = catalog.nodes.get(type_name) or catalog.edge(type_name)
    if found is None:
        hint = hinting(type_name, [*catalog.nodes, *catalog.edges])
        raise BadRequest(f"{where}: unknown type '{type_name}'{hint}")
    return found


def _is_data(file: str, folder: str) -> bool:
    below = PurePosixPath(file).relative_to(PurePosixPath(folder)).parts
    is_hidden = any(part.startswith((".", "_")) for part in below)
    return kind_of(file).format is not None and not is_hidden


def _one(path: str, type_: NodeType | EdgeType, found: FileKind) -> SourceInput:
    format_ = found.format or Format.PARQUET
    if found.compression is not None and not format_.is_text:
        raise BadRequest(f"{path} is packed: {format_.value} files are packed inside, unpack it first")
    return SourceInput(path, format_, path, found.compression, type_.table_key)


def _type_by_place(path: str, name: str, catalog: Catalog) -> NodeType | EdgeType:
    """Return the type of a file in a folder: `Type.parquet` or `Type/part.parquet` (N3)."""
    stem = kind_of(path).stem
    if PurePosixPath(path) == PurePosixPath(name):
        raise BadRequest(f"{path} holds rows of one type: say which, as in {stem}={path}")
    is_known = stem in catalog.nodes or catalog.edge(stem) is not None
    return find_type(stem if is_known else PurePosixPath(path).parent.name, catalog, path)
