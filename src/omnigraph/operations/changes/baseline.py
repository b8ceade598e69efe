"""The baseline: every entity of one commit, and the cursor that continues exactly after it.

B1  The cursor is known once the last entity has been taken, and not before: a consumer that stops early
    cannot resume and lose the rest.
B2  The first block of the resumed feed is the first commit after the baseline.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from omnigraph.bulk.files import name_of_file, whole_file
from omnigraph.catalog.model import NodeType
from omnigraph.changes.model import type_id
from omnigraph.changes.tokens import Cursor, cursor_text
from omnigraph.core.errors import BadRequest, StorageError
from omnigraph.history.identity import identity_of
from omnigraph.operations.changes.feed import feed_scope
from omnigraph.operations.changes.sides import WantedChanges
from omnigraph.operations.context import OpenGraph
from omnigraph.operations.export import Export, pinned_export
from omnigraph.policy.request import Action
from omnigraph.storage.control.locks import try_lock


@dataclass(frozen=True, slots=True)
class Baseline:
    """The entities of a captured head; iterating gives them as the records of a load (B1)."""

    export: Export
    snapshot_commit_id: str
    _resume: str
    _done: list[bool] = field(default_factory=list, repr=False)

    def __iter__(self) -> Iterator[dict[str, object]]:
        """Yield the records: nodes before edges, types by name, entities by id."""
        self._done.clear()
        yield from self.export
        self._done.append(True)

    @property
    def resume_cursor(self) -> str:
        """Where the feed continues.

        Raises:
            BadRequest: not every record has been taken.
        """
        if not self._done:
            raise BadRequest("the cursor of a baseline is known once all of its records have been taken")
        return self._resume

    def lines(self) -> Iterator[bytes]:
        """Yield NDJSON, some records at a time, and after the last one the commit and the cursor."""
        self._done.clear()
        yield from self.export.lines()
        self._done.append(True)
        end = {"snapshot_commit_id": self.snapshot_commit_id, "resume_cursor": self._resume}
        yield orjson.dumps({"baseline": end}, option=orjson.OPT_APPEND_NEWLINE)

    def to_file(self, path: str | Path) -> None:
        """Write one file of NDJSON; it appears when it is complete, and stays after a power cut.

        Raises:
            BadRequest: it cannot be written, or another process is writing it.
        """
        place = Path(name_of_file(path))
        with _alone(place), whole_file(place) as file:
            file.writelines(self.lines())


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Keep others from writing the same file."""
    try:
        lock = try_lock(path.with_name(f".{path.name}.lock"))
    except StorageError as error:
        raise BadRequest(f"cannot write {path}: {error}") from error
    if lock is None:
        raise BadRequest(f"cannot write {path}: another baseline is being written there")
    try:
        yield
    finally:
        lock.release(remove=True)


def baseline(
    graph: OpenGraph, given: WantedChanges, *, branch: str | None = None, actor: str | None = None
) -> Baseline:
    """Capture the head of a branch.

    Raises:
        BranchNotFound: there is no such branch.
        PolicyDenied: the actor may not export.
    """
    state = graph.state(graph.enter(actor, Action.EXPORT, branch))
    snapshot, wanted = state.snapshot(), given.on(graph)
    domain = graph.contract.accepted.domain
    types = tuple(
        type_
        for type_ in graph.catalog_of(snapshot).types
        if wanted.wants_table(
            "node" if isinstance(type_, NodeType) else "edge", type_id(domain, identity_of(type_))
        )
    )
    commit_id = snapshot.commit_id
    resume = cursor_text(Cursor(feed_scope(graph, state, wanted), commit_id))
    return Baseline(pinned_export(graph, snapshot, types), commit_id, resume)
