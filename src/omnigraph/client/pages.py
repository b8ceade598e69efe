"""Answers that come in pages: each names the next one, and none of them names one that was there before."""

from omnigraph.core.access_errors import TransportError


class PagesTaken:
    """The tokens and cursors that were followed, so that no server can lead a program in a circle."""

    def __init__(self, *begun_with: str | None) -> None:
        """Take where the first page was asked for, if the caller said that."""
        self._taken = {hash(token) for token in begun_with if token is not None}

    def follow(self, token: str | None) -> str | None:
        """Return where the next page is; None is the end.

        Raises:
            TransportError: it was there before, so that there would be no end.
        """
        if token is None:
            return None
        if hash(token) in self._taken:
            raise TransportError("the server names as the next page one that was there before")
        self._taken.add(hash(token))
        return token
