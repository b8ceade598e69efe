"""Ctrl-C: before Phase A nothing has happened, from then on the write is carried to its end."""

import os
import signal
from pathlib import Path

import pytest

import omnigraph
from omnigraph.core.failpoint import ENVIRONMENT
from tests.support.books import assert_reopening_changes_nothing, assert_settled
from tests.support.protocol import BEFORE, WRITERS, with_extra, write_everywhere
from tests.support.system import Script

PROGRAM = """
import sys
import omnigraph
from tests.support.protocol import WRITERS, tell_and_wait, paused_at, write_everywhere
root, place = sys.argv[1:]
with omnigraph.open(root) as graph:
    try:
        with paused_at(place, "call", tell_and_wait):
            WRITERS["insert"].run(graph)
        print("finished", flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    input()
    write_everywhere(graph)
print("done", flush=True)
"""
BEFORE_PHASE_A = ("write.post_stage_pre_gate", "write.post_gate_pre_sidecar")
SECTION = (
    "write.post_sidecar_pre_commit",
    "write.post_table_commit",
    "write.post_finalize_pre_publisher",
    "publish.before_update",
    "write.post_publish_pre_sidecar_delete",
    "recovery.sidecar_delete",
    "lock.post_sidecar_delete_pre_unlink",
)


@pytest.mark.case("engine", 100)
@pytest.mark.parametrize("place", BEFORE_PHASE_A)
def test_an_interrupt_before_phase_a_leaves_nothing(place: str, root: Path) -> None:
    with Script(PROGRAM, root, place) as script:
        assert script.read_line() == "paused"
        os.kill(script.pid, signal.SIGINT)

        assert script.read_line() == "interrupted"

        assert_settled(root, BEFORE, recoveries=0)
        _write_on(script)
    assert_settled(root, with_extra(BEFORE), recoveries=0)
    assert_reopening_changes_nothing(root)


@pytest.mark.case("engine", 100)
@pytest.mark.parametrize("place", SECTION)
def test_an_interrupt_during_the_commit_section_is_delivered_after_it(place: str, root: Path) -> None:
    with Script(PROGRAM, root, place) as script:
        assert script.read_line() == "paused"
        os.kill(script.pid, signal.SIGINT)
        script.write_line()

        assert script.read_line() == "interrupted"

        assert_settled(root, WRITERS["insert"].after, recoveries=0)
        _write_on(script)
    assert_settled(root, with_extra(WRITERS["insert"].after), recoveries=0)
    assert_reopening_changes_nothing(root)


def test_an_interrupt_while_the_section_fails_leaves_the_sidecar(root: Path) -> None:
    environment = {ENVIRONMENT: "write.post_table_commit=raise"}
    with Script(PROGRAM, root, "write.post_sidecar_pre_commit", **environment) as script:
        assert script.read_line() == "paused"
        os.kill(script.pid, signal.SIGINT)
        script.write_line()
        assert script.read_line() == "interrupted"
        script.kill()

    with omnigraph.open(root) as graph:
        write_everywhere(graph)
    found = assert_settled(root, with_extra(BEFORE), recoveries=1)
    assert found.recoveries[0].kind == "RolledBack"


def _write_on(script: Script) -> None:
    script.write_line()
    assert script.read_line() == "done"
    assert script.wait() == 0
