"""Reading a sidecar back: every member, with its type, or none of it.

K1  The result is a sidecar that says what the file says, or a typed error that names the file, which stays.
K2  What this build could not write back is refused: recovery rewrites a sidecar with its plan, and a member
    that it dropped would be lost to the build that knows it.
K3  A schema is read to its end, in both of its forms, and they say the same: one that cannot be read would be
    published, and no open could undo that.
"""

import json
import re
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from typing import Any, TypeVar

from omnigraph.commit import legacy_sidecar
from omnigraph.commit.recovery.kinds import RecoveryKind
from omnigraph.commit.schema_change import EndedTable, RenamedTable, SchemaChange
from omnigraph.commit.sidecar import (
    FORMAT,
    FORMAT_OF_SCHEMAS,
    MISSING_IN,
    OF_SCHEMA_APPLIES,
    OF_SCHEMAS,
    SPELLINGS,
    Outcome,
    PointerUpdate,
    ReadTable,
    RecoveryPlan,
    Sidecar,
    SidecarTable,
    WriterKind,
)
from omnigraph.core.errors import InvariantViolation, OmnigraphError, SidecarCorrupt, SidecarTooNew
from omnigraph.history.contract import Contract, accepted_in, compiled
from omnigraph.history.identity import MAIN, BranchIdentity, branch_name
from omnigraph.storage.files.version_file import check_ref

_ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
_TABLE_KEY = re.compile(r"(?:node|edge):\S+")
_SURROGATE = re.compile("[\ud800-\udfff]")
_NUMBER_MAX = 2**64 - 1  # versions, identities and times are stored in 64 bits
_UNSET = OF_SCHEMA_APPLIES
_PLANS = set(RecoveryKind) - {RecoveryKind.VERSION_QUARANTINED}
Parsed = TypeVar("Parsed")
_OfTable = TypeVar("_OfTable", SidecarTable, ReadTable, PointerUpdate, Outcome, RenamedTable, EndedTable)
_Kind = type[Sidecar | RecoveryPlan | SchemaChange]


class _Mistake(Exception):
    """Something in the text is not what a sidecar says there."""


def read_sidecar(name: str, text: str, is_of_older_graph: Callable[[], bool] = lambda: False) -> Sidecar:
    """Return the sidecar of a file (K1); one of version 1 only in a graph that came from an earlier format.

    Raises:
        SidecarTooNew: a newer build wrote it.
        SidecarCorrupt: it is not a sidecar, or contradicts itself.
    """
    try:
        document = _document(text)
        version = _number("schema_version", document.get("schema_version"))
        if version > FORMAT_OF_SCHEMAS:
            raise SidecarTooNew(name, version)
        if version == legacy_sidecar.FORMAT and is_of_older_graph():
            sidecar = _legacy(document)
        elif version < FORMAT:
            raise _Mistake(f"format {version}, but the oldest supported one is {FORMAT}")
        else:
            sidecar = _sidecar(document, MISSING_IN[version])
        _check(name, sidecar)
    except _Mistake as mistake:
        raise SidecarCorrupt(name, str(mistake)) from mistake
    return sidecar


def _legacy(document: dict[str, Any]) -> Sidecar:
    whole = legacy_sidecar.completed(document)
    if whole is None:
        raise _Mistake("the file has missing or unknown members, or tables that are none")
    return legacy_sidecar.as_legacy(_sidecar(whole, OF_SCHEMAS))


def _document(text: str) -> dict[str, Any]:
    try:
        document = json.loads(text, object_pairs_hook=_members)
    except (ValueError, RecursionError) as error:
        raise _Mistake(f"not JSON ({error!s:.80})") from error
    return _object("the file", document)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _Mistake("a key appears twice")
    return members


