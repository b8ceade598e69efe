"""`omnigraph schema`: the schema of a graph, and changing it."""

from copy import copy
from typing import TYPE_CHECKING

import click

from omnigraph.catalog.build import read_schema
from omnigraph.catalog.identity import accept_first
from omnigraph.catalog.migrate import MigrationPlan, plan_migration
from omnigraph.cli.global_flags import ForwardingGroup
from omnigraph.cli.options import (
    GraphCommand,
    ReadCommand,
    actor_option,
    branch_option,
    json_option,
    master_option,
    message_option,
    rows_engine_option,
)
from omnigraph.cli.printing import print_data, print_document, tell
from omnigraph.cli.render.migration import render_apply, render_plan
from omnigraph.cli.sources import read_source, refuse_second_stdin
from omnigraph.cli.target import Addressed, address_options, guarded_storage_options, uri_argument
from omnigraph.core.diagnostics import render
from omnigraph.core.span import Source
from omnigraph.wire.documents import schema_plan_document

if TYPE_CHECKING:
    from omnigraph.operations.engine import Engine

_schema_option = click.option(
    "--schema",
    "schema_path",
    required=True,
    metavar="FILE",
    help="The intended .pg schema; - is standard input.",
)
_loss_option = click.option(
    "--allow-data-loss",
    is_flag=True,
    help="Let drops be hard: what is dropped leaves all files, and the past.",
)


@click.group(cls=ForwardingGroup, no_args_is_help=True)
def schema() -> None:
    """Show the schema of a graph, plan changes to it, and apply them."""


@schema.command(cls=ReadCommand)
@uri_argument
@branch_option
@address_options
@json_option
def show(*, branch: str | None, addressed: Addressed, as_json: bool) -> None:
    """Print the schema of the graph at URI, as it was given."""
    target = addressed.resolve()
    from omnigraph.cli.access import reach_for_reading

    with reach_for_reading(target) as graph:
        found = graph.schema(addressed.on_branch(branch))
    if as_json:
        print_document(found)
    else:
        print_data([found["schema_source"]])


@schema.command(cls=ReadCommand)
@uri_argument
@click.option("--from", "from_path", metavar="FILE", help="A .pg schema to start from, in place of a graph.")
@_schema_option
@branch_option
@_loss_option
@guarded_storage_options
@json_option
def plan(
    *,
    from_path: str | None,
    schema_path: str,
    branch: str | None,
    allow_data_loss: bool,
    addressed: Addressed,
    as_json: bool,
) -> None:
    """Show the steps from the schema of the graph at URI, or of a file, to another one; nothing is written.

    Exits with 0 even for an unsupported plan: the plan is the answer.
    """
    if from_path is not None:
        addressed.refuse("--from names a schema file in place of a graph: give one of the two")
        if branch is not None:
            raise click.UsageError(
                "--branch is a graph's, and --from names a schema file: give one of the two"
            )
        refuse_second_stdin(from_path, schema_path)
        accepted = accept_first(read_schema(read_source(from_path)))
        source = read_source(schema_path)
        migration = plan_migration(accepted, read_schema(source), allow_data_loss=allow_data_loss)
        _print_plan(migration, (), source, uri=from_path, as_json=as_json)
        return
    target = addressed.resolve()
    from omnigraph.cli.access import open_for_reading

    source = read_source(schema_path)
    with open_for_reading(target) as graph:
        planned = graph.plan_schema(
            source, branch=addressed.on_branch(branch), allow_data_loss=allow_data_loss
        )
    _print_plan(planned.migration, planned.rows, source, uri=target.uri, as_json=as_json)


def _print_plan(
    migration: MigrationPlan, rows: tuple[int, ...], source: Source, *, uri: str, as_json: bool
) -> None:
    for note in migration.diagnostics:
        tell(render(note, source))
    plan = schema_plan_document(migration, rows, uri)
    if as_json:
        print_document(plan)
    else:
        click.echo(render_plan(plan))


@schema.command(cls=GraphCommand)
@uri_argument
@_schema_option
@branch_option
@click.option(
    "--base", metavar="ID", help="The commit whose schema FILE was made from; refused if it changed since."
)
@_loss_option
@click.option("--exclusive", is_flag=True, help="Refuse while the graph has branches.")
@click.option("--no-index", is_flag=True, help="Do not build the indexes that are missing afterwards.")
@rows_engine_option
@master_option
@message_option
@actor_option
@address_options
@json_option
def apply(
    *,
    schema_path: str,
    branch: str | None,
    base: str | None,
    allow_data_loss: bool,
    exclusive: bool,
    no_index: bool,
    engine: "Engine",
    master: str | None,
    message: str | None,
    actor: str | None,
    addressed: Addressed,
    as_json: bool,
) -> None:
    """Give the graph at URI another schema: all of it as one commit, or nothing.

    What FILE does not name is dropped; with --base, nothing is that others added since that commit. Other
    branches keep the schema that they have, until they are upgraded or merged. Missing indexes are built
    afterwards, as a second commit; if that fails, a warning lists the pending ones. Tables whose rows are
    written are shown while that goes on.
    """
    target = addressed.resolve()
    author = addressed.author(target, actor)
    source = read_source(schema_path)
    from omnigraph.cli.access import reach_for_writing
    from omnigraph.cli.lean_imports import let_pandas_in
    from omnigraph.cli.render.maintenance import table_progress
    from omnigraph.cli.schema_result import print_schema_result
    from omnigraph.client.access import SchemaCall

    call = SchemaCall(
        source,
        branch=addressed.on_branch(branch),
        base=base,
        allow_data_loss=allow_data_loss,
        exclusive=exclusive,
        message=message,
        index=not no_index,
        engine=engine,
        master=master,
        tell_note=tell,
    )
    addressed.announce("schema apply", target)
    with (
        reach_for_writing(target) as graph,
        table_progress(quiet=addressed.quiet, as_json=as_json) as progress,
    ):
        let_pandas_in()  # for Spark
        applied = graph.apply_schema(call, actor=author, progress=progress)
    print_schema_result(applied, render_apply(applied), as_json=as_json)


def _unlisted(command: click.Command) -> click.Command:
    """Return a command that the help does not list."""
    other = copy(command)
    other.hidden = True
    return other


schema.add_command(_unlisted(show), "get")
