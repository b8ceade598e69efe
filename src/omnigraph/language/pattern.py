"""Patterns of `@check`: RE2, whose time is linear in the text.

Arrow matches values with them when rows are written, so Arrow judges them here, too. It is imported late:
most sources that are parsed have no pattern.
"""

from omnigraph.core.limits import DIAGNOSTIC_EXCERPT_MAX


def pattern_error(pattern: str) -> str | None:
    """Return why a pattern does not compile, or `None` if it does."""
    import pyarrow as pa

    try:
        # Matching a null is enough to compile the pattern.
        _match(pattern, None)
    except pa.ArrowInvalid as error:
        # The text repeats the pattern, which may be as long as its author likes.
        return str(error).removeprefix("Invalid regular expression: ")[:DIAGNOSTIC_EXCERPT_MAX]
    return None


def has_match(pattern: str, text: str) -> bool:
    """Return whether a text contains a match of a pattern that compiles."""
    return _match(pattern, text) is True


def _match(pattern: str, text: str | None) -> object:
    # To make arrays of lists, pyarrow imports pandas; importing `pyarrow.compute` would generate 290
    # functions, of which one is called.
    import pyarrow as pa
    from pyarrow._compute import MatchSubstringOptions, call_function

    found: object = call_function(
        "match_substring_regex", [pa.scalar(text, pa.string())], MatchSubstringOptions(pattern)
    ).as_py()
    return found
