"""Signals that wait: until the section has ended, and every block around it that may remove things."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn

import pytest

import omnigraph
from omnigraph.core.failpoint import failpoint
from omnigraph.core.shield import delivering_behind, remark, shielded
from omnigraph.operations.init import INIT_CLAIM
from tests.support.books import assert_settled, contents_of
from tests.support.protocol import BEFORE, WRITERS, with_extra, write_everywhere
from tests.support.system import Script


def _send(number: int = signal.SIGINT) -> None:
    os.kill(os.getpid(), number)


def _leave(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(number)


@contextmanager
def _handled(number: int, handler: Callable[[int, FrameType | None], object] | int) -> Iterator[None]:
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


def test_a_signal_waits_for_the_end_of_the_section() -> None:
    passed: list[str] = []
    before = signal.getsignal(signal.SIGINT)

    def section() -> None:
        with shielded():
            _send()
            passed.append("went on")

    with pytest.raises(KeyboardInterrupt):
        section()

    assert passed == ["went on"]
    assert signal.getsignal(signal.SIGINT) is before


def test_a_signal_is_delivered_behind_the_outermost_block_that_may_remove_things() -> None:
    """An error that is raised inside of such a block makes it clean up, and this one is none."""
    cleaned: list[str] = []

    def attempt() -> None:
        with delivering_behind():
            try:
                with delivering_behind(), shielded():
                    _send()
            except BaseException:
                cleaned.append("removed something")
                raise

    with pytest.raises(KeyboardInterrupt):
        attempt()

    assert cleaned == []


def test_a_signal_in_a_block_without_a_section_is_delivered_at_once() -> None:
    passed: list[str] = []

    def work() -> None:
        with delivering_behind():
            _send()
            for _ in range(1_000):  # the interpreter looks for signals between two steps
                pass
            passed.append("went on")

    with pytest.raises(KeyboardInterrupt):
        work()

    assert passed == []


def test_what_a_handler_raises_carries_the_remarks_of_the_section() -> None:
    def section() -> None:
        with shielded():
            _send(signal.SIGTERM)
            remark("it had landed")

    with _handled(signal.SIGTERM, _leave), pytest.raises(SystemExit) as caught:
        section()

    assert caught.value.__notes__ == ["it had landed"]


def test_each_of_several_signals_is_delivered_once() -> None:
    seen: list[int] = []

    def section() -> None:
        with shielded():
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
                _send(number)

    with (
        _handled(signal.SIGTERM, lambda number, _frame: seen.append(number)),
        pytest.raises(KeyboardInterrupt),
    ):
        section()

    assert seen == [signal.SIGTERM]


def test_an_ignored_signal_stays_ignored() -> None:
    with _handled(signal.SIGHUP, signal.SIG_IGN):
        with shielded():
            _send(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


PROGRAM = """
import signal, sys
import omnigraph
from tests.support.protocol import WRITERS, paused_at, tell_and_wait
root, number = sys.argv[1:]
signal.signal(int(number), signal.SIG_DFL)
with omnigraph.open(root) as graph, paused_at("write.post_table_commit", "call", tell_and_wait):
    WRITERS["insert"].run(graph)
    print("went on", flush=True)
"""


@pytest.mark.case("engine", 364)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_default_action_is_taken_when_the_section_has_ended(number: signal.Signals, root: Path) -> None:
    with Script(PROGRAM, root, str(int(number))) as script:
        assert script.read_line() == "paused"
        os.kill(script.pid, number)
        script.write_line()

        assert script.wait() == -number
        assert script.read_line() == "", "the program went on as if nothing had come"

    after = WRITERS["insert"].after
    assert_settled(root, after, recoveries=0)
    with omnigraph.open(root) as graph:
        write_everywhere(graph)
        assert contents_of(graph) == with_extra(after) != with_extra(BEFORE)


def test_an_interrupt_during_init_leaves_a_graph_and_no_claim(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), failpoint("init.after_schema_contract", call=_send):
        omnigraph.init(tmp_path / "graph", "node Person { name: String @key }")

    assert not (tmp_path / "graph" / INIT_CLAIM).exists()
    with omnigraph.open(tmp_path / "graph") as graph:
        graph.mutate('query add() { insert Person { name: "ann" } }')
        assert graph.table("Person").num_rows == 1


FORKER = """
import os, signal, sys, threading
from omnigraph.core.shield import delivering_behind, shielded
number, where = int(sys.argv[1]), sys.argv[2]
signal.signal(number, signal.SIG_DFL)

def fork():
    pid = os.fork()
    if pid == 0:
        signal.raise_signal(number)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)

with delivering_behind(), shielded():
    if where == "main":
        fork()
    else:
        thread = threading.Thread(target=fork)
        thread.start()
        thread.join()
"""


@pytest.mark.case("engine", 429)
@pytest.mark.parametrize("where", ["main", "thread"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_child_forked_in_a_section_handles_signals_as_before(number: signal.Signals, where: str) -> None:
    with Script(FORKER, int(number), where) as script:
        assert script.read_line() == str(-number)
        assert script.wait() == 0, "nothing was sent to the parent"


CHILD = """
import os, signal
from omnigraph.core.shield import shielded

seen = []
for number in (signal.SIGHUP, signal.SIGTERM):
    signal.signal(number, lambda number, _frame: seen.append(number))
with shielded():
    os.kill(os.getpid(), signal.SIGHUP)
    pid = os.fork()
    if pid == 0:  # in the section of its parent, which is none of its own
        with shielded():
            signal.raise_signal(signal.SIGTERM)
            waited = list(seen)
        print(waited, seen, flush=True)
        os._exit(0)
os.waitpid(pid, 0)
print(seen, flush=True)
"""


@pytest.mark.case("engine", 429)
def test_a_child_has_sections_of_its_own() -> None:
    """What its parent held back is not delivered to it; what comes to it in its section waits for the end."""
    with Script(CHILD) as script:
        assert script.read_line() == f"[] [{signal.SIGTERM.value}]"
        assert script.read_line() == f"[{signal.SIGHUP.value}]"
