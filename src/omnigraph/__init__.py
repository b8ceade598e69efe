"""Omnigraph: a typed property graph with git-style history on open Lance tables.

`init` and `open` return a `Graph`. Names are looked up when they are first used: importing the package alone
loads neither Lance nor Arrow. The list of names and where they live is in one place, `__init__.pyi`.
"""

import importlib
import re
from functools import cache
from pathlib import Path

__version__ = "0.1.0"
INTERNAL_SCHEMA_VERSION = 4

_LINE = re.compile(r"^from (\S+) import (\w+) as \2$", re.MULTILINE)


@cache
def _homes() -> dict[str, str]:
    stub = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    return {name: home for home, name in _LINE.findall(stub)}


def __getattr__(name: str) -> object:
    """Import a public name from its home on first use, and keep it."""
    if name == "__all__":
        return __dir__()
    if name not in _homes():
        raise AttributeError(f"module 'omnigraph' has no attribute {name!r}")
    value = getattr(importlib.import_module(_homes()[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names without importing what they stand for."""
    return sorted([*_homes(), "__version__", "INTERNAL_SCHEMA_VERSION"])
