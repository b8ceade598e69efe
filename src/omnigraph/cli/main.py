"""The command table, and what becomes of errors.

`--help` imports click and this table alone: a command is imported when it is called.
"""

import importlib
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import click

from omnigraph import __version__
from omnigraph.cli.exit_codes import EXIT_FAILURE, EXIT_INTERRUPTED, EXIT_USAGE
from omnigraph.cli.global_flags import SWITCHES, WITH_VALUE, ForwardingGroup
from omnigraph.cli.invocation import Invocation
from omnigraph.cli.lean_imports import end_at_once, lean_imports
from omnigraph.cli.standard_streams import OutputLost, prepare_streams

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class CommandEntry(NamedTuple):
    """Where a command lives, its line in the help, and the section of the help it is listed in."""

    target: str
    help: str
    section: str


_GRAPH = "Reading and writing a graph"
_STORAGE = "Creating and maintaining a graph (its storage)"
_OFFLINE = "Schemas and queries, without a graph"
_SERVING = "Servers"
_PROGRAM = "This program"


def _entry(name: str, help: str, section: str) -> CommandEntry:
    return CommandEntry(f"omnigraph.cli.commands.{name}:{name}", help, section)


COMMANDS = {
    "query": _entry("query", "Run a read and print its rows.", _GRAPH),
    "alias": _entry("alias", "Run a query by its alias.", _GRAPH),
    "explain": _entry("explain", "Show how a read would be carried out.", _GRAPH),
    "load": _entry("load", "Load data from files, as one commit.", _GRAPH),
    "shell": _entry("shell", "Ask for queries and mutations at a prompt, and run them.", _GRAPH),
    "mutate": _entry("mutate", "Run a mutation, as one commit.", _GRAPH),
    "export": _entry("export", "Write the data of a graph as NDJSON, CSV or Parquet.", _GRAPH),
    "import": _entry("import_", "Load a whole export, in place of what a graph holds.", _GRAPH),
    "embed": _entry("embed", "Compute vectors from texts, in a graph or in a file.", _GRAPH),
    "branch": _entry("branch", "Create, list, merge, upgrade and delete branches.", _GRAPH),
    "commit": _entry("commit", "List the commits of a graph, or show one and what it changed.", _GRAPH),
    "diff": _entry("diff", "Show what differs between two branches or commits.", _GRAPH),
    "changes": _entry("changes", "Follow the changes of a graph.", _GRAPH),
    "status": _entry("status", "Show the head, indexes and sizes of a graph, and what it needs.", _GRAPH),
    "describe": _entry("describe", "Show the properties of a type, and what they hold.", _GRAPH),
    "blob": _entry("blob", "Read the bytes of a Blob property, or show how many there are.", _GRAPH),
    "snapshot": _entry("snapshot", "Show the version and the tables of a graph.", _GRAPH),
    "queries": _entry("queries", "List stored queries, or check them against a graph.", _GRAPH),
    "policy": _entry("policy", "Check a policy file, test it, and say what it decides.", _OFFLINE),
    "init": _entry("init", "Create an empty graph from a schema.", _STORAGE),
    "index": _entry("index", "Build missing indexes, or show which exist.", _STORAGE),
    "optimize": _entry("optimize", "Compact tables, merge and build indexes, as one commit.", _STORAGE),
    "cleanup": _entry("cleanup", "Remove old versions, and what nothing needs any more.", _STORAGE),
    "verify": _entry("verify", "Check files, history, schema, rows and indexes of a graph.", _STORAGE),
    "clone": _entry("clone", "Copy a graph to another place.", _STORAGE),
    "check-copy": _entry("check_copy", "Say what differs between a graph and its copy.", _STORAGE),
    "recovery": _entry("recovery", "List what was recovered after interrupted writes.", _STORAGE),
    "repair": _entry("repair", "Publish what others committed, or go back to an older version.", _STORAGE),
    "quarantine": _entry("quarantine", "List what was moved aside, or put it back.", _STORAGE),
    "lint": _entry("lint", "Check query files against a schema or a graph.", _OFFLINE),
    "fmt": _entry("fmt", "Rewrite files in the canonical layout.", _OFFLINE),
    "codegen": _entry("codegen", "Print Python or TypeScript declarations of a schema.", _OFFLINE),
    "schema": _entry("schema", "Show the schema of a graph, plan changes to it, apply them.", _STORAGE),
    "server": _entry("server", "Serve a graph over HTTP.", _SERVING),
    "serve": _entry(
        "serve", "Keep a graph open for your own commands, so that they start at once.", _SERVING
    ),
    "completion": _entry("completion", "Print what a shell needs to complete the command line.", _PROGRAM),
    "graphs": _entry("graphs", "List the graphs of a server.", _SERVING),
    "login": _entry("login", "Keep the token of a server.", _SERVING),
    "logout": CommandEntry("omnigraph.cli.commands.login:logout", "Forget the token of a server.", _SERVING),
    "profile": _entry("profile", "List the profiles of the operator file, or show one.", _PROGRAM),
    "config": _entry("config", "Show which settings apply, or find mistakes in them.", _PROGRAM),
    "version": _entry("version", "Print the version.", _PROGRAM),
}
DEPRECATED = {"check": "lint", "change": "mutate", "ingest": "load", "read": "query"}
DEPRECATED_PAIRS = {("query", "lint"): "lint", ("query", "check"): "lint"}
# What an old name means where nothing is given, by the names of click's parameters.
OLD_DEFAULTS = {"ingest": {"branch": "main", "from_": "main", "mode": "merge"}}


