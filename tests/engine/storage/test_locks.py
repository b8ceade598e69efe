"""Locks between processes: real files, real processes, real signals."""

import fcntl
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from omnigraph.core.errors import StorageError
from omnigraph.core.failpoint import EXIT_STATUS, InjectedFault, failpoint
from omnigraph.storage.control import locks
from omnigraph.storage.control.locks import (
    FileLock,
    HeldLock,
    PublishLock,
    WriterLock,
    is_taken,
    probe_flock,
    try_lock,
    try_shared,
    try_sole,
    wait_for_lock,
    wait_until_free,
)
from tests.support.system import Script, unprivileged

HOLD = """
import sys
from pathlib import Path
from omnigraph.storage.control.locks import WriterLock
lock = WriterLock.acquire(Path(sys.argv[1]), lambda: "held")
print("held", flush=True)
input()
lock.release(remove=True)
print("released", flush=True)
"""
FORK = """
import os, signal, sys
from pathlib import Path
from omnigraph.storage.control.locks import WriterLock, is_taken
lock = WriterLock.acquire(Path(sys.argv[1]), lambda: "held")
if os.fork():
    signal.pause()
lock.release(remove=True)
print(lock.is_held, lock.path.exists(), is_taken(lock.path), flush=True)
input()
print("the child lives", flush=True)
"""


def ids() -> Callable[[], str]:
    numbers = count(1)
    return lambda: f"op{next(numbers)}"


