"""The writers of a graph in an object store: how long one is alive, and for whom."""

import os
from collections.abc import Iterator

import pytest
from obstore.store import MemoryStore

from omnigraph.core.errors import StorageError, WriterEnded, WriterLeaseHeld
from omnigraph.core.failpoint import InjectedFault, failpoint
from omnigraph.storage.control.lease import LEASE_LIFETIME, WriterLease, boot_identity
from omnigraph.storage.control.object_store import ObjectStore
from omnigraph.storage.control.uri import GraphRoot
from omnigraph.storage.control.writers import (
    ROUNDS_PER_TIDYING,
    WRITERS_DIR,
    Writer,
    WriterRecord,
    writer_file,
)
from tests.support.system import Script
from tests.support.times import FakeTime, Pulse

ROOT = GraphRoot.parse("s3://bucket/graph")


class FlakyStore(ObjectStore):
    """Counts requests, and fails or loses answers where a test asks for it."""

    def __init__(self) -> None:
        super().__init__(ROOT, MemoryStore())
        self.requests = 0
        self.failing = 0
        self.losing_answers = 0
        self.creating = ""

    def write_text_if_absent(self, name: str, text: str) -> bool:
        is_new = self.creating != "lost" and super().write_text_if_absent(name, text)
        if self.creating:
            raise StorageError("no answer", kind="transient")
        return is_new

    def read_text_versioned(self, name: str) -> tuple[str, str] | None:
        self.requests += 1
        if self.failing:
            self.failing -= 1
            raise StorageError("no answer", kind="transient")
        return super().read_text_versioned(name)

    def write_text_if_match(self, name: str, text: str, token: str) -> bool:
        self.requests += 1
        is_done = super().write_text_if_match(name, text, token)
        if self.losing_answers:
            self.losing_answers -= 1
            raise StorageError("no answer", kind="transient")
        return is_done


class Crowd:
    """Begins writers on different hosts, and closes them after the test."""

    def __init__(self) -> None:
        self.store = FlakyStore()
        self.pulse = Pulse()
        self.writers: list[Writer] = []

    def begin(
        self,
        host: str,
        time: FakeTime,
        *,
        boot_id: str = "",
        pid: int = 7,
        lifetime_s: float = LEASE_LIFETIME,
    ) -> Writer:
        writer = Writer.begin(
            self.store,
            host=host,
            boot_id=boot_id or f"boot of {host}",
            pid=pid,
            boot_clock=time.boot_clock,
            wait=time.wait,
            rest=self.pulse.rest,
            lifetime_s=lifetime_s,
        )
        self.writers.append(writer)
        return writer

    def record(self, writer: Writer) -> WriterRecord:
        name = writer_file(writer.writer_id)
        return WriterRecord.from_json(name, self.store.read_text(name))


@pytest.fixture
def crowd() -> Iterator[Crowd]:
    crowd = Crowd()
    yield crowd
    crowd.store.failing = 0
    for writer in crowd.writers:
        writer.close()


def ended_by_silence(crowd: Crowd, observer: Writer, silent: Writer, time: FakeTime) -> bool:
    """Let a lifetime pass by on the observer's clock, and look before and after."""
    assert not observer.watch.has_ended(silent.writer_id)
    time.pass_by(crowd.record(silent).lifetime_s + 0.1)
    return observer.watch.has_ended(silent.writer_id)


@pytest.mark.case("engine", 464)
def test_any_number_of_writers_live_beside_each_other(crowd: Crowd) -> None:
    alpha, beta = crowd.begin("alpha", FakeTime()), crowd.begin("beta", FakeTime())

    alpha.check()
    beta.check()

    assert alpha.writer_id != beta.writer_id
    assert alpha.watch.others() == [beta.writer_id]
    assert not alpha.watch.has_ended(beta.writer_id)
    assert not alpha.is_alone


@pytest.mark.case("engine", 464)
def test_a_writer_that_closes_has_ended_at_once(crowd: Crowd) -> None:
    alpha, beta = crowd.begin("alpha", FakeTime()), crowd.begin("beta", FakeTime())

    beta.close()

    assert alpha.watch.has_ended(beta.writer_id)
    assert alpha.watch.others() == []
    with pytest.raises(WriterEnded):
        beta.check()