class LazyGroup(ForwardingGroup):
    """A group whose commands are imported when they are called."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Return the names in the table."""
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; an old spelling works and says what replaces it."""
        if cmd_name in DEPRECATED:
            _warn_of_old_name(cmd_name, DEPRECATED[cmd_name])
            cmd_name = DEPRECATED[cmd_name]
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
        if replacement := DEPRECATED_PAIRS.get((args[0], args[1] if len(args) > 1 else "")):
            _warn_of_old_name(" ".join(args[:2]), replacement)
            args = [replacement, *args[2:]]
        name = args[0]
        if name not in COMMANDS and name not in DEPRECATED and not name.startswith("-"):
            from difflib import get_close_matches

            close = get_close_matches(name, [*COMMANDS, *DEPRECATED], n=1)
            hint = f" Did you mean '{close[0]}'?" if close else ""
            raise click.UsageError(f"No such command '{name}'.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem[str]]":
        """Offer the table and the flags that may come first; click's own way would import every command."""
        from click.shell_completion import CompletionItem

        names = [
            CompletionItem(name, help=entry.help)
            for name, entry in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        flags = sorted(flag for flag in SWITCHES | WITH_VALUE if incomplete and flag.startswith(incomplete))
        own = click.Command.shell_complete(self, ctx, incomplete)
        return [*names, *map(CompletionItem, flags), *own]

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the table by section; click's own way would import every command."""
        for section in dict.fromkeys(entry.section for entry in COMMANDS.values()):
            with formatter.section(section):
                rows = [(name, entry.help) for name, entry in COMMANDS.items() if entry.section == section]
                formatter.write_dl(rows)


def _warn_of_old_name(name: str, replacement: str) -> None:
    click.echo(f"warning: '{name}' is deprecated, use '{replacement}'", err=True)


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "default_map": OLD_DEFAULTS},
)
@click.version_option(__version__, "-v", "--version", prog_name="omnigraph", message="%(prog)s %(version)s")
@click.pass_context
def omnigraph(ctx: click.Context) -> None:
    """A typed property graph with git-style history on open Lance tables.

    The flags --store, --uri, --server, --graph, --profile, --target, --config, --as, --yes, --quiet,
    --json and --no-warm may also be given before the command.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
        ctx.exit(EXIT_USAGE)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line, with these arguments or those of the process, and exit with its code."""
    if sys.platform == "win32":
        click.echo("error: omnigraph runs on Linux and macOS, not on Windows", err=True)
        sys.exit(EXIT_FAILURE)
    if arguments is None:
        prepare_streams()
        end_at_once()
    if "_OMNIGRAPH_COMPLETE" in os.environ:
        from omnigraph.cli.completion import register

        register()
    invocation = Invocation()
    color = False if os.environ.get("NO_COLOR") else None
    try:
        with lean_imports():
            sys.exit(
                omnigraph.main(arguments, "omnigraph", standalone_mode=False, obj=invocation, color=color)
            )
    except click.ClickException as error:
        from omnigraph.cli.steering import on_lines

        # The text contains file names and user input; click considers it final and shows it unchanged.
        vars(error)["message"] = on_lines(error.message)
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt) as interrupt:
        _tell_interrupt(interrupt)
        sys.exit(EXIT_INTERRUPTED)
    except BrokenPipeError:
        sys.exit(EXIT_FAILURE)  # the reader of our output has gone; it has what it wanted
    except OutputLost as error:
        sys.exit(_report_lost_output(error, invocation))
    except Exception as error:  # noqa: BLE001 - the outermost edge: typed errors become text and exit code
        sys.exit(_report(error, invocation))


def _report_lost_output(error: OutputLost, invocation: Invocation) -> int:
    """Print that the answer could not be, and that this undoes nothing."""
    from omnigraph.cli.printing import tell

    done = "; what the command had changed stays changed, only its answer is lost"
    tell(f"error: {error}{done if invocation.may_change else ''}")
    return EXIT_FAILURE


def _tell_interrupt(interrupt: BaseException) -> None:
    """Print what became of a write, if the interrupt carries that."""
    from omnigraph.cli.interrupt import notes_of
    from omnigraph.cli.printing import tell

    notes = notes_of(interrupt)
    if notes:
        tell(f"interrupted: {'; '.join(notes)}")


def _of_a_served_run(error: Exception) -> Exception:
    """Return the error of a run on a server, whose document may have been none that can be printed."""
    from omnigraph.client.understood import understood
    from omnigraph.core.access_errors import TransportError
    from omnigraph.core.errors import OmnigraphError

    if isinstance(error, OmnigraphError):
        return error
    try:
        with understood():
            raise error
    except TransportError as told:
        return told
    except Exception as other:  # noqa: BLE001 - a defect, which the caller raises
        return other


def _report(error: Exception, invocation: Invocation) -> int:
    """Print a typed error and return its exit code; anything else is a defect and keeps its traceback.

    The text goes to standard error. A run that was asked for a document also prints one, to standard output.
    """
    from omnigraph.cli.printing import print_document, tell
    from omnigraph.cli.render.errors import render_error
    from omnigraph.core.errors import OmnigraphError

    if invocation.is_served:
        error = _of_a_served_run(error)
    if not isinstance(error, OmnigraphError):
        raise error
    tell(render_error(error))
    if invocation.is_json:
        from omnigraph.wire.error_document import error_document

        print_document(error_document(error))
    return error.exit_code
