"""Settings from the environment: numbers and words. A malformed one gets its default, with a warning."""

import logging
import os
from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

_DIGITS_MAX = 18  # what fits 64 bits, and far below what Python refuses to read
_log = logging.getLogger("omnigraph")

Word = TypeVar("Word", bound=StrEnum)
Default = TypeVar("Default", int, None)


def number_setting(
    name: str,
    default: Default,
    *,
    least: int = 0,
    most: int | None = None,
    given: Mapping[str, str] | None = None,
) -> int | Default:
    """Return a whole number that is set, or its default if it is missing, malformed or out of bounds."""
    text = (os.environ if given is None else given).get(name, "").strip()
    if not text:
        return default
    is_number = text.isascii() and text.isdecimal() and len(text) <= _DIGITS_MAX
    if not is_number or int(text) < least or (most is not None and int(text) > most):
        bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
        _log.warning("%s=%.40r is not a whole number %s: the default is used", name, text, bounds)
        return default
    return int(text)


def word_setting(name: str, default: Word) -> Word:
    """Return a setting that is one of the words of an enumeration, in upper or lower case."""
    text = os.environ.get(name, "").strip().lower()
    try:
        return type(default)(text) if text else default
    except ValueError:
        words = ", ".join(type(default))
        _log.warning("%s=%.40r is not one of %s: '%s' is used", name, text, words, default)
        return default
