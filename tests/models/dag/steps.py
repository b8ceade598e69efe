"""Steps of a history: each with what it should do to the model, and how it is asked of the engine.

The first half never looks at the engine; the second half, `perform`, never looks at the model.
"""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.models.dag.model import (
    EdgeRule,
    Model,
    Refused,
    Row,
    Rows,
    violations,
    with_rows,
    without_edges,
    without_nodes,
)
from tests.models.dag.schema import KEYS, RULES

if TYPE_CHECKING:
    from omnigraph import Graph, GraphCommit
    from omnigraph.core.merge_conflict import MergeConflict


@dataclass(frozen=True, slots=True)
class Put:
    """Load rows of any tables, new ones or replacements, as one commit; `is_indexed` builds indexes, too."""

    branch: str
    rows: Rows
    is_indexed: bool = False


@dataclass(frozen=True, slots=True)
class Replace:
    """Load rows as all that a table has."""

    branch: str
    table_key: str
    rows: dict[str, Row]


@dataclass(frozen=True, slots=True)
class Link:
    """Insert an edge whose id the engine makes."""

    branch: str
    source: str
    target: str
    tag: str


@dataclass(frozen=True, slots=True)
class SetAge:
    """Update one person, or everybody of an age."""

    branch: str
    handle: str | None
    old: int
    age: int | None


@dataclass(frozen=True, slots=True)
class Drop:
    """Delete the rows of a table whose property has a value."""

    branch: str
    table_key: str
    property: str
    value: str


@dataclass(frozen=True, slots=True)
class Create:
    """Make a branch."""

    name: str
    source: str


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove a branch."""

    name: str


@dataclass(frozen=True, slots=True)
class Merge:
    """Merge a branch into another, and perhaps delete it."""

    source: str
    target: str
    is_dry_run: bool = False
    is_last: bool = False


Write = Put | Replace | Link | SetAge | Drop
Step = Write | Create | Delete | Merge


@dataclass(frozen=True, slots=True)
class Done:
    """What the engine said of a step that it did not refuse."""

    commit: "GraphCommit | None" = None
    outcome: str | None = None
    conflicts: "tuple[MergeConflict, ...]" = ()
    is_deleted: bool = False


def branch_of(step: Step) -> str | None:
    """Return the branch that a step commits to, if it is one that commits."""
    match step:
        case Merge(_, target):
            return target
        case Create() | Delete():
            return None
        case _:
            return step.branch


def written(model: Model, step: Write, new_id: str = "new") -> Rows:
    """Return what the branch shows after a write; `new_id` is the id that the engine makes for a link.

    Raises:
        Refused: the write must fail, and change nothing.
    """
    before = model.rows(step.branch)
    after = _after(before, step, new_id)
    if broken := violations(RULES, before, after):
        raise Refused(sorted(broken))
    return after


def _after(rows: Rows, step: Write, new_id: str) -> Rows:
    match step:
        case Put(_, added):
            for key, some in added.items():
                rows = with_rows(rows, key, some)
            return rows
        case Replace(_, key, some):
            return {**rows, key: dict(some)}
        case Link(_, source, target, tag):
            return with_rows(
                rows, "edge:Knows", {new_id: {"src": source, "dst": target, "tag": tag, "since": None}}
            )
        case SetAge(_, handle, old, age):
            chosen = {
                each: {**row, "age": age}
                for each, row in rows["node:Person"].items()
                if (each == handle if handle is not None else row["age"] == old)
            }
            return with_rows(rows, "node:Person", chosen)
        case Drop(_, key, name, value):
            name = {"from": "src", "to": "dst"}.get(name, name)
            gone = [each for each, row in rows[key].items() if row[name] == value]
            if isinstance(RULES[key], EdgeRule):
                return without_edges(rows, key, gone)
            return without_nodes(RULES, rows, key, gone)


def perform(graph: "Graph", step: Step, *, actor: str | None = None) -> Done:
    """Ask the engine for a step."""
    match step:
        case Create(name, source):
            graph.create_branch(name, from_=source, actor=actor)
            return Done()
        case Delete(name):
            graph.delete_branch(name, actor=actor)
            return Done()
        case Merge(source, target, is_dry_run, is_last):
            merged = graph.merge(source, into=target, delete_branch=is_last, dry_run=is_dry_run, actor=actor)
            return Done(
                merged.commit, str(merged.outcome), tuple(merged.conflicts), bool(merged.branch_deleted)
            )
        case Put(branch, rows, is_indexed):
            return Done(
                graph.load(ndjson(rows), "merge", branch=branch, actor=actor, index=is_indexed).commit
            )
        case Replace(branch, key, rows):
            data = ndjson({key: rows})
            return Done(graph.load(data, "overwrite", branch=branch, actor=actor, index=False).commit)
        case Link() | SetAge() | Drop():
            text, params = _mutation(step)
            return Done(graph.mutate(text, params=params, branch=step.branch, actor=actor).commit)


def _mutation(step: Link | SetAge | Drop) -> tuple[str, dict[str, object]]:
    match step:
        case Link(_, source, target, tag):
            text = (
                "query m($s: String, $d: String, $t: String) { insert Knows { from: $s, to: $d, tag: $t } }"
            )
            return text, {"s": source, "d": target, "t": tag}
        case SetAge(_, None, old, age):
            text = "query m($o: I64, $a: I64?) { update Person set { age: $a } where age = $o }"
            return text, {"o": old, "a": age}
        case SetAge(_, handle, _, age):
            text = "query m($h: String, $a: I64?) { update Person set { age: $a } where handle = $h }"
            return text, {"h": handle, "a": age}
        case Drop(_, key, name, value):
            type_name = key.split(":")[1]
            return f"query m($v: String) {{ delete {type_name} where {name} = $v }}", {"v": value}


def ndjson(rows: Rows) -> bytes:
    """Return rows as the text of a load, nodes first."""
    lines = []
    for key in sorted(rows, reverse=True):
        kind, type_name = key.split(":")
        for each, row in rows[key].items():
            data = {name: value for name, value in row.items() if name not in {"src", "dst"}}
            data |= {} if key in KEYS else {"id": each}
            ends = {"from": row["src"], "to": row["dst"]} if kind == "edge" else {}
            record = {("edge" if ends else "type"): type_name, **ends, "data": data}
            lines.append(json.dumps(record))
    return "\n".join(lines).encode()
