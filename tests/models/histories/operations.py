"""Writes: each with what it should do to the contents, and how it is asked of the engine.

The first half never looks at the engine; the second half, `perform`, never looks at the model.
"""

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol, assert_never

import pyarrow as pa

from tests.models.histories.contents import SCHEMA, Contents, Ends, Refused

if TYPE_CHECKING:
    from omnigraph.graph.graph import Graph
    from omnigraph.history.commits import GraphCommit
    from omnigraph.operations.cleanup.model import CleanupRow
    from omnigraph.operations.load.load import LoadMode


@dataclass(frozen=True, slots=True)
class PutPerson:
    """Insert a person, or replace the whole row; with a friend, an edge to them as well."""

    handle: str
    age: int | None
    tag: str
    friend: str | None = None
    edge: str = ""


@dataclass(frozen=True, slots=True)
class SetAge:
    """Update everybody of an age, or one person by handle."""

    handle: str | None
    below: int
    age: int


@dataclass(frozen=True, slots=True)
class DropPeople:
    """Delete one person by handle, or everybody above an age."""

    handle: str | None
    above: int


@dataclass(frozen=True, slots=True)
class PutKnows:
    """Insert an edge."""

    tag: str
    ends: Ends


@dataclass(frozen=True, slots=True)
class DropEdge:
    """Delete an edge of either type by tag."""

    type_name: str
    tag: str


@dataclass(frozen=True, slots=True)
class PutNote:
    """Insert a node that has no key."""

    body: str


@dataclass(frozen=True, slots=True)
class PutOwn:
    """Insert or replace a row of a table that one writer has for itself."""

    table: int
    key: str
    value: int


@dataclass(frozen=True, slots=True)
class Load:
    """Load rows; `overwrite` replaces exactly the types in `types`, which may have no rows.

    `index` is whether the load builds the indexes that are missing, too: of contents it says nothing.
    """

    mode: "LoadMode"
    people: dict[str, tuple[int | None, str]]
    teams: dict[str, int | None]
    notes: tuple[str, ...]
    knows: dict[str, Ends]
    joined: dict[str, Ends]
    types: tuple[str, ...] = ()
    index: bool = True


@dataclass(frozen=True, slots=True)
class EnsureIndices:
    """Build the indexes that are missing."""


@dataclass(frozen=True, slots=True)
class CleanUp:
    """Remove old versions, as if some time had passed; the contents stay."""

    keep: int
    later_s: int


@dataclass(frozen=True, slots=True)
class Optimize:
    """Bring all tables of a branch into their best layout."""


@dataclass(frozen=True, slots=True)
class ChangeSchema:
    """Give a branch a schema with other properties beside those that count here, and perhaps another type.

    `of` is the schema that all have in common; `is_hard` is whether what is dropped goes for good.
    """

    number: int
    is_hard: bool = False
    of: str = field(default=SCHEMA, repr=False)


@dataclass(frozen=True, slots=True)
class Upgrade:
    """Bring a branch up to the schema of main."""


class Done(Protocol):
    """What a verb of the engine answers."""

    @property
    def commit(self) -> "GraphCommit | None":
        """The commit that it made, if it made one."""


Layout = EnsureIndices | Optimize | CleanUp | ChangeSchema | Upgrade
Operation = PutPerson | SetAge | DropPeople | PutKnows | DropEdge | PutNote | PutOwn | Load | Layout


