"""The configuration of this run: read when something asks for it, and once."""

from typing import TYPE_CHECKING

import click

from omnigraph.cli.invocation import Invocation
from omnigraph.cli.printing import tell

if TYPE_CHECKING:
    from omnigraph.config.configuration import Configuration


def settings(project: str | None) -> "Configuration":
    """Return what the files of configuration say; what is odd in them is told on standard error.

    Args:
        project: the project file of `--config`, if it was given.

    Raises:
        BadRequest: a file cannot be read, or something in it is wrong.
    """
    invocation = click.get_current_context().ensure_object(Invocation)
    if invocation.configuration is None:
        from omnigraph.config.configuration import load_configuration

        invocation.configuration = load_configuration(project)
        for warning in invocation.configuration.warnings:
            tell(f"warning: {warning}")
    return invocation.configuration
