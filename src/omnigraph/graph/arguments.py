"""What a caller gives besides texts: places, flags, names, callbacks; anything else is refused.

Python would take almost anything: `str(None)` is the name of a folder, and any text is true. So a slip of the
hand could create a graph nobody meant, or agree to a loss.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from omnigraph.core.errors import BadRequest
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
    if isinstance(names, Sequence | set | frozenset) and not isinstance(names, str | bytes | Mapping):
        listed = tuple(names)
        wrong = [item for item in listed if not isinstance(item, str)]
        if not wrong:
            return listed
        raise BadRequest(f"{name} must be a list of texts, and has {named(wrong[0])}")
    raise BadRequest(f"{name} must be a list of texts, not {named(names)}")


def given_text(name: str, text: object) -> str | None:
    """Return a text; none where there is none.

    Raises:
        BadRequest: it is something else.
    """
    if text is not None and not isinstance(text, str):
        raise BadRequest(f"{name} must be a text, not {named(text)}")
    return text
