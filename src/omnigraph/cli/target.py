"""Which graph a command works on, and consent to destroy what is in it."""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

import click

from omnigraph.cli.options import ADDRESS, Decorated, with_options
from omnigraph.cli.printing import tell
from omnigraph.core.errors import BadRequest, UnsupportedError
from omnigraph.storage.control.uri import GraphRoot

_OPTIONS = (
    click.option("--uri", "uris", multiple=True, metavar="URI", help=f"The graph: a {ADDRESS}."),
    click.option("--store", "stores", multiple=True, metavar="URI", help="The same as --uri."),
    click.option("--quiet", is_flag=True, help="Do not announce or show progress on standard error."),
)
_SERVED = re.compile(r"https?://", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class GraphAddress:
    """The address of a graph, as given."""

    uri: str
    is_local: bool

    @property
    def access(self) -> str:
        """How the graph is reached, as the line on standard error says it."""
        return f"direct, {'local' if self.is_local else 'remote'}"


@dataclass(frozen=True, slots=True)
class Addressed:
    """What was typed about the graph, and whether to be quiet about it."""

    positional: str | None
    uris: Sequence[str]
    stores: Sequence[str]
    quiet: bool

    @property
    def by_flag(self) -> bool:
        """Whether a flag names a graph."""
        return bool(self.uris or self.stores)

    def resolve(self, positional: str | None = None) -> GraphAddress:
        """Return the one graph that is named.

        Raises:
            click.UsageError: it is named more than once.
            BadRequest: it is not named at all, or by something that is not an address.
            UnsupportedError: the address is that of a server.
        """
        word = self.positional if positional is None else positional
        given = [("URI", word)] if word is not None else []
        given += [("--uri", uri) for uri in self.uris] + [("--store", uri) for uri in self.stores]
        if not given:
            raise BadRequest("no graph given: name it with --store or --uri")
        if len(given) > 1:
            names = " and ".join(name for name, _ in given)
            raise click.UsageError(f"the graph is given more than once, by {names}: give one of them")
        uri = str(given[0][1])
        if _SERVED.match(uri):
            raise UnsupportedError(
                f"graphs behind a server are not in this version: name the graph's storage by its {ADDRESS}"
            )
        return GraphAddress(uri, GraphRoot.parse(uri).is_local)

    def refuse(self, reason: str) -> None:
        """Refuse a graph that is named although a command was told to do without one.

        Raises:
            click.UsageError: one is named.
        """
        if self.positional is not None or self.by_flag:
            raise click.UsageError(reason)

    def announce(self, command: str, target: GraphAddress) -> None:
        """Say on standard error what a command is about to work on."""
        if not self.quiet:
            tell(f"omnigraph {command} → {target.uri} ({target.access})")


uri_argument = click.argument("uri", required=False)


def address_options(command: Decorated) -> Decorated:
    """Add the flags that name a graph, and `--quiet`; the command takes them as one value, `addressed`."""

    @wraps(command)
    def collected(
        *,
        uri: str | None = None,
        uris: Sequence[str],
        stores: Sequence[str],
        quiet: bool,
        **others: Any,  # noqa: ANN401 - what click takes
    ) -> object:
        return command(addressed=Addressed(uri, uris, stores, quiet), **others)

    return with_options(collected, _OPTIONS)


def require_consent(what: str, target: GraphAddress, *, yes: bool, may_ask: bool) -> None:
    """Let a destructive command go on: on this machine always, elsewhere with `--yes` or a typed yes.

    Raises:
        BadRequest: there is no consent and no way to ask for it, or the answer was not yes.
    """
    if target.is_local or yes:
        return
    if not (may_ask and sys.stdin.isatty()):
        raise BadRequest(f"{what} at {target.uri}; confirm with --yes, since it cannot ask here")
    tell(f"{what} at {target.uri}. Type yes to go on: ", nl=False)
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise BadRequest("not confirmed; nothing was done")
