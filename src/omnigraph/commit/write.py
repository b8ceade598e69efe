"""One way from a prepared change to its outcome, which decides what of it may be removed."""

from collections.abc import Sequence
from typing import assert_never

from omnigraph.commit.outcome import Landed, Made, NoEffect, Pending
from omnigraph.commit.parts import Parts
from omnigraph.commit.publish import ManifestPublisher, PublishOutcome
from omnigraph.commit.section import TableCommit, WriteIntent, run_commit_section
from omnigraph.core.shield import remark, shielded


def commit_write(
    parts: Parts,
    publisher: ManifestPublisher,
    intent: WriteIntent,
    commits: Sequence[TableCommit],
    made: Sequence[Made] = (),
) -> PublishOutcome:
    """Make a write visible; the caller holds the queues of all tables.

    `made` is what the attempt has made for this write. It is the caller's again only if nothing happened. A
    signal waits until the section has ended, and every block around it that may remove things.

    Raises:
        ConflictError: somebody else was first; with `recovery_operation_id` where effects wait for recovery.
        RecoveryRequired: the outcome is unknown or unfinished.
        StorageError: nothing of this write landed.
    """
    with shielded():
        for item in made:
            item.hand_over()
        outcome = run_commit_section(parts, publisher, intent, commits)
        match outcome:
            case Landed(published):
                remark(f"the write had landed by then, as commit {published.commit.graph_commit_id}")
                return published
            case NoEffect(_, error):
                for item in made:
                    item.take_back(outcome)
                raise error
            case Pending(operation_id, error):
                remark(f"the write is unfinished: the next write or open settles operation {operation_id}")
                raise error
            case _:
                assert_never(outcome)
