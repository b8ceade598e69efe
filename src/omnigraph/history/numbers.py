"""Numbers that a graph issues once: for the types, properties, tables and columns of all its branches.

N1  A number is issued once, whichever branch asks. What was reserved and not used is never issued again.
"""

import json

from omnigraph.core.errors import InvariantViolation, StorageError
from omnigraph.core.values import read_json
from omnigraph.storage.control.object_store import StorageAdapter

NUMBERS_FILE = "__numbers.json"
TRIES_MAX = 20  # against others who reserve at the same moment; a schema change is a rare thing


def reserve_numbers(adapter: StorageAdapter, count: int, *, least: int) -> int:
    """Reserve consecutive numbers, none below `least`, and return the first (N1).

    Raises:
        InvariantViolation: the file of the counter was damaged.
        StorageError: the store failed, or others were always faster.
    """
    for _ in range(TRIES_MAX):
        found = adapter.read_text_versioned(NUMBERS_FILE)
        first = least if found is None else max(least, _next(found[0]))
        text = json.dumps({"next": first + count})
        if found is None:
            is_ours = adapter.write_text_if_absent(NUMBERS_FILE, text)
        else:
            is_ours = adapter.write_text_if_match(NUMBERS_FILE, text, found[1])
        if is_ours:
            return first
    raise StorageError(f"{NUMBERS_FILE} is always changed by others", kind="transient")


def read_next_number(adapter: StorageAdapter) -> int | None:
    """Return the next number that is free; none where only the first schema of a graph has got numbers.

    Raises:
        InvariantViolation: the file of the counter was damaged.
        StorageError: it cannot be read.
    """
    text = adapter.read_text_if_exists(NUMBERS_FILE)
    return None if text is None else _next(text)


def _next(text: str) -> int:
    try:
        number = read_json(text)["next"]
    except (ValueError, KeyError, TypeError) as error:
        raise InvariantViolation(f"{NUMBERS_FILE} is not a counter: put it back") from error
    if type(number) is not int or not 0 < number < 1 << 29:
        raise InvariantViolation(f"{NUMBERS_FILE} is not a counter: put it back")
    return number
