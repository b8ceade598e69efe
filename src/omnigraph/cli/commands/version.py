"""`omnigraph version`."""

import json

import click

from omnigraph import INTERNAL_SCHEMA_VERSION, __version__


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")
def version(*, as_json: bool) -> None:
    """Print the version of this program and of the storage format it writes."""
    if as_json:
        click.echo(json.dumps({"version": __version__, "internal_schema": INTERNAL_SCHEMA_VERSION}))
        return
    click.echo(f"omnigraph {__version__}")
    click.echo(f"internal-schema {INTERNAL_SCHEMA_VERSION}")
