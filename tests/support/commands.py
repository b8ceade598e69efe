"""Running the command line as a real process, and the small files it is run on."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

PROGRAM = Path(sys.executable).with_name("omnigraph")

SCHEMA = """\
node Craft {
    code: String @key
    name: String
    mass_kg: F64?
}

node Mission {
    title: String @key
}

edge Flew: Craft -> Mission
"""
READ = """\
query craft($code: String) {
    match {
        $c: Craft { code: $code }
    }
    return { $c.name }
}
"""
NO_SUCH_PROPERTY = "query heavy() { match { $c: Craft  $c.mass > 1.5 } return { $c.code } }\n"
WARNED = 'query rename() { update Craft set { name: "Voyager" } where code = "VGR-1" }\n'
UNPARSABLE = "query craft() { match { $c: Craft } limit 3 }\n"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a process ended and what it wrote."""

    code: int
    stdout: str
    stderr: str


def omnigraph(*arguments: str | Path, cwd: Path, stdin: str | bytes = b"", **variables: str) -> Outcome:
    """Run the installed program to its end, with more environment variables."""
    return run([str(PROGRAM), *map(str, arguments)], cwd=cwd, stdin=stdin, **variables)


def python(*arguments: str | Path, cwd: Path, stdin: str | bytes = b"", **variables: str) -> Outcome:
    """Run this interpreter to its end, with more environment variables."""
    return run([sys.executable, *map(str, arguments)], cwd=cwd, stdin=stdin, **variables)


def run(command: list[str], *, cwd: Path, stdin: str | bytes = b"", **variables: str) -> Outcome:
    """Run a program to its end; a traceback of ours is never an answer."""
    given = stdin.encode() if isinstance(stdin, str) else stdin
    environment = os.environ | {"LC_ALL": "C.UTF-8", "PYTHONUTF8": "1"} | variables
    ended = subprocess.run(
        command, cwd=cwd, input=given, capture_output=True, check=False, timeout=100, env=environment
    )
    outcome = Outcome(ended.returncode, ended.stdout.decode(), ended.stderr.decode())
    assert "Traceback" not in outcome.stderr, outcome.stderr
    return outcome


def start(*arguments: str, cwd: Path) -> subprocess.Popen[bytes]:
    """Start the installed program, and let Ctrl-C reach it even where the shell of the tests ignores it."""
    return subprocess.Popen(
        prepared("import signal; signal.signal(signal.SIGINT, signal.SIG_DFL)", *arguments),
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def prepared(statement: str, *arguments: str) -> list[str]:
    """Return the command that runs a statement of Python in a process, which then becomes the program.

    In place of `preexec_fn`, which forks this process: Lance must not be forked.
    """
    become = f"import os, sys; {statement}; os.execv(sys.argv[1], sys.argv[1:])"
    return [sys.executable, "-c", become, str(PROGRAM), *arguments]


def write(folder: Path, name: str, text: str | bytes) -> Path:
    """Write a file and return its path."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path
