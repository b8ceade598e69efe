"""What a caller gives besides texts: places, flags, names, callbacks; anything else is refused.

Python would take almost anything: `str(None)` is the name of a folder, and any text is true. So a slip of the
hand could create a graph nobody meant, or agree to a loss.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral
from pathlib import Path
from typing import TypeVar

from omnigraph.core.errors import BadRequest
from omnigraph.core.limits import I64_MAX
from omnigraph.core.values import named

Call = TypeVar("Call", bound=Callable[..., None])


def given_place(name: str, place: object) -> str:
    """Return the place of a graph: a path or an address.

    Raises:
        BadRequest: it is neither.
    """
    if isinstance(place, str):
        return place
    path = os.fspath(place) if isinstance(place, os.PathLike) else None
    if not isinstance(path, str):
        raise BadRequest(f"{name} must be a path or an address, not {named(place)}")
    return path


def check_flags(**flags: object) -> None:
    """Make sure that flags are `True` or `False`: what merely counts as true is no consent.

    Raises:
        BadRequest: one is neither; it is named.
    """
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            raise BadRequest(f"{name} must be True or False, not {named(flag)}")


def given_callback(callback: Call | None, otherwise: Call) -> Call:
    """Return what is told of the progress of a call.

    Raises:
        BadRequest: it cannot be called.
    """
    if callback is None:
        return otherwise
    if not callable(callback):
        raise BadRequest(f"progress must be a function, not {named(callback)}")
    return callback


def given_names(name: str, names: object) -> tuple[str, ...] | None:
    """Return the texts of a list; none where there is none.

    Raises:
        BadRequest: it is no list of texts; one text is none either.
    """
    if names is None:
        return None
    if isinstance(names, str | bytes | bytearray | memoryview | Mapping) or not isinstance(names, Iterable):
        raise BadRequest(f"{name} must be a list of texts, not {named(names)}")
    try:
        items = iter(names)
    except TypeError as error:  # an array without a dimension
        raise BadRequest(f"{name} must be a list of texts, not {named(names)}") from error
    listed: list[str] = []
    for item in items:
        if not isinstance(item, str):
            raise BadRequest(f"{name} must be a list of texts, and has {named(item)}")
        listed.append(item)
    return tuple(listed)


def given_words(name: str, words: object) -> tuple[str, ...]:
    """Return the texts of a list, or the one text that stands for a list of it; none where there is none.

    Raises:
        BadRequest: it is neither.
    """
    return (words,) if isinstance(words, str) else given_names(name, words) or ()


def required_text(name: str, text: object) -> str:
    """Return a text that a call cannot do without.

    Raises:
        BadRequest: it is something else.
    """
    if not isinstance(text, str):
        raise BadRequest(f"{name} must be a text, not {named(text)}")
    return text


def given_number(name: str, number: object) -> int | None:
    """Return a whole number; none where there is none.

    Raises:
        BadRequest: it is something else, or larger than anything is.
    """
    if number is None:
        return None
    if isinstance(number, bool) or not isinstance(number, Integral):
        raise BadRequest(f"{name} must be a whole number, not {named(number)}")
    whole = int(number)
    if abs(whole) > I64_MAX:  # no clock goes so far
        raise BadRequest(f"{name} must be a whole number of at most 64 bits")
    return whole


def given_file(name: str, path: object) -> Path | None:
    """Return the path of a file; none where there is none.

    Raises:
        BadRequest: it is no path.
    """
    if path is None:
        return None
    if not isinstance(path, str | Path):
        raise BadRequest(f"{name} must be the path of a file, not {named(path)}")
    return Path(path)


def check_callable(name: str, given: object) -> None:
    """Make sure that a condition is one, where there is one.

    Raises:
        BadRequest: it cannot be called.
    """
    if given is not None and not callable(given):
        raise BadRequest(f"{name} must be a function, not {named(given)}")


def check_type_names(name: str, given: Iterable[object]) -> None:
    """Make sure that what is given by type name has texts for names.

    Raises:
        BadRequest: one is something else.
    """
    for key in given:
        if not isinstance(key, str):
            raise BadRequest(f"{name} are given by type name, and {named(key)} is none")


def given_text(name: str, text: object) -> str | None:
    """Return a text; none where there is none.

    Raises:
        BadRequest: it is something else.
    """
    if text is not None and not isinstance(text, str):
        raise BadRequest(f"{name} must be a text, not {named(text)}")
    return text
