"""`omnigraph export`: the data of a graph, in the form a load takes."""

import sys
from collections.abc import Sequence

import click

from omnigraph.cli.options import ReadCommand, branch_option, old_spelling
from omnigraph.cli.printing import print_records
from omnigraph.cli.progress import working
from omnigraph.cli.target import Addressed, address_options, uri_argument
from omnigraph.client.scope import GraphAddress

FORMATS = ("ndjson", "csv", "parquet")
_REFUSED = {
    "--json": "does not apply to export, which prints NDJSON",
}


@click.command(cls=ReadCommand, refuses=_REFUSED)
@uri_argument
@branch_option
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only this type; may be repeated.")
@click.option(
    "--format",
    "format_name",
    type=click.Choice(FORMATS),
    default="ndjson",
    show_default=True,
    help="The format to write; csv and parquet need --out.",
)
@click.option(
    "--out",
    metavar="PATH",
    help="A file for NDJSON; for csv, parquet and Spark a new or empty folder that gets a file per type.",
)
@click.option(
    "--engine",
    type=click.Choice(["local", "spark"]),
    default="local",
    show_default=True,
    help="Where the work is done; spark writes files in parallel and needs --out.",
)
@click.option("--master", metavar="URL", help="Where Spark runs; it implies --engine spark.")
@click.option(
    "--jsonl",
    is_flag=True,
    hidden=True,
    expose_value=False,
    callback=old_spelling("--jsonl", "leave it out: NDJSON is what an export prints"),
)
@address_options
def export(
    *,
    branch: str | None,
    types: Sequence[str],
    format_name: str,
    out: str | None,
    engine: str,
    master: str | None,
    addressed: Addressed,
) -> None:
    """Print the data of the graph at URI as NDJSON, or write it to files.

    Nodes come before edges, each type in order of id. `load --mode overwrite` can load all of it again.
    """
    target = addressed.resolve()
    is_spark = engine == "spark" or master is not None
    if target.is_served and (is_spark or format_name != "ndjson"):
        raise click.UsageError("a server exports NDJSON: --format, --engine and --master are for its storage")
    if out is None and (is_spark or format_name != "ndjson"):
        what = "--engine spark" if is_spark else f"--format {format_name}"
        raise click.UsageError(f"{what} writes files: say where with --out")
    branch = addressed.on_branch(branch)
    if target.is_served:
        _export_served(target, branch, types, out)
        return
    from omnigraph.bulk.export.files import ExportFormat
    from omnigraph.cli.access import open_for_reading
    from omnigraph.cli.render.maintenance import table_progress

    format_ = ExportFormat(format_name)
    if is_spark:
        assert out is not None, "it was asked for"
        with open_for_reading(target) as graph, working("exporting", quiet=addressed.quiet):
            wanted = graph.export(branch=branch, types=list(types) or None)
            wanted.to_folder_on_spark(out, format_, master=master)
        return
    quiet = addressed.quiet or (out is None and not _has_a_terminal_to_itself())
    with (
        open_for_reading(target) as graph,
        table_progress(quiet=quiet, as_json=False, waiting="exporting") as progress,
    ):
        wanted = graph.export(branch=branch, types=list(types) or None, progress=progress)
        if out is None:
            print_records(wanted.lines())
        elif format_ is ExportFormat.NDJSON:
            wanted.to_file(out)
        else:
            wanted.to_folder(out, format_)


def _has_a_terminal_to_itself() -> bool:
    """Say whether progress on a terminal is not mixed with records, which go to a file or a pipe."""
    return sys.stderr.isatty() and not sys.stdout.isatty()


def _export_served(target: GraphAddress, branch: str | None, types: Sequence[str], out: str | None) -> None:
    """Print what a server streams, or write it to a file that appears when it is complete."""
    from omnigraph.bulk.files import whole_file
    from omnigraph.cli.access import reach_server

    with reach_server(target) as graph:
        pieces = graph.export(branch, types)
        if out is None:
            print_records(pieces)
            return
        with whole_file(out) as file:
            file.writelines(pieces)
