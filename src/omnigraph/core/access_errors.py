"""Refusals of a server because of who calls, and what its client raises where no answer came."""

from omnigraph.core.errors import OmnigraphError


class AuthenticationError(OmnigraphError):
    """A server was given no token, or one that it does not know."""

    code = "unauthorized"
    status = 401


class RateLimited(OmnigraphError):
    """A server is already doing as much for this actor as one actor may ask for; nothing was done."""

    code = "too_many_requests"
    status = 429

    def __init__(self, message: str, *, retry_after_s: int) -> None:
        """Take which limit was reached, and when to try again."""
        super().__init__(message)
        self.retry_after_s = retry_after_s


class TransportError(OmnigraphError):
    """A server could not be reached, or its answer could not be understood; nothing was changed."""


class CommitOutcomeUnknown(OmnigraphError):
    """The answer to a write was lost on the way: the write may have been carried out, or not.

    `RemoteGraph.outcome_of` asks what became of it, by the `write_id` that was sent along.
    """

    def __init__(self, *, branch: str, head_before: str | None, write_id: str | None = None) -> None:
        """Take the branch, its newest commit before the write, and the write's own name, as far as known."""
        before = "unknown" if head_before is None else head_before
        super().__init__(
            f"no answer to the write on branch '{branch}' (head before: {before}):"
            " compare heads before trying again"
        )
        self.branch, self.head_before, self.write_id = branch, head_before, write_id
