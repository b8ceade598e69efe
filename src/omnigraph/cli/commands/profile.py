"""`omnigraph profile`: the named scopes of the operator file."""

import os
from typing import TYPE_CHECKING

import click

from omnigraph.cli.global_flags import ForwardingGroup
from omnigraph.cli.options import json_option
from omnigraph.cli.printing import print_document, print_lines, say
from omnigraph.cli.settings import settings
from omnigraph.client.answer import Document
from omnigraph.core.errors import BadRequest

if TYPE_CHECKING:
    from omnigraph.config.configuration import Configuration
    from omnigraph.config.operator_file import Profile


@click.group(cls=ForwardingGroup, no_args_is_help=True)
def profile() -> None:
    """List the profiles of the operator file, or show one."""


@profile.command("list")
@json_option
def list_profiles(*, as_json: bool) -> None:
    """List every profile with what it binds; invalid ones are listed with what is wrong."""
    configuration = settings(None)
    profiles = {} if configuration.operator is None else configuration.operator.profiles
    rows = [_row(found) for found in profiles.values()]
    if as_json:
        print_document(rows)
        return
    from omnigraph.cli.render.columns import columns

    lines = [
        [
            "*" if row["active"] else "",
            row["name"],
            row["binding"] or "",
            row["error"] or row["default_graph"] or "",
        ]
        for row in rows
    ]
    print_lines([columns(["", "profile", "binds", "graph"], lines) if rows else "no profiles"])


@profile.command("show")
@click.argument("name", required=False)
@json_option
def show(*, name: str | None, as_json: bool) -> None:
    """Show the profile NAME, or the one of $OMNIGRAPH_PROFILE."""
    from omnigraph.client.scope import PROFILE_VARIABLE, profile_of

    chosen = name or os.environ.get(PROFILE_VARIABLE)
    if not chosen:
        raise BadRequest(f"no profile is named, and {PROFILE_VARIABLE} is not set")
    configuration = settings(None)
    found = profile_of(chosen, configuration)
    kind, target = found.binding
    document: Document = {
        "name": found.name,
        "scope_kind": kind,
        "target": target,
        "endpoint": _endpoint(found, configuration),
        "default_graph": found.default_graph,
        "output_format": configuration.output or "table",
    }
    if as_json:
        print_document(document)
    else:
        say("\n".join(f"{key:<15}{'-' if value is None else value}" for key, value in document.items()))


def _row(found: "Profile") -> Document:
    from omnigraph.client.scope import PROFILE_VARIABLE

    bindings = [f"{kind} {target}" for kind, target in found.bindings]
    is_single = len(found.bindings) == 1
    return {
        "name": found.name,
        "binding": " and ".join(bindings) or None,
        "scope_kind": found.bindings[0][0] if is_single else None,
        "target": found.bindings[0][1] if is_single else None,
        "valid": found.problem is None,
        "error": found.problem,
        "default_graph": found.default_graph,
        "active": found.name == os.environ.get(PROFILE_VARIABLE),
    }


def _endpoint(found: "Profile", configuration: "Configuration") -> str | None:
    """Return where a profile leads: the address of a graph, a server or a store."""
    from omnigraph.client.scope import server_address
    from omnigraph.core.graph_id import check_graph_id

    kind, target = found.binding
    if kind != "server":
        return target if kind == "store" else None
    url = server_address(target, configuration)
    return str(url if found.default_graph is None else url.graph(check_graph_id(found.default_graph)))
