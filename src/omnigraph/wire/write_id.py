"""The name that a caller gives a write, so that it can ask what became of it."""

import re

WRITE_ID = "Omnigraph-Write-Id"  # the header
_USABLE = re.compile(r"[A-Za-z0-9_-]{16,64}")  # too long to be met by chance


def is_write_id(text: str) -> bool:
    """Say whether a text can name a write."""
    return _USABLE.fullmatch(text) is not None
