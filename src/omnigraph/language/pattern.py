"""The patterns of `@check`: RE2, which answers in linear time whatever the pattern.

The engine that checks values is Arrow's, so a pattern is compiled by it here, too.
"""

from omnigraph.core.limits import DIAGNOSTIC_EXCERPT_MAX


def pattern_error(pattern: str) -> str | None:
    """Return why a pattern does not compile, or none."""
    # Arrow is imported late: most sources that are parsed have no pattern.
    import pyarrow as pa
    from pyarrow._compute import MatchSubstringOptions, call_function

    try:
        # A null suffices to have the pattern compiled: pyarrow imports pandas to make arrays of lists.
        # And `pyarrow.compute` would write 290 functions out of their descriptions, of which one is called.
        call_function("match_substring_regex", [pa.nulls(1, pa.string())], MatchSubstringOptions(pattern))
    except pa.ArrowInvalid as error:
        # The text repeats the pattern, which may be as long as its author likes.
        return str(error).removeprefix("Invalid regular expression: ")[:DIAGNOSTIC_EXCERPT_MAX]
    return None
