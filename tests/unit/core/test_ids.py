"""ULIDs: their form, and the promise I1."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.core.ids import UlidSource, new_ulid
from tests.support.system import Script

FORK = """
import os, sys
from omnigraph.core.ids import UlidSource
moments = iter([9_000_000] + [int(sys.argv[1])] * 100)
make = UlidSource(moments.__next__)
before = make()
print(before, flush=True)

def ten_of_a_child():
    read, write = os.pipe()
    if os.fork() == 0:
        os.write(write, " ".join(make() for _ in range(10)).encode())
        os._exit(0)
    os.wait()
    return os.read(read, 4096).decode()

print(ten_of_a_child(), ten_of_a_child(), *[make() for _ in range(10)], flush=True)
"""
FORK_WHILE_IN_USE = """
import os, signal, threading
from omnigraph.core.ids import UlidSource
inside, go_on = threading.Event(), threading.Event()

def slow_clock():
    if threading.current_thread() is not threading.main_thread():
        inside.set()
        go_on.wait()
    return 9_000_000

make = UlidSource(slow_clock)
thread = threading.Thread(target=make)
thread.start()
inside.wait()
if os.fork() == 0:
    signal.alarm(20)  # rather than hang for ever
    print(len(make()), flush=True)
    os._exit(0)
os.wait()
go_on.set()
thread.join()
"""
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


@pytest.mark.case("engine", 370)
@pytest.mark.parametrize("moment", [1_000_000, 9_000_000, 9_001_000], ids=["back", "still", "onwards"])
def test_a_parent_and_its_children_never_make_the_same_id(moment: int) -> None:
    with Script(FORK, moment) as script:
        before, after = script.read_line(), script.read_line().split()

    assert len(set(after)) == 30
    assert min(after) > before  # I1 holds across the fork, too
    assert [after[:10], after[10:20], after[20:]] == [
        sorted(after[:10]),
        sorted(after[10:20]),
        sorted(after[20:]),
    ]


def test_a_child_is_not_stuck_on_an_id_that_another_thread_of_its_parent_was_making() -> None:
    with Script(FORK_WHILE_IN_USE, PYTHONWARNINGS="ignore") as script:  # forking with threads is the point
        assert script.read_line() == "26"
        assert script.wait() == 0
