"""A page of the documentation, typed into a folder from its first line to its last.

The word after the language of a fence says what a block is. A name with a dot is the file that the block
shows: it is written before the next command. `spark` marks what needs Spark, `not-run` what no test types.
Everything else in `sh` is typed and everything else in `python` is run, in the order of the page; programs
share their names, as in a notebook. A `text` block right below commands is what the last of them print.
"""

import io
import os
import re
import shlex
import sys
import warnings
from collections.abc import Callable
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from tests.support.commands import PROGRAM, Outcome, run, write
from tests.support.in_process import invoke
from tests.support.pages import REPOSITORY, Block, blocks
from tests.support.shell import statements

SPARK, NOT_RUN = "spark", "not-run"
_BY_A_SHELL = frozenset({"|", "<", "<<", ";", "&&", "||", "&", "(", ")"})
_ID = re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b")
_TIME = re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?")
_FRACTION = re.compile(r"\d+\.\d{7,}")


@dataclass(frozen=True, slots=True)
class Typed:
    """A command and how it ended."""

    command: str
    outcome: Outcome


@dataclass(slots=True)
class Transcript:
    """What happened on a page: the commands of each block, what its programs printed, and what it shows."""

    folder: Path
    commands: dict[Block, list[Typed]] = field(default_factory=dict)
    programs: dict[Block, str] = field(default_factory=dict)
    shown: list[tuple[Block, Block]] = field(default_factory=list)  # commands, and the text below them

    @property
    def typed(self) -> list[Typed]:
        """All commands, in their order."""
        return [typed for block in self.commands.values() for typed in block]

    def of(self, start: str) -> Outcome:
        """Return how the one command that starts so ended."""
        (found,) = (typed.outcome for typed in self.typed if typed.command.startswith(start))
        return found


def run_page(
    page: Path,
    folder: Path,
    wants: Callable[[Block], bool],
    *,
    typing: "Callable[[str, Path], Typed] | None" = None,
    running: "Callable[[Block, Path, dict[str, object]], str] | None" = None,
) -> Transcript:
    """Write, type and run the blocks of a page that are wanted; files are always written.

    Commands are typed and programs run in this process, unless the caller has another way.
    """
    typing, running = typing or type_in, running or run_program
    transcript = Transcript(folder)
    names: dict[str, object] = {"__name__": "__main__"}
    path = f"{PROGRAM.parent}:{os.environ['PATH']}"
    if "examples/" in page.read_text(encoding="utf-8"):
        (folder / "examples").symlink_to(REPOSITORY / "examples")
    above: Block | None = None
    with mock.patch.dict(os.environ, {"PATH": path}):
        for block in blocks(page):
            if "." in block.info:
                write(folder, block.info, block.text)
            elif block.language == "sh" and wants(block):
                transcript.commands[block] = [typing(command, folder) for command in statements(block.text)]
            elif block.language == "python" and wants(block):
                transcript.programs[block] = running(block, folder, names)
            elif block.language == "text" and above in transcript.commands and _is_right_below(block, above):
                transcript.shown.append((above, block))
            above = block
    return transcript


def _is_right_below(block: Block, above: Block) -> bool:
    return (
        block.line - (above.line + above.text.count("\n")) <= 3
    )  # two fences, and a blank line between them


def type_in(statement: str, folder: Path) -> Typed:
    """Type a command: ours runs within this process, unless it takes a shell to understand it."""
    if not re.match(r"(?:[A-Z_]+=\S* +)*(?:omnigraph|export) ", statement):
        return Typed(statement, run(["sh", "-euc", statement], cwd=folder))
    punctuated = shlex.shlex(statement, posix=True, punctuation_chars="|<>;&()")
    punctuated.whitespace_split = True
    words = list(punctuated)
    variables = dict[str, str]()
    while re.match(r"[A-Z_]+=", words[0]):
        name, _, variables[name] = words.pop(0).partition("=")
    if words[0] == "export":
        for word in words[1:]:
            name, _, os.environ[name] = word.partition("=")
        return Typed(statement, Outcome(0, "", ""))
    if _BY_A_SHELL & {*words}:
        return Typed(statement, run(["sh", "-euc", statement], cwd=folder))
    into = words[words.index(">") + 1] if ">" in words else None
    arguments = words[1 : words.index(">")] if into else words[1:]
    with mock.patch.dict(os.environ, variables):
        outcome = invoke(*arguments, cwd=folder)
    if into:
        (folder / into).write_text(outcome.stdout, encoding="utf-8")
        outcome = Outcome(outcome.code, "", outcome.stderr)
    return Typed(statement, outcome)


def run_program(block: Block, folder: Path, names: dict[str, object]) -> str:
    """Run a program of a page within this process, and return what it printed."""
    printed = io.StringIO()
    text = block.text
    if block.info == SPARK:  # its workers have the folder in which the session of these tests was started
        for graph in folder.glob("*.omni"):
            text = text.replace(f'"{graph.name}"', f'"{graph}"')
    program = compile(text, str(block), "exec")
    with chdir(folder), redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # an example need not close what ends with it
        exec(program, names)
    sys.stdout.flush()
    return printed.getvalue()


def printed_below(typed: list[Typed], shown: str) -> str:
    """Return what the last commands printed: of as many of them as the text shows, or of all.

    A page may leave out what goes to standard error, which says where a command has worked.
    """
    answers = [one.outcome.stdout or one.outcome.stderr for one in typed]
    everything = [one.outcome.stdout + one.outcome.stderr for one in typed]
    endings = [
        "\n".join(texts[first:]) for texts in (everything, answers) for first in reversed(range(len(typed)))
    ]
    return next((text for text in endings if masked(text) == masked(shown)), endings[-1])


def masked(text: str) -> str:
    """Return a text without what is another at every run: ids, times, the last digits of long fractions."""
    told = _TIME.sub("<time>", _ID.sub("<id>", text))
    told = _FRACTION.sub(lambda found: f"{float(found[0]):.6f}", told)
    return told if told == text else re.sub(r"[ -]{2,}", " ", told)  # a column may be wider or narrower


def accept(page: Path, printed: dict[int, str]) -> None:
    """Write what was printed into a page, from its end so that lines keep their numbers."""
    lines = page.read_text(encoding="utf-8").splitlines(keepends=True)
    for start in sorted(printed, reverse=True):
        end = next(number for number in range(start - 1, len(lines)) if lines[number].startswith("```"))
        lines[start - 1 : end] = [printed[start]]
    page.write_text("".join(lines), encoding="utf-8")
