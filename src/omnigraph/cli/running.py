"""Running a call and printing its answer: rows of a read, or what a mutation did."""

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, cast

from omnigraph.cli.call import PreparedCall
from omnigraph.cli.interrupt import unless_noted
from omnigraph.cli.printing import print_data, print_document, say
from omnigraph.client.answer import Document, ReadAnswer

if TYPE_CHECKING:
    from omnigraph.config.configuration import Configuration

JSON = "json"
FORMATS = ("table", "kv", "csv", "jsonl", JSON)


def run_read(call: PreparedCall, *, branch: str | None, snapshot: str | int | None) -> ReadAnswer:
    """Run a read."""
    from omnigraph.cli.access import reach_for_reading
    from omnigraph.client.access import StoredCall

    with reach_for_reading(call.target) as graph:
        if not isinstance(call.what, StoredCall):
            return graph.query(call.what, branch=branch, snapshot=snapshot)
        answer = graph.invoke(call.what, branch=branch, snapshot=snapshot, if_commit=None)
    assert isinstance(answer, ReadAnswer), "the server was told that a read is expected"
    return answer


def run_mutation(
    call: PreparedCall,
    *,
    branch: str | None,
    actor: str | None,
    if_commit: str | None = None,
    message: str | None = None,
    retry: int | None = None,
) -> Document:
    """Run a mutation, as one commit."""
    from omnigraph.cli.access import reach_for_writing
    from omnigraph.client.access import StoredCall

    with unless_noted("nothing was changed"), reach_for_writing(call.target) as graph:
        if not isinstance(call.what, StoredCall):
            return graph.mutate(
                call.what, branch=branch, actor=actor, if_commit=if_commit, message=message, retry=retry
            )
        stored = replace(call.what, message=message)
        changed = graph.invoke(stored, branch=branch, snapshot=None, if_commit=if_commit)
    assert isinstance(changed, dict), "the server was told that a mutation is expected"
    return changed


def run_stored(call: PreparedCall, *, branch: str | None) -> Document | ReadAnswer:
    """Run a stored query of either kind."""
    from omnigraph.cli.access import reach_server
    from omnigraph.client.access import StoredCall

    assert isinstance(call.what, StoredCall), "the kind of every other call is known"
    with reach_server(call.target) as graph:
        return graph.invoke(call.what, branch=branch, snapshot=None, if_commit=None)


def chosen_format(
    given: str | None, call_format: str | None, configuration: "Configuration", *, as_json: bool
) -> str:
    """Return how rows are printed: by the flags, else the alias, else the configuration, else as a table."""
    return JSON if as_json else given or call_format or configuration.output or "table"


def print_answer(answer: ReadAnswer, format_name: str, configuration: "Configuration") -> None:
    """Print the rows of a read."""
    if format_name == JSON:
        print_document(answer.document())
        return
    from omnigraph.cli.render.formats import LINES
    from omnigraph.cli.render.table import TableLayout, table_lines

    if format_name != "table":
        lines = LINES[format_name](answer)
    else:
        usual = TableLayout()
        cells = configuration.table_cell_layout or usual.cell_layout
        width = configuration.table_max_column_width or usual.max_column_width
        lines = table_lines(answer, TableLayout(width, cast("Literal['truncate', 'wrap']", cells)))
    print_data(f"{line}\n" for line in lines)


def print_change(changed: Document, *, as_json: bool) -> None:
    """Print what a mutation did."""
    from omnigraph.cli.render.writes import render_mutation

    if as_json:
        print_document(changed)
    else:
        say(render_mutation(changed))
