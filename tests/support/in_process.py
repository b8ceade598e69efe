"""The command line inside of this process: the same edge, without the second that a start takes."""

import io
import json
import sys
from contextlib import chdir
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from omnigraph.cli.main import main
from tests.support.commands import Outcome


def invoke(*arguments: str | Path, cwd: Path, stdin: str | bytes = b"") -> Outcome:
    """Run a command to its end."""
    code: object = None
    with chdir(cwd), CliRunner().isolation(input=stdin) as (stdout, stderr, _):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as ended:
            code = ended.code or 0
        sys.stdout.flush()
        sys.stderr.flush()
    assert isinstance(code, int), code
    return Outcome(code, text_of(stdout), text_of(stderr))


def document(*arguments: str | Path, cwd: Path, stdin: str | bytes = b"") -> dict[str, Any]:
    """Run a command with `--json`, and return what it prints."""
    outcome = invoke(*arguments, "--json", cwd=cwd, stdin=stdin)
    assert outcome.code == 0, outcome
    printed: dict[str, Any] = json.loads(outcome.stdout)
    return printed


def text_of(stream: io.BytesIO) -> str:
    """Return what was written."""
    return stream.getvalue().decode()
