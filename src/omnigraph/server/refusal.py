"""Refusals that only HTTP knows: a wrong method, a wrong content type, a body that does not come."""

from collections.abc import Mapping

BODY_IS_BROKEN = "body_is_broken"  # in the state of a request the rest of whose body cannot be read


class Refusal(Exception):
    """A request that is refused before any part of the engine sees it."""

    def __init__(
        self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        """Take the status, the code and the text of the answer, and perhaps headers."""
        super().__init__(message)
        self.status, self.code = status, code
        self.headers = dict(headers or {})


def unsupported_type(message: str) -> Refusal:
    """Return the refusal of a content type."""
    return Refusal(415, "bad_request", message)


def malformed(what: str) -> Refusal:
    """Return the refusal of a request, or of its body, that is not HTTP; the connection ends with it."""
    return Refusal(400, "bad_request", f"the {what} is not valid HTTP/1.1", {"Connection": "close"})


def too_slow(waited_s: float, what: str = "body") -> Refusal:
    """Return the refusal of what does not arrive; the connection ends with it."""
    message = f"the {what} did not arrive within {waited_s:g} seconds"
    return Refusal(408, "bad_request", message, {"Connection": "close"})


def cut_off() -> Refusal:
    """Return the answer to what still runs when the time to drain is over; none that says to try again."""
    message = "the server ends before this was answered; a write that has begun is finished"
    return Refusal(500, "internal", message, {"Connection": "close"})