@pytest.mark.case("engine", 464)
def test_silence_for_a_lifetime_on_the_own_clock_is_the_end(crowd: Crowd) -> None:
    """However far the clocks are apart: the other one's is never looked at."""
    time, slow = FakeTime(), FakeTime(micros=1)
    alpha, beta = crowd.begin("alpha", time), crowd.begin("beta", slow, lifetime_s=5.0)
    assert not alpha.watch.has_ended(beta.writer_id)

    time.pass_by(4.9)
    assert not alpha.watch.has_ended(beta.writer_id)
    time.pass_by(0.2)
    assert alpha.watch.has_ended(beta.writer_id)

    assert crowd.record(beta).ended_by == alpha.writer_id
    slow.pass_by(5.0)
    with pytest.raises(WriterEnded, match=alpha.writer_id):
        beta.check()


@pytest.mark.case("engine", 464)
def test_a_beat_begins_the_silence_anew(crowd: Crowd) -> None:
    time, other = FakeTime(), FakeTime()
    alpha, beta = crowd.begin("alpha", time), crowd.begin("beta", other)
    assert not alpha.watch.has_ended(beta.writer_id)
    time.pass_by(LEASE_LIFETIME - 1)
    other.pass_by(LEASE_LIFETIME - 1)
    beta.check()  # little time is left: it renews

    time.pass_by(2)
    assert not alpha.watch.has_ended(beta.writer_id)
    time.pass_by(LEASE_LIFETIME - 1)
    assert not alpha.watch.has_ended(beta.writer_id)
    time.pass_by(2)

    assert alpha.watch.has_ended(beta.writer_id)


@pytest.mark.case("engine", 464)
def test_a_renewal_between_the_look_and_the_end_wins(crowd: Crowd) -> None:
    time, other = FakeTime(), FakeTime()
    alpha, beta = crowd.begin("alpha", time), crowd.begin("beta", other)
    assert not alpha.watch.has_ended(beta.writer_id)
    time.pass_by(LEASE_LIFETIME + 1)
    other.pass_by(LEASE_LIFETIME + 1)

    with failpoint("writers.before_end", call=beta.check):
        assert not alpha.watch.has_ended(beta.writer_id)

    beta.check()


@pytest.mark.case("engine", 464)
def test_a_writer_that_slept_while_nobody_came_goes_on(crowd: Crowd) -> None:
    time = FakeTime()
    alpha = crowd.begin("alpha", time)

    time.pass_by(100 * LEASE_LIFETIME)
    alpha.check()

    assert crowd.record(alpha).beat == 1


@pytest.mark.case("engine", 464)
def test_a_writer_whose_object_was_removed_has_ended_and_never_comes_back(crowd: Crowd) -> None:
    time = FakeTime()
    alpha = crowd.begin("alpha", time)
    crowd.store.delete(writer_file(alpha.writer_id))
    alpha.check()  # it does not ask while its object is young

    time.pass_by(LEASE_LIFETIME)

    for _ in range(2):
        with pytest.raises(WriterEnded):
            alpha.check()
    assert crowd.store.list_dir(WRITERS_DIR) == []


@pytest.mark.case("engine", 464)
def test_a_check_asks_nobody_while_the_object_is_young(crowd: Crowd) -> None:
    time = FakeTime()
    alpha = crowd.begin("alpha", time)
    before = crowd.store.requests

    time.pass_by(LEASE_LIFETIME * 0.6)
    alpha.check()
    assert crowd.store.requests == before

    time.pass_by(LEASE_LIFETIME * 0.1)
    alpha.check()
    assert crowd.store.requests == before + 2


@pytest.mark.case("engine", 464)
def test_a_store_that_fails_is_no_end_and_no_leave_to_write(crowd: Crowd) -> None:
    time = FakeTime()
    alpha = crowd.begin("alpha", time)
    time.pass_by(LEASE_LIFETIME * 0.7)
    crowd.store.failing = 1

    with pytest.raises(StorageError):
        alpha.check()

    alpha.check()


@pytest.mark.case("engine", 464)
def test_a_fault_in_a_renewal_is_raised_by_the_check(crowd: Crowd) -> None:
    time = FakeTime()
    alpha = crowd.begin("alpha", time)
    time.pass_by(LEASE_LIFETIME * 0.7)

    with failpoint("writers.renew", "raise"), pytest.raises(InjectedFault):
        alpha.check()

    alpha.check()


@pytest.mark.case("engine", 464)
def test_a_renewal_whose_answer_was_lost_has_landed(crowd: Crowd) -> None:
    time = FakeTime()
    alpha = crowd.begin("alpha", time)
    time.pass_by(LEASE_LIFETIME * 0.7)
    crowd.store.losing_answers = 1

    with pytest.raises(StorageError):
        alpha.check()
    assert crowd.record(alpha).beat == 1
    alpha.check()

    assert crowd.record(alpha).beat == 2


