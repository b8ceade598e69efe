"""What became of a write whose answer was lost, as far as that can be told.

O1  `LANDED` and `NOT_LANDED` are said only by the server process that carried the write out, or refused it:
    it keeps its answers for a while, by the name under which the client sent the write.
O2  Everything else is `UNKNOWN`: the process has ended or is another one, it has forgotten, the write is
    still under way or waits for recovery. A head that has not moved proves nothing, because the write may
    still come; one that has moved was perhaps moved by others. `since` lists the commits to look at.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from omnigraph.client.answer import Document
from omnigraph.client.error_body import error_of
from omnigraph.client.http import Http
from omnigraph.client.remote.read_back import commit_of
from omnigraph.client.understood import understood
from omnigraph.core.access_errors import CommitOutcomeUnknown
from omnigraph.core.errors import BadRequest, ConflictError, NotFoundError, OmnigraphError, PolicyDenied
from omnigraph.core.values import named
from omnigraph.history.commits import MAINTENANCE_ACTOR, GraphCommit
from omnigraph.wire.responses import CommitListOutput, WriteOutput

PAUSES_S = (0.1, 0.3, 0.9, 2.7, 6.0)  # ten seconds in all, as long as a lost race is run again by default
COMMITS_MAX = 100  # after the head before: with more, nobody finds theirs by looking


class WriteFate(StrEnum):
    """What became of a write."""

    LANDED = "landed"
    NOT_LANDED = "not_landed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class WriteOutcome:
    """What became of a write whose answer was lost.

    Of one that landed, `answer` is the document that got lost, and `commit` the commit in it, if it made one.
    Of one that did not, `error` is why, if the server said so. Of one that is unknown, `since` are the newest
    commits of the branch after the head before the write, newest first, without those of maintenance; None
    where that head is not known.
    """

    fate: WriteFate
    commit: GraphCommit | None = None
    answer: Document | None = None
    error: OmnigraphError | None = None
    since: tuple[GraphCommit, ...] | None = None


def outcome_of(http: Http, lost: object, *, wait: Callable[[float], object]) -> WriteOutcome:
    """Ask what became of a write; one that is under way is waited for, for about ten seconds.

    Raises:
        BadRequest: what is given is no error of a lost answer.
        OmnigraphError: the server cannot be asked.
    """
    if isinstance(lost, KeyboardInterrupt | SystemExit):
        if not isinstance(lost.__cause__, CommitOutcomeUnknown):
            raise BadRequest("the interrupt came while no write was under way: there is nothing to ask")
        lost = lost.__cause__
    if not isinstance(lost, CommitOutcomeUnknown):
        raise BadRequest(f"outcome_of takes a CommitOutcomeUnknown or an interrupt, not {named(lost)}")
    if lost.write_id is not None:
        document = _known(http, lost.write_id)
        for pause in PAUSES_S:
            if document is None or document.get("state") != "under_way":
                break
            wait(pause)
            document = _known(http, lost.write_id)
        told = None if document is None else _told(document)
        if told is not None:
            return told
    return WriteOutcome(WriteFate.UNKNOWN, since=_since(http, lost))


def _told(document: Document) -> WriteOutcome | None:
    """Return what the server knows of a write for sure, or None (O1)."""
    with understood():
        if document["state"] == "not_begun":
            return WriteOutcome(WriteFate.NOT_LANDED)
        if document["state"] != "done":
            return None
        status, answer = int(document["status"]), document.get("answer")
        if status < 400:
            commit = None if answer is None else answer.get("commit")
            return WriteOutcome(WriteFate.LANDED, None if commit is None else commit_of(commit), answer)
        if answer is None:
            return None
        error = error_of(status, answer, document.get("error_class"))
    waits = isinstance(error, ConflictError) and error.recovery_operation_id is not None
    if status >= 500 or waits:  # a part of it may have had an effect
        return None
    return WriteOutcome(WriteFate.NOT_LANDED, error=error)


def _known(http: Http, write_id: str) -> Document | None:
    try:
        return http.get(f"/writes/{write_id}", WriteOutput)
    except (NotFoundError, PolicyDenied):  # of a write that it does not know it says so to readers alone
        return None


def _since(http: Http, lost: CommitOutcomeUnknown) -> tuple[GraphCommit, ...] | None:
    """Return the commits after the head before, if that is known and they are few enough to look at."""
    if lost.head_before is None:
        return None
    try:
        document = http.get("/commits", CommitListOutput, {"branch": lost.branch, "limit": COMMITS_MAX})
    except (NotFoundError, PolicyDenied):  # the branch was not made, is no more, or may not be read
        return None
    with understood():
        commits = [commit_of(item) for item in document["commits"]]
    ids = [commit.graph_commit_id for commit in commits]
    if lost.head_before not in ids:
        return None
    newer = commits[: ids.index(lost.head_before)]
    return tuple(commit for commit in newer if commit.actor_id != MAINTENANCE_ACTOR)
