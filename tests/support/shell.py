"""The shell blocks of a page, typed one command after the other."""

import shlex
from collections.abc import Iterator
from pathlib import Path

from tests.support.commands import Outcome, run
from tests.support.in_process import invoke


def statements(text: str) -> Iterator[str]:
    """Yield the commands of a block, each with the lines that continue it and the file that it is given."""
    lines = iter(text.splitlines())
    for line in lines:
        statement = line
        while statement.endswith("\\"):
            statement = statement[:-1] + next(lines)
        if "<<'" in statement:
            end = statement.partition("<<'")[2].partition("'")[0]
            for given in lines:
                statement += f"\n{given}"
                if given == end:
                    break
            else:
                raise AssertionError(f"nothing ends the file of {line!r}")
        yield statement


def typed(statement: str, cwd: Path) -> Outcome:
    """Run a command in a folder: ours within this process, any other in a shell."""
    words = shlex.split(statement, comments=True) if statement.startswith("omnigraph ") else []
    return invoke(*words[1:], cwd=cwd) if words else run(["sh", "-euc", statement], cwd=cwd)
