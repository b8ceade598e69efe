"""The guide's page about querying: its commands run in their order, and print what the page shows.

`pytest --accept` writes what they print into the page.
"""

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.commands import Outcome, python
from tests.support.in_process import invoke
from tests.support.pages import DOCS, REPOSITORY, Block, blocks

PAGE = DOCS / "guide" / "querying.md"
BLOCKS = list(blocks(PAGE))
FAILS = "--params '{}'"  # the one command whose parameters are missing


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder from which the example files have the paths of the page."""
    folder = tmp_path_factory.mktemp("querying")
    (folder / "examples").symlink_to(REPOSITORY / "examples")
    return folder


def commands(block: Block) -> list[str]:
    """Return the commands of a block, each on one line."""
    joined = block.text.replace("\\\n", "")
    return re.split(r"\n(?=omnigraph |[A-Z_]+=)", joined.strip())


def shown() -> Iterator[tuple[Block, Block | None]]:
    """Yield each block of commands with the block of its output, if the page shows one."""
    for block, below in zip(BLOCKS, [*BLOCKS[1:], None], strict=True):
        if block.language == "sh":
            yield block, below if below is not None and below.language == "text" else None


def run(command: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    """Run a command as a shell would, with the variables before it."""
    words = shlex.split(command)
    with monkeypatch.context() as patch:
        while "=" in words[0]:
            patch.setenv(*words.pop(0).split("=", 1))
        assert words[0] == "omnigraph"
        return invoke(*words[1:], cwd=folder)


def test_the_commands_of_the_page_print_what_it_shows(
    folder: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    printed = dict[int, str]()
    for block, output in shown():
        outcomes = {command: run(command, folder, monkeypatch) for command in commands(block)}
        assert {command: outcome.code for command, outcome in outcomes.items()} == {
            command: int(FAILS in command) for command in outcomes
        }, outcomes
        if output is not None:
            texts = [outcome.stdout + outcome.stderr for outcome in outcomes.values()]
            printed[output.line] = "\n".join(texts)

    if request.config.getoption("--accept"):
        accept(printed)
    on_page = [block.text for block in blocks(PAGE) if block.language == "text"]
    assert list(map(rounded, on_page)) == list(map(rounded, printed.values()))


def rounded(text: str) -> str:
    """Return a text with long fractions cut short: the last digits are the processor's business."""
    shorter = re.sub(r"\d+\.\d{7,}", lambda found: f"{float(found[0]):.6f}", text)
    return re.sub(r"[ -]{2,}", " ", shorter)


def accept(printed: dict[int, str]) -> None:
    """Write what was printed into the page, from its end so that lines keep their numbers."""
    lines = PAGE.read_text(encoding="utf-8").splitlines(keepends=True)
    for start in sorted(printed, reverse=True):
        end = next(number for number in range(start - 1, len(lines)) if lines[number].startswith("```"))
        lines[start - 1 : end] = [printed[start]]
    PAGE.write_text("".join(lines), encoding="utf-8")


def test_the_queries_of_the_page_are_those_of_the_example() -> None:
    files = sorted((REPOSITORY / "examples" / "seedbank" / "queries").glob("*.gq"))
    text = "".join(file.read_text(encoding="utf-8") for file in files)

    declared = [
        declaration
        for block in BLOCKS
        if block.language == "gq"
        for declaration in re.split(r"(?<=^}\n)\n", block.text, flags=re.MULTILINE)
    ]

    assert len(declared) >= 20
    assert [declaration for declaration in declared if declaration not in text] == []


@pytest.mark.parametrize(
    "construct",
    [
        *("contains", "starts_with", " < ", ">=", "!=", "date(", "datetime("),
        *("not {", "$_", "<duplicates>", "{1,4}", "$c:"),
        *("count(", "sum(", "avg(", "min(", "max("),
        *("search(", "fuzzy(", "bm25(", "nearest(", "rrf("),
        *(" desc", "limit ", " as "),
    ],
)
def test_the_page_shows_every_construct(construct: str) -> None:
    assert any(construct in block.text for block in BLOCKS if block.language == "gq")


def test_the_program_of_the_page_runs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not (folder / "bank.omni").exists():  # the commands of the page make it; they may run elsewhere
        for block, _ in shown():
            for command in commands(block):
                if command.startswith(("omnigraph init", "omnigraph load")):
                    assert run(command, folder, monkeypatch).code == 0
    (program,) = (block for block in BLOCKS if block.language == "python")

    printed = python("-c", program.text, cwd=folder, PYTHONPATH=os.environ.get("PYTHONPATH", "")).stdout

    first, row, names = printed.splitlines()
    assert first.startswith(("['a.code', 'seeds'] ", "('a.code', 'seeds') "))
    assert row.startswith("{'a.code': 'SB-")
    assert names == "['a.code', 'seeds']"
