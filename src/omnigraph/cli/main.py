"""The command table, and what becomes of errors.

`--help` imports click and this table alone: a command is imported when it is called.
"""

import importlib
import sys
from difflib import get_close_matches
from typing import NamedTuple, NoReturn

import click

from omnigraph import __version__
from omnigraph.cli.exit_codes import EXIT_FAILURE, EXIT_INTERRUPTED, EXIT_USAGE


class CommandEntry(NamedTuple):
    """Where a command lives, what it says of itself, and the section of the help it stands in."""

    target: str
    help: str
    section: str


_OFFLINE = "Schemas and queries (files only, no graph needed)"
_PROGRAM = "This program"

COMMANDS = {
    "lint": CommandEntry("omnigraph.cli.commands.lint:lint", "Check query files against a schema.", _OFFLINE),
    "fmt": CommandEntry("omnigraph.cli.commands.fmt:fmt", "Rewrite files in the canonical layout.", _OFFLINE),
    "schema": CommandEntry("omnigraph.cli.commands.schema:schema", "Plan changes of a schema.", _OFFLINE),
    "version": CommandEntry("omnigraph.cli.commands.version:version", "Print the version.", _PROGRAM),
}
DEPRECATED = {"check": "lint"}
GLOBAL_FLAGS = frozenset({"--json"})  # accepted before the command as well as behind it


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Hand the global flags that stand before the command on to it."""
        leading = 0
        while leading < len(args) and args[leading] in GLOBAL_FLAGS:
            leading += 1
        return super().parse_args(ctx, args[leading:] + args[:leading] if leading < len(args) else args)

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Return the names of the table."""
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; an old spelling works and says what replaces it."""
        if cmd_name in DEPRECATED:
            replacement = DEPRECATED[cmd_name]
            click.echo(f"warning: '{cmd_name}' is deprecated, use '{replacement}'", err=True)
            cmd_name = replacement
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        module, attribute = entry.target.split(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or suggest the one that was probably meant."""
        name = args[0]
        if name not in COMMANDS and name not in DEPRECATED and not name.startswith("-"):
            close = get_close_matches(name, [*COMMANDS, *DEPRECATED], n=1)
            hint = f" Did you mean '{close[0]}'?" if close else ""
            raise click.UsageError(f"No such command '{name}'.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the table by section; click's own way would import every command."""
        for section in dict.fromkeys(entry.section for entry in COMMANDS.values()):
            with formatter.section(section):
                rows = [(name, entry.help) for name, entry in COMMANDS.items() if entry.section == section]
                formatter.write_dl(rows)


@click.group(
    cls=LazyGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, "-v", "--version", prog_name="omnigraph", message="%(prog)s %(version)s")
@click.pass_context
def omnigraph(ctx: click.Context) -> None:
    """A typed property graph with git-style history on open Lance tables."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
        ctx.exit(EXIT_USAGE)


def main() -> NoReturn:
    """Run the command line and exit with its code."""
    if sys.platform == "win32":
        click.echo("error: omnigraph runs on Linux and macOS, not on Windows", err=True)
        sys.exit(EXIT_FAILURE)
    try:
        sys.exit(omnigraph.main(standalone_mode=False))
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(EXIT_INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output has gone; what it wanted it has.
        sys.stderr.close()
        sys.exit(EXIT_FAILURE)
    except Exception as error:  # noqa: BLE001 - the outermost edge: typed errors become text and exit code
        sys.exit(_report(error))


def _report(error: Exception) -> int:
    """Print a typed error and return its exit code; anything else is a defect and keeps its traceback."""
    from omnigraph.core.errors import OmnigraphError, SourceError

    if not isinstance(error, OmnigraphError):
        raise error
    click.echo(error.render() if isinstance(error, SourceError) else f"error: {error}", err=True)
    return error.exit_code
