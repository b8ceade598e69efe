"""Which route answers a request: a tree of the segments of declared paths.

A path as `paths.py` gives it is walked segment by segment, so that what it costs to find a route does not
depend on how many there are. A segment that is declared in braces is a value.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from omnigraph.server.paths import decoded_segment
from omnigraph.server.refusal import Refusal

Endpoint = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class _Entry:
    path: str
    names: tuple[str, ...]  # of the values in the path, in their order
    graph: str | None
    answer: Endpoint


@dataclass(slots=True)
class _Place:
    """Where some segments lead: to others, by their words or as a value, and to the methods of a path."""

    words: dict[str, "_Place"] = field(default_factory=dict)
    value: "_Place | None" = None
    entries: dict[str, _Entry] = field(default_factory=dict)


class Router:
    """The innermost part of the application."""

    def __init__(self) -> None:
        """Begin without routes."""
        self._root = _Place()

    def add(self, method: str, path: str, answer: Endpoint, *, graph: str | None = None) -> None:
        """Add a route; `graph` is the one it is about if its path does not say so."""
        place, names = self._root, list[str]()
        for segment in _segments(path):
            if segment.startswith("{"):
                names.append(segment[1:-1])
                place.value = place = place.value or _Place()
            else:
                place = place.words.setdefault(segment, _Place())
        assert method not in place.entries, f"{method} {path} is declared twice"
        place.entries[method] = _Entry(path, tuple(names), graph, answer)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, and tell `Observed` by which route and about which graph.

        Raises:
            Refusal: there is no such path, or it has no such method.
        """
        entry, values = self._found(scope["method"], scope["path"])
        scope["path_params"] = dict(zip(entry.names, values, strict=True))
        state = scope["state"]
        state["route"] = entry.path
        state["graph"] = scope["path_params"].get("graph_id", entry.graph)
        response = await entry.answer(Request(scope, receive, send))
        await response(scope, receive, send)

    def _found(self, method: str, path: str) -> tuple[_Entry, list[str]]:
        allowed: set[str] = set()
        for place, values in self._reached(path):
            entry = place.entries.get(method)
            if entry is not None:
                return entry, [decoded_segment(value) for value in values]
            allowed.update(place.entries)
        if allowed:
            headers = {"Allow": ", ".join(sorted(allowed))}
            raise Refusal(405, "method_not_allowed", "method not allowed", headers)
        raise Refusal(404, "not_found", "there is no such route")

    def _reached(self, path: str) -> list[tuple[_Place, tuple[str, ...]]]:
        """Return the places that a path leads to, with its values; words come before values."""
        reached: list[tuple[_Place, tuple[str, ...]]] = [(self._root, ())]
        for segment in _segments(path):
            reached = [step for place, values in reached for step in _steps(place, values, segment)]
        return reached


def _segments(path: str) -> list[str]:
    return path.split("/")[1:]


def _steps(place: _Place, values: tuple[str, ...], segment: str) -> list[tuple[_Place, tuple[str, ...]]]:
    word = place.words.get(segment)
    found = [] if word is None else [(word, values)]
    if place.value is not None and segment:
        found.append((place.value, (*values, segment)))
    return found
