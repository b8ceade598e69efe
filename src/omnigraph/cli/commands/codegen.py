"""`omnigraph codegen`: classes or interfaces of a schema and its stored queries."""

from pathlib import Path

import click

from omnigraph.catalog.model import Catalog
from omnigraph.cli.options import ReadCommand
from omnigraph.cli.target import Addressed, guarded_storage_options, uri_argument
from omnigraph.core.errors import BadRequest


@click.command(cls=ReadCommand)
@click.argument("language", type=click.Choice(["python", "typescript"]))
@uri_argument
@click.option(
    "--schema", "schema_path", metavar="FILE", help="The .pg schema to declare, instead of that of a graph."
)
@click.option(
    "--queries",
    "places",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    metavar="PATH",
    help="Stored queries: a folder of .gq files, or such a file; files may be repeated.",
)
@click.option("--dataclasses", is_flag=True, help="Python: dataclasses in place of pydantic models.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The file to write; standard output if not given.",
)
@guarded_storage_options
def codegen(
    *,
    language: str,
    schema_path: str | None,
    places: tuple[Path, ...],
    dataclasses: bool,
    out: Path | None,
    addressed: Addressed,
) -> None:
    """Print LANGUAGE declarations for the types of a schema, and for parameters and rows of stored queries.

    The schema is the file of --schema, or that of the graph at URI. The same schema and queries give the same
    text.
    """
    if dataclasses and language != "python":
        raise click.UsageError("--dataclasses goes with python")
    catalog = _catalog(schema_path, addressed)
    from omnigraph.catalog.generate.python import python_module
    from omnigraph.catalog.generate.shapes import shapes_of
    from omnigraph.catalog.generate.typescript import typescript_module
    from omnigraph.graph.stored_files import given_queries, read_stored

    queries = read_stored(given_queries(places[0] if len(places) == 1 else list(places)))
    queries.check(catalog).require_whole("--queries")
    shapes = shapes_of(catalog, queries.queries.values())
    is_python = language == "python"
    text = python_module(shapes, are_models=not dataclasses) if is_python else typescript_module(shapes)
    if out is None:
        click.echo(text, nl=False)
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadRequest(f"cannot write {out}: {error.strerror or error}") from error


def _catalog(schema_path: str | None, addressed: Addressed) -> Catalog:
    if schema_path is not None:
        from omnigraph.catalog.build import compile_schema
        from omnigraph.cli.sources import read_source

        addressed.refuse("a graph and --schema cannot be combined: declare one of them")
        return compile_schema(read_source(schema_path))
    try:
        target = addressed.resolve()
    except BadRequest as error:
        raise BadRequest(f"{error}, or declare a schema file with --schema") from error
    from omnigraph.cli.access import open_for_reading

    with open_for_reading(target) as graph:
        return graph.catalog_on(None)