@pytest.mark.parametrize("is_there", [True, False])
def test_a_first_object_whose_answer_was_lost_is_looked_for(crowd: Crowd, *, is_there: bool) -> None:
    crowd.store.creating = "landed" if is_there else "lost"

    if is_there:
        crowd.begin("alpha", FakeTime()).check()
    else:
        with pytest.raises(StorageError, match="no answer"):
            crowd.begin("alpha", FakeTime())

    assert len(crowd.store.list_dir(WRITERS_DIR)) == is_there


@pytest.mark.case("engine", 461)
def test_a_writer_that_died_on_this_host_has_ended_at_once(crowd: Crowd) -> None:
    with Script("input()") as script:
        here = boot_identity()
        alpha = crowd.begin("here", FakeTime(), boot_id=here, pid=os.getpid())
        beta = crowd.begin("here", FakeTime(), boot_id=here, pid=script.pid)
        gamma = crowd.begin("elsewhere", FakeTime(), boot_id=here, pid=script.pid)
        assert not alpha.watch.has_ended(beta.writer_id)
        script.kill()

    assert alpha.watch.has_ended(beta.writer_id)
    assert not alpha.watch.has_ended(gamma.writer_id), "a pid says nothing of another host"


def test_whoever_waits_for_a_sign_gets_it_from_the_living(crowd: Crowd) -> None:
    time, other = FakeTime(), FakeTime()
    alpha, beta = crowd.begin("alpha", time), crowd.begin("beta", other)

    def beat() -> None:
        other.pass_by(LEASE_LIFETIME)
        beta.check()

    time.while_waiting = beat

    assert not alpha.watch.await_sign(beta.writer_id, lambda: False)
    assert time.waited_s < LEASE_LIFETIME / 10


def test_whoever_waits_for_a_sign_learns_of_the_end(crowd: Crowd) -> None:
    time = FakeTime()
    alpha, beta = crowd.begin("alpha", time), crowd.begin("beta", FakeTime())

    assert alpha.watch.await_sign(beta.writer_id, lambda: False)

    assert LEASE_LIFETIME < time.waited_s < 1.2 * LEASE_LIFETIME


def test_whoever_waits_for_a_sign_stops_when_it_is_over(crowd: Crowd) -> None:
    time = FakeTime()
    alpha, beta = crowd.begin("alpha", time), crowd.begin("beta", FakeTime())

    assert not alpha.watch.await_sign(beta.writer_id, lambda: time.waited_s > 3)

    assert time.waited_s < 6


def test_the_heart_beats_pays_debts_and_goes_on_after_a_failure(crowd: Crowd) -> None:
    paid: list[int] = []
    alpha = crowd.begin("alpha", FakeTime())

    def pay() -> None:
        paid.append(1)
        if len(paid) == 1:
            raise StorageError("no answer", kind="transient")

    alpha.owe(pay)
    crowd.store.failing = 1

    for _ in range(4):
        crowd.pulse.beat()

    assert crowd.record(alpha).beat == 3
    assert paid == [1, 1], "again after a failure, and no more when it is done"
    assert set(crowd.pulse.rests) == {LEASE_LIFETIME / 3}


def test_the_heart_removes_what_dead_writers_left(crowd: Crowd) -> None:
    time = FakeTime()
    alpha = crowd.begin("alpha", time)
    dead = [WriterRecord(name, "elsewhere", "boot", 1, LEASE_LIFETIME) for name in ("dead", "ended")]
    crowd.store.write_text(dead[0].file, dead[0].to_json())
    crowd.store.write_text(dead[1].file, dead[1].to_json().replace('"ended_by": null', '"ended_by": "x"'))

    for _ in range(ROUNDS_PER_TIDYING):
        crowd.pulse.beat()
    assert alpha.watch.others() == ["dead"]
    time.pass_by(10 * LEASE_LIFETIME)
    for _ in range(ROUNDS_PER_TIDYING):
        crowd.pulse.beat()

    assert alpha.watch.others() == []
    alpha.check()


