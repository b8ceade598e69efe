"""Which graph a command works on, and consent to destroy what is in it."""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import click

from omnigraph.cli.printing import tell
from omnigraph.core.errors import BadRequest, UnsupportedError
from omnigraph.storage.control.uri import GraphRoot

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


def resolve(positional: str | None, uris: Sequence[str], stores: Sequence[str]) -> GraphAddress:
    """Return the one graph that is named.

    Raises:
        click.UsageError: it is named more than once.
        BadRequest: it is not named at all, or by something that is not an address.
        UnsupportedError: the address is that of a server.
    """
    given = [("URI", positional)] if positional is not None else []
    given += [("--uri", uri) for uri in uris] + [("--store", uri) for uri in stores]
    if not given:
        raise BadRequest("no graph given: name it with a positional URI, --uri or --store")
    if len(given) > 1:
        names = " and ".join(name for name, _ in given)
        raise click.UsageError(f"the graph is given more than once, by {names}: give one of them")
    uri = str(given[0][1])
    if _SERVED.match(uri):
        raise UnsupportedError(
            "graphs behind a server are not in this version: "
            "name the graph's storage by its path, file:// or s3:// URI"
        )
    return GraphAddress(uri, GraphRoot.parse(uri).is_local)


def announce(command: str, target: GraphAddress, *, quiet: bool) -> None:
    """Say on standard error what a command is about to work on."""
    if not quiet:
        tell(f"omnigraph {command} → {target.uri} ({target.access})")


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