class FakeTime:
    """A clock that goes on only while somebody pauses, and can do something meanwhile."""

    def __init__(self, during_pause: Callable[[int], None] = lambda number: None) -> None:
        self.now = 0.0
        self.pauses: list[float] = []
        self._during_pause = during_pause

    def clock(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.now += seconds
        self.pauses.append(seconds)
        self._during_pause(len(self.pauses))


def open_descriptors() -> int:
    return sum(1 for _ in Path("/dev/fd").iterdir())


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_held_lock_keeps_healers_away(tmp_path: Path) -> None:
    lock = WriterLock.acquire(tmp_path / "__recovery", ids())

    assert (lock.operation_id, lock.path) == ("op1", tmp_path / "__recovery" / "op1.lock")
    assert is_taken(lock.path)
    assert try_lock(lock.path) is None
    lock.release(remove=False)
    assert not is_taken(lock.path)
    assert names(lock.path.parent) == ["op1.lock"]


def test_a_finished_writer_takes_its_lock_file_along(tmp_path: Path) -> None:
    lock = WriterLock.acquire(tmp_path, ids())

    lock.release(remove=True)
    lock.release(remove=True)

    assert names(tmp_path) == []
    assert not lock.is_held


def test_a_healer_holds_a_dead_writers_lock(tmp_path: Path) -> None:
    dead = WriterLock.acquire(tmp_path, ids())
    dead.release(remove=False)

    healer = try_lock(dead.path)

    assert healer is not None
    assert try_lock(dead.path) is None
    healer.release(remove=True)
    assert names(tmp_path) == []


def test_a_healer_makes_the_lock_file_that_a_copied_graph_lacks(tmp_path: Path) -> None:
    healer = try_lock(tmp_path / "op1.lock")

    assert healer is not None
    assert is_taken(tmp_path / "op1.lock")
    healer.release()
    assert names(tmp_path) == ["op1.lock"]


def test_looking_creates_nothing(tmp_path: Path) -> None:
    assert not is_taken(tmp_path / "op1.lock")
    assert not is_taken(tmp_path / "no folder" / "op1.lock")
    assert names(tmp_path) == []


def test_waiting_until_a_lock_is_free_takes_and_makes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "op1.lock"
    time = FakeTime()
    assert wait_until_free(path, 5.0, clock=time.clock, pause=time.pause)
    assert names(tmp_path) == []
    held = try_lock(path)
    assert held is not None

    assert not wait_until_free(path, 5.0, clock=time.clock, pause=time.pause)
    assert time.now == pytest.approx(5.0)

    def finish(seconds: float) -> None:
        time.pause(seconds)
        held.release(remove=True)

    assert wait_until_free(path, 5.0, clock=time.clock, pause=finish)
    assert names(tmp_path) == []


def test_two_may_look_at_once(tmp_path: Path) -> None:
    with (tmp_path / "op1.lock").open("w") as another_look:
        fcntl.flock(another_look, fcntl.LOCK_SH)

        assert not is_taken(tmp_path / "op1.lock")


def test_an_unreadable_lock_is_neither_free_nor_taken(tmp_path: Path) -> None:
    (tmp_path / "op1.lock").touch(mode=0)

    with unprivileged():
        with pytest.raises(StorageError, match=r"op1\.lock"):
            is_taken(tmp_path / "op1.lock")
        with pytest.raises(StorageError, match=r"op1\.lock"):
            try_lock(tmp_path / "op1.lock")


def test_a_writer_whose_file_was_swept_begins_again_under_a_new_id(tmp_path: Path) -> None:
    def sweep() -> None:
        for path in tmp_path.iterdir():
            litter = try_lock(path)
            if litter is not None and path.name == "op1.lock":
                litter.release(remove=True)
            elif litter is not None:
                litter.release()

    with failpoint("lock.post_create_pre_flock", call=sweep):
        lock = WriterLock.acquire(tmp_path, ids())

    assert lock.operation_id == "op2"
    assert names(tmp_path) == ["op2.lock"]
    assert try_lock(lock.path) is None
    lock.release()


def test_a_writer_whose_file_a_sweep_still_holds_begins_again(tmp_path: Path) -> None:
    sweeps: list[HeldLock | None] = []

    def sweep() -> None:
        if not sweeps:
            sweeps.append(try_lock(tmp_path / "op1.lock"))

    with failpoint("lock.post_create_pre_flock", call=sweep):
        lock = WriterLock.acquire(tmp_path, ids())

    assert lock.operation_id == "op2"
    assert sweeps[0] is not None
    sweeps[0].release(remove=True)
    assert names(tmp_path) == ["op2.lock"]
    lock.release()


def test_a_writer_that_is_always_swept_gives_up(tmp_path: Path) -> None:
    def sweep() -> None:
        for path in tmp_path.iterdir():
            path.unlink()

    with failpoint("lock.post_create_pre_flock", call=sweep), pytest.raises(StorageError) as raised:
        WriterLock.acquire(tmp_path, ids())

    assert raised.value.kind == "transient"


@pytest.mark.parametrize("name", ["lock.post_create_pre_flock", "lock.post_flock_pre_sidecar"])
def test_a_fault_while_locking_leaves_no_file(tmp_path: Path, name: str) -> None:
    with failpoint(name, "raise"), pytest.raises(InjectedFault):
        WriterLock.acquire(tmp_path, ids())

    assert names(tmp_path) == []


def test_an_id_in_use_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "op1.lock").touch()

    with pytest.raises(StorageError, match=r"op1\.lock"):
        WriterLock.acquire(tmp_path, ids())


def test_a_fault_before_the_file_is_removed_frees_the_lock(tmp_path: Path) -> None:
    lock = WriterLock.acquire(tmp_path, ids())

    with failpoint("lock.post_sidecar_delete_pre_unlink", "raise"), pytest.raises(InjectedFault):
        lock.release(remove=True)

    assert names(tmp_path) == ["op1.lock"]
    assert not is_taken(lock.path)


@pytest.mark.parametrize(
    "name",
    ["lock.post_create_pre_flock", "lock.post_flock_pre_sidecar", "lock.post_sidecar_delete_pre_unlink"],
)
def test_a_crash_at_a_lock_point_leaves_a_free_lock_file_at_most(tmp_path: Path, name: str) -> None:
    with Script(HOLD, tmp_path, OMNIGRAPH_FAILPOINTS=f"{name}=exit") as writer:
        if name == "lock.post_sidecar_delete_pre_unlink":
            assert writer.read_line() == "held"
            writer.write_line()
        assert writer.wait() == EXIT_STATUS

    litter = try_lock(tmp_path / "held.lock")
    assert litter is not None
    litter.release(remove=True)
    assert names(tmp_path) == []


def test_a_killed_process_frees_its_lock(tmp_path: Path) -> None:
    with Script(HOLD, tmp_path) as writer:
        assert writer.read_line() == "held"
        assert try_lock(tmp_path / "held.lock") is None
        writer.kill()

        healer = try_lock(tmp_path / "held.lock")

    assert healer is not None
    healer.release()


