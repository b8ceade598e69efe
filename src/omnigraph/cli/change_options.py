"""The flags that choose changes, shared by the commands that print them."""

from collections.abc import Sequence
from functools import wraps
from typing import Any

import click

from omnigraph.cli.options import Decorated, with_options
from omnigraph.cli.whole_numbers import WholeNumber
from omnigraph.client.choice import ChangeChoice

KINDS = ("node", "edge")
OPS = ("insert", "update", "delete")

_OPTIONS = (
    click.option(
        "--kind", "kinds", multiple=True, type=click.Choice(KINDS), help="Only nodes, or only edges."
    ),
    click.option("--type", "types", multiple=True, metavar="TYPE", help="Only this type; may be repeated."),
    click.option(
        "--op", "ops", multiple=True, type=click.Choice(OPS), help="Only this operation; may be repeated."
    ),
)
limit_option = click.option(
    "--limit", type=WholeNumber(min=1), metavar="N", help="Changes per page; 1000 if not given."
)


def change_options(command: Decorated) -> Decorated:
    """Add the filters of changes; the command takes them as one value, `chosen`."""

    @wraps(command)
    def collected(
        *,
        kinds: Sequence[str],
        types: Sequence[str],
        ops: Sequence[str],
        **others: Any,  # noqa: ANN401 - what click takes
    ) -> object:
        return command(chosen=ChangeChoice(list(kinds), list(types), list(ops)), **others)

    return with_options(collected, _OPTIONS)
