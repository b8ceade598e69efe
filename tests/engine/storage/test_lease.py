"""The one writer process of a graph in an object store."""

import json
import os
from collections.abc import Iterator

import pytest
from obstore.store import MemoryStore

from omnigraph.core.errors import StorageError, WriterLeaseHeld
from omnigraph.core.failpoint import InjectedFault, failpoint
from omnigraph.storage.control.lease import (
    LEASE_LIFETIME,
    WRITER_LEASE,
    LeaseRecord,
    WriterLease,
    boot_identity,
)
from omnigraph.storage.control.object_store import ObjectStore
from omnigraph.storage.control.uri import GraphRoot
from tests.support.system import Script
from tests.support.times import START_MICROS, FakeTime, Pulse

ROOT = GraphRoot.parse("s3://bucket/graph")


class CountingStore(ObjectStore):
    """Counts requests, and fails or loses answers where a test asks for it."""

    def __init__(self) -> None:
        super().__init__(ROOT, MemoryStore())
        self.requests = 0
        self.failing = 0
        self.losing_answers = 0

    def read_text_versioned(self, name: str) -> tuple[str, str] | None:
        self.requests += 1
        if self.failing:
            self.failing -= 1
            raise StorageError("no answer", kind="transient")
        return super().read_text_versioned(name)

    def write_text_if_absent(self, name: str, text: str) -> bool:
        created = super().write_text_if_absent(name, text)
        if self.losing_answers:
            self.losing_answers -= 1
            return False  # what the client library makes of a repeated request
        return created

    def write_text_if_match(self, name: str, text: str, token: str) -> bool:
        self.requests += 1
        is_done = super().write_text_if_match(name, text, token)
        if self.losing_answers:
            self.losing_answers -= 1
            raise StorageError("no answer", kind="transient")
        return is_done

    def record(self) -> dict[str, object]:
        record = json.loads(self.read_text(WRITER_LEASE))
        assert isinstance(record, dict)
        return record


class Hosts:
    """Takes leases as different hosts, and closes them after the test."""

    def __init__(self, store: CountingStore) -> None:
        self.store = store
        self.pulse = Pulse()
        self.leases: list[WriterLease] = []

    def take(
        self,
        host: str,
        time: FakeTime,
        *,
        boot_id: str = "",
        pid: int = 7,
    ) -> WriterLease:
        lease = WriterLease.take(
            self.store,
            host=host,
            boot_id=boot_id or f"boot of {host}",
            pid=pid,
            clock=time.clock,
            boot_clock=time.boot_clock,
            wait=time.wait,
            rest=self.pulse.rest,
        )
        self.leases.append(lease)
        return lease


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    hosts = Hosts(CountingStore())
    yield hosts
    for lease in hosts.leases:
        lease.close()


def test_the_first_writer_takes_the_lease(hosts: Hosts) -> None:
    assert hosts.take("alpha", FakeTime(), boot_id="boot", pid=42).epoch == 1

    record = hosts.store.record()
    assert record.pop("lease_id")
    assert record == {
        "host": "alpha",
        "boot_id": "boot",
        "pid": 42,
        "epoch": 1,
        "expires_at": "2027-01-15T08:00:30+00:00",
    }


def test_a_second_writer_is_refused_at_once(hosts: Hosts) -> None:
    hosts.take("alpha", FakeTime(), pid=42)
    time = FakeTime()

    with pytest.raises(WriterLeaseHeld, match=r"held by alpha \(pid 42\)") as raised:
        hosts.take("beta", time)

    assert (raised.value.host, raised.value.pid) == ("alpha", 42)
    assert raised.value.expires_at == "2027-01-15T08:00:30+00:00"
    assert time.waited_s == 0


def test_a_second_handle_of_the_same_process_is_refused_too(hosts: Hosts) -> None:
    hosts.take("alpha", FakeTime(), pid=os.getpid())

    with pytest.raises(WriterLeaseHeld):
        hosts.take("alpha", FakeTime(), pid=os.getpid())


