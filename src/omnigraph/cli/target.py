"""Which graph a command works on, and consent to destroy what is in it."""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from omnigraph.cli.invocation import Invocation, note_change
from omnigraph.cli.options import ADDRESS, Decorated, with_options
from omnigraph.cli.printing import tell
from omnigraph.cli.settings import settings
from omnigraph.client.scope import GraphAddress
from omnigraph.core.errors import BadRequest
from omnigraph.storage.control.uri import GraphRoot

if TYPE_CHECKING:
    from omnigraph.config.configuration import Configuration

_STORAGE = (
    click.option("--uri", "uris", multiple=True, metavar="URI", help=f"The graph: a {ADDRESS}."),
    click.option("--store", "stores", multiple=True, metavar="URI", help="The same as --uri."),
    click.option("--target", "targets", multiple=True, metavar="NAME", help="A graph of the project file."),
    click.option(
        "--profile", metavar="NAME", help="A profile of the operator file; else $OMNIGRAPH_PROFILE."
    ),
    click.option(
        "--config", metavar="PATH", help="The project file or its folder; ./omnigraph.yaml if not given."
    ),
    click.option("--quiet", is_flag=True, help="Do not announce or show progress on standard error."),
)
_SERVED = (
    click.option(
        "--server", "servers", multiple=True, metavar="NAME|URL", help="A server, by its name or address."
    ),
    click.option("--graph", metavar="ID", help="Which graph of the server."),
)


