"""Migration plans as text."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, assert_never

import click

from omnigraph.catalog.migrate import MigrationPlan
from omnigraph.catalog.migration_codes import step_code
from omnigraph.catalog.migration_steps import (
    AddIndex,
    AddProperty,
    AddType,
    ChangeDefault,
    DropProperty,
    DropType,
    ExtendEnum,
    RelaxProperty,
    RenameProperty,
    RenameType,
    Step,
    UnsupportedChange,
    UpdatePropertyMetadata,
    UpdateTypeMetadata,
    WidenProperty,
    Work,
    step_work,
)
from omnigraph.cli.steering import in_json, on_one_line
from omnigraph.language.schema_ast import DefaultValue, Note

if TYPE_CHECKING:
    from omnigraph.operations.schema.apply import SchemaApplyResult


def render_plan(plan: MigrationPlan, rows: Sequence[int] = ()) -> str:
    """Return whether a plan is supported, then one line per step, with the rows it writes if known."""
    supported = click.style("yes", fg="green") if plan.is_supported else click.style("no", fg="red")
    lines = [f"supported: {supported}", f"steps: {len(plan.steps)}"]
    for number, step in enumerate(plan.steps, start=1):
        code = step_code(step)
        work = step_work(step)
        causes = "" if work is None else f"; {_WORK[work]}"
        if work is Work.COLUMN and rows:
            causes += f" of {rows[number - 1]:,} rows"
        lines.append(f"  {number}. {_step(step)}{causes}{f' [{code}]' if code else ''}")
    return "\n".join(lines)


def render_apply(result: "SchemaApplyResult") -> str:
    """Return what a change of schema did: its steps, its commits, what is pending."""
    if result.commit is None:
        return "applied: no, the schema is the same"
    lines = [f"applied: yes, as commit {result.commit.graph_commit_id}"]
    lines += [f"  {number}. {_step(step)}" for number, step in enumerate(result.steps, start=1)]
    if result.index_commit is not None:
        lines.append(f"indexes built, as commit {result.index_commit.graph_commit_id}")
    return "\n".join(lines)


_WORK = {
    Work.NONE: "no table is written",
    Work.SCHEMA: "no row is written",
    Work.COLUMN: "writes the column",
}


def _step(step: Step) -> str:
    match step:
        case AddType(kind, name):
            return f"add {kind} {name}"
        case RenameType(kind, old, new):
            return f"rename {kind} {old} to {new}"
        case AddProperty(kind, owner, name, type_, default):
            given = "" if default is None else f" with default {_value(default)}"
            return f"add {kind} property {owner}.{name}: {type_}{given}"
        case RenameProperty(kind, owner, old, new):
            return f"rename {kind} property {owner}.{old} to {new}"
        case AddIndex(kind, owner, columns):
            return f"add index on {kind} {owner}({', '.join(columns)})"
        case ExtendEnum(kind, owner, name, values):
            return f"extend enum of {kind} property {owner}.{name} by {', '.join(map(on_one_line, values))}"
        case WidenProperty(kind, owner, name, before, after):
            return f"widen {kind} property {owner}.{name} from {before} to {after}"
        case RelaxProperty(kind, owner, name):
            return f"make {kind} property {owner}.{name} nullable"
        case ChangeDefault(kind, owner, name, before_value, after_value):
            change = f"from {_value(before_value)} to {_value(after_value)}"
            return f"change default of {kind} property {owner}.{name} {change}"
        case UpdateTypeMetadata(kind, name, notes):
            return f"update annotations of {kind} {name}: {_notes(notes)}"
        case UpdatePropertyMetadata(kind, owner, name, notes):
            return f"update annotations of {kind} property {owner}.{name}: {_notes(notes)}"
        case DropType(kind, name, mode):
            return f"drop {kind} {name} ({mode})"
        case DropProperty(kind, owner, name, mode):
            return f"drop {kind} property {owner}.{name} ({mode})"
        case UnsupportedChange(entity, reason):
            return f"unsupported change of {entity}: {reason}"
        case _:
            assert_never(step)


def _notes(notes: tuple[Note, ...]) -> str:
    return " ".join(f"@{note.name}({_json(note.value)})" for note in notes) or "none"


def _value(value: DefaultValue | None) -> str:
    return "none" if value is None else _json(value)


def _json(value: DefaultValue | None) -> str:
    return in_json(json.dumps(value, ensure_ascii=False))
