"""`omnigraph fmt`: one canonical layout."""

import os
import tempfile
from pathlib import Path

import click

from omnigraph.cli.exit_codes import EXIT_FAILURE
from omnigraph.cli.printing import say, tell
from omnigraph.cli.sources import read_source, source_files
from omnigraph.core.errors import BadRequest
from omnigraph.core.regular_file import refuse_inside_graph
from omnigraph.core.source_errors import ParseError
from omnigraph.language.format import format_queries, format_schema

_FORMATTERS = {".pg": format_schema, ".gq": format_queries}


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="FILE...")
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if a file would change.")
@click.pass_context
def fmt(ctx: click.Context, *, paths: tuple[str, ...], check: bool) -> None:
    """Rewrite .pg and .gq files, or all of them below a folder, in the canonical layout.

    A file that does not parse is left unchanged, and the command exits with 1.
    """
    files = list(source_files(paths, frozenset(_FORMATTERS)))
    changed = failed = 0
    for path in files:
        try:
            is_changed = _format_file(path, write=not check)
        except ParseError as error:
            tell(error.render())
            failed += 1
            continue
        if is_changed:
            changed += 1
            say(f"{'would format' if check else 'formatted'} {path}")
    unchanged = len(files) - changed - failed
    click.echo(
        f"{changed} {'to format' if check else 'formatted'}, {unchanged} unchanged, {failed} failed", err=True
    )
    if failed or (check and changed):
        ctx.exit(EXIT_FAILURE)


def _format_file(path: str, *, write: bool) -> bool:
    """Format one file and return whether its text changes."""
    formatter = _FORMATTERS.get(Path(path).suffix)
    if formatter is None:
        raise BadRequest(f"cannot format {path}: only {' and '.join(_FORMATTERS)} files can be formatted")
    source = read_source(path)
    text = formatter(source)
    if text == source.text:
        return False
    if write:
        _replace(Path(path), text)
    return True


def _replace(path: Path, text: str) -> None:
    """Replace a file in one step: a reader sees the old text or the new one, never half of it."""
    path = path.resolve()
    temporary = None
    try:
        refuse_inside_graph(path)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        Path(temporary).chmod(path.stat().st_mode & 0o7777)
        Path(temporary).replace(path)
        temporary = None
    except OSError as error:
        raise BadRequest(f"cannot write {path}: {error.strerror}") from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