def _sidecar(document: dict[str, Any], missing: frozenset[str]) -> Sidecar:
    members = _members_of(Sidecar) | {"schema_version", "branch_ref"} | _UNSET.keys()
    _exactly("the file", document, members - missing)
    document = {**dict.fromkeys(missing), **document}
    for key, unset in _UNSET.items():
        if document[key] != unset or type(document[key]) is not type(unset):
            raise _Mistake(f"no writer of this build sets {key}")
    return Sidecar(
        operation_id=_ulid("operation_id", document["operation_id"]),
        writer_kind=_kind(document["writer_kind"]),
        started_at=_number("started_at", document["started_at"]),
        branch=_branch(document["branch"], document["branch_ref"]),
        actor_id=_or_none(_text, "actor_id", document["actor_id"]),
        graph_commit_id=_ulid("graph_commit_id", document["graph_commit_id"]),
        recovery_commit_id=_ulid("recovery_commit_id", document["recovery_commit_id"]),
        tables=_each(_record(SidecarTable), "tables", document["tables"]),
        host=_text("host", document["host"]),
        boot_id=_text("boot_id", document["boot_id"]),
        pid=_number("pid", document["pid"]),
        read_set=_each(_record(ReadTable), "read_set", document["read_set"]),
        writer_epoch=_or_none(_number, "writer_epoch", document["writer_epoch"]),
        recovery_plan=_or_none(_plan, "recovery_plan", document["recovery_plan"]),
        pointer_updates=_each(_record(PointerUpdate), "pointer_updates", document["pointer_updates"]),
        merge_source_commit_id=_or_none(_ulid, "merge_source_commit_id", document["merge_source_commit_id"]),
        writer_id=_or_none(_ulid, "writer_id", document["writer_id"]),
        owner=_or_none(_ulid, "owner", document["owner"]),
        schema_change=_or_none(_schema_change, "schema_change", document["schema_change"]),
    )


def _branch(name: object, ref: object) -> BranchIdentity:
    if name == MAIN:
        raise _Mistake("branch must be null for main, not 'main'")
    if (name is None) != (ref is None):
        raise _Mistake("branch and branch_ref must both be null, for main, or both be given")
    return BranchIdentity(branch_name(_or_none(_text, "branch", name)), _or_none(_ref, "branch_ref", ref))


def _plan(place: str, value: object) -> RecoveryPlan:
    entry = _exactly(place, value, _members_of(RecoveryPlan))
    kind = _text(f"{place}.kind", entry["kind"])
    if kind not in _PLANS:
        raise _Mistake(f"{place}.kind is not one of {', '.join(sorted(_PLANS))}")
    return RecoveryPlan(RecoveryKind(kind), _each(_record(Outcome), f"{place}.outcomes", entry["outcomes"]))


def _schema_change(place: str, value: object) -> SchemaChange:
    entry = _exactly(place, value, _members_of(SchemaChange))
    document = _text(f"{place}.ir_text", entry["ir_text"])
    source = _text(f"{place}.source", entry["source"])
    _check_schema(place, document, source)
    return SchemaChange(
        ir_text=document,
        source=source,
        follows=_number(f"{place}.follows", entry["follows"]),
        renames=_each(_record(RenamedTable), f"{place}.renames", entry["renames"]),
        ends=_each(_record(EndedTable), f"{place}.ends", entry["ends"]),
        upgraded_to=_or_none(_ulid, f"{place}.upgraded_to", entry["upgraded_to"]),
    )


def _check_schema(place: str, document: str, source: str) -> None:
    """Compare the two forms of a schema, which recovery would publish for good (K3)."""
    try:
        accepted, declared = accepted_in(document), compiled(source)
        Contract.of(declared, accepted)
    except (OmnigraphError, LookupError) as error:
        raise _Mistake(f"{place} is not a schema ({error!s:.120})") from error
    if accepted.shape.hash != declared.shape.hash:
        raise _Mistake(f"{place}.ir_text and {place}.source are not the same schema")


# Single values


