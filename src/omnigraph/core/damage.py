"""The error for a damaged graph: the file, what needs it, and the way out."""

from collections.abc import Sequence
from itertools import islice

from omnigraph.core.errors import StorageError

VERSIONS_MAX = 10_000  # that an error lists; a number in a damaged file may name any


class GraphDamaged(StorageError):
    """A file that the graph needs is gone, hollow, or not what its commit wrote. Nothing was changed.

    Putting the file back restores everything. `versions` and `commits` are those that need it, as far as can
    still be determined (not all of very many); `readable` is the newest version that needs nothing damaged.
    """

    code = "graph_damaged"

    def __init__(
        self,
        *,
        file: str,
        reason: str,
        dataset: str,
        versions: Sequence[int] = (),
        commits: Sequence[str] = (),
        readable: int | None = None,
        remedy: str = "",
    ) -> None:
        """Take the file inside the graph, what is wrong with it, and what needs it."""
        needed = f" Needed by {_span(versions)} of {dataset}." if versions else ""
        told = f" Their commits: {_first_few(commits)}." if commits else ""
        way_out = remedy or "put the file back from a copy"
        if reason == "is missing":
            way_out += "; a copy of a graph made while it was being written looks like this: copy it again"
        super().__init__(
            f"the graph is damaged: '{file}' {reason}.{needed}{told} Nothing was changed. Way out: {way_out}",
            kind="permanent",
        )
        self.file, self.reason, self.dataset = file, reason, dataset
        self.versions = tuple(islice(versions, VERSIONS_MAX))
        self.commits, self.readable = tuple(commits), readable


def _span(versions: Sequence[int]) -> str:
    """Name versions by the first and last; they have no gaps."""
    low, high = sorted((versions[0], versions[-1]))
    return f"version {low}" if low == high else f"versions {low} to {high}"


def _first_few(names: Sequence[str], shown: int = 5) -> str:
    rest = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {rest} more" if rest > 0 else "")
