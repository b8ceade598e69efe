"""A type and what its rows hold, as text."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from omnigraph.cli.render.cells import cut, plain
from omnigraph.cli.render.columns import columns, count
from omnigraph.cli.steering import on_one_line
from omnigraph.history.identity import branch_name
from omnigraph.wire.describe_document import bounds_of, json_of

if TYPE_CHECKING:
    from omnigraph.operations.describe.describe import EndDescription, PropertyDescription, TypeDescription

VALUE_WIDTH = 24  # of one value in a table of properties; --json has them whole
SAMPLES_WIDTH = 48
_UNKNOWN = "-"


def render_description(found: "TypeDescription") -> str:
    """Return the type, its ends or edges, and a line per property."""
    head = ["property", "type", "annotations", "nulls", "distinct", "min", "max", "samples"]
    rows = [_row(item) for item in found.properties]
    table = columns(head, rows, numbers=frozenset({3, 4})) if rows else "no properties"
    return "\n".join([*_title(found), "", table, *_around(found)])


def _title(found: "TypeDescription") -> Iterator[str]:
    kind = found.table_key.partition(":")[0]
    title = f"{kind} {found.name}"
    if found.source is not None and found.target is not None:
        title += f": {found.source.type_name} -> {found.target.type_name}"
    where = f"{count(found.rows, 'row')} on branch {branch_name(found.branch)} at commit {found.commit_id}"
    yield f"{click.style(title, bold=True)}, {where}"
    if found.interfaces:
        yield f"implements {', '.join(found.interfaces)}"
    if found.annotations:
        yield on_one_line(" ".join(found.annotations))


def _row(item: "PropertyDescription") -> list[str]:
    found = item.values
    ends = bounds_of(item)
    samples = [_cell(value) for value in json_of(item.type, found.samples)]
    distinct = _UNKNOWN if found.distinct is None else str(found.distinct)
    return [
        item.name,
        str(item.type),
        on_one_line(" ".join(item.annotations)),
        str(found.nulls),
        f"~{distinct}" if found.is_approximate else distinct,
        *(_UNKNOWN if value is None else _cell(value) for value in ends),
        cut(", ".join(samples), SAMPLES_WIDTH),
    ]


def _cell(value: object) -> str:
    return cut(on_one_line(plain(value)), VALUE_WIDTH)


def _around(found: "TypeDescription") -> Iterator[str]:
    if found.source is not None and found.target is not None:
        yield ""
        head = ["edges", "nodes", "without", "min", "median", "mean", "max"]
        rows = [_end(f"out of {found.source.type_name}", found.source)]
        rows.append(_end(f"into {found.target.type_name}", found.target))
        yield columns(head, rows, numbers=frozenset(range(1, 7)))
    elif found.edges:
        yield ""
        yield from (f"edge {edge.name}: {edge.source} -> {edge.target}" for edge in found.edges)


def _end(name: str, end: "EndDescription") -> list[str]:
    found = end.degrees
    numbers = (found.nodes, found.nodes_without, found.minimum)
    return [name, *map(str, numbers), f"{found.median:g}", f"{found.mean:.2f}", str(found.maximum)]