def test_a_closed_lease_is_free_at_once_and_epochs_never_return(hosts: Hosts) -> None:
    first = hosts.take("alpha", FakeTime())
    first.close()
    first.close()
    time = FakeTime()

    second = hosts.take("beta", time)

    assert (first.epoch, second.epoch) == (1, 2)
    assert time.waited_s == 0


def test_an_abandoned_lease_is_taken_over_after_a_lifetime_of_watching(hosts: Hosts) -> None:
    first = hosts.take("alpha", FakeTime())
    time = FakeTime()
    time.pass_by(LEASE_LIFETIME + 1)

    second = hosts.take("beta", time)

    assert (first.epoch, second.epoch) == (1, 2)
    assert LEASE_LIFETIME < time.waited_s <= LEASE_LIFETIME * 1.2
    assert hosts.store.record()["host"] == "beta"


def test_a_lease_that_is_renewed_while_watched_is_held(hosts: Hosts) -> None:
    slow_clock = FakeTime(START_MICROS - 3_600_000_000)
    first = hosts.take("alpha", slow_clock)
    time = FakeTime()

    def renew() -> None:
        slow_clock.pass_by(LEASE_LIFETIME)
        first.check()

    time.while_waiting = renew
    with pytest.raises(WriterLeaseHeld):
        hosts.take("beta", time)

    assert time.waited_s <= LEASE_LIFETIME / 10
    first.check()


def test_a_lease_from_a_clock_far_ahead_does_not_block_for_ever(hosts: Hosts) -> None:
    hosts.take("alpha", FakeTime(START_MICROS + 86_400_000_000))
    time = FakeTime()

    second = hosts.take("beta", time)

    assert second.epoch == 2
    assert time.waited_s > LEASE_LIFETIME


def test_a_lease_that_is_closed_while_watched_is_taken(hosts: Hosts) -> None:
    first = hosts.take("alpha", FakeTime())
    time = FakeTime()
    time.pass_by(LEASE_LIFETIME + 1)
    time.while_waiting = first.close

    second = hosts.take("beta", time)

    assert second.epoch == 2
    assert time.waited_s <= LEASE_LIFETIME / 10


def test_a_holder_that_died_on_this_host_is_replaced_at_once(hosts: Hosts) -> None:
    with Script("input()") as holder:
        hosts.take("here", FakeTime(), boot_id="boot", pid=holder.pid)
        with pytest.raises(WriterLeaseHeld):
            hosts.take("here", FakeTime(), boot_id="boot")
        holder.kill()
    time = FakeTime()

    second = hosts.take("here", time, boot_id="boot")

    assert second.epoch == 2
    assert time.waited_s == 0


@pytest.mark.parametrize(("host", "boot_id"), [("elsewhere", "boot"), ("here", "another boot")])
def test_a_pid_proves_nothing_about_another_machine(hosts: Hosts, host: str, boot_id: str) -> None:
    with Script("input()") as gone:
        gone.kill()
    hosts.take(host, FakeTime(), boot_id=boot_id, pid=gone.pid)

    with pytest.raises(WriterLeaseHeld):
        hosts.take("here", FakeTime(), boot_id="boot")


def test_of_two_takers_one_becomes_the_holder(hosts: Hosts) -> None:
    hosts.take("alpha", FakeTime()).close()
    rivals = ["beta"]

    def rival() -> None:
        if rivals:  # the rival comes here, too
            hosts.take(rivals.pop(), FakeTime())

    with failpoint("lease.takeover", call=rival), pytest.raises(WriterLeaseHeld, match="held by beta"):
        hosts.take("gamma", FakeTime())

    assert [lease.epoch for lease in hosts.leases] == [1, 2]
    assert hosts.store.record()["host"] == "beta"


def test_a_check_with_time_left_asks_nobody(hosts: Hosts) -> None:
    time = FakeTime()
    lease = hosts.take("alpha", time)
    time.pass_by(LEASE_LIFETIME * 2 / 3 - 1)
    before = hosts.store.requests

    lease.check()

    assert hosts.store.requests == before