def _object(place: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _Mistake(f"{place} is not an object")
    return value


def _members_of(kind: _Kind) -> set[str]:
    return {SPELLINGS.get(field.name, field.name) for field in fields(kind)}


def _exactly(place: str, value: object, names: set[str]) -> dict[str, Any]:
    entry = _object(place, value)
    if entry.keys() != names:
        raise _Mistake(f"{place} has missing or unknown members: {sorted(entry.keys() ^ names)!s:.120}")
    return entry


def _each(read: Callable[[str, object], Parsed], place: str, value: object) -> tuple[Parsed, ...]:
    if not isinstance(value, list):
        raise _Mistake(f"{place} is not a list")
    return tuple(read(f"{place}[{number}]", item) for number, item in enumerate(value))


def _or_none(read: Callable[[str, object], Parsed], place: str, value: object) -> Parsed | None:
    return None if value is None else read(place, value)


def _text(place: str, value: object) -> str:
    # A lone surrogate can be escaped in JSON, but the file could not be written back (K2).
    if not isinstance(value, str) or not value or _SURROGATE.search(value):
        raise _Mistake(f"{place} is not a text")
    return value


def _ref(place: str, value: object) -> str:
    """Return the name of a ref, which becomes part of a path."""
    try:
        return check_ref(_text(place, value), place)
    except InvariantViolation as violation:
        raise _Mistake(str(violation)) from violation


def _ulid(place: str, value: object) -> str:
    if not isinstance(value, str) or _ULID.fullmatch(value) is None:
        raise _Mistake(f"{place} is not a ULID")
    return value


def _table_key(place: str, value: object) -> str:
    text = _text(place, value)
    if _TABLE_KEY.fullmatch(text) is None:
        raise _Mistake(f"{place} is not the key of a table")
    return text


def _kind(value: object) -> WriterKind:
    if not isinstance(value, str) or value not in set(WriterKind):
        raise _Mistake(f"writer_kind is not one of {', '.join(WriterKind)}")
    return WriterKind(value)


def _number(place: str, value: object) -> int:
    if type(value) is not int or not 0 <= value <= _NUMBER_MAX:
        raise _Mistake(f"{place} is not a 64-bit number")
    return value


def _identity(place: str, value: object) -> int:
    number = _number(place, value)
    if number == 0:
        raise _Mistake(f"{place} is zero")
    return number


# What is said of a table, in whichever list: a member of one name is read in one way


_MEMBERS: dict[str, Callable[[str, object], Any]] = {
    "table_key": _table_key,
    "expected_table_key": _table_key,
    "stable_table_id": _identity,
    "table_incarnation_id": _identity,
    "table_path": _text,
    "ref": partial(_or_none, _ref),
    "expected_version": _number,
    "post_commit_pin": _number,
    "transaction_uuid": partial(_or_none, _text),
    "confirmed_version": partial(_or_none, _number),
    "version": _number,
    "row_count": _number,
    "from_version": _number,
    "to_version": _number,
    "last_version": _number,
}


def _record(kind: type[_OfTable]) -> Callable[[str, object], _OfTable]:
    """Return the reader of an entry about a table."""
    spelled = {field.name: SPELLINGS.get(field.name, field.name) for field in fields(kind)}

    def read(place: str, value: object) -> _OfTable:
        entry = _exactly(place, value, set(spelled.values()))
        return kind(
            **{name: _MEMBERS[name](f"{place}.{member}", entry[member]) for name, member in spelled.items()}
        )

    return read


# The whole


def _check(name: str, sidecar: Sidecar) -> None:
    if name.rsplit("/", 1)[-1] != f"{sidecar.operation_id}.json":
        raise _Mistake(f"it belongs to operation {sidecar.operation_id}")
    written = [table.identity for table in sidecar.tables]
    for others in (sidecar.read_set, sidecar.pointer_updates):
        listed = [*written, *(table.identity for table in others)]
        if len(set(listed)) != len(listed):
            raise _Mistake("a table is listed twice")
    is_merge = sidecar.writer_kind is WriterKind.BRANCH_MERGE
    if not is_merge and (sidecar.pointer_updates or sidecar.merge_source_commit_id is not None):
        raise _Mistake("only a merge repoints tables and names a source")
    if sidecar.schema_change is None and any(table.is_created for table in sidecar.tables):
        raise _Mistake("only a write that changes the schema creates tables")
    for table in sidecar.tables:
        if table.table_path != table.identity.location(table.table_key):
            raise _Mistake(f"{table.table_path} is not the path of {table.table_key}")
        if table.confirmed_version is not None and not is_merge:
            raise _Mistake("only a merge confirms versions")
