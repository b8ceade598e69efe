"""The flags and arguments that commands share, and the refusal of those that do not fit a command."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import click

from omnigraph.cli.invocation import Invocation
from omnigraph.cli.whole_numbers import WholeNumber

Decorated = Callable[..., Any]

ADDRESS = "path, file://, s3://, az:// or gs:// URI"
_STORAGE_ONLY = "does not apply: this command works on the storage of a graph, named with --store"
_NAMED_OTHERWISE = "does not apply: this command takes its graphs as arguments"
_NOT_HERE = {
    "--server": _STORAGE_ONLY,
    "--graph": _STORAGE_ONLY,
    "--profile": _NAMED_OTHERWISE,
    "--target": _NAMED_OTHERWISE,
    "--config": _NAMED_OTHERWISE,
    "--cluster": f"is not in this version: name the graph's storage by its {ADDRESS}, or its server",
    "--policy": "applies to commands on the data of a graph: whoever maintains its storage holds it",
    "--no-warm": "does not apply: this command always opens the storage of the graph itself",
    "--yes": "applies to commands that ask before they destroy something; this one does not ask",
}


class GraphCommand(click.Command):
    """A command on a graph: for a flag it cannot use, it says why and what to use instead."""

    always_refused: ClassVar[Mapping[str, str]] = _NOT_HERE

    def __init__(
        self,
        name: str | None,
        *,
        refuses: Mapping[str, str] | None = None,
        **settings: Any,  # noqa: ANN401 - what click takes
    ) -> None:
        """Take the settings of any command, and the flags that this one refuses, each with a reason."""
        super().__init__(name, **settings)
        self._refused = {**self.always_refused, **(refuses or {})}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command line; a refused flag is a mistake in usage that names the alternative."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if error.option_name not in self._refused:
                raise
            reason = self._refused[error.option_name]
            raise click.UsageError(f"{error.option_name} {reason}", ctx) from error


class ReadCommand(GraphCommand):
    """A command that only looks at a graph."""

    always_refused: ClassVar = {**_NOT_HERE, "--as": "applies to writes: a read is not recorded"}


def _note_json(ctx: click.Context, _parameter: click.Parameter, value: bool) -> bool:
    ctx.ensure_object(Invocation).is_json |= value
    return value


json_option = click.option(
    "--json",
    "as_json",
    is_flag=True,
    is_eager=True,
    callback=_note_json,
    help="Print a JSON document; errors become documents too.",
)
branch_option = click.option("--branch", metavar="NAME", help="The branch; main if not given.")
actor_option = click.option("--as", "actor", metavar="ACTOR", help="Who to record as the author.")
master_option = click.option(
    "--master", metavar="URL", help="Where Spark runs, such as local[4], spark://host:7077 or sc://host."
)
rows_engine_option = click.option(
    "--engine",
    type=click.Choice(["auto", "spark", "local"]),
    default="auto",
    show_default=True,
    help="Where rows are written, if any are: in this process, or on Spark; auto chooses by their size.",
)
index_engine_option = click.option(
    "--engine",
    type=click.Choice(["auto", "spark", "local"]),
    default="auto",
    show_default=True,
    help="Where indexes are built: in this process, or on Spark; auto chooses by the rows.",
)
message_option = click.option("--message", metavar="TEXT", help="A note to keep with the commit.")
retry_option = click.option(
    "--retry",
    type=WholeNumber(min=0),
    metavar="SECONDS",
    help="How long to run it again when another writer was first; 10 if not given, 0 for never.",
)
yes_option = click.option(
    "--yes", is_flag=True, help="Consent to destroying data that is not on this machine."
)


def old_spelling(old: str, new: str) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """Return the callback of a flag that is kept under an old name: one warning if it is used."""

    def warn(_ctx: click.Context, _parameter: click.Parameter, value: Any) -> Any:  # noqa: ANN401 - any flag
        if value:
            click.echo(f"warning: '{old}' is deprecated, {new}", err=True)
        return value

    return warn


def with_options(command: Decorated, options: Sequence[Callable[[Decorated], Decorated]]) -> Decorated:
    """Return a command with more options, in the given order."""
    for option in reversed(options):
        command = option(command)
    return command


def graph_and_word(words: Sequence[str], takes: str) -> tuple[str | None, str]:
    """Return the positional graph, if there is one, and the word after it; `takes` says what that is."""
    match words:
        case [word]:
            return None, word
        case [uri, word]:
            return uri, word
        case _:
            raise click.UsageError(f"{takes}, optionally preceded by a graph")