def test_a_check_with_little_time_left_renews(hosts: Hosts) -> None:
    time = FakeTime()
    lease = hosts.take("alpha", time)
    time.pass_by(LEASE_LIFETIME * 2 / 3)

    lease.check()

    assert hosts.store.record()["expires_at"] == "2027-01-15T08:00:50+00:00"
    before = hosts.store.requests
    lease.check()
    assert hosts.store.requests == before


def test_a_holder_that_slept_too_long_is_told_and_never_comes_back(hosts: Hosts) -> None:
    time = FakeTime()
    sleeper = hosts.take("alpha", time)
    later = FakeTime()
    later.pass_by(LEASE_LIFETIME + 1)
    second = hosts.take("beta", later)
    time.pass_by(3 * LEASE_LIFETIME)

    for _ in range(2):
        with pytest.raises(WriterLeaseHeld, match="has lost its lease to another: open the graph") as raised:
            sleeper.check()
        assert raised.value.host == "beta"
    before = hosts.store.record()
    sleeper.close()

    assert hosts.store.record() == before
    second.check()


def test_a_lost_lease_is_told_without_a_holder_that_is_gone(hosts: Hosts) -> None:
    time = FakeTime()
    sleeper = hosts.take("alpha", time)
    later = FakeTime()
    later.pass_by(LEASE_LIFETIME + 1)
    hosts.take("beta", later).close()
    time.pass_by(3 * LEASE_LIFETIME)

    with pytest.raises(WriterLeaseHeld) as raised:
        sleeper.check()

    assert "until" not in str(raised.value)
    assert "beta" not in str(raised.value)


def test_a_holder_that_slept_while_nobody_came_goes_on(hosts: Hosts) -> None:
    time = FakeTime()
    lease = hosts.take("alpha", time)
    time.pass_by(100 * LEASE_LIFETIME)

    lease.check()

    assert hosts.store.record()["epoch"] == 1


def test_a_removed_lease_is_lost(hosts: Hosts) -> None:
    time = FakeTime()
    lease = hosts.take("alpha", time)
    hosts.store.delete(WRITER_LEASE)
    time.pass_by(LEASE_LIFETIME)

    with pytest.raises(StorageError, match="removed") as raised:
        lease.check()

    assert raised.value.kind == "precondition"


def test_a_store_that_fails_is_no_lost_lease(hosts: Hosts) -> None:
    time = FakeTime()
    lease = hosts.take("alpha", time)
    time.pass_by(LEASE_LIFETIME)
    hosts.store.failing = 1

    with pytest.raises(StorageError, match="no answer"):
        lease.check()

    lease.check()


def test_a_renewal_whose_answer_was_lost_is_still_ours(hosts: Hosts) -> None:
    time = FakeTime()
    lease = hosts.take("alpha", time)
    time.pass_by(LEASE_LIFETIME)
    hosts.store.losing_answers = 1
    with pytest.raises(StorageError, match="no answer"):
        lease.check()

    time.pass_by(1)
    lease.check()

    assert hosts.store.record()["expires_at"] == "2027-01-15T08:01:01+00:00"


def test_a_first_lease_whose_answer_was_lost_is_still_ours(hosts: Hosts) -> None:
    hosts.store.losing_answers = 1

    lease = hosts.take("alpha", FakeTime())

    assert lease.epoch == 1
    lease.check()


def test_a_fault_in_a_renewal_is_raised_by_the_check(hosts: Hosts) -> None:
    time = FakeTime()
    lease = hosts.take("alpha", time)
    time.pass_by(LEASE_LIFETIME)

    with failpoint("lease.renew", "raise"), pytest.raises(InjectedFault):
        lease.check()


