"""Rows as a stream of Arrow's: its media type, and the headers that say the rest of an answer."""

ARROW_STREAM = "application/vnd.apache.arrow.stream"
QUERY_NAME = "Omnigraph-Query-Name"
ROW_COUNT = "Omnigraph-Row-Count"
COMMIT_ID = "Omnigraph-Graph-Commit-Id"
TARGET_KINDS = ("branch", "snapshot")


def target_header(kind: str) -> str:
    """Return the header that names what was read: a branch or a snapshot, percent-encoded."""
    return f"Omnigraph-{kind.capitalize()}"