def _forbid_warm(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    ctx.ensure_object(Invocation).may_be_warm &= not value


_WARM = (
    click.option(
        "--no-warm",
        is_flag=True,
        expose_value=False,
        callback=_forbid_warm,
        help="Open the graph here, also if a warm server has it open; else $OMNIGRAPH_NO_WARM.",
    ),
)
_POLICY = (
    click.option(
        "--policy",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="A policy file: it decides what --as, or else the configured actor, may do.",
    ),
)
_HTTP = re.compile(r"https?://", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Addressed:
    """What was typed about the graph, and whether to be quiet about it."""

    positional: str | None
    uris: Sequence[str]
    stores: Sequence[str]
    quiet: bool
    targets: Sequence[str] = ()
    profile: str | None = None
    config: str | None = None
    servers: Sequence[str] = ()
    graph: str | None = None
    needs_storage: bool = True
    policy: Path | None = None
    is_guarded: bool = False  # whether a policy applies to the command, if there is one

    @property
    def by_flag(self) -> bool:
        """Whether a flag names a graph."""
        return bool(self.uris or self.stores or self.targets or self.servers or self.profile)

    @property
    def is_named(self) -> bool:
        """Whether anything that was typed names a graph."""
        return self.positional is not None or self.by_flag or self.graph is not None

    @property
    def settings(self) -> "Configuration":
        """The configuration that goes with these flags.

        Raises:
            BadRequest: a file of it cannot be read, or something in it is wrong.
        """
        return settings(self.config)

    def resolve(self, positional: str | None = None) -> GraphAddress:
        """Return the one graph that is named, or the configured one, with the policy that applies to it.

        Raises:
            click.UsageError: it is named more than once, or a policy is named for one behind a server.
            BadRequest: it is not named at all, or by something that is not an address.
            UnsupportedError: it is behind a server, and the command works on storage.
        """
        return self.guard(self._named(positional))

    def guard(self, target: GraphAddress) -> GraphAddress:
        """Return a graph with the policy that applies: of the flag, else of the graph's entry or the project.

        Raises:
            click.UsageError: one is named for a graph behind a server.
            BadRequest: the configuration cannot be read.
        """
        if target.is_served and self.policy is not None:
            raise click.UsageError("--policy does not apply to a served graph: its server has its own policy")
        if target.is_served or not self.is_guarded:
            return target.unguarded()
        if self.policy is None:
            return target.guarded()
        return replace(target.unguarded(), policy=self.policy, reader=self.settings.actor)

    def _named(self, positional: str | None) -> GraphAddress:
        """Return the one graph that is named, or the configured one.

        Raises:
            click.UsageError: it is named more than once.
            BadRequest: it is not named at all, or by something that is not an address.
            UnsupportedError: it is behind a server, and the command works on storage.
        """
        word = self.positional if positional is None else positional
        given = [("URI", word)] if word is not None else []
        for name, values in (
            ("--uri", self.uris),
            ("--store", self.stores),
            ("--server", self.servers),
            ("--target", self.targets),
        ):
            given += [(name, value) for value in values]
        if len(given) > 1:
            names = " and ".join(name for name, _ in given)
            raise click.UsageError(f"the graph is given more than once, by {names}: give one of them")
        flag, value = given[0] if given else (None, None)
        if self.graph is not None and flag not in {None, "--server"}:
            raise click.UsageError(f"--graph picks a graph of a server, and {flag} names a graph already")
        if flag in {"URI", "--uri", "--store"} and _HTTP.match(str(value)) is None:
            return GraphAddress(
                str(value), GraphRoot.parse(str(value)).is_local
            )  # most often: no file is read
        from omnigraph.cli.scope import resolve_scope

        target = resolve_scope(self, flag, value)
        if self.needs_storage:
            target.require_storage()
        return target

    def refuse(self, reason: str) -> None:
        """Refuse a graph that is named although a command was told to do without one.

        Raises:
            click.UsageError: one is named.
        """
        if self.is_named or self.policy is not None:
            raise click.UsageError(reason)

    def author(self, target: GraphAddress, actor: str | None) -> str | None:
        """Return who writes: the given actor, else the configured one; a server knows that by the token.

        Raises:
            click.UsageError: an actor is given for a write to a server.
            BadRequest: the configuration cannot be read.
        """
        if not target.is_served:
            return self.settings.actor if actor is None else actor
        if actor is not None:
            raise click.UsageError(
                "--as does not apply to a served graph: its server knows you by your token"
            )
        return None

    def on_branch(self, branch: str | None) -> str | None:
        """Return the branch to use: the given one, else the project's; None is main.

        Raises:
            BadRequest: the configuration cannot be read.
        """
        return self.settings.branch if branch is None else branch

    def announce(self, command: str, target: GraphAddress) -> None:
        """Say on standard error what a command is about to work on."""
        note_change()
        if not self.quiet:
            tell(f"omnigraph {command} → {target.uri} ({target.access})")


uri_argument = click.argument("uri", required=False)


def address_options(command: Decorated) -> Decorated:
    """Add the flags that name a graph in any place, and `--quiet`; the command takes them as `addressed`."""
    return with_options(
        _collecting(command, needs_storage=False, is_guarded=True),
        (*_STORAGE[:2], *_SERVED, *_STORAGE[2:], *_WARM, *_POLICY),
    )


def storage_options(command: Decorated) -> Decorated:
    """Add the flags that name a graph's storage, and `--quiet`; the command takes them as `addressed`.

    For maintenance, which no policy decides about: whoever does it holds the storage.
    """
    return with_options(_collecting(command, needs_storage=True, is_guarded=False), _STORAGE)


def guarded_storage_options(command: Decorated) -> Decorated:
    """Add the flags that name a graph's storage and the policy that decides; taken as `addressed`."""
    return with_options(_collecting(command, needs_storage=True, is_guarded=True), (*_STORAGE, *_POLICY))


def _collecting(command: Decorated, *, needs_storage: bool, is_guarded: bool) -> Decorated:
    @wraps(command)
    def collected(
        *,
        uri: str | None = None,
        uris: Sequence[str],
        stores: Sequence[str],
        targets: Sequence[str],
        profile: str | None,
        config: str | None,
        quiet: bool,
        servers: Sequence[str] = (),
        graph: str | None = None,
        policy: Path | None = None,
        **others: Any,  # noqa: ANN401 - what click takes
    ) -> object:
        addressed = Addressed(
            uri,
            uris,
            stores,
            quiet,
            targets,
            profile,
            config,
            servers,
            graph,
            needs_storage=needs_storage,
            policy=policy,
            is_guarded=is_guarded,
        )
        return command(addressed=addressed, **others)

    return collected


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
