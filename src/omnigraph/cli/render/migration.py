"""Migration plans as text."""

import json
from collections.abc import Sequence

import click

from omnigraph.catalog.migration_codes import DROPPED_EDGE_TYPE, DROPPED_NODE_TYPE, DROPPED_PROPERTY
from omnigraph.cli.steering import in_json, on_one_line
from omnigraph.client.answer import Document

_WORK = {
    "none": "no table is written",
    "schema": "no row is written",
    "column": "writes the column",
    "rewrite": "writes what stays",
}


def render_plan(plan: Document) -> str:
    """Return whether a plan is supported, then one line per step, with the rows it writes if known."""
    supported = click.style("yes", fg="green") if plan["supported"] else click.style("no", fg="red")
    lines = [f"supported: {supported}", f"steps: {len(plan['steps'])}"]
    for number, step in enumerate(plan["steps"], start=1):
        work = step.get("work")
        causes = "" if work is None else f"; {_WORK[work]}"
        if "rows" in step:
            causes += f" of {step['rows']:,} rows"
        code = step.get("code") or _drop_code(step)
        lines.append(f"  {number}. {_step(step)}{causes}{f' [{code}]' if code else ''}")
    return "\n".join(lines)


def render_apply(applied: Document) -> str:
    """Return what a change of schema did: its steps, its commits, what is pending."""
    if applied["commit"] is None:
        return "applied: no, the schema is the same"
    lines = [f"applied: yes, as commit {applied['commit']['graph_commit_id']}"]
    lines += [f"  {number}. {_step(step)}" for number, step in enumerate(applied["steps"], start=1)]
    if applied["index_commit"] is not None:
        lines.append(f"indexes built, as commit {applied['index_commit']['graph_commit_id']}")
    return "\n".join(lines)


def _drop_code(step: Document) -> str | None:
    """Return the code of a drop, which every plan shows although it is supported."""
    match step["kind"], step.get("type_kind"):
        case "drop_property", _:
            return DROPPED_PROPERTY.code
        case "drop_type", "node":
            return DROPPED_NODE_TYPE.code
        case "drop_type", "edge":
            return DROPPED_EDGE_TYPE.code
        case _:
            return None


def _step(step: Document) -> str:
    kind, owner = step.get("type_kind"), f"{step.get('type_name')}.{step.get('property_name')}"
    match step["kind"]:
        case "add_type":
            return f"add {kind} {step['name']}"
        case "rename_type":
            return f"rename {kind} {step['from']} to {step['to']}"
        case "add_property":
            given = f" with default {_json(step['default'])}" if "default" in step else ""
            given += f" with references below {', '.join(step['external'])}" if "external" in step else ""
            return f"add {kind} property {owner}: {_type(step['property_type'])}{given}"
        case "rename_property":
            return f"rename {kind} property {step['type_name']}.{step['from']} to {step['to']}"
        case "add_constraint":
            columns = ", ".join(step["constraint"]["Index"])
            return f"add index on {kind} {step['type_name']}({columns})"
        case "extend_enum":
            values = ", ".join(map(on_one_line, step["added_values"]))
            return f"extend enum of {kind} property {owner} by {values}"
        case "widen_property":
            return f"widen {kind} property {owner} from {_type(step['from'])} to {_type(step['to'])}"
        case "relax_property":
            return f"make {kind} property {owner} nullable"
        case "change_default":
            change = f"from {_default(step['from'])} to {_default(step['to'])}"
            return f"change default of {kind} property {owner} {change}"
        case "change_external":
            named = [f"add {base}" for base in step["added_bases"]]
            named += [f"remove {base}" for base in step["removed_bases"]]
            return f"change bases of references of {kind} property {owner}: {', '.join(named)}"
        case "update_type_metadata":
            return f"update annotations of {kind} {step['name']}: {_notes(step['annotations'])}"
        case "update_property_metadata":
            return f"update annotations of {kind} property {owner}: {_notes(step['annotations'])}"
        case "drop_type":
            return f"drop {kind} {step['name']} ({step['mode']})"
        case "drop_property":
            return f"drop {kind} property {owner} ({step['mode']})"
        case "unsupported_change":
            return f"unsupported change of {step['entity']}: {step['reason']}"
        case other:  # of a newer server
            return str(other).replace("_", " ")


def _type(document: Document) -> str:
    from omnigraph.catalog.build import value_type

    return str(value_type(document))


def _notes(notes: Sequence[Document]) -> str:
    return " ".join(f"@{note['name']}({_json(note['value'])})" for note in notes) or "none"


def _default(value: object) -> str:
    return "none" if value is None else _json(value)


def _json(value: object) -> str:
    return in_json(json.dumps(value, ensure_ascii=False))
