"""`omnigraph blob`: the bytes of one Blob property, and what they are."""

import sys
from collections.abc import Iterator

import click

from omnigraph.cli.global_flags import ForwardingGroup
from omnigraph.cli.options import Decorated, ReadCommand, branch_option, json_option, with_options
from omnigraph.cli.printing import print_document, say
from omnigraph.cli.reading import snapshot_of, snapshot_option
from omnigraph.cli.target import Addressed, address_options
from omnigraph.cli.whole_numbers import WholeNumber
from omnigraph.client.access import BlobCall
from omnigraph.core.blob_errors import NOT_FOLLOWED, ExternalBlobError
from omnigraph.core.limits import I64_MAX

_REFUSED = {"--json": "does not apply to blob get, which prints bytes; blob stat describes them"}
_CELL = (
    click.argument("entity", type=click.Choice(["node", "edge"]), metavar="ENTITY"),
    click.argument("type_name", metavar="TYPE"),
    click.argument("id", metavar="ID"),
    click.argument("property", metavar="PROPERTY"),
    branch_option,
    snapshot_option,
)


@click.group(cls=ForwardingGroup, no_args_is_help=True)
def blob() -> None:
    """Read the bytes of a Blob property, or show how many there are."""


def _cell_options(command: Decorated) -> Decorated:
    return with_options(command, _CELL)


@blob.command("get", cls=ReadCommand, refuses=_REFUSED)
@_cell_options
@click.option(
    "--offset",
    type=WholeNumber(min=0, max=I64_MAX),
    default=0,
    metavar="N",
    help="Leave out the first N bytes.",
)
@click.option("--length", type=WholeNumber(min=1, max=I64_MAX), metavar="N", help="At most N bytes.")
@click.option("--out", metavar="PATH", help="A file for the bytes, which appears when it is complete.")
@address_options
def get(
    *,
    entity: str,
    type_name: str,
    id: str,
    property: str,
    branch: str | None,
    snapshot: str | None,
    offset: int,
    length: int | None,
    out: str | None,
    addressed: Addressed,
) -> None:
    """Print the bytes of PROPERTY of the node or edge ID of TYPE; ENTITY is node or edge."""
    if length is not None and offset + length > I64_MAX:
        raise click.UsageError("--offset and --length together pass the largest position")
    call = _call(addressed, (entity, type_name, id, property), branch, snapshot)
    target = addressed.resolve()
    from omnigraph.bulk.files import whole_file
    from omnigraph.cli.access import reach_for_reading

    end = None if length is None else offset + length
    with reach_for_reading(target) as graph:
        pieces = _bytes_of(graph.blob_bytes(call, offset, end))
        if out is None:
            sys.stdout.buffer.writelines(pieces)
            sys.stdout.buffer.flush()
            return
        with whole_file(out) as file:
            file.writelines(pieces)


@blob.command("stat", cls=ReadCommand)
@_cell_options
@address_options
@json_option
def stat(
    *,
    entity: str,
    type_name: str,
    id: str,
    property: str,
    branch: str | None,
    snapshot: str | None,
    addressed: Addressed,
    as_json: bool,
) -> None:
    """Show kind, size and ETag of PROPERTY of the node or edge ID of TYPE; none of its bytes is read."""
    call = _call(addressed, (entity, type_name, id, property), branch, snapshot)
    target = addressed.resolve()
    from omnigraph.cli.access import reach_for_reading

    with reach_for_reading(target) as graph:
        found = graph.blob(call)
    if as_json:
        print_document(found)
        return
    for name, value in found.items():
        if value is not None:
            say(f"{name.removeprefix('graph_').removesuffix('_id'):<8}{value}")


def _bytes_of(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the bytes of a value; of a reference it says how to see what is stored."""
    try:
        yield from pieces
    except ExternalBlobError as error:
        if error.reason != NOT_FOLLOWED:
            raise
        hint = f"{NOT_FOLLOWED}; 'omnigraph blob stat' describes what is stored"
        raise ExternalBlobError(uri=error.uri, reason=hint) from error


def _call(
    addressed: Addressed, cell: tuple[str, str, str, str], branch: str | None, snapshot: str | None
) -> BlobCall:
    if branch is not None and snapshot is not None:
        raise click.UsageError("--branch and --snapshot cannot be combined: a snapshot implies its branch")
    on = addressed.on_branch(branch) if snapshot is None else None
    return BlobCall(*cell, branch=on, snapshot=snapshot_of(snapshot))