def apply(contents: Contents, operation: Operation) -> Contents:
    """Return the contents after an operation.

    Raises:
        Refused: the operation must fail, and change nothing.
    """
    match operation:
        case PutPerson(handle, age, tag, friend, edge):
            knows = contents.knows if friend is None else {**contents.knows, edge: (handle, friend)}
            people = {**contents.people, handle: (age, tag)}
            return replace(contents, people=people, knows=knows).checked()
        case SetAge(handle, below, age):
            chosen = {
                who: (age, tag)
                for who, (old, tag) in contents.people.items()
                if (who == handle if handle is not None else old is not None and old < below)
            }
            return replace(contents, people={**contents.people, **chosen})
        case DropPeople(handle, above):
            gone = {
                who
                for who, (age, _) in contents.people.items()
                if (who == handle if handle is not None else age is not None and age > above)
            }
            return contents.without_people(gone)
        case PutKnows(tag, ends):
            return replace(contents, knows={**contents.knows, tag: ends}).checked()
        case DropEdge("Knows", tag):
            return replace(contents, knows={k: v for k, v in contents.knows.items() if k != tag})
        case DropEdge(_, tag):
            return replace(contents, joined={k: v for k, v in contents.joined.items() if k != tag})
        case PutNote(body):
            return replace(contents, notes=contents.notes | {body})
        case PutOwn(table, key, value):
            return replace(contents, own={**contents.own, f"{table}/{key}": value})
        case Load():
            return _loaded(contents, operation)
        case EnsureIndices() | Optimize() | CleanUp() | ChangeSchema() | Upgrade():
            return contents
        case _:
            assert_never(operation)


def _loaded(contents: Contents, load: Load) -> Contents:
    kept = contents
    if load.mode == "append":
        repeated = (
            load.people.keys() & contents.people.keys(),
            load.teams.keys() & contents.teams.keys(),
            load.knows.keys() & contents.knows.keys(),
            load.joined.keys() & contents.joined.keys(),
        )
        if any(repeated):
            raise Refused("an id is there already")
    elif load.mode == "overwrite":
        empty = Contents()
        fields = {name: getattr(empty, _FIELDS[name]) for name in load.types}
        kept = replace(contents, **{_FIELDS[name]: value for name, value in fields.items()})
    return replace(
        kept,
        people={**kept.people, **load.people},
        teams={**kept.teams, **load.teams},
        notes=kept.notes | set(load.notes),
        knows={**kept.knows, **load.knows},
        joined={**kept.joined, **load.joined},
    ).checked()


_FIELDS = {"Person": "people", "Team": "teams", "Note": "notes", "Knows": "knows", "Joined": "joined"}


def perform(
    graph: "Graph", operation: Operation, *, actor: str | None = None, branch: str | None = None
) -> str | None:
    """Ask the engine for an operation and return the id of its commit, if it made one."""
    if isinstance(operation, CleanUp):
        assert not (failed := clean_up(graph, operation)), failed
        return None
    done = _look_after(graph, operation, branch, actor)
    return None if done.commit is None else done.commit.graph_commit_id


def _look_after(graph: "Graph", operation: Operation, branch: str | None, actor: str | None) -> Done:
    match operation:
        case EnsureIndices():
            return graph.ensure_indices(branch=branch, actor=actor)
        case ChangeSchema(number, is_hard, of):
            text = other_schema(number, of)
            return graph.apply_schema(text, branch=branch, allow_data_loss=is_hard, actor=actor)
        case Upgrade():
            assert branch is not None
            return graph.upgrade_branch(branch, actor=actor)
        case Optimize():
            return graph.optimize(branch=branch, actor=actor)
        case Load(mode):
            data = _tables(operation) if mode == "overwrite" else _ndjson(operation)
            return graph.load(data, mode, branch=branch, actor=actor, index=operation.index)
        case _:
            source, params = _mutation(operation)
            return graph.mutate(source, params=params, branch=branch, actor=actor)


