"""Commands that findings and error messages name as the way out: each exists, with its flags."""

import re
from pathlib import Path

import click
import pytest

import omnigraph as package
from omnigraph.cli.main import COMMANDS
from omnigraph.cli.main import omnigraph as program
from omnigraph.operations.verify.report import FindingKind, VerifyFinding

SOURCES = Path(package.__file__).parent
NAMED = re.compile(r"omnigraph (?P<command>[a-z-]+)(?P<rest>(?: (?:--[a-z-]+|[a-z]+))*)")
# Words behind the name of the program that are no commands: prose, and the name of the package.
PROSE = {
    *("runs", "version", "does", "graph", "has", "is", "in", "itself", "the", "that", "where", "was", "on"),
}


def named_in(text: str) -> set[tuple[str, tuple[str, ...]]]:
    """Return the commands that a text names, each with its flags."""
    found = (match for match in NAMED.finditer(text) if match["command"] not in PROSE - set(COMMANDS))
    return {
        (
            f"{match['command']} {words[0]}" if words and is_group(match["command"]) else match["command"],
            flags,
        )
        for match in found
        for flags in [tuple(word for word in match["rest"].split() if word.startswith("--"))]
        for words in [match["rest"].split()]
    }


def is_group(command: str) -> bool:
    """Say whether a command has commands of its own."""
    found = program.get_command(click.Context(program), command) if command in COMMANDS else None
    return isinstance(found, click.Group)


def has(command: str, flags: tuple[str, ...]) -> bool:
    """Say whether a command exists and takes some flags."""
    name, _, below = command.partition(" ")
    found = program.get_command(click.Context(program), name) if name in COMMANDS else None
    if below and isinstance(found, click.Group):
        found = found.get_command(click.Context(found), below)
    if found is None:
        return False
    options = {name for parameter in found.params for name in parameter.opts}
    return set(flags) <= options


@pytest.mark.case("engine", 519)
@pytest.mark.parametrize("kind", FindingKind)
def test_the_way_out_of_every_finding_exists(kind: FindingKind) -> None:
    finding = VerifyFinding.of(kind, "here", "this")

    named = named_in(finding.remedy)

    assert finding.meaning
    assert named or "put " in finding.remedy
    assert {item for item in named if not has(*item)} == set()


@pytest.mark.case("engine", 519)
def test_every_command_that_a_message_names_exists() -> None:
    """Texts in quotes in the source, where a person is told what to type."""
    named = {
        item
        for file in SOURCES.rglob("*.py")
        for quoted in re.findall(r"(?:run|with|use|by|--) '?(omnigraph [^'\"\n]*)", file.read_text())
        for item in named_in(quoted)
    }

    assert ("repair", ()) in named
    assert {item for item in named if not has(*item)} == set()
