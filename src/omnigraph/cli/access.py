"""Opening the addressed graph for a command."""

import logging

from omnigraph.cli.printing import tell
from omnigraph.cli.target import GraphAddress
from omnigraph.graph.graph import Graph
from omnigraph.graph.opening import open as open_graph
from omnigraph.operations.open import open_graph as open_parts


def open_for_reading(target: GraphAddress) -> Graph:
    """Open a graph for reading: nothing is healed, locked or written."""
    _show_warnings()
    return open_graph(target.uri, mode="ro")


def open_for_writing(target: GraphAddress) -> Graph:
    """Open a graph for writing, which first finishes or undoes what dead writers left behind."""
    _show_warnings()
    return open_graph(target.uri, maintenance="inline")  # a command ends before a thread has done anything


def open_unhealed(target: GraphAddress) -> Graph:
    """Open a graph for maintenance that refuses to run beside what dead writers left behind."""
    _show_warnings()
    return Graph(open_parts(target.uri, heals=False))


class _Warnings(logging.Handler):
    """Prints the engine's warnings as lines on standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one warning."""
        tell(f"warning: {record.getMessage()}")


def _show_warnings() -> None:
    """Replace the handlers of the engine's log: a second call changes nothing."""
    logging.getLogger("omnigraph").handlers = [_Warnings(logging.WARNING)]
