"""The commands and the program of the guide's page about writing data work as they are printed."""

import shlex
from pathlib import Path

import pytest

from tests.support.atlas import commits
from tests.support.commands import python, write
from tests.support.in_process import invoke
from tests.support.pages import DOCS, Block, blocks

PAGE = DOCS / "guide" / "writing-data.md"
BLOCKS = list(blocks(PAGE))
GRAPH = "radio.omni"


def of(language: str) -> list[Block]:
    """Return the blocks of a language."""
    return [block for block in BLOCKS if block.language == language]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write the files that the page shows."""
    write(tmp_path, "radio.pg", of("pg")[0].text)
    write(tmp_path, "radio.gq", of("gq")[0].text)
    write(tmp_path, "radio.jsonl", of("text")[0].text)
    return tmp_path


def test_the_commands_of_the_page_run_in_their_order(folder: Path) -> None:
    typed = [line for block in of("sh") for line in block.text.splitlines()]

    outcomes = {line: invoke(*shlex.split(line)[1:], cwd=folder) for line in typed}

    expected = {line: 4 if "--if-commit" in line else 0 for line in typed}
    assert {line: outcome.code for line, outcome in outcomes.items()} == expected
    assert all(line.startswith("omnigraph ") for line in typed)
    assert [commit["actor_id"] for commit in commits(folder, graph=GRAPH)] == [
        "ada",
        "omnigraph:maintenance",
        "ada",
        None,
    ]


def test_the_error_of_the_page_is_the_one_that_is_printed(folder: Path) -> None:
    invoke("init", GRAPH, "--schema", "radio.pg", cwd=folder)
    wrong = of("text")[0].text.replace('"from": "ada"', '"from": "adda"')

    outcome = invoke("load", GRAPH, "--data", "-", "--mode", "append", "--quiet", cwd=folder, stdin=wrong)

    assert (outcome.code, outcome.stderr) == (1, of("text")[1].text)


def test_the_program_of_the_page_runs(folder: Path) -> None:
    (program,) = of("python")

    printed = python("-c", program.text, cwd=folder).stdout.splitlines()

    assert printed[0].startswith("1 ")
    assert printed[1].endswith(" ada None")
    assert printed[3].endswith(" ada first shows")
    assert len(printed) == 4
