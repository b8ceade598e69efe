"""Fifty random take-overs of a graph on an object store, with a lease of one second."""

import os
import random
import sys
from contextlib import ExitStack

import pytest

from tests.protocol.crash.takeovers import Run, timed
from tests.support.hosts import Host
from tests.support.s3 import new_root, s3_server, settings_of

TAKEOVERS = 50


def take_over(monkeypatch: pytest.MonkeyPatch, count: int, seed: int) -> None:
    """Run so many random take-overs with three processes, and print what happened."""
    seed = int(os.environ.get("CRASH_SEED", "0")) or seed
    sys.stdout.write(f"\ntwo hosts: seed {seed}\n")
    with ExitStack() as ended:
        endpoint = ended.enter_context(s3_server())
        settings = settings_of(endpoint)
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        hosts = tuple(ended.enter_context(Host(settings)) for _ in range(3))
        run = Run(new_root(endpoint), hosts, seed)
        took_s = timed(run, count)
        run.close()
    sys.stdout.write(f"two hosts: {run.tally} in {took_s:.0f} s\n")
    sys.stdout.write("two hosts: no data lost, nothing half visible, no drift, no sidecar left\n")
    assert run.tally.acknowledged > count


@pytest.mark.slow
@pytest.mark.case("engine", 384)
def test_three_random_takeovers_lose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    take_over(monkeypatch, 3, seed=1)


@pytest.mark.crash
@pytest.mark.case("engine", 384)
def test_fifty_random_takeovers_lose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    take_over(monkeypatch, TAKEOVERS, seed=random.SystemRandom().randrange(1, 1 << 32))
