"""`omnigraph quarantine`: versions that were moved aside."""

from collections.abc import Sequence

import click

from omnigraph.cli.global_flags import ForwardingGroup
from omnigraph.cli.options import (
    READS_HAVE_NO_ACTOR,
    GraphCommand,
    address_options,
    json_option,
    uri_argument,
)
from omnigraph.cli.printing import print_document
from omnigraph.cli.target import announce, resolve


@click.group(cls=ForwardingGroup, no_args_is_help=True)
def quarantine() -> None:
    """List the versions that were moved aside after a power cut, or put them back."""


@quarantine.command("list", cls=GraphCommand, refuses={"--as": READS_HAVE_NO_ACTOR})
@uri_argument
@address_options
@json_option
def list_quarantine(
    *,
    uri: str | None,
    uris: Sequence[str],
    stores: Sequence[str],
    quiet: bool,  # noqa: ARG001 - accepted everywhere; there is no line to leave out
    as_json: bool,
) -> None:
    """List the contents of the quarantine of the graph at URI, newest first."""
    target = resolve(uri, uris, stores)
    from omnigraph.cli.documents import quarantined_document
    from omnigraph.cli.render.damage import render_quarantined
    from omnigraph.graph.repair import quarantined

    found = quarantined(target.uri)
    if as_json:
        print_document({"quarantined": [quarantined_document(part) for part in found]})
    else:
        click.echo(render_quarantined(found))


@quarantine.command("restore", cls=GraphCommand, refuses={"--as": "is not recorded: nothing is committed"})
@click.argument("words", nargs=-1, metavar="[URI] ID")
@address_options
@json_option
def restore(
    *, words: Sequence[str], uris: Sequence[str], stores: Sequence[str], quiet: bool, as_json: bool
) -> None:
    """Put back the versions that are in the quarantine of the graph at URI under ID.

    This is refused if something was published over them, or if they are themselves damaged.
    """
    if not 1 <= len(words) <= 2:
        raise click.UsageError("quarantine restore takes an id, optionally preceded by a graph")
    if len(words) == 1 and not uris and not stores:
        raise click.UsageError(
            f"'{words[0]}' alone is not a graph and an id: either the id is missing ('omnigraph quarantine "
            "list' shows the ids of a graph), or the graph"
        )
    target = resolve(words[0] if len(words) == 2 else None, uris, stores)
    from omnigraph.cli.documents import quarantined_document
    from omnigraph.graph.repair import restore_quarantined

    announce("quarantine restore", target, quiet=quiet)
    found = restore_quarantined(target.uri, words[-1])
    if as_json:
        print_document({"uri": target.uri} | quarantined_document(found))
    else:
        click.echo(
            f"put back {', '.join(part.dataset for part in found.datasets)} from {found.quarantine_id}"
        )
