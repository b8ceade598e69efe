"""ULIDs: their form, and the promise I1."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from omnigraph.core.ids import UlidSource, new_ulid

ALPHABET = set("0123456789ABCDEFGHJKMNPQRSTVWXYZ")
_MICROS = st.integers(min_value=0, max_value=2**47 * 1_000)


def source_at(moments: Iterable[int]) -> UlidSource:
    """Return a source whose clock shows these microseconds, one after the other."""
    return UlidSource(iter(moments).__next__)


def test_a_ulid_is_26_characters_of_the_alphabet() -> None:
    ulid = new_ulid()

    assert len(ulid) == 26
    assert set(ulid) <= ALPHABET
    assert ulid[0] in "01234567"


def test_a_ulid_starts_with_its_millisecond() -> None:
    early, late = source_at([1_000])(), source_at([1_469_922_850_259_999])()

    assert early.startswith("0000000001")
    assert late.startswith("01ARZ3NDEK")  # the time stamp of the ULID specification's example


def test_ids_of_one_millisecond_are_counted_up() -> None:
    make = source_at([5_000, 5_001, 5_999])

    first, second, third = make(), make(), make()

    assert first < second < third
    assert first[:10] == second[:10] == third[:10]


def test_a_clock_that_steps_back_does_not_make_smaller_ids() -> None:
    make = source_at([9_000_000, 1_000_000, 9_001_000])

    first, second, third = make(), make(), make()

    assert first < second < third
    assert first[:10] == second[:10] != third[:10]


@given(st.lists(_MICROS, min_size=2, max_size=50))
def test_ids_of_one_source_strictly_increase_whatever_the_clock_does(moments: list[int]) -> None:
    make = source_at(moments)

    ids = [make() for _ in moments]

    assert ids == sorted(set(ids))


def test_two_sources_of_one_moment_make_different_ids() -> None:
    assert source_at([7_000])() != source_at([7_000])()


def test_threads_that_share_a_source_never_get_the_same_id() -> None:
    make = UlidSource(lambda: 1_000)

    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(lambda _: make(), range(4_000)))

    assert len(set(ids)) == 4_000
