"""The shell blocks of a page, command by command."""

import shlex
from collections.abc import Iterator


def statements(text: str) -> Iterator[str]:
    """Yield the commands of a block, each with the lines that continue it and the file that it is given."""
    lines = iter(text.splitlines())
    for line in lines:
        statement = line
        while statement.endswith("\\") or _is_quote_open(statement):
            statement = (
                statement[:-1] + next(lines) if statement.endswith("\\") else f"{statement}\n{next(lines)}"
            )
        if "<<'" in statement:
            end = statement.partition("<<'")[2].partition("'")[0]
            for given in lines:
                statement += f"\n{given}"
                if given == end:
                    break
            else:
                raise AssertionError(f"nothing ends the file of {line!r}")
        yield statement


def _is_quote_open(statement: str) -> bool:
    try:
        shlex.split(statement, comments=True)
    except ValueError:
        return True
    return False
