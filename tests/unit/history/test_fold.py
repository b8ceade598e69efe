"""The fold of manifest rows: the newest row of a lifetime decides, in whatever order rows arrive."""

import random

import pytest

from omnigraph.core.errors import InvariantViolation
from omnigraph.history.commits import CommitLog
from omnigraph.history.fold import TableStates, fold
from omnigraph.history.identity import TableIdentity
from omnigraph.history.manifest_rows import PublishedPin, commit_row, pin_row, registration_row, rows_table

PERSON = TableIdentity(7, 1)


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_rows_does_not_matter(seed: int) -> None:
    rows = [registration_row(PERSON, "node:Person", at=1), registration_row(PERSON, "node:Human", at=4)]
    rows += [
        pin_row(PERSON, "node:Person", PublishedPin(at + 1, None, at, f"uuid-{at}", "main"), at=at)
        for at in (1, 2, 3, 5)
    ]
    random.Random(seed).shuffle(rows)

    whole = fold(TableStates(), rows_table(rows))
    by_parts = fold(fold(TableStates(), rows_table(rows[:3])), rows_table(rows[3:]))

    (entry,) = whole.entries()
    assert (entry.table_key, entry.version, entry.row_count) == ("node:Human", 6, 5)
    assert by_parts.entries() == whole.entries()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"location": "nodes/of-another"}, "is not that of its identity"),
        ({"object_id": "table:9.9:node:Person"}, "does not begin with its type and identity"),
        ({"stable_table_id": None}, "without identity"),
        ({"published_at": None}, "no published_at"),
    ],
)
def test_a_row_that_contradicts_itself_is_named(change: dict[str, object], said: str) -> None:
    row = registration_row(PERSON, "node:Person", at=1)

    with pytest.raises(InvariantViolation, match=said):
        fold(TableStates(), rows_table([row | change]))


@pytest.mark.parametrize("versions", [(5, 3), (3, 5)])
def test_the_head_is_the_newest_commit_however_rows_arrive(versions: tuple[int, int]) -> None:
    log = CommitLog()
    for version in versions:
        rows = rows_table([commit_row(f"commit-{version}", "main", {"created_at": 1}, at=version)])
        log = log.with_rows(rows)

    assert log.head is not None
    assert log.head.graph_commit_id == "commit-5"


def test_of_two_commits_of_one_version_the_later_one_is_the_head() -> None:
    rows = [commit_row(f"commit-{at}", "main", {"created_at": at}, at=2) for at in (7, 9, 8)]

    head = CommitLog().with_rows(rows_table(rows)).head

    assert head is not None
    assert head.graph_commit_id == "commit-9"
