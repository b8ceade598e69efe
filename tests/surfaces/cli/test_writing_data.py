"""The commands and the program of the guide's page about writing data work as they are printed."""

from pathlib import Path

import pytest

from tests.support.atlas import commits
from tests.support.commands import python, write
from tests.support.in_process import invoke
from tests.support.pages import DOCS, Block, blocks
from tests.support.shell import statements, typed

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
    return tmp_path


def test_the_commands_of_the_page_run_in_their_order(folder: Path) -> None:
    commands = [command for block in of("sh") for command in statements(block.text)]

    outcomes = {command: typed(command, folder) for command in commands}

    expected = {command: 4 if "--if-commit" in command else 0 for command in commands}
    assert {command: outcome.code for command, outcome in outcomes.items()} == expected
    assert [commit["actor_id"] for commit in commits(folder, graph=GRAPH)] == [
        "ada",
        "omnigraph:maintenance",
        "ada",
        None,
    ]
    printed = program_printed(folder)
    assert printed[0].startswith("1 ")
    assert printed[1].endswith(" ada None")
    assert printed[3].endswith(" ada first shows")
    assert len(printed) == 4


def program_printed(folder: Path) -> list[str]:
    """Return what the program of the page prints in the folder of its commands."""
    (program,) = of("python")
    return python("-c", program.text, cwd=folder).stdout.splitlines()


def test_the_error_of_the_page_is_the_one_that_is_printed(folder: Path) -> None:
    invoke("init", GRAPH, "--schema", "radio.pg", cwd=folder)
    (made,) = (text for block in of("sh") for text in statements(block.text) if text.startswith("cat "))
    assert typed(made, folder).code == 0
    wrong = (folder / "radio.jsonl").read_text(encoding="utf-8").replace('"from": "ada"', '"from": "adda"')

    outcome = invoke("load", GRAPH, "--data", "-", "--mode", "append", "--quiet", cwd=folder, stdin=wrong)

    assert (outcome.code, outcome.stderr) == (1, of("text")[0].text)
