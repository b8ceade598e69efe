"""The storage adapter, the probe and the lease on an S3-compatible server."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import lance
import pyarrow as pa
import pytest

from omnigraph.core.clock import now_micros
from omnigraph.core.errors import StorageError, WriterLeaseHeld
from omnigraph.storage.control.durability import Durability
from omnigraph.storage.control.lease import WRITER_LEASE, WriterLease, boot_identity
from omnigraph.storage.control.object_store import ObjectStore, StorageAdapter, open_adapter
from omnigraph.storage.control.probe import probe_store
from omnigraph.storage.control.uri import GraphRoot
from tests.support.adapter_contract import AdapterContract
from tests.support.forked import Forked

pytestmark = pytest.mark.slow

KEYS, CREATORS = 20, 8
HOLD = """
import os, sys, time
from omnigraph.core.clock import now_micros
from omnigraph.storage.control.durability import Durability
from omnigraph.storage.control.lease import WriterLease, boot_identity
from omnigraph.storage.control.object_store import open_adapter
from omnigraph.storage.control.uri import GraphRoot
adapter = open_adapter(GraphRoot.parse(sys.argv[1]), Durability.FULL)
lease = WriterLease.take(adapter, host="here", boot_id=boot_identity(), pid=os.getpid(),
                         clock=now_micros, boot_clock=time.monotonic)
print(lease.epoch, flush=True)
input()
"""


@pytest.fixture
def adapter(root: GraphRoot) -> StorageAdapter:
    return open_adapter(root, Durability.FULL)


class TestContract(AdapterContract):
    """The contract of every adapter; the fixture of this module is the store."""


def test_each_of_many_keys_has_one_creator(root: GraphRoot) -> None:
    adapters = [open_adapter(root, Durability.FULL) for _ in range(CREATORS)]
    barrier = threading.Barrier(CREATORS)

    def create(number: int) -> list[bool]:
        wins = []
        for key in range(KEYS):
            barrier.wait()
            wins.append(adapters[number].write_text_if_absent(f"claims/{key}", str(number)))
        return wins

    with ThreadPoolExecutor(CREATORS) as pool:
        results = list(pool.map(create, range(CREATORS)))

    winners_by_key = [[number for number in range(CREATORS) if results[number][key]] for key in range(KEYS)]
    assert [len(winners) for winners in winners_by_key] == [1] * KEYS
    assert [adapters[0].read_text(f"claims/{key}") for key in range(KEYS)] == [
        str(winners[0]) for winners in winners_by_key
    ]


def test_an_honest_server_passes_the_probe(root: GraphRoot, adapter: StorageAdapter) -> None:
    probe_store(adapter, root)

    with_neighbours = open_adapter(GraphRoot.parse(f"s3://{root.bucket}"), Durability.FULL)
    assert not with_neighbours.exists("some")


def test_a_store_that_ignores_conditions_is_refused(root: GraphRoot) -> None:
    class IgnoresCreateOnly(ObjectStore):
        def write_text_if_absent(self, name: str, text: str) -> bool:
            self.write_text(name, text)
            return True

    with pytest.raises(StorageError, match=root.uri) as raised:
        probe_store(IgnoresCreateOnly(root), root)

    assert raised.value.kind == "configuration"


def test_lance_reaches_the_same_place(root: GraphRoot, adapter: StorageAdapter) -> None:
    table = pa.table({"id": ["a", "b"]})

    lance.write_dataset(table, root.child("nodes/1-2"), storage_options=root.storage_options)

    opened = lance.dataset(root.child("nodes/1-2"), storage_options=root.storage_options)
    assert opened.count_rows() == 2
    assert adapter.exists("nodes/1-2/data")
    assert any(name.endswith(".manifest") for name in adapter.list_dir("nodes/1-2/_versions"))


def take(adapter: StorageAdapter, boot_clock: Callable[[], float] = lambda: 0.0) -> WriterLease:
    return WriterLease.take(
        adapter,
        host="here",
        boot_id=boot_identity(),
        pid=1,
        clock=now_micros,
        boot_clock=boot_clock,
    )


def test_the_next_writer_takes_over_from_a_killed_one(root: GraphRoot, adapter: StorageAdapter) -> None:
    with Forked(HOLD, root.uri) as first:
        assert first.read_line() == "1"
        with pytest.raises(WriterLeaseHeld, match=f"held by here \\(pid {first.pid}\\)"):
            take(adapter)
        first.kill()

    second = take(adapter)

    assert second.epoch == 2
    second.check()
    second.close()
    assert adapter.exists(WRITER_LEASE)


def test_of_racing_takers_one_is_the_writer(root: GraphRoot) -> None:
    adapters = [open_adapter(root, Durability.FULL) for _ in range(CREATORS)]
    barrier = threading.Barrier(CREATORS)

    def race(adapter: StorageAdapter) -> WriterLease | None:
        barrier.wait()
        try:
            return take(adapter)
        except WriterLeaseHeld:
            return None

    epochs = []
    for _ in range(3):
        with ThreadPoolExecutor(CREATORS) as pool:
            taken = [lease for lease in pool.map(race, adapters) if lease is not None]
        assert len(taken) == 1
        epochs.append(taken[0].epoch)
        taken[0].close()

    assert epochs == [1, 2, 3]


def test_a_renewal_is_refused_after_a_takeover(root: GraphRoot, adapter: StorageAdapter) -> None:
    ticks = count(0, 100)
    first = take(adapter, lambda: float(next(ticks)))  # every look at this clock is beyond the lease
    first.check()
    foreign = adapter.read_text(WRITER_LEASE).replace('"lease_id": "', '"lease_id": "foreign-')
    adapter.write_text(WRITER_LEASE, foreign)

    with pytest.raises(WriterLeaseHeld):
        first.check()
    first.close()

    assert adapter.read_text(WRITER_LEASE) == foreign
