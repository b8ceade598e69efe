"""The patterns of `@check`: RE2, which answers in linear time whatever the pattern.

The engine that checks values is Arrow's, so a pattern is compiled by it here, too.
"""


def pattern_error(pattern: str) -> str | None:
    """Return why a pattern does not compile, or none."""
    # Arrow is imported late: most sources that are parsed have no pattern.
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        pc.match_substring_regex(pa.array([""]), pattern=pattern)
    except pa.ArrowInvalid as error:
        return str(error).removeprefix("Invalid regular expression: ")
    return None
