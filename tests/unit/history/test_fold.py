"""The fold of manifest rows: the newest row of a lifetime decides, in whatever order rows arrive."""

import random

import pytest

from omnigraph.history.fold import TableStates, fold
from omnigraph.history.identity import TableIdentity
from omnigraph.history.manifest_rows import Pin, pin_row, registration_row, rows_table

PERSON = TableIdentity(7, 1)


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_rows_does_not_matter(seed: int) -> None:
    rows = [registration_row(PERSON, "node:Person", at=1), registration_row(PERSON, "node:Human", at=4)]
    rows += [
        pin_row(PERSON, "node:Person", Pin(at + 1, None, at, f"uuid-{at}", None), at=at)
        for at in (1, 2, 3, 5)
    ]
    random.Random(seed).shuffle(rows)

    whole = fold(TableStates(), rows_table(rows))
    by_parts = fold(fold(TableStates(), rows_table(rows[:3])), rows_table(rows[3:]))

    (entry,) = whole.entries()
    assert (entry.table_key, entry.version, entry.row_count) == ("node:Human", 6, 5)
    assert by_parts.entries() == whole.entries()
