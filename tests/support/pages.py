"""The documentation as the tests read it: pages, fenced blocks and links."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
DOCS = REPOSITORY / "docs"

_FENCE = re.compile(r"(?P<ticks>`{3,})(?P<language>\S*)[ ]*(?P<info>.*)")
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\[(?:[^\]\[]|\[[^\]]*\])*\]\(\s*(?P<target>[^)\s]+)[^)]*\)")
_HEADING = re.compile(r"#{1,6}\s+(?P<title>.+)")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block, the line on which its text begins, and what its fence says after the language."""

    page: str
    line: int
    language: str
    text: str
    info: str = ""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def name_of(page: Path) -> str:
    """Return the path of a page within the repository."""
    return page.relative_to(REPOSITORY).as_posix()


def blocks(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page in their order."""
    opened: re.Match[str] | None = None
    begin, lines = 0, list[str]()
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if opened is None:
            if opened := _FENCE.fullmatch(line.strip()):
                begin, lines = number + 1, []
        elif line.strip() == opened["ticks"]:
            text = "".join(f"{line}\n" for line in lines)
            yield Block(name_of(page), begin, opened["language"], text, opened["info"])
            opened = None
        else:
            lines.append(line)
    assert opened is None, f"{name_of(page)}: the block before line {begin} never ends"


def prose(page: Path) -> str:
    """Return a page without its fenced blocks and code."""
    kept, is_inside = list[str](), False
    for line in page.read_text(encoding="utf-8").splitlines():
        if _FENCE.fullmatch(line.strip()):
            is_inside = not is_inside
        elif not is_inside:
            kept.append(_CODE.sub("", line))
    return "\n".join(kept)


def links(page: Path) -> list[str]:
    """Return the targets of the links of a page."""
    return [match["target"] for match in _LINK.finditer(prose(page))]


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    found = set[str]()
    is_inside = False
    for line in page.read_text(encoding="utf-8").splitlines():
        if _FENCE.fullmatch(line.strip()):
            is_inside = not is_inside
        elif not is_inside and (heading := _HEADING.fullmatch(line)):
            words = re.sub(r"[^\w\- ]", "", heading["title"].lower())
            found.add(words.replace(" ", "-"))
    return found
