"""Where stored queries come from: a folder, files, or names with their files, read into a registry.

F1  Every declaration of a folder's `.gq` files, or of listed files, registers; of a file that a name points
    to, that one alone.
F2  What is wrong with a file or a name is a breakage of the registry, and never stops the others: whoever
    asks sees all of it at once.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from omnigraph.catalog.params import field_of
from omnigraph.catalog.stored_queries import Remark, StoredQueries, StoredQuery
from omnigraph.core.errors import BadRequest
from omnigraph.core.limits import SOURCE_BYTES_MAX
from omnigraph.core.regular_file import open_regular
from omnigraph.core.source_errors import ParseError
from omnigraph.core.values import named
from omnigraph.language import query_ast as ast
from omnigraph.language.parser import decode_source
from omnigraph.language.query_parser import parse_queries

SUFFIX = ".gq"
_TOOL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_MEMBERS = frozenset({"file", "expose", "tool_name"})


@dataclass(frozen=True, slots=True)
class NamedQuery:
    """One query of a file, by its name; an unexposed one can be called and is not listed."""

    name: str
    file: Path
    is_exposed: bool = True
    tool_name: str | None = None


@dataclass(frozen=True, slots=True)
class DeclaredQueries:
    """One of three: a folder whose `.gq` files all count, files that all count, or single queries."""

    folder: Path | None = None
    files: tuple[Path, ...] = ()
    named: tuple[NamedQuery, ...] = ()


GivenQueries: TypeAlias = "DeclaredQueries | str | Path | Sequence[str | Path] | Mapping[str, object]"


def given_queries(given: GivenQueries) -> DeclaredQueries:
    """Return what a Python user gives as stored queries, in one of the three forms of a project file.

    Raises:
        BadRequest: it has none of these forms.
    """
    match given:
        case DeclaredQueries():
            return given
        case str() | Path():
            place = Path(given)
            return DeclaredQueries(files=(place,)) if place.suffix == SUFFIX else DeclaredQueries(place)
        case Mapping():
            return DeclaredQueries(named=tuple(_given_name(name, entry) for name, entry in given.items()))
        case Sequence() if all(isinstance(item, str | Path) for item in given):
            return DeclaredQueries(files=tuple(Path(item) for item in given))
        case _:
            raise BadRequest(
                "queries must be a folder, a list of .gq files, or names with their files as in "
                f"{{'overdue': {{'file': 'missions.gq'}}}}, not {named(given)}"
            )


def read_stored(declared: DeclaredQueries) -> StoredQueries:
    """Return the registry of what is declared; whatever is wrong with it is among its breakages (F2)."""
    reader = _Reader()
    if declared.folder is not None:
        reader.take_folder(declared.folder)
    for path in declared.files:
        reader.take_file(path)
    for entry in declared.named:
        reader.take_named(entry)
    return reader.registry()


class _Reader:
    """Collects queries and breakages while files are read."""

    def __init__(self) -> None:
        self._found: dict[str, StoredQuery] = {}
        self._breakages: list[Remark] = []
        self._files: dict[Path, _File | None] = {}

    def registry(self) -> StoredQueries:
        """Return what was found, by name."""
        found = {name: self._found[name] for name in sorted(self._found)}
        return StoredQueries(found, (*self._breakages, *_shared_tool_names(found)))

    def take_folder(self, folder: Path) -> None:
        """Take every file at the top of a folder, in the order of their names."""
        try:
            files = sorted(path for path in folder.iterdir() if path.suffix == SUFFIX)
        except OSError as error:
            self._break(str(folder), f"cannot read the folder: {error.strerror}")
            return
        for path in files:
            self.take_file(path)

    def take_file(self, path: Path) -> None:
        """Take every declaration of a file."""
        file = self._file(path, str(path))
        if file is not None:
            for declaration in file.parsed.queries:
                self._take(_stored(declaration, file))

    def take_named(self, entry: NamedQuery) -> None:
        """Take the one declaration of a file that has a name."""
        file = self._file(entry.file, entry.name)
        if file is None:
            return
        declared = [query for query in file.parsed.queries if query.name.text == entry.name]
        if not declared:
            known = ", ".join(query.name.text for query in file.parsed.queries) or "none"
            self._break(entry.name, f"{entry.file} declares no query of this name; it declares {known}")
        elif entry.tool_name is not None and not _TOOL_NAME.fullmatch(entry.tool_name):
            self._break(entry.name, "tool_name must be letters, digits, '_' and '-', no digit first")
        else:
            self._take(_stored(declared[0], file, tool_name=entry.tool_name, is_exposed=entry.is_exposed))

    def _take(self, query: StoredQuery) -> None:
        former = self._found.get(query.name)
        if former is None:
            self._found[query.name] = query
        elif former.source.path == query.source.path:
            self._break(query.name, f"{query.source.path} declares it twice")
        else:
            self._break(query.name, f"both {former.source.path} and {query.source.path} declare it")

    def _file(self, path: Path, query: str) -> "_File | None":
        """Return a file, which is read once; one that cannot be used breaks whoever asks first."""
        if path not in self._files:
            self._files[path] = None
            try:
                self._files[path] = _read(path)
            except OSError as error:
                self._break(query, f"cannot read {path}: {error.strerror}")
            except ParseError as error:
                self._break(query, str(error))
        return self._files[path]

    def _break(self, query: str, message: str) -> None:
        self._breakages.append(Remark(query, message))


@dataclass(frozen=True, slots=True)
class _File:
    parsed: ast.QueryFile
    digest: str


def _read(path: Path) -> _File:
    """Return what a file declares; one byte past the limit is enough to know that it is too large."""
    with open_regular(path) as file:
        data = file.read(SOURCE_BYTES_MAX + 1)
    return _File(parse_queries(decode_source(data, str(path))), hashlib.sha256(data).hexdigest())


def _stored(
    declaration: ast.Query, file: _File, *, tool_name: str | None = None, is_exposed: bool = True
) -> StoredQuery:
    return StoredQuery(
        name=declaration.name.text,
        tool_name=tool_name or declaration.name.text,
        is_mutation=isinstance(declaration.body, ast.Mutation),
        parameters=tuple(field_of(item.name, item.type) for item in declaration.parameters),
        description=_text(declaration.description),
        instruction=_text(declaration.instruction),
        source=file.parsed.source,
        declaration=declaration,
        digest=file.digest,
        is_exposed=is_exposed,
    )


def _text(literal: ast.Literal | None) -> str | None:
    return None if literal is None else str(literal.value)


def _shared_tool_names(found: Mapping[str, StoredQuery]) -> Iterator[Remark]:
    """Yield the queries that a caller of tools could not tell apart."""
    owners: dict[str, str] = {}
    for query in found.values():
        owner = owners.setdefault(query.tool_name, query.name)
        if owner != query.name:
            yield Remark(query.name, f"its tool_name '{query.tool_name}' is that of '{owner}', too")


def _given_name(name: object, entry: object) -> NamedQuery:
    if not isinstance(name, str) or not isinstance(entry, Mapping) or not _MEMBERS.issuperset(entry):
        raise BadRequest(f"queries: {named(name)} needs {{'file': …}}, and may have 'expose' and 'tool_name'")
    file, is_exposed, tool_name = entry.get("file"), entry.get("expose", True), entry.get("tool_name")
    if not isinstance(file, str | Path):
        raise BadRequest(f"queries: '{name}' must name its file, not {named(file)}")
    if not isinstance(is_exposed, bool):
        raise BadRequest(f"queries: 'expose' of '{name}' must be True or False, not {named(is_exposed)}")
    if tool_name is not None and not isinstance(tool_name, str):
        raise BadRequest(f"queries: 'tool_name' of '{name}' must be a text, not {named(tool_name)}")
    return NamedQuery(name, Path(file), is_exposed, tool_name)