def _mutation(operation: Operation) -> tuple[str, dict[str, object]]:
    match operation:
        case PutPerson(handle, age, tag, None):
            text = (
                "query m($h: String, $a: I64?, $t: String) { insert Person { handle: $h, age: $a, tag: $t } }"
            )
            return text, {"h": handle, "a": age, "t": tag}
        case PutPerson(handle, age, tag, friend, edge):
            text = (
                "query m($h: String, $a: I64?, $t: String, $f: String, $e: String) { "
                "insert Person { handle: $h, age: $a, tag: $t } insert Knows { from: $h, to: $f, tag: $e } }"
            )
            return text, {"h": handle, "a": age, "t": tag, "f": friend, "e": edge}
        case SetAge(None, below, age):
            text = "query m($b: I64, $a: I64) { update Person set { age: $a } where age < $b }"
            return text, {"b": below, "a": age}
        case SetAge(handle, _, age):
            text = "query m($h: String, $a: I64) { update Person set { age: $a } where handle = $h }"
            return text, {"h": handle, "a": age}
        case DropPeople(None, above):
            return "query m($a: I64) { delete Person where age > $a }", {"a": above}
        case DropPeople(handle, _):
            return "query m($h: String) { delete Person where handle = $h }", {"h": handle}
        case PutKnows(tag, (source, target)):
            text = (
                "query m($s: String, $d: String, $t: String) { insert Knows { from: $s, to: $d, tag: $t } }"
            )
            return text, {"s": source, "d": target, "t": tag}
        case DropEdge(type_name, tag):
            return f"query m($t: String) {{ delete {type_name} where tag = $t }}", {"t": tag}
        case PutNote(body):
            return "query m($b: String) { insert Note { body: $b } }", {"b": body}
        case PutOwn(table, key, value):
            text = f"query m($k: String, $v: I64) {{ insert Own{table} {{ key: $k, value: $v }} }}"
            return text, {"k": key, "v": value}
        case Load() | EnsureIndices() | Optimize() | CleanUp() | ChangeSchema() | Upgrade():
            raise AssertionError(f"{operation} is no mutation")
        case _:
            assert_never(operation)


def other_schema(number: int, of: str = SCHEMA) -> str:
    """Return one of eight schemas: columns of some tables, with and without a default, and types."""
    text = of
    if number & 1:
        text = text.replace("node Person { ", "node Person { more: String?  ")
        text = text.replace("node Team   { ", "node Team   { rank: I64?  ")
    if number & 2:
        text = text.replace("node Note   { ", "node Note   { stars: I64 @default(3)  ")
    if number & 4:
        text += "node Town { name: String @key }\nedge Lives: Person -> Town\n"
    return text


def clean_up(graph: "Graph", operation: CleanUp) -> "tuple[CleanupRow, ...]":
    """Clean up with the clock of the handle ahead for as long as that takes; return what failed."""
    from tests.support.seam import internals

    parts = internals(graph).parts
    clock = parts.clock
    object.__setattr__(parts, "clock", lambda: clock() + operation.later_s * 1_000_000)
    try:
        return graph.cleanup(operation.keep).failed
    finally:
        object.__setattr__(parts, "clock", clock)


def _ndjson(load: Load) -> bytes:
    records: list[dict[str, object]] = [
        {"type": "Person", "data": {"handle": handle, "age": age, "tag": tag}}
        for handle, (age, tag) in load.people.items()
    ]
    records += [{"type": "Team", "data": {"name": name, "size": size}} for name, size in load.teams.items()]
    records += [{"type": "Note", "data": {"id": body, "body": body}} for body in load.notes]
    for type_name, edges in (("Knows", load.knows), ("Joined", load.joined)):
        records += [
            {"edge": type_name, "from": source, "to": target, "data": {"id": tag, "tag": tag}}
            for tag, (source, target) in edges.items()
        ]
    return "\n".join(json.dumps(record) for record in records).encode()


def _tables(load: Load) -> dict[str, pa.Table]:
    text, number = pa.utf8(), pa.int64()
    tables = {
        "Person": pa.table(
            {
                "handle": pa.array(list(load.people), text),
                "age": pa.array([age for age, _ in load.people.values()], number),
                "tag": pa.array([tag for _, tag in load.people.values()], text),
            }
        ),
        "Team": pa.table(
            {"name": pa.array(list(load.teams), text), "size": pa.array(list(load.teams.values()), number)}
        ),
        "Note": pa.table({"id": pa.array(load.notes, text), "body": pa.array(load.notes, text)}),
    }
    for type_name, edges in (("Knows", load.knows), ("Joined", load.joined)):
        tables[type_name] = pa.table(
            {
                "id": pa.array(list(edges), text),
                "from": pa.array([source for source, _ in edges.values()], text),
                "to": pa.array([target for _, target in edges.values()], text),
                "tag": pa.array(list(edges), text),
            }
        )
    return {name: tables[name] for name in load.types}
