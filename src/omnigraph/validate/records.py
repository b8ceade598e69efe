"""The strict NDJSON reader: lines of text to rows, type by type.

R1  Every refusal is a violation of kind `record` at its line; a line has at most one, and then no other.
R2  A member that appears twice in an object is refused at any depth, however it is spelled.
R3  Lines are counted as in an editor, blank ones included.
R4  A blank line costs next to nothing: a body may be millions of them, and a parser's refusal is dear.
R5  Whoever no longer wants the rows waits for some thousand lines at most, good or bad; and no more than that
    are read once the log has enough (V4 of `violations`).
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
import orjson
import pyarrow as pa

from omnigraph.catalog.model import Catalog, EdgeType, NodeType
from omnigraph.core.arrays import Mask
from omnigraph.core.cancellation import check_cancelled
from omnigraph.core.errors import ResourceLimit
from omnigraph.core.nearest import hinting
from omnigraph.core.values import json_name
from omnigraph.validate.assemble import Converted, Flaw, assemble
from omnigraph.validate.coerce import coerce_column
from omnigraph.validate.columns import Column, TypedRows, concat_rows
from omnigraph.validate.values import quote
from omnigraph.validate.violations import Violation, ViolationKind, ViolationLog

LINE_BYTES_SETTING = "OMNIGRAPH_LOAD_LINE_MAX_BYTES"
LINE_TOKENS_SETTING = "OMNIGRAPH_LOAD_LINE_MAX_TOKENS"
EXPANSION_SETTING = "OMNIGRAPH_LOAD_EXPANSION_MAX"
EXPANSION_FLOOR_SETTING = "OMNIGRAPH_LOAD_EXPANSION_FLOOR_BYTES"
LINES_AT_ONCE = 4_096  # between two looks at whether anybody still wants them
BLOCK_BYTES = 4 * 1024 * 1024  # what is held as Python objects at a time; larger blocks are no faster

_ENDPOINT_NAMES = frozenset({"src", "dst", "from", "to"})
_RESERVED_PREFIX = "_row"  # of Lance's own columns; the schema language allows no such property
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')
_STRUCTURAL = (b"{", b"}", b"[", b"]", b":", b",")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BLANKS = b" \t\r"  # what a line may be made of that is no record; the empty text is in it too
_BLANKS_AND_ENDS = _BLANKS + b"\n"
_NO_DATA: dict[str, object] = {}


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """Limits of one line, and of how far each byte of a compressed file may expand; zero is no limit.

    However small a compressed file is, it may expand to `expansion_floor` bytes.
    """

    line_bytes_max: int = 0
    line_tokens_max: int = 0
    expansion_max: int = 0
    expansion_floor: int = 0

    def check_line(self, size: int, *, file_name: str | None, line: int) -> None:
        """Refuse a line, or the part read so far, if it has too many bytes.

        Raises:
            ResourceLimit: with the place of the line.
        """
        if self.line_bytes_max and size > self.line_bytes_max:
            place = f"line {line}" if file_name is None else f"{file_name}:{line}"
            raise ResourceLimit(
                resource=f"bytes of {place}",
                limit=self.line_bytes_max,
                actual=size,
                setting=LINE_BYTES_SETTING,
            )

    def unpacked_max(self, size: int) -> int:
        """Return how many bytes a compressed file of this size may expand to; zero is any number."""
        return max(self.expansion_floor, self.expansion_max * size) if self.expansion_max else 0


UNLIMITED = ReadLimits()


def read_ndjson(
    data: bytes | Iterable[bytes],
    *,
    file: int,
    file_name: str | None,
    catalog: Catalog,
    make_id: Callable[[], str],
    log: ViolationLog,
    limits: ReadLimits = UNLIMITED,
    first_line: int = 1,
) -> dict[str, TypedRows]:
    """Return the rows of a file by table key; what cannot be read is reported (R1, R2, R3).

    Raises:
        ResourceLimit: a line is above a limit.
    """
    log.open_file(file, file_name)
    reader = _Reader(file, file_name, catalog, log, limits)
    parts: dict[str, list[TypedRows]] = {}
    for number, lines in _blocks(data, first_line, limits.line_bytes_max):
        if log.has_enough:
            break
        for batch in reader.read(number, lines):
            rows = assemble(_convert(batch), file=file, make_id=make_id, log=log)
            parts.setdefault(batch.type.table_key, []).append(rows)
    return {table_key: concat_rows(pieces) for table_key, pieces in parts.items()}


class _BadRecord(Exception):
    """Why a line is not a record, with the table when the line got that far.

    `name` is a word that is not among the `known` ones: what it may have meant is only looked up when the
    message will be shown.
    """

    def __init__(
        self, message: str, table_key: str | None = None, *, name: str = "", known: Iterable[str] = ()
    ) -> None:
        super().__init__(message)
        self.table_key, self.name, self.known = table_key, name, known


@dataclass(slots=True)
class _Batch:
    """The records of one type in one block."""

    type: NodeType | EdgeType
    allowed: frozenset[str]
    data: list[dict[str, object]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)  # the records themselves are dropped: the garbage
    targets: list[str] = field(default_factory=list)  # collector would visit each of them again and again
    has_ids: bool = False


class _Reader:
    """Sorts the lines of one file by type."""

    def __init__(
        self, file: int, file_name: str | None, catalog: Catalog, log: ViolationLog, limits: ReadLimits
    ) -> None:
        self._file, self._file_name = file, file_name
        self._catalog, self._log, self._limits = catalog, log, limits
        self._batches: dict[str, _Batch] = {}
        self._known_nodes: dict[str, _Batch] = {}  # by the name as written
        self._known_edges: dict[str, _Batch] = {}

    def read(self, first: int, lines: list[bytes]) -> list[_Batch]:
        """Return the records of some lines; `first` is the number of the first one."""
        self._batches, self._known_nodes, self._known_edges = {}, {}, {}
        for start in range(0, len(lines), LINES_AT_ONCE):
            check_cancelled()  # R5
            if self._log.has_enough:
                break
            self._read(first + start, lines[start : start + LINES_AT_ONCE])
        return list(self._batches.values())

    def _read(self, first: int, lines: list[bytes]) -> None:
        loads, place, is_limited = orjson.loads, self._place, self._limits != UNLIMITED
        for number, line in enumerate(lines, first):
            if line[:1] in _BLANKS and not line.strip(_BLANKS):  # R4
                if line:
                    self._limits.check_line(len(line), file_name=self._file_name, line=number)
                continue
            if is_limited:
                self._check_limits(line, number)
            try:
                try:
                    record = loads(line)
                except orjson.JSONDecodeError as error:
                    record = _second_look(line, error)
                place(record, line, number)
            except _BadRecord as bad:
                self._refuse(bad, number)

    def _place(self, record: object, line: bytes, number: int) -> None:
        if type(record) is not dict:
            _refuse_repeated(line)
            raise _BadRecord(f"a record must be an object, not {json_name(record)}")
        data = record.get("data", _NO_DATA)
        if type(data) is not dict:
            _refuse_repeated(line)
            raise _BadRecord(f"'data' must be an object, not {json_name(data)}")
        members = len(record) + len(data)
        if line.count(b":") != members and _may_repeat(line, members):
            _refuse_repeated(line)
        is_edge = "edge" in record
        batch = self._edges(record) if is_edge else self._nodes(record)
        if not batch.allowed.issuperset(data):
            _refuse_property(batch, data)
        if "id" in data:
            if type(data["id"]) is not str:
                raise _BadRecord(f"'id' must be a string, not {json_name(data['id'])}", batch.type.table_key)
            batch.has_ids = True
        if is_edge:
            batch.sources.append(record["from"])
            batch.targets.append(record["to"])
        batch.data.append(data)
        batch.lines.append(number)

    def _nodes(self, record: dict[str, Any]) -> _Batch:
        """Return the batch of a node record with a valid envelope."""
        if "type" not in record:
            raise _BadRecord("a record needs 'type' or 'edge'")
        name = record["type"]
        if type(name) is not str:
            raise _BadRecord(f"'type' must be a string, not {json_name(name)}")
        if len(record) > 1 + ("data" in record):
            _refuse_member(record, ("type", "data"))
        return self._known_nodes.get(name) or self._open("type", name)

    def _edges(self, record: dict[str, Any]) -> _Batch:
        """Return the batch of an edge record with a valid envelope."""
        if "type" in record:
            raise _BadRecord("a record needs 'type' or 'edge', not both")
        name = record["edge"]
        if type(name) is not str:
            raise _BadRecord(f"'edge' must be a string, not {json_name(name)}")
        if type(record.get("from")) is not str or type(record.get("to")) is not str:
            _refuse_end(record)
        if len(record) > 3 + ("data" in record):
            _refuse_member(record, ("edge", "from", "to", "data"))
        return self._known_edges.get(name) or self._open("edge", name)

    def _open(self, word: str, name: str) -> _Batch:
        """Return the batch of a type on its first record, or refuse its name."""
        type_: NodeType | EdgeType | None = (
            self._catalog.nodes.get(name) if word == "type" else self._catalog.edge(name)
        )
        if type_ is None:
            _refuse_type(word, name, self._catalog)
        batch = self._batches.get(type_.table_key) or _Batch(type_, frozenset({*type_.properties, "id"}))
        self._batches[type_.table_key] = batch
        known = self._known_nodes if word == "type" else self._known_edges
        known[name] = batch
        return batch

    def _refuse(self, bad: _BadRecord, number: int) -> None:
        if not self._log.has_room(file=self._file, line=number):
            self._log.extend((), more=1)
            return
        message = f"{bad}{hinting(bad.name, bad.known)}"
        place = (self._file, number, self._file_name)
        self._log.add(Violation(ViolationKind.RECORD, message, bad.table_key, None, *place))

    def _check_limits(self, line: bytes, number: int) -> None:
        place = f"line {number}" if self._file_name is None else f"{self._file_name}:{number}"
        size = len(line.removesuffix(b"\r"))
        self._limits.check_line(size, file_name=self._file_name, line=number)
        most = self._limits.line_tokens_max
        if most and _token_count(line) > most:  # including those inside texts: never too few
            tokens = _token_count(_STRING.sub(b"", line))
            if tokens > most:
                raise ResourceLimit(
                    resource=f"structural tokens of {place}",
                    limit=most,
                    actual=tokens,
                    setting=LINE_TOKENS_SETTING,
                )


def _blocks(
    data: bytes | Iterable[bytes], first: int, line_bytes_max: int
) -> Iterator[tuple[int, list[bytes]]]:
    """Yield lines without their ends, with the number of the first of them (R3); a line may be too long."""
    pending: list[bytes] = []
    number, size = first, 0
    for piece in _pieces(data):
        if not pending and len(piece) <= (line_bytes_max or len(piece)) and not piece.strip(_BLANKS_AND_ENDS):
            number += piece.count(b"\n")  # R4
            rest = piece[piece.rfind(b"\n") + 1 :]
            pending, size = [rest] if rest else [], len(rest)
            continue
        pending.append(piece)
        size += len(piece)
        if size < BLOCK_BYTES or b"\n" not in piece:
            continue
        *lines, rest = b"".join(pending).split(b"\n")
        yield number, lines
        number += len(lines)
        pending, size = [rest] if rest else [], len(rest)
    yield number, b"".join(pending).split(b"\n")


def _pieces(data: bytes | Iterable[bytes]) -> Iterable[bytes]:
    if not isinstance(data, bytes):
        return data
    return (data[start : start + BLOCK_BYTES] for start in range(0, len(data), BLOCK_BYTES))


def _convert(batch: _Batch) -> Converted:
    columns: dict[str, Column] = {}
    flaws: list[Flaw] = []
    left_out: set[str] = set()
    unsaid: dict[str, Mask] = {}
    for name, item in batch.type.properties.items():
        values = [data.get(name) for data in batch.data]
        columns[name], problems = coerce_column(values, item, f"{batch.type.name}.{name}")
        flaws += ((row, name, message) for row, message in problems)
        if columns[name].null_count and any(name not in data for data in batch.data):
            left_out.add(name)
            if item.default is not None:
                unsaid[name] = np.array([name not in data for data in batch.data], dtype=np.bool_)
    if isinstance(batch.type, EdgeType):
        columns["src"], columns["dst"] = (
            pa.array(batch.sources, pa.utf8()),
            pa.array(batch.targets, pa.utf8()),
        )
    ids: list[Any] = [data.get("id") for data in batch.data] if batch.has_ids else []
    given = pa.array(ids, pa.utf8()) if batch.has_ids else None
    lines = np.array(batch.lines, dtype=np.int64)
    return Converted(batch.type, columns, flaws, given, lines, frozenset(left_out), unsaid)


def _may_repeat(line: bytes, members: int) -> bool:
    """Return whether a member may appear twice in a line that was read as this many members (R2).

    Each member of the text is a closing quote and a colon, unless there is a space between them. Texts can
    only add to that number (one that starts with a colon, an escaped quote before one), and so can nested
    members. So when it equals the number of members read, none of them was lost.
    """
    return line.count(b'":') != members or b" :" in line or b"\t:" in line or b"\r:" in line


def _refuse_repeated(line: bytes) -> None:
    """Raise if a member appears twice in an object (R2)."""
    try:
        _parse(line)
    except RecursionError:  # the fast parser goes a little deeper
        raise _BadRecord("invalid JSON: nested too deeply") from None


def _second_look(line: bytes, error: orjson.JSONDecodeError) -> object:
    """Return the value of a line whose numbers are too large for the fast parser; refuse all others."""
    if line.startswith(_BYTE_ORDER_MARK):
        raise _BadRecord("invalid JSON: a byte order mark, save the file as UTF-8 without one")
    try:
        line.decode()
    except UnicodeDecodeError:
        raise _BadRecord("invalid UTF-8") from None
    try:
        value = _parse(line)
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise _BadRecord(f"invalid JSON: {error.msg} at column {error.colno}") from None
    return value


def _parse(line: bytes) -> object:
    return _STRICT.decode(line.decode())


def _distinct(members: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(members)
    if len(found) < len(members):
        last = {name: number for number, (name, _) in enumerate(members)}
        twice = next(name for number, (name, _) in enumerate(members) if last[name] != number)
        raise _BadRecord(f"member {quote(twice)} appears twice in one object")
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)  # NaN and Infinity, which are not JSON


def _token_count(line: bytes) -> int:
    return sum(map(line.count, _STRUCTURAL))


def _refuse_end(record: Mapping[str, object]) -> NoReturn:
    end = next(end for end in ("from", "to") if type(record.get(end)) is not str)
    found = json_name(record[end]) if end in record else "missing"
    raise _BadRecord(f"'{end}' of an edge must be the id of a node, a string, not {found}")


def _refuse_member(record: Mapping[str, object], known: tuple[str, ...]) -> NoReturn:
    name = next(name for name in record if name not in known)
    raise _BadRecord(f"unknown member {quote(name)}: a record of '{known[0]}' has {', '.join(known)}")


def _refuse_type(word: str, name: str, catalog: Catalog) -> NoReturn:
    known: Mapping[str, NodeType | EdgeType] = catalog.nodes if word == "type" else catalog.edges
    kind = "node" if word == "type" else "edge"
    raise _BadRecord(f"unknown {kind} type {quote(name)}", name=name, known=known)


def _refuse_property(batch: _Batch, data: Mapping[str, object]) -> NoReturn:
    type_ = batch.type
    name = next(name for name in data if name not in batch.allowed)
    if isinstance(type_, EdgeType) and name in _ENDPOINT_NAMES:
        message = f"'{name}' is not a property of {type_.name}: 'from' and 'to' go next to 'data'"
        raise _BadRecord(message, type_.table_key)
    if name.startswith(_RESERVED_PREFIX):
        raise _BadRecord(f"'{name}' is a reserved name", type_.table_key)
    message = f"{type_.name} has no property {quote(name)}"
    raise _BadRecord(message, type_.table_key, name=name, known=type_.properties)


# Made once: every bad line is read by it, and making one takes longer than reading one.
_STRICT = json.JSONDecoder(object_pairs_hook=_distinct, parse_constant=_refuse_constant)