def test_a_stopped_process_is_alive(tmp_path: Path) -> None:
    with Script(HOLD, tmp_path) as writer:
        assert writer.read_line() == "held"
        writer.stop()

        assert is_taken(tmp_path / "held.lock")


def test_a_forked_child_keeps_no_lock_of_its_parent(tmp_path: Path) -> None:
    with Script(FORK, tmp_path) as parent:
        seen_by_child = parent.read_line()
        taken_while_parent_lives = is_taken(tmp_path / "held.lock")
        parent.kill()
        healer = try_lock(tmp_path / "held.lock")
        parent.write_line()
        last_words = parent.read_line()

    assert seen_by_child == "False True True"  # it holds nothing, removed nothing, and freed nothing
    assert taken_while_parent_lives
    assert healer is not None
    healer.release()
    assert last_words == "the child lives"


def test_a_program_that_a_writer_starts_inherits_no_lock(tmp_path: Path) -> None:
    lock = WriterLock.acquire(tmp_path, ids())
    with subprocess.Popen(
        [sys.executable, "-c", "print(flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        close_fds=False,
    ) as program:
        assert program.stdout is not None
        program.stdout.readline()
        lock.release(remove=False)

        taken = is_taken(lock.path)
        program.communicate(b"\n")

    assert not taken


def test_a_publish_takes_its_turn(tmp_path: Path) -> None:
    path = tmp_path / "__locks" / "publish-main.lock"

    with PublishLock(path) as obtained:
        assert obtained
        assert is_taken(path)

    assert not is_taken(path)
    assert path.exists()


def test_a_publish_goes_on_alone_after_its_time(tmp_path: Path) -> None:
    path = tmp_path / "publish-main.lock"
    other = try_lock(path)
    assert other is not None
    time = FakeTime()

    with PublishLock(path, 10.0, clock=time.clock, pause=time.pause) as obtained:
        assert not obtained

    assert time.now == pytest.approx(10.0)
    assert time.pauses[:-1] == sorted(time.pauses[:-1])
    assert max(time.pauses) == locks.PAUSE_MAX_S
    assert time.pauses[0] == locks.PAUSE_FIRST_S
    assert is_taken(path)
    other.release()


def test_a_publish_takes_the_lock_as_soon_as_it_is_free(tmp_path: Path) -> None:
    path = tmp_path / "publish-main.lock"
    other = try_lock(path)
    assert other is not None
    time = FakeTime(lambda number: other.release() if number == 3 else None)

    with PublishLock(path, 10.0, clock=time.clock, pause=time.pause) as obtained:
        assert obtained

    assert len(time.pauses) == 3


def test_a_publish_waits_on_while_the_lock_goes_from_hand_to_hand(tmp_path: Path) -> None:
    path = tmp_path / "publish-main.lock"
    with PublishLock(path):
        pass
    other = try_lock(path)
    assert other is not None
    handed_over = iter([1_000, 2_000])  # in the first ten seconds, and in the second

    def go_on(_number: int) -> None:
        if time.now > 25:
            other.release()
        elif int(time.now) in {5, 15} and time.now - int(time.now) < locks.PAUSE_MAX_S:
            os.utime(path, ns=(0, next(handed_over, 3_000)))

    time = FakeTime(go_on)

    with PublishLock(path, 10.0, clock=time.clock, pause=time.pause) as obtained:
        assert obtained

    assert time.now == pytest.approx(25, abs=0.1)
    assert path.stat().st_mtime_ns > 3_000, "whoever takes it says so"


def test_a_publish_that_waits_behind_a_deleted_branch_locks_the_new_file(tmp_path: Path) -> None:
    path = tmp_path / "publish-main.lock"
    other = try_lock(path)
    assert other is not None
    time = FakeTime(lambda number: other.release(remove=True))

    with PublishLock(path, 10.0, clock=time.clock, pause=time.pause) as obtained:
        assert obtained
        assert try_lock(path) is None


def test_a_fault_before_the_publish_lock_takes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "publish-main.lock"

    with failpoint("publish.before_lock", "raise"), pytest.raises(InjectedFault), PublishLock(path):
        pass

    assert names(tmp_path) == []


def test_a_lock_file_that_everybody_removes_still_lets_one_in_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    inside = threading.Lock()
    overlaps = []

    def work() -> None:
        for _ in range(100):
            lock = wait_for_lock(path, 60.0)
            assert lock is not None
            if inside.acquire(blocking=False):
                path.stat()  # a system call, during which other threads run
                inside.release()
            else:
                overlaps.append(1)
            lock.release(remove=True)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert overlaps == []


def test_descriptors_are_not_leaked(tmp_path: Path) -> None:
    make_id = ids()
    before = open_descriptors()

    for _ in range(20):
        lock = WriterLock.acquire(tmp_path, make_id)
        assert try_lock(lock.path) is None
        assert is_taken(lock.path)
        lock.release(remove=True)
        with PublishLock(tmp_path / "publish.lock"):
            pass

    assert open_descriptors() == before


def test_the_probe_of_flock_leaves_nothing(tmp_path: Path) -> None:
    probe_flock(tmp_path)

    assert names(tmp_path) == []


def test_the_probe_of_flock_says_when_it_cannot_write(tmp_path: Path) -> None:
    with pytest.raises(StorageError):
        probe_flock(tmp_path / "missing")


def test_the_probe_of_flock_refuses_a_file_system_that_ignores_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fcntl, "flock", lambda _descriptor, _how: None)

    with pytest.raises(StorageError, match="does not honour flock") as caught:
        probe_flock(tmp_path)

    assert caught.value.kind == "configuration"
    assert names(tmp_path) == []


