"""What works on the storage of a graph alone: a server refuses it, with what to do."""

from collections.abc import Callable
from typing import NoReturn

from omnigraph.core.errors import UnsupportedError

_ON_STORAGE = "open the storage with omnigraph.open, or run 'omnigraph {}' where the storage is"


class EmbeddedOnly:
    """A method of `Graph` that a `RemoteGraph` does not have; the class body says what to do instead."""

    def __init__(self, command: str = "", *, instead: str | None = None) -> None:
        """Take the command that does it on storage, or other words for what to do."""
        self._instead = _ON_STORAGE.format(command) if instead is None else instead
        self._name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, graph: object, owner: type | None = None) -> Callable[..., NoReturn]:
        """Return what refuses the call."""

        def refuse(*_arguments: object, **_options: object) -> NoReturn:
            raise UnsupportedError(f"{self._name} is not for a graph behind a server: {self._instead}")

        return refuse


# What a call may say of a graph in its storage, and why a server takes none of it.
_REASONS = {
    "actor": "it knows you by your token",
    "retry": "it decides how long a lost race is run again",
    "timeout_ms": "its own limits apply",
    "memory_bytes": "its own limits apply",
    "exact": "it uses the indexes that it has",
    "mapping": "it takes one input: load the tables with load_tables",
    "engine": "it loads and changes in its own process",
    "master": "it has no Spark",
    "on_error": "it takes all rows or none",
    "rejects": "it writes no files for you",
    "embed": "it makes no vectors: give them with the rows, or run 'omnigraph embed' where the storage is",
    "progress": "it tells no progress",
    "exclusive": "others may be using branches",
    "page_bytes": "it has its own size of a page",
    "commits": "it has its own number of commits for a poll",
}


def refuse_given(method: str, **given: object) -> None:
    """Refuse arguments that have no meaning for a server.

    Raises:
        UnsupportedError: one has another value than its default; it is named, with the reason.
    """
    for name, value in given.items():
        if value not in (None, False, "auto", "fail"):
            raise UnsupportedError(
                f"{method}: a server takes no {name}, because {_REASONS[name]}: leave it out"
            )
