"""`omnigraph schema`: the schema of a graph, and what changing it would do."""

import click

from omnigraph.catalog.build import read_schema
from omnigraph.catalog.identity import accept_first
from omnigraph.catalog.migrate import plan_migration
from omnigraph.catalog.migration_steps import step_json
from omnigraph.cli.global_flags import ForwardingGroup
from omnigraph.cli.options import ReadCommand, json_option
from omnigraph.cli.printing import print_data, print_document, tell
from omnigraph.cli.render.migration import render_plan
from omnigraph.cli.sources import read_source, refuse_second_stdin
from omnigraph.cli.target import Addressed, address_options, uri_argument
from omnigraph.core.diagnostics import render


@click.group(cls=ForwardingGroup, no_args_is_help=True)
def schema() -> None:
    """Show the schema of a graph, or plan changes to it."""


@schema.command(cls=ReadCommand)
@uri_argument
@address_options
@json_option
def show(*, addressed: Addressed, as_json: bool) -> None:
    """Print the schema of the graph at URI, as it was given."""
    target = addressed.resolve()
    from omnigraph.cli.access import open_for_reading

    with open_for_reading(target) as graph:
        source = graph.schema()
    if as_json:
        print_document({"schema_source": source})
    else:
        print_data([source])


@schema.command()
@click.option("--from", "from_path", required=True, metavar="FILE", help="The current .pg schema.")
@click.option("--schema", "schema_path", required=True, metavar="FILE", help="The intended .pg schema.")
@click.option("--allow-data-loss", is_flag=True, help="Plan hard drops, which also purge the past.")
@json_option
def plan(*, from_path: str, schema_path: str, allow_data_loss: bool, as_json: bool) -> None:
    """Show the steps from one schema to another; nothing is written.

    Exits with 0 even for an unsupported plan: the plan is the answer.
    """
    refuse_second_stdin(from_path, schema_path)
    accepted = accept_first(read_schema(read_source(from_path)))
    source = read_source(schema_path)
    migration = plan_migration(accepted, read_schema(source), allow_data_loss=allow_data_loss)
    for note in migration.diagnostics:
        tell(render(note, source))
    if as_json:
        steps = [step_json(step) for step in migration.steps]
        document = {
            "uri": from_path,
            "supported": migration.is_supported,
            "step_count": len(steps),
            "steps": steps,
        }
        print_document(document)
    else:
        click.echo(render_plan(migration))
