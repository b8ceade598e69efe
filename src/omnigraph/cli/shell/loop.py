"""From a source of statements to what is printed: a session goes on whatever happens to one of them.

L1  An error of any kind is shown, counted, and ends one statement.
L2  At a terminal, Ctrl-C ends the statement that is typed or running; what became of a write is said.
"""

import sys
import traceback
from collections.abc import Callable, Iterator

import click

from omnigraph.cli.interrupt import notes_of
from omnigraph.cli.printing import tell
from omnigraph.cli.render.errors import render_error
from omnigraph.cli.shell.session import Quit, Session
from omnigraph.cli.shell.statement import is_complete
from omnigraph.core.errors import OmnigraphError

Show = Callable[[Iterator[str]], None]


def attempt(session: Session, text: str, show: Show, *, catches_interrupts: bool = False) -> bool:
    """Run one statement and show its answer, or what is wrong with it; return whether it succeeded (L1).

    Raises:
        Quit: it is the end.
    """
    try:
        show(session.run(text))
    except Quit:
        raise
    except OmnigraphError as error:
        tell(render_error(error))
    except click.ClickException as error:
        tell(f"error: {error.message}")
    except KeyboardInterrupt as interrupt:
        if not catches_interrupts:
            raise
        tell(f"interrupted: {'; '.join(notes_of(interrupt)) or 'nothing was changed'}")  # L2
    except BrokenPipeError:
        raise
    except Exception:  # noqa: BLE001 - a defect of ours must not take the session with it
        tell(f"a defect of omnigraph: the session goes on\n{traceback.format_exc()}")
    else:
        return True
    return False


def run_piped(session: Session, lines: Iterator[str], show: Show) -> bool:
    """Run statements line by line from something that is no terminal; return whether all succeeded."""
    is_fine = True
    try:
        for statement in statements(lines):
            is_fine &= attempt(session, statement, show)
    except Quit:
        pass
    return is_fine


def statements(lines: Iterator[str]) -> Iterator[str]:
    """Yield the statements of a text; what is incomplete at its end is one as well."""
    text = ""
    for line in lines:
        text += line if line.endswith("\n") else f"{line}\n"
        if is_complete(text.removesuffix("\n")) or is_complete(text):
            yield text
            text = ""
    if text.strip():
        yield text


def print_lines(lines: Iterator[str]) -> None:
    """Print an answer as it comes; on a terminal, without what would steer it."""
    from omnigraph.cli.printing import print_data

    print_data(f"{line}\n" for line in lines)
    sys.stdout.flush()