def test_a_lock_is_shared_by_those_who_only_read_and_had_alone_by_who_moves(tmp_path: Path) -> None:
    path = tmp_path / "__locks" / "table-main-0.lock"
    first, second = try_shared(path), try_shared(path)

    assert first is not None
    assert second is not None
    assert try_sole(path) is None
    first.release()
    assert try_sole(path) is None
    second.release()
    alone = try_sole(path)
    assert alone is not None
    assert try_shared(path) is None
    alone.release()


# No interrupt comes there: in a block under the guard of forks, or while a lock is let go of.
UNDISTURBED = frozenset(
    {"__init__", "close", "release", "_release", "is_held", "is_open", "__exit__", "__del__"}
)


def interrupted_at(line: int, files: frozenset[str], call: Callable[[], object]) -> bool:
    """Run a call and interrupt it at the n-th line that it takes in some files; false if it has fewer."""
    left = line

    def trace(frame: FrameType, event: str, _argument: object) -> Callable[..., Any] | None:
        nonlocal left
        if frame.f_code.co_filename not in files or frame.f_code.co_name in UNDISTURBED:
            return None
        if event == "line":
            left -= 1
            if left < 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt as interrupt:
        sys.last_value = interrupt  # its frames live on, as in an interactive session
        return True
    finally:
        sys.settrace(None)
    return False


@pytest.mark.parametrize("way", ["publish", "sole", "shared", "waited for", "dead writer's"])
def test_an_interrupt_at_any_line_leaves_no_lock(tmp_path: Path, way: str) -> None:
    path = tmp_path / "a.lock"

    def publish() -> None:
        with PublishLock(path):
            pass

    def release(take: Callable[[Path], FileLock | None]) -> None:
        held: list[FileLock | None] = []
        try:
            held.append(take(path))
        finally:
            for lock in held:
                assert lock is not None
                lock.release()

    ways: dict[str, Callable[[], object]] = {
        "publish": publish,
        "sole": lambda: release(try_sole),
        "shared": lambda: release(try_shared),
        "waited for": lambda: release(lambda path: wait_for_lock(path, 1)),
        "dead writer's": lambda: release(try_lock),
    }
    files = frozenset({locks.__file__})
    line = 0
    while interrupted_at(line, files, ways[way]):
        alone = try_sole(path)
        assert alone is not None, f"interrupted at line {line}, the lock is still held"
        alone.release()
        line += 1
    assert line > 10
    with ThreadPoolExecutor(1) as pool:  # another thread can lock, too: no guard is left held
        assert pool.submit(is_taken, path).result(10) is False
