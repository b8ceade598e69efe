"""Patterns of `@check`: RE2, whose time is linear in the text.

Arrow matches values with them when rows are written, so Arrow judges them here, too. It is imported late:
most sources that are parsed have no pattern.
"""

import struct

from omnigraph.core.limits import DIAGNOSTIC_EXCERPT_MAX


def pattern_error(pattern: str) -> str | None:
    """Return why a pattern does not compile, or `None` if it does."""
    import pyarrow as pa

    try:
        has_match(pattern, "")
    except pa.ArrowInvalid as error:
        # The text repeats the pattern, which may be as long as its author likes.
        return str(error).removeprefix("Invalid regular expression: ")[:DIAGNOSTIC_EXCERPT_MAX]
    return None


def has_match(pattern: str, text: str) -> bool:
    """Return whether a text contains a match of a pattern that compiles."""
    # Importing `pyarrow.compute` would generate 290 functions, of which one is called.
    import pyarrow as pa
    from pyarrow._compute import MatchSubstringOptions, call_function

    # An array of Arrow's own making: to convert values of Python, pyarrow imports pandas.
    encoded = text.encode()
    offsets, values = pa.py_buffer(struct.pack("=ii", 0, len(encoded))), pa.py_buffer(encoded)
    texts = pa.StringArray.from_buffers(1, offsets, values)
    found = call_function("match_substring_regex", [texts], MatchSubstringOptions(pattern))
    return found[0].as_py() is True
