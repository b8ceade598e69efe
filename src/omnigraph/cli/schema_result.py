"""What a change of a schema came to, as `schema apply` and `branch upgrade` print it."""

from omnigraph.cli.printing import print_document, say, tell
from omnigraph.cli.render.writes import render_pending
from omnigraph.client.answer import Document


def print_schema_result(applied: Document, told: str, *, as_json: bool) -> None:
    """Print what happened, as a text or as a document; what is left to do goes to stderr."""
    for warning in applied["warnings"]:
        tell(f"warning: {warning}")
    if applied["pending_indexes"]:
        tell(render_pending(applied["pending_indexes"]))
    if as_json:
        print_document(applied)
    else:
        say(told)
