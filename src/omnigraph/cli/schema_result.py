"""What a change of a schema came to, as `schema apply` and `branch upgrade` print it."""

from omnigraph.cli.printing import print_document, say, tell
from omnigraph.cli.render.writes import render_pending
from omnigraph.operations.schema.apply import SchemaApplyResult
from omnigraph.wire.documents import schema_apply_document


def print_schema_result(result: SchemaApplyResult, told: str, *, uri: str, as_json: bool) -> None:
    """Print what happened, as a text or as a document; what is left to do goes to stderr."""
    for warning in result.warnings:
        tell(f"warning: {warning}")
    if result.pending_indexes:
        tell(render_pending(result.pending_indexes))
    if as_json:
        print_document(schema_apply_document(result, uri))
    else:
        say(told)
