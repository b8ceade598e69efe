"""The steps of the parity journey as commands, on storage and through a server: what the library gives."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.core.errors import OmnigraphError
from omnigraph.graph.stored_files import given_queries
from omnigraph.server.serving import Serving
from omnigraph.wire.error_document import error_document
from tests.support.command_graph import CommandFailedError, CommandGraph
from tests.support.http_app import listening, settings_for
from tests.support.parity import STEPS, first_line, place_parity, told

# What a flag does not take is a mistake in the command, which exits with 2 and has other words.
USAGE = {
    "an unknown mode",
    "objects of no mode",
    "a value of no entity",
    "bytes from nowhere",
    "bytes the wrong way",
    "too few commits",
}
# A word of a command is a text, and a state is named by one.
NOT_A_TEXT = {
    "no snapshot",
    "before the beginning",
    "a name that is none",
    "a value with no name",
    "what a type without a name holds",
    "a flag that is none",
    "a check that is none",
    "an upgrade of a number",
}
# What a program holds: objects, tables, handles, iterators.
OF_A_PROGRAM = {
    "an entity",
    "an edge",
    "an entity with a Blob",
    "an entity on a branch",
    "an entity of the past",
    "an entity of a snapshot",
    "an entity of a branch that is bound",
    "no entity",
    "an entity of no type",
    "an entity of a type without a name",
    "an entity without an id",
    "an entity with half a letter",
    "an entity of no branch",
    "an entity of no commit",
    "rows of types as dicts",
    "records as dicts",
    "a record that is none",
    "objects",
    "an object of another class",
    "no objects",
    "objects of no type",
    "objects of no mode",
    "a network",
    "no network",
    "a network of no type",
    "a network out",
    "a network of some types",
    "a network of the past",
    "a network of no types",
    "a network of no branch",
    "SQL",
    "SQL over every column",
    "SQL that counts",
    "SQL about a time",
    "SQL on a branch",
    "SQL on no snapshot",
    "rows in batches",
    "rows of no column",
    "all rows of a type",
    "all rows of an edge",
    "all rows with a Blob",
    "all rows of no type",
    "a schema of the past",
    "a stored read with a note",
    "commits that are chosen",
    "a cursor too early",
    "work on a branch",
    "work that fails",
    "work on no branch",
}
# `load` names the file of a table, which a program has not.
OF_FILES = {"a table of nothing"}
ON_STORAGE_ALONE = {
    "a table in advance",
    "a table that clears",
    "a table",
    "tables",
    "a table of nothing",
    "a baseline",
    "a plan",
    "a plan that cannot be",
    "indexes",
    "indexes of a branch",
    "indexes of no branch",
    "recoveries",
}
BEHIND_A_SERVER_ALONE = {
    "a stored read",
    "a stored mutation",
    "a stored mutation with a note",
    "a wrong stored call",
}
NO_COMMAND = USAGE | NOT_A_TEXT | OF_A_PROGRAM | OF_FILES


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What every step gives on a graph in its storage, and of an error what a command has to say."""
    folder = tmp_path_factory.mktemp("embedded")
    with omnigraph.open(place_parity(folder), queries=folder / "stored.gq") as graph:
        return {step.name: told(step, graph, _said) for step in STEPS}


@pytest.fixture(params=["--store", "--server"])
def commands(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CommandGraph]:
    """A graph of its own, named by each of the flags."""
    place = place_parity(tmp_path)
    if request.param == "--store":
        yield CommandGraph(tmp_path, "--store", str(place))
        return
    serving = Serving.begin(settings_for(place, queries=given_queries(tmp_path / "stored.gq")))
    try:
        with listening(serving) as url:
            yield CommandGraph(tmp_path, "--server", url)
    finally:
        serving.close()


@pytest.mark.case("surfaces", 189)
@pytest.mark.case("surfaces", 680)
@pytest.mark.case("surfaces", 882)
@pytest.mark.case("surfaces", 885)
@pytest.mark.case("surfaces", 886)
def test_commands_give_what_the_library_gives(expected: dict[str, str], commands: CommandGraph) -> None:
    is_served = commands.flag == "--server"
    without = NO_COMMAND | (ON_STORAGE_ALONE if is_served else BEHIND_A_SERVER_ALONE)
    wrong = []
    with _library(commands) as graph:
        for step in STEPS:
            if step.name in without:
                told(step, graph)
            elif (found := told(step, commands, _said)) not in _sayable(expected[step.name]):
                wrong.append((step.name, expected[step.name], found))

    assert wrong == []
    assert without <= {step.name for step in STEPS}
    assert len(STEPS) - len(without) >= 80


@pytest.mark.case("surfaces", 680)
def test_what_a_flag_does_not_take_exits_with_2(tmp_path: Path) -> None:
    commands = CommandGraph(tmp_path, "--store", str(place_parity(tmp_path)))

    found = {
        step.name: told(step, commands, lambda error: error.exited)
        for step in STEPS
        if step.name in USAGE - OF_A_PROGRAM
    }

    assert found == dict.fromkeys(USAGE - OF_A_PROGRAM, "2")


def _library(commands: CommandGraph) -> Any:  # noqa: ANN401 - either kind of graph
    """Return the graph of the commands as a program has it, for the steps in between."""
    if commands.flag == "--server":
        return omnigraph.connect(commands.address)
    return omnigraph.open(commands.address, queries=commands.folder / "stored.gq")


def _said(error: OmnigraphError) -> tuple[object, ...]:
    """Return with what a command exits, the first line of the error, and what its document says besides."""
    if isinstance(error, CommandFailedError):
        code, document = error.exited, dict(error.printed)
    else:
        code, document = error.exit_code, error_document(error)
    document.pop("error")
    return code, first_line(error), document


def _sayable(expected: str) -> set[str]:
    """Return what a command may say: one that prints no document has the line alone."""
    return {expected, re.sub(r"^(\(\d+, .*), \{.*\}\)$", r"\1, {})", expected)}
