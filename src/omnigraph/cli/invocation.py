"""What one run of the program knows about itself, for the edge that reports errors."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from omnigraph.config.configuration import Configuration


@dataclass(slots=True)
class Invocation:
    """One run; a command that prints a document says so here, and its errors become documents too."""

    is_json: bool = False
    may_be_warm: bool = True  # a warm server of the graph may be asked in place of its storage
    may_change: bool = False  # it has begun what may change something
    is_served: bool = False  # a server answers, whose documents may be anything
    configuration: "Configuration | None" = None  # once something has asked for it (cli/settings.py)


def note_change() -> None:
    """Remember that this run may change something, for an answer that cannot be printed."""
    context = click.get_current_context(silent=True)
    if context is not None:
        context.ensure_object(Invocation).may_change = True
