"""Admission: looking and reserving are one step, and what was reserved comes back."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from omnigraph.core.access_errors import RateLimited
from omnigraph.server.admission import Admission


@pytest.mark.case("surfaces", 121)
def test_of_many_at_once_exactly_as_many_as_allowed_are_let_in() -> None:
    admission, together = Admission(requests_max=16, bytes_max=1_000), Barrier(32)

    def ask(_number: int) -> int:
        together.wait(30)
        try:
            admission.reserve("act-mira", 1)
        except RateLimited as refused:
            return refused.retry_after_s
        return 0

    with ThreadPoolExecutor(32) as threads:
        assert sorted(threads.map(ask, range(32))) == [0] * 16 + [60] * 16
    admission.reserve("act-tomas", 1)
    admission.reserve(None, 1)


def test_the_bytes_of_an_actor_count_together() -> None:
    admission = Admission(requests_max=10, bytes_max=100)

    give_back = admission.reserve("a", 60)
    with pytest.raises(RateLimited, match="byte cap 100"):
        admission.reserve("a", 41)
    admission.reserve("a", 40)
    give_back()
    admission.reserve("a", 60)
    with pytest.raises(RateLimited):
        admission.reserve("b", 101)


def test_an_actor_that_has_gone_leaves_nothing_behind() -> None:
    admission = Admission(requests_max=1, bytes_max=100)

    for _ in range(3):
        give_back = admission.reserve("a", 100)
        give_back()

    assert admission._shares == {}
