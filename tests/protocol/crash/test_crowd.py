"""Four hosts write one graph on an object store, and are killed and stopped at random."""

import os
import random
import sys
from collections import Counter

import pytest

from tests.protocol.crash.crowd import LIFETIME_S, Crowd, timed_run
from tests.support.proxy import StoreRequest, store_proxy
from tests.support.s3 import new_root, s3_server, settings_of

HARMS_EACH = 20
SECONDS = 120.0
LOST_ANSWERS = 0.03  # of all changes


def run_crowd(
    monkeypatch: pytest.MonkeyPatch, seconds: float, harms_each: int, seed: int, *, is_losing: bool
) -> None:
    """Let four hosts work, straight or through a proxy that loses answers, and print what happened."""
    seed = int(os.environ.get("CRASH_SEED", "0")) or seed
    sys.stdout.write(f"\ncrowd: seed {seed}\n")
    drawn, lost = random.Random(seed), Counter[str]()

    def loses(request: StoreRequest) -> bool:
        is_lost = request.kind in {"PUT", "POST", "DELETE"} and drawn.random() < LOST_ANSWERS
        lost[request.kind] += is_lost
        return is_lost

    with s3_server() as endpoint, store_proxy(endpoint) as proxy:
        settings = settings_of(endpoint)
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("OMNIGRAPH_WRITER_LIFETIME", str(LIFETIME_S))
        proxy.drops = loses
        reached = settings_of(proxy.endpoint) if is_losing else settings
        crowd = Crowd(new_root(endpoint), reached, seed)
        timed_run(crowd, seconds, harms_each)
    sys.stdout.write(f"crowd: answers lost: {dict(lost)}\n")
    assert lost["PUT"] if is_losing else not lost
    assert crowd.tally.kills >= harms_each
    assert crowd.tally.stops >= crowd.tally.wakes >= harms_each
    assert crowd.tally.acknowledged.total() > harms_each


@pytest.mark.slow
@pytest.mark.case("engine", 470)
@pytest.mark.parametrize("is_losing", [False, True], ids=["straight", "answers lost"])
def test_four_hosts_lose_nothing_in_a_few_seconds(
    monkeypatch: pytest.MonkeyPatch, *, is_losing: bool
) -> None:
    run_crowd(monkeypatch, 12.0, 2, seed=1, is_losing=is_losing)


@pytest.mark.crash
@pytest.mark.case("engine", 470)
@pytest.mark.parametrize("is_losing", [False, True], ids=["straight", "answers lost"])
def test_four_hosts_lose_nothing_in_two_minutes(monkeypatch: pytest.MonkeyPatch, *, is_losing: bool) -> None:
    seed = random.SystemRandom().randrange(1, 1 << 32)
    run_crowd(monkeypatch, SECONDS, HARMS_EACH, seed, is_losing=is_losing)