def test_the_heart_beats_also_after_a_failure(hosts: Hosts) -> None:
    time = FakeTime()
    hosts.take("alpha", time)
    hosts.store.failing = 1
    time.pass_by(10)

    hosts.pulse.beat()
    assert hosts.store.failing == 0
    assert hosts.store.record()["expires_at"] == "2027-01-15T08:00:30+00:00"

    hosts.pulse.beat()
    assert hosts.store.record()["expires_at"] == "2027-01-15T08:00:40+00:00"
    assert set(hosts.pulse.rests) == {LEASE_LIFETIME / 3}


def test_a_fault_that_nobody_expects_does_not_stop_the_heart(hosts: Hosts) -> None:
    time = FakeTime()
    hosts.take("alpha", time)
    before = hosts.store.record()

    with failpoint("lease.renew", "raise:once"):
        hosts.pulse.beat()
    time.pass_by(1)
    hosts.pulse.beat()

    assert hosts.store.record() != before


def test_the_heart_stops_with_the_lease(hosts: Hosts) -> None:
    lease = hosts.take("alpha", FakeTime())
    hosts.pulse.beat()

    lease.close()

    assert not lease._heartbeat.is_alive()
    assert hosts.store.record()["expires_at"] == ""


def test_the_heart_stops_when_the_lease_is_lost(hosts: Hosts) -> None:
    lease = hosts.take("alpha", FakeTime())
    record = hosts.store.record()
    hosts.store.write_text(WRITER_LEASE, json.dumps(record | {"lease_id": "another", "epoch": 2}))

    hosts.pulse._due.release()
    lease._heartbeat.join(timeout=60)

    assert not lease._heartbeat.is_alive()
    with pytest.raises(WriterLeaseHeld):
        lease.check()


def test_a_lease_of_the_same_id_and_another_epoch_is_another_holder(hosts: Hosts) -> None:
    time = FakeTime()
    lease = hosts.take("alpha", time)
    hosts.store.write_text(WRITER_LEASE, json.dumps(hosts.store.record() | {"epoch": 2}))
    time.pass_by(LEASE_LIFETIME)

    with pytest.raises(WriterLeaseHeld):
        lease.check()


RECORD = {"lease_id": "it", "host": "h", "boot_id": "b", "pid": 1, "epoch": 1, "expires_at": ""}


@pytest.mark.parametrize(
    ("member", "value", "says"),
    [
        ("pid", 0, "pid is a whole number from 1 to 2147483647"),
        ("pid", 2**31, "pid is a whole number"),
        ("pid", True, "pid is a whole number"),
        ("epoch", -1, "epoch is a whole number from 0 to"),
        ("epoch", 2**63, "epoch is a whole number"),
        ("expires_at", "2026-01-01T00:00:00", "expires_at has no time zone"),
        ("expires_at", 0, "expires_at are texts"),
    ],
)
def test_a_lease_out_of_bounds_is_loud(member: str, value: object, says: str) -> None:
    assert LeaseRecord.from_json(json.dumps(RECORD)).is_free

    with pytest.raises(StorageError, match=f"'{WRITER_LEASE}' is not a writer lease: .*{says}") as raised:
        LeaseRecord.from_json(json.dumps(RECORD | {member: value}))

    assert raised.value.kind == "permanent"


def test_a_lease_that_is_no_object_is_told_so() -> None:
    with pytest.raises(StorageError, match="it is no JSON object"):
        LeaseRecord.from_json("[]")


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"lease_id": 1}', "not json"])
def test_something_else_in_the_place_of_the_lease_is_loud(hosts: Hosts, text: str) -> None:
    hosts.store.write_text(WRITER_LEASE, text)

    with pytest.raises(StorageError, match=WRITER_LEASE) as raised:
        hosts.take("alpha", FakeTime())

    assert raised.value.kind == "permanent"
    assert hosts.store.read_text(WRITER_LEASE) == text


def test_the_boot_identity_is_the_same_in_another_process() -> None:
    with Script("from omnigraph.storage.control.lease import boot_identity; print(boot_identity())") as other:
        assert other.read_line() == boot_identity()
