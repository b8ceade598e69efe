"""JSON that may come from elsewhere: read, or refused with one kind of error."""

import json
from collections.abc import Callable
from typing import Any

Json = dict[str, object]  # a document to write


def read_json(
    text: str | bytes,
    *,
    members: Callable[[list[tuple[str, Any]]], Any] | None = None,
    constant: Callable[[str], Any] | None = None,
) -> Any:  # noqa: ANN401 - whatever the text says
    """Return the value of a text; `members` makes objects, `constant` is for `NaN` and the like.

    Raises:
        ValueError: it is not JSON, is nested too deeply, or has a number with too many digits.
    """
    try:
        return json.loads(text, object_pairs_hook=members, parse_constant=constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None
