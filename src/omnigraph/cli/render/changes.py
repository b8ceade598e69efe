"""Changes as text: one line each, with a sign for what happened."""

from collections.abc import Iterable, Iterator, Mapping

import click

from omnigraph.cli.render.cells import compact, cut
from omnigraph.cli.render.columns import columns, count, moment
from omnigraph.cli.steering import on_one_line
from omnigraph.client.answer import Document

_SIGNS = {"insert": ("+", "green"), "update": ("~", "yellow"), "delete": ("-", "red")}
_VALUE_CELLS = 60  # of a text, a list or a vector; what was cut is in the document of `--json`


def change_lines(changes: Iterable[Document]) -> Iterator[str]:
    """Yield one line per change; an update shows what it changed."""
    for change in changes:
        sign, colour = _SIGNS[change["op"]]
        what = f"{sign} {change['type']['name']} {compact(change['id'])}"
        details = "  ".join(part for part in (_ends(change), _values(change)) if part)
        head = click.style(on_one_line(what), fg=colour)
        yield f"{head}  {on_one_line(details)}" if details else head


def cause_line(cause: Document, changes: int) -> str:
    """Return the line above the changes of one commit."""
    author = f" by {on_one_line(cause['actor_id'])}" if cause["actor_id"] else ""
    merged = f", merged {cause['merged_parent_commit_id']}" if cause["merged_parent_commit_id"] else ""
    title = click.style(f"commit {cause['graph_commit_id']}", bold=True)
    return f"{title}  {moment(cause['authored_at'])}{author}{merged}, {count(changes, 'change')}"


def feed_lines(page: Document) -> Iterator[str]:
    """Yield the commits of a page with their changes, and what follows it: another page, or the cursor."""
    for block in page["blocks"]:
        yield cause_line(block["cause"], len(block["changes"]))
        yield from (f"  {line}" for line in change_lines(block["changes"]))
    if page.get("cursor") is not None:
        yield f"cursor {page['cursor']}"
        yield "caught up" if page["caught_up"] else "there is more: poll again with this cursor"


def render_counts(stats: Document) -> str:
    """Return one line per table that differs."""
    rows = [
        [table_key, str(of["inserted"]), str(of["updated"]), str(of["deleted"])]
        for table_key, of in stats.items()
    ]
    if not rows:
        return "no changes"
    head = ["table", "inserted", "updated", "deleted"]
    return columns(head, rows, numbers=frozenset({1, 2, 3}))


def _ends(change: Document) -> str:
    before, after = _ends_of(change.get("before")), _ends_of(change.get("after"))
    if before and after and before != after:
        return f"{before} => {after}"
    return after or before


def _ends_of(image: Document | None) -> str:
    if image is None or image.get("endpoints") is None:
        return ""
    return f"{compact(image['endpoints']['from'])} -> {compact(image['endpoints']['to'])}"


def _values(change: Document) -> str:
    before, after = change.get("before"), change.get("after")
    if before is not None and after is not None:
        was, now = before["properties"], after["properties"]
        return ", ".join(
            f"{name}: {_of(was, name)} => {_of(now, name)}" for name in now if _differs(was, now, name)
        )
    image = after or before
    assert image is not None, "a change has an image"
    properties = image["properties"]
    given = [name for name, value in properties.items() if value is not None]
    return ", ".join(f"{name}: {_of(properties, name)}" for name in given)


def _differs(was: Mapping[str, object], now: Mapping[str, object], name: str) -> bool:
    return _of(was, name) != _of(now, name) or was.get(name) != now.get(name)


def _of(properties: Mapping[str, object], name: str) -> str:
    return cut(compact(properties.get(name)), _VALUE_CELLS)