def test_what_cannot_be_read_stops_neither_the_tidying_nor_the_heart(crowd: Crowd) -> None:
    alpha = crowd.begin("alpha", FakeTime())
    ended = WriterRecord("ended", "elsewhere", "boot", 1, LEASE_LIFETIME, ended_by="x")
    for name in ("00", "zz"):  # wherever a listing has them
        crowd.store.write_text(writer_file(name), "[]")
    crowd.store.write_text(ended.file, ended.to_json())

    for _ in range(ROUNDS_PER_TIDYING + 1):
        crowd.pulse.beat()

    assert alpha.watch.others() == ["00", "zz"]
    assert crowd.record(alpha).beat == ROUNDS_PER_TIDYING + 1


class Panic(BaseException):
    """What a library raises that was written in another language."""


@pytest.mark.parametrize("fault", [RuntimeError, Panic])
def test_a_fault_that_nobody_expects_does_not_stop_the_heart(
    crowd: Crowd, fault: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    paid: list[int] = []
    alpha = crowd.begin("alpha", FakeTime())

    def fail() -> None:
        raise fault("out of the blue")

    alpha.owe(fail)
    alpha.owe(lambda: paid.append(1))

    for _ in range(3):
        crowd.pulse.beat()

    assert crowd.record(alpha).beat == 3
    assert paid == [1], "what is owed besides is paid"
    assert "out of the blue" in caplog.text


def test_a_fault_in_a_renewal_does_not_stop_the_heart(crowd: Crowd) -> None:
    alpha = crowd.begin("alpha", FakeTime())

    with failpoint("writers.renew", "raise:once"):
        crowd.pulse.beat()
    crowd.pulse.beat()

    assert crowd.record(alpha).beat == 1


@pytest.mark.case("engine", 460)
def test_an_only_writer_that_lost_its_lease_keeps_nobody_out(crowd: Crowd) -> None:
    time = FakeTime()
    alpha = crowd.begin("alpha", time)
    alpha.lease = WriterLease.take(
        crowd.store,
        host="alpha",
        boot_id="",
        pid=1,
        clock=time.clock,
        boot_clock=time.boot_clock,
        rest=lambda closed, _seconds: closed.wait(),
    )
    assert alpha.is_alone
    time.pass_by(10 * LEASE_LIFETIME)
    other = FakeTime(time.micros)
    WriterLease.take(
        crowd.store,
        host="beta",
        boot_id="",
        pid=1,
        clock=other.clock,
        boot_clock=other.boot_clock,
        wait=other.wait,
        rest=lambda closed, _seconds: closed.wait(),
    )

    with pytest.raises(WriterLeaseHeld):
        alpha.check()
    crowd.pulse.end()

    assert crowd.store.list_dir(WRITERS_DIR) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"writer_id": "other", "host": "h", "boot_id": "b", "pid": 1, "lifetime_s": 1}',
        '{"writer_id": "it", "host": 1, "boot_id": "b", "pid": 1, "lifetime_s": 1}',
        '{"writer_id": "it", "host": "h", "boot_id": "b", "pid": "1", "lifetime_s": 1}',
        '{"writer_id": "it", "host": "h", "boot_id": "b", "pid": 1, "lifetime_s": 0}',
        '{"writer_id": "it", "host": "h", "boot_id": "b", "pid": 1, "lifetime_s": "1"}',
        '{"writer_id": "it", "host": "h", "boot_id": "b", "pid": 1, "lifetime_s": 86401}',
        '{"writer_id": "it", "host": "h", "boot_id": "b", "pid": 1, "lifetime_s": Infinity}',
        '{"writer_id": "it", "host": "h", "boot_id": "b", "pid": 1, "lifetime_s": NaN}',
        '{"writer_id": "it", "host": "h", "boot_id": "b", "pid": 0, "lifetime_s": 1}',
        '{"writer_id": "it", "host": "h", "boot_id": "b", "pid": 2147483648, "lifetime_s": 1}',
        '{"writer_id": "it", "host": "h", "boot_id": "b", "pid": 1, "lifetime_s": 1, "beat": -1}',
        f'{{"writer_id": "it", "host": "h", "boot_id": "b", "pid": 1, "lifetime_s": 1, "beat": {2**63}}}',
    ],
)
def test_something_else_in_the_place_of_a_writer_is_loud(crowd: Crowd, text: str) -> None:
    alpha = crowd.begin("alpha", FakeTime())
    crowd.store.write_text(writer_file("it"), text)

    with pytest.raises(StorageError, match=r"'__writers/it\.json' is not that of a writer") as caught:
        alpha.watch.has_ended("it")

    assert caught.value.kind == "permanent"
