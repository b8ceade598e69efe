"""The prompt at a terminal; the only module that imports prompt_toolkit."""

import shutil
import sys
from collections.abc import Iterable, Iterator

import click
from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import Lexer

from omnigraph.cli.printing import tell
from omnigraph.cli.shell.candidates import Names, candidates
from omnigraph.cli.shell.highlight import highlighted
from omnigraph.cli.shell.history import history_file
from omnigraph.cli.shell.loop import attempt
from omnigraph.cli.shell.session import Quit, Session
from omnigraph.cli.shell.statement import is_complete
from omnigraph.cli.steering import on_lines
from omnigraph.core.errors import OmnigraphError


def run_prompt(session: Session) -> None:
    r"""Ask for statements and run them until the end: `\quit`, or Ctrl-D on an empty line."""
    completer = _Names(session)
    asking: PromptSession[str] = PromptSession(
        history=_history(),
        lexer=_Colours(),
        completer=completer,
        complete_while_typing=False,
        multiline=True,
        key_bindings=_keys(),
        prompt_continuation="...> ",
    )
    while True:
        completer.look()
        try:
            text = asking.prompt(f"{session.place}> ")
            attempt(session, text, show_paged, catches_interrupts=True)
        except KeyboardInterrupt:  # while typing: the line is given up, and nothing else
            continue
        except (EOFError, Quit):
            return


def show_paged(lines: Iterator[str]) -> None:
    """Show an answer; one that is longer than the screen in the user's pager."""
    shown = [f"{on_lines(line)}\n" for line in lines]
    height = shutil.get_terminal_size().lines
    if sum(line.count("\n") for line in shown) < height:
        click.echo("".join(shown), nl=False)
        sys.stdout.flush()
    else:
        click.echo_via_pager(shown)


def _history() -> History:
    path = history_file()
    if path is None:
        tell("warning: there is no place for a history; it ends with this session")
        return InMemoryHistory()
    return FileHistory(str(path))


def _keys() -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("enter")
    def _(event: KeyPressEvent) -> None:
        """Run what is complete; otherwise begin another line."""
        buffer = event.current_buffer
        if buffer.complete_state is not None and buffer.complete_state.current_completion is not None:
            buffer.complete_state = None
        elif is_complete(buffer.text) or is_complete(f"{buffer.text}\n"):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return bindings


class _Colours(Lexer):
    """Colours what is typed."""

    def lex_document(self, document: Document) -> "_Lines":
        """Return what colours a line of the text."""
        return _Lines(document.text)


class _Lines:
    """The coloured lines of one text."""

    def __init__(self, text: str) -> None:
        self._lines = highlighted(text)

    def __call__(self, number: int) -> StyleAndTextTuples:
        return [*self._lines[number]] if number < len(self._lines) else []


class _Names(Completer):
    """Completes what is typed from the catalog and the session; looked up once for each statement."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._names: Names | None = None

    def look(self) -> None:
        """Read the names again: the last statement may have changed them."""
        session = self._session
        try:
            catalog = session.graph.catalog_on(session.branch)
            self._names = Names(catalog, tuple(session.graph.branches()), tuple(session.kept))
        except OmnigraphError:  # the branch may be gone; the next statement says so
            self._names = None

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:  # noqa: ARG002 - of the protocol
        """Yield what the word before the cursor may become."""
        if self._names is None:
            return
        word, found = candidates(document.text_before_cursor, self._names)
        yield from (Completion(name, start_position=-len(word)) for name in found)
