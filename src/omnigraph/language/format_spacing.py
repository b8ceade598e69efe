"""The tokens of one line, and the spaces between them.

Two tokens that were apart are joined only where the lexer separates them again: next to a mark.
"""

from collections.abc import Sequence

from omnigraph.language.parser import Token

_TIGHT_BEHIND = frozenset({"(", "[", "{", "@", ".", "..", "-"})
_TIGHT_BEFORE = frozenset({"(", ")", "]", "}", ",", ":", "?", ".", "..", "-"})


def spell(tokens: Sequence[Token]) -> str:
    """Return the tokens as written on one line; strings may contain line breaks."""
    parts = [tokens[0].text]
    depth = 0
    for index in range(1, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[index - 1].text, 0)
        # A comparison never appears inside parentheses: there, `=` belongs to a keyword argument.
        is_keyword = depth > 0 and "=" in {tokens[index - 1].text, tokens[index].text}
        parts.append("" if is_keyword or _is_tight(tokens, index) else " ")
        parts.append(tokens[index].text)
    return "".join(parts)


def _is_tight(tokens: Sequence[Token], index: int) -> bool:
    """Return whether a token follows the one before it without a space."""
    left, right = tokens[index - 1], tokens[index]
    if left.text == ",":
        return _is_in_hops(tokens, index)
    if left.text == ":":  # `$w:wrote` and `$w:<wrote>`, but `$b: Book`
        return tokens[index - 2].kind == "variable" and (right.kind == "name" or right.text == "<")
    if left.text == "<":  # `<wrote>`, not a comparison
        return _text(tokens, index + 1) == ">"
    if right.text == ">":
        return index >= 2 and tokens[index - 2].text == "<"
    if right.text == "{":  # `wrote{1,3}`
        return _kind(tokens, index + 1) == "integer"
    return left.text in _TIGHT_BEHIND or right.text in _TIGHT_BEFORE or _is_one_enum_value(left, right)


def _is_in_hops(tokens: Sequence[Token], index: int) -> bool:
    """Return whether the comma before a token is the one in `{1,3}`."""
    return index >= 3 and tokens[index - 3].text == "{"


def _is_one_enum_value(left: Token, right: Token) -> bool:
    """Return whether the lexer has cut a value such as `2nd`; elsewhere a word never touches a number."""
    return left.kind == "integer" and right.kind in {"name", "type"} and left.end == right.start


def _text(tokens: Sequence[Token], index: int) -> str | None:
    return tokens[index].text if index < len(tokens) else None


def _kind(tokens: Sequence[Token], index: int) -> str | None:
    return tokens[index].kind if index < len(tokens) else None
