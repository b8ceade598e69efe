"""`omnigraph lint`: check query files against a schema file, or against the schema of a graph."""

import click

from omnigraph.catalog.build import compile_schema
from omnigraph.catalog.lint import LintReport, unreadable
from omnigraph.catalog.lint import lint as lint_source
from omnigraph.catalog.model import Catalog
from omnigraph.cli.exit_codes import EXIT_FAILURE
from omnigraph.cli.options import ReadCommand, json_option
from omnigraph.cli.printing import print_document
from omnigraph.cli.render.lint import render_report, render_summary
from omnigraph.cli.sources import read_source, refuse_second_stdin, source_files
from omnigraph.cli.target import Addressed, guarded_storage_options, uri_argument
from omnigraph.core.errors import BadRequest
from omnigraph.core.source_errors import ParseError

_QUERY_FILES = frozenset({".gq"})


@click.command(cls=ReadCommand)
@uri_argument
@click.option(
    "--schema", "schema_path", metavar="FILE", help="The .pg schema to check against, instead of a graph."
)
@click.option(
    "--query",
    "query_paths",
    required=True,
    multiple=True,
    metavar="FILE",
    help="A .gq file, a folder of them, or - for standard input; may be repeated.",
)
@guarded_storage_options
@json_option
@click.pass_context
def lint(
    ctx: click.Context,
    *,
    schema_path: str | None,
    query_paths: tuple[str, ...],
    addressed: Addressed,
    as_json: bool,
) -> None:
    """Check query files against a schema: syntax, types, and properties that no query sets.

    The schema is the file of --schema, or that of the graph at URI. Exits with 1 if there is an error;
    warnings alone are not a failure.
    """
    refuse_second_stdin(schema_path or "", *query_paths)
    if schema_path is not None:
        addressed.refuse("a graph and --schema cannot be combined: check against one of them")
        catalog = compile_schema(read_source(schema_path))
        schema_source = {"kind": "file", "path": schema_path}
    else:
        catalog, schema_source = _of_graph(addressed)
    reports = [_report(catalog, path, schema_source) for path in source_files(query_paths, _QUERY_FILES)]
    if as_json:
        documents = [report.to_json() for report in reports]
        is_one_file = len(documents) == 1 and query_paths == (documents[0]["query_path"],)
        print_document(documents[0] if is_one_file else {"reports": documents})
    else:
        for report in reports:
            click.echo(render_report(report))
        click.echo(render_summary(reports))
    if any(report.errors for report in reports):
        ctx.exit(EXIT_FAILURE)


def _of_graph(addressed: Addressed) -> tuple[Catalog, dict[str, str]]:
    """Return the types of the addressed graph; opening it for reading changes nothing in it."""
    try:
        target = addressed.resolve()
    except BadRequest as error:
        raise BadRequest(f"{error}, or check against a schema file with --schema") from error
    from omnigraph.cli.access import open_for_reading

    with open_for_reading(target) as graph:
        return graph.catalog_on(None), {"kind": "graph", "uri": target.uri}


def _report(catalog: Catalog, path: str, schema_source: dict[str, str]) -> LintReport:
    """Lint one file; bytes that are not text are a finding, like any other syntax error."""
    try:
        source = read_source(path)
    except ParseError as error:
        return unreadable(error, query_path=path, schema_source=schema_source)
    return lint_source(catalog, source, query_path=path, schema_source=schema_source)
