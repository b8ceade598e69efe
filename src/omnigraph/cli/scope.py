"""From what was typed to one graph: flags first, then what is configured (`client.scope`)."""

import click

from omnigraph.cli.target import Addressed
from omnigraph.client.scope import GraphAddress, Words, address_of, configured, of_project, on_server

_STORAGE_WAYS = "--store, --uri, --target or --profile"
_ALL_WAYS = "--store, --uri, --server, --target or --profile"


def resolve_scope(addressed: Addressed, flag: str | None, value: str | None) -> GraphAddress:
    """Return the graph that a flag names, or without one the configured graph.

    Raises:
        click.UsageError: `--graph` does not fit.
        BadRequest: no graph is given anywhere, or a name is unknown.
    """
    configuration = addressed.settings
    match flag:
        case "URI" | "--uri" | "--store":
            return address_of(str(value), configuration)
        case "--server":
            return on_server(str(value), addressed.graph, configuration)
        case "--target":
            return of_project(str(value), configuration)
        case _:
            ways = _STORAGE_WAYS if addressed.needs_storage else _ALL_WAYS
            words = Words("--graph", ways, click.UsageError)
            return configured(addressed.profile, addressed.graph, configuration, words)
