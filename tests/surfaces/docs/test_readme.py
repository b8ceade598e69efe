"""The commands of the README, typed one after the other into an empty folder, do what it says."""

import re
from pathlib import Path

import pytest

from tests.support.commands import PROGRAM, python, run
from tests.support.pages import REPOSITORY, Block, blocks
from tests.support.shell import statements, typed

README = list(blocks(REPOSITORY / "README.md"))
SETUP = ("make ", ". ")  # what is typed in a checkout


def of(language: str) -> list[Block]:
    """Return the blocks of a language."""
    return [block for block in README if block.language == language]


def commands() -> list[str]:
    """Return the commands of all shell blocks, in their order."""
    return [statement for block in of("sh") for statement in statements(block.text)]


def test_every_command_and_the_program_run_in_an_empty_folder(tmp_path: Path) -> None:
    outcomes = {command: typed(command, tmp_path) for command in commands() if not command.startswith(SETUP)}

    assert {command: outcome for command, outcome in outcomes.items() if outcome.code} == {}
    printed = {command.partition("\n")[0]: outcome.stdout for command, outcome in outcomes.items()}
    assert "add edge Blocks" in printed["omnigraph schema plan --from tasks.pg --schema tasks-next.pg"]
    assert printed["omnigraph diff tasks.omni review"] == '~ Task "T-1"  state: "open" => "done"\n'
    (listed,) = (text for command, text in printed.items() if command.startswith("omnigraph commit list"))
    assert "labels are here" in listed
    (program,) = of("python")
    rows = python("-c", program.text, cwd=tmp_path).stdout.splitlines()
    assert len(rows) == 2
    assert "T-2  Repair the press" in rows[1]


def test_what_is_typed_in_a_checkout_has_a_target() -> None:
    targets = re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    made = [command.split()[1] for command in commands() if command.startswith("make ")]

    assert made == ["setup", "demo", "test"]
    assert set(made) <= set(targets)


@pytest.mark.slow
def test_a_shell_runs_the_blocks_as_they_are_printed(tmp_path: Path) -> None:
    """The installed program, and a shell that reads the blocks itself."""
    script = "".join(block.text for block in of("sh") if not block.text.startswith("make "))
    path = f"{PROGRAM.parent}:/usr/bin:/bin"

    outcome = run(["sh", "-eu"], cwd=tmp_path, stdin=script, PATH=path)

    assert (outcome.code, "labels are here" in outcome.stdout) == (0, True)
