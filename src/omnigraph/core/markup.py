"""HTML and SVG for notebooks: every text is escaped, nothing runs, nothing is fetched."""

from collections.abc import Iterable, Sequence
from html import escape

CHARACTERS_MAX = 200  # of a text in a cell: enough to see what it is, and a page stays a page
CUT = "…"


class Markup(str):
    """A text that is markup already: it was made here."""

    __slots__ = ()


def tag(name: str, *children: str, **attributes: object) -> Markup:
    """Return an element; texts are escaped, `_` in the name of an attribute is `-`."""
    given = "".join(f' {key.replace("_", "-")}="{escape(str(value))}"' for key, value in attributes.items())
    inside = "".join(child if isinstance(child, Markup) else escape(child) for child in children)
    return Markup(f"<{name}{given}>{inside}</{name}>")


def joined(parts: Iterable[str]) -> Markup:
    """Return elements and texts in a row."""
    return Markup("".join(part if isinstance(part, Markup) else escape(part) for part in parts))


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], note: str) -> Markup:
    """Return a table with a line below it."""
    head = tag("thead", tag("tr", *(tag("th", name) for name in columns)))
    body = (tag("tr", *(tag("td", cell_text(value)) for value in row)) for row in rows)
    return joined([tag("table", head, tag("tbody", *body)), tag("p", note)])


def cell_text(value: object) -> str:
    """Return a value for a cell: nothing for null, and no more than fits."""
    return "" if value is None else cut(str(value), CHARACTERS_MAX)


def cut(text: str, characters: int) -> str:
    """Return a text on one line with at most so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= characters else line[: characters - 1] + CUT


def drawing(width: float, height: float, *shapes: Markup) -> Markup:
    """Return an SVG in the colours of the page around it."""
    return tag(
        "svg",
        *shapes,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width:g} {height:g}",
        width=f"{width:g}",
        height=f"{height:g}",
        font_family="sans-serif",
        font_size=12,
        fill="currentColor",
    )
