"""The engine under random histories of schemas: how a step is asked of it, and how it is read.

This is the only file here that knows the engine's names. It never looks at the model.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

from omnigraph import Graph, OmnigraphError
from tests.models.dag.steps import Create, Delete
from tests.models.schemas.model import View
from tests.models.schemas.shape import Value
from tests.models.schemas.steps import (
    Apply,
    Insert,
    Load,
    Merge,
    Record,
    Remove,
    Step,
    Update,
    Upgrade,
    Write,
)
from tests.models.schemas.texts import render
from tests.support.library import compile_text

if TYPE_CHECKING:
    from omnigraph import GraphCommit

EVOLVES = True

CREATION_REFUSALS = {"AlreadyExistsError", "BranchNotFound"}
DELETION_REFUSALS = {"BranchInUse", "BadRequest", "BranchNotFound"}
WRITE_REFUSALS = {"ValidationError", "TypeCheckError", "ParameterError", "ExecutionError", "BadRequest"}
OUTCOMES: Mapping[type, Mapping[str, str]] = {
    Create: dict.fromkeys(CREATION_REFUSALS, "refused"),
    Delete: dict.fromkeys(DELETION_REFUSALS, "refused"),
    Apply: {"ParseError": "invalid", "CatalogError": "invalid", "SchemaError": "unsupported"},
    Upgrade: {"MergeConflicts": "conflict"},
    Merge: {"MergeConflicts": "conflict"},
}


class Applied(Protocol):
    """What an apply or an upgrade answers."""

    applied: bool
    commit: "GraphCommit | None"


class Evolving(Protocol):
    """What is asked of a graph whose schema changes."""

    def apply_schema(self, source: str, *, branch: str, index: bool) -> Applied:
        """Give a branch another schema."""

    def upgrade_branch(self, name: str, *, index: bool) -> Applied:
        """Bring a branch up to the schema of main."""

    def schema(self, *, branch: str) -> str:
        """Return the schema of a branch as text."""


@dataclass(frozen=True, slots=True)
class Done:
    """What became of a step: the words of the model for its outcome, its commit, the conflicts of rows."""

    outcome: str
    commit: "GraphCommit | None" = None
    conflicts: frozenset[tuple[str, str, str]] = frozenset()
    told: str = ""


def perform(graph: Graph, step: Step) -> Done:
    """Ask the engine for a step."""
    try:
        return _perform(graph, step)
    except OmnigraphError as error:
        name = type(error).__name__
        outcome = OUTCOMES.get(type(step), dict.fromkeys(WRITE_REFUSALS, "refused")).get(name)
        if outcome is None:
            raise
        return Done(outcome, None, _conflicts(error), f"{name}: {error}")


def _perform(graph: Graph, step: Step) -> Done:
    match step:
        case Create(name, source):
            graph.create_branch(name, from_=source)
            return Done("done")
        case Delete(name):
            graph.delete_branch(name)
            return Done("done")
        case Apply(branch, wanted):
            applied = _evolving(graph).apply_schema(render(wanted), branch=branch, index=False)
            return Done("applied" if applied.applied else "unchanged", applied.commit)
        case Upgrade(branch):
            upgraded = _evolving(graph).upgrade_branch(branch, index=False)
            return Done("already_up_to_date" if upgraded.commit is None else "upgraded", upgraded.commit)
        case Merge(source, target, is_dry_run):
            merged = graph.merge(source, into=target, dry_run=is_dry_run)
            found = _conflicts(merged)
            return Done("conflict" if found else str(merged.outcome), merged.commit, found)
        case Load(branch, records):
            data = "\n".join(json.dumps(_record(each)) for each in records).encode()
            return Done("done", graph.load(data, "merge", branch=branch, index=False).commit)
        case Insert() | Update() | Remove():
            text, params = _mutation(step)
            return Done("done", graph.mutate(text, params=params, branch=step.branch).commit)


def _evolving(graph: Graph) -> Evolving:
    return cast("Evolving", graph)


def _conflicts(holder: object) -> frozenset[tuple[str, str, str]]:
    found = getattr(holder, "conflicts", ())
    return frozenset((each.table_key, each.row_id or "", str(each.kind)) for each in found)


# Reads


def rows_of(graph: Graph, view: View, *, branch: str | None = None, snapshot: str | None = None) -> View:
    """Return what queries show of the types that a branch or a commit should have."""
    found: View = {}
    for key in view:
        kind, name = key.split(":")
        pattern = f"$x: {name}" if kind == "node" else f"$a $x:{name[0].lower()}{name[1:]} $b"
        text = f"query q() {{ match {{ {pattern} }} return {{ $x }} }}"
        answer = graph.query(text, branch=branch, snapshot=snapshot).to_pylist()
        rows = [dict(cast("Mapping[str, Value]", row["x"])) for row in answer]
        found[key] = {str(row.pop("id")): row for row in rows}
        assert len(found[key]) == len(rows), f"{key} has an id twice: {rows}"
    return found


def table_of(graph: Graph, key: str, branch: str) -> dict[str, dict[str, Value]]:
    """Return the rows of one table of a branch, as a table."""
    rows = graph.table(key, branch=branch).to_pylist()
    return {str(row.pop("id")): row for row in rows}


def schema_of(graph: Graph, branch: str) -> dict[str, dict[str, str]]:
    """Return the types of the schema that a branch shows, with the types of their properties."""
    catalog = compile_text(_evolving(graph).schema(branch=branch) if EVOLVES else graph.schema())
    return {
        each.table_key: {item.name: str(item.type) for item in each.properties.values()}
        for each in catalog.types
    }


# Texts


def _record(record: Record) -> dict[str, object]:
    data: dict[str, object] = dict(record.data)
    data |= {} if record.id is None else {"id": record.id}
    if record.ends is None:
        return {"type": record.type_name, "data": data}
    return {"edge": record.type_name, "from": record.ends[0], "to": record.ends[1], "data": data}


def _mutation(step: Write) -> tuple[str, dict[str, object]]:
    match step:
        case Insert(_, type_name, data, types):
            names = {name: f"v{number}" for number, name in enumerate(data)}
            declared = ", ".join(f"${names[name]}: {types[name]}" for name in data)
            assigned = " ".join(f"{name}: ${names[name]}" for name in data)
            text = f"query m({declared}) {{ insert {type_name} {{ {assigned} }} }}"
            return text, {names[name]: value for name, value in data.items()}
        case Update(_, type_name, (key, chosen), (name, value), type_text):
            declared = f"$k: String, $v: {type_text}"
            text = f"query m({declared}) {{ update {type_name} set {{ {name}: $v }} where {key} = $k }}"
            return text, {"k": chosen, "v": value}
        case Remove(_, _, type_name, (name, value), type_text):
            return f"query m($v: {type_text}) {{ delete {type_name} where {name} = $v }}", {"v": value}
        case Load():
            raise AssertionError("a load is no mutation")
