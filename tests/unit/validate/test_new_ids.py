"""Ids that are made by the column are ULIDs that count up."""

from hypothesis import example, given
from hypothesis import strategies as st

from omnigraph.validate.new_ids import IdSource

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
STAMP_MS = 1_763_000_000_123


def text_of(number: int) -> str:
    """Return a number of 130 bits as a ULID is spelled."""
    return "".join(ALPHABET[number >> shift & 31] for shift in range(125, -1, -5))


def source_at(start: int) -> IdSource:
    source = IdSource(lambda: STAMP_MS * 1_000)
    source._next = start
    return source


@given(st.integers(0, 2**79 - 1), st.lists(st.integers(0, 40), max_size=4))
@example(77 * 2**40 - 3, [2, 5])  # the lower half is full between the second id and the third
@example(2**79 - 1, [1])
def test_columns_go_on_counting_where_the_last_one_ended(start: int, counts: list[int]) -> None:
    source = source_at(start)

    made = [id_ for count in counts for id_ in source.column(count).to_pylist()]

    assert made == [text_of(STAMP_MS << 80 | start + number) for number in range(sum(counts))]


def test_two_sources_of_one_millisecond_share_no_id() -> None:
    first, second = (IdSource(lambda: STAMP_MS * 1_000) for _ in range(2))

    ids = {*first.column(1_000).to_pylist(), *second.column(1_000).to_pylist(), first()}

    assert len(ids) == 2_001
