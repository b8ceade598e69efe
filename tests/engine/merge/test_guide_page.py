"""The commands and the program of the guide's page about branches work as they are printed."""

import shlex
from pathlib import Path

import pytest

from tests.support.atlas import commits
from tests.support.commands import python, write
from tests.support.in_process import invoke
from tests.support.pages import DOCS, Block, blocks

PAGE = DOCS / "guide" / "branches-and-merging.md"
BLOCKS = list(blocks(PAGE))


def of(language: str) -> list[Block]:
    """Return the blocks of a language."""
    return [block for block in BLOCKS if block.language == language]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write the files that the page shows."""
    write(tmp_path, "radio.pg", of("pg")[0].text)
    write(tmp_path, "radio.jsonl", of("text")[0].text)
    return tmp_path


def test_the_commands_print_what_the_page_shows_and_the_program_runs(folder: Path) -> None:
    printed = ""
    shown = []
    for block in BLOCKS[2:]:
        if block.language == "sh":
            for line in block.text.splitlines():
                outcome = invoke(*shlex.split(line)[1:], cwd=folder)
                assert outcome.code == 0, (line, outcome)
                printed = outcome.stdout
        elif block.language == "text":
            shown.append((block.text, printed))

    assert len(shown) == 2
    assert [page for page, _ in shown] == [output for _, output in shown]
    assert commits(folder, graph="radio.omni")[0]["merged_parent_commit_id"] is not None
    (program,) = of("python")
    assert python("-c", program.text, cwd=folder).stdout == "fast_forward True 1\n"
