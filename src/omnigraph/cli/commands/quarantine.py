"""`omnigraph quarantine`: versions that were moved aside."""

from collections.abc import Sequence

import click

from omnigraph.cli.global_flags import ForwardingGroup
from omnigraph.cli.options import GraphCommand, ReadCommand, graph_and_word, json_option
from omnigraph.cli.printing import print_document
from omnigraph.cli.target import Addressed, storage_options, uri_argument


@click.group(cls=ForwardingGroup, no_args_is_help=True)
def quarantine() -> None:
    """List the versions that were moved aside after a power cut, or put them back."""


@quarantine.command("list", cls=ReadCommand)
@uri_argument
@storage_options
@json_option
def list_quarantine(*, addressed: Addressed, as_json: bool) -> None:
    """List the contents of the quarantine of the graph at URI, newest first."""
    target = addressed.resolve()
    from omnigraph.cli.render.damage import render_quarantined
    from omnigraph.graph.repair import quarantined
    from omnigraph.wire.documents import quarantined_document

    found = quarantined(target.uri)
    if as_json:
        print_document({"quarantined": [quarantined_document(part) for part in found]})
    else:
        click.echo(render_quarantined(found))


@quarantine.command("restore", cls=GraphCommand, refuses={"--as": "is not recorded: nothing is committed"})
@click.argument("words", nargs=-1, metavar="[URI] ID")
@storage_options
@json_option
def restore(*, words: Sequence[str], addressed: Addressed, as_json: bool) -> None:
    """Put back the versions that are in the quarantine of the graph at URI under ID.

    This is refused if something was published over them, or if they are themselves damaged.
    """
    positional, quarantine_id = graph_and_word(words, "quarantine restore takes an id")
    if positional is None and not addressed.by_flag:
        raise click.UsageError(
            f"'{quarantine_id}' alone is not a graph and an id: either the id is missing ('omnigraph "
            "quarantine list' shows the ids of a graph), or the graph"
        )
    target = addressed.resolve(positional)
    from omnigraph.graph.repair import restore_quarantined
    from omnigraph.wire.documents import quarantined_document

    addressed.announce("quarantine restore", target)
    found = restore_quarantined(target.uri, quarantine_id)
    if as_json:
        print_document({"uri": target.uri} | quarantined_document(found))
    else:
        click.echo(
            f"put back {', '.join(part.dataset for part in found.datasets)} from {found.quarantine_id}"
        )
