"""Migration plans as text."""

import json
from typing import assert_never

import click

from omnigraph.catalog.migrate import MigrationPlan
from omnigraph.catalog.migration_codes import step_code
from omnigraph.catalog.migration_steps import (
    AddIndex,
    AddProperty,
    AddType,
    DropProperty,
    DropType,
    ExtendEnum,
    RenameProperty,
    RenameType,
    Step,
    UnsupportedChange,
    UpdatePropertyMetadata,
    UpdateTypeMetadata,
)
from omnigraph.cli.steering import in_json, on_one_line
from omnigraph.language.schema_ast import Note


def render_plan(plan: MigrationPlan) -> str:
    """Return whether a plan is supported, then one line per step."""
    supported = click.style("yes", fg="green") if plan.is_supported else click.style("no", fg="red")
    lines = [f"supported: {supported}", f"steps: {len(plan.steps)}"]
    for number, step in enumerate(plan.steps, start=1):
        code = step_code(step)
        lines.append(f"  {number}. {_step(step)}{f' [{code}]' if code else ''}")
    return "\n".join(lines)


def _step(step: Step) -> str:
    match step:
        case AddType(kind, name):
            return f"add {kind} {name}"
        case RenameType(kind, old, new):
            return f"rename {kind} {old} to {new}"
        case AddProperty(kind, owner, name, type_):
            return f"add {kind} property {owner}.{name}: {type_}"
        case RenameProperty(kind, owner, old, new):
            return f"rename {kind} property {owner}.{old} to {new}"
        case AddIndex(kind, owner, columns):
            return f"add index on {kind} {owner}({', '.join(columns)})"
        case ExtendEnum(kind, owner, name, values):
            return f"extend enum of {kind} property {owner}.{name} by {', '.join(map(on_one_line, values))}"
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
    return (
        " ".join(f"@{note.name}({in_json(json.dumps(note.value, ensure_ascii=False))})" for note in notes)
        or "none"
    )
