"""The commands and the program of the guide's page about changes work as they are printed."""

import shlex
from pathlib import Path

import pytest

from tests.support.commands import python, write
from tests.support.in_process import invoke
from tests.support.pages import DOCS, Block, blocks

PAGE = DOCS / "guide" / "history-and-changes.md"
BLOCKS = list(blocks(PAGE))


def of(language: str) -> list[Block]:
    """Return the blocks of a language."""
    return [block for block in BLOCKS if block.language == language]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write the files that the page shows, and type its commands up to the first that only looks."""
    write(tmp_path, "radio.pg", of("pg")[0].text)
    write(tmp_path, "radio.jsonl", of("text")[0].text)
    return tmp_path


def test_the_commands_and_the_program_of_the_page_run_in_their_order(folder: Path) -> None:
    typed = [line for block in of("sh") for line in block.text.splitlines()]

    outcomes = {line: invoke(*shlex.split(line)[1:], cwd=folder) for line in typed}

    assert {line: outcome.code for line, outcome in outcomes.items() if outcome.code} == {}
    assert outcomes["omnigraph diff radio.omni spring"].stdout == of("text")[1].text
    printed = python("-c", of("python")[0].text, cwd=folder).stdout.splitlines()
    assert printed[:4] == ["update Show DAWN", "delete Show NITE", "insert Show NOON", "delete Hosts h1"]
    assert printed[4] == "{'code': 'NITE', 'title': 'Night Owls'}"
    assert printed[-1] == "4 0"
