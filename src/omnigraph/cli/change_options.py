"""The flags that choose changes, shared by the commands that print them."""

from collections.abc import Sequence
from typing import TypedDict

import click

from omnigraph.cli.options import Decorated

KINDS = ("node", "edge")
OPS = ("insert", "update", "delete")

limit_option = click.option(
    "--limit", type=click.IntRange(min=1), metavar="N", help="Changes per page; 1000 if not given."
)


class Chosen(TypedDict):
    """Filters in the form the graph's methods take."""

    kinds: list[str]
    types: list[str]
    ops: list[str]


def change_options(command: Decorated) -> Decorated:
    """Add the flags that filter changes."""
    command = click.option(
        "--op", "ops", multiple=True, type=click.Choice(OPS), help="Only this operation; may be repeated."
    )(command)
    command = click.option(
        "--type", "types", multiple=True, metavar="TYPE", help="Only this type; may be repeated."
    )(command)
    return click.option(
        "--kind", "kinds", multiple=True, type=click.Choice(KINDS), help="Only nodes, or only edges."
    )(command)


def chosen(kinds: Sequence[str], types: Sequence[str], ops: Sequence[str]) -> Chosen:
    """Return the filters of a call."""
    return {"kinds": list(kinds), "types": list(types), "ops": list(ops)}
