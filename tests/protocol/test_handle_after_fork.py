"""A child of a fork has neither its parent's locks nor its parent's handles."""

import os
import signal
from pathlib import Path

import pytest

import omnigraph
from omnigraph.storage.control.locks import is_taken
from tests.support.books import assert_settled
from tests.support.protocol import BEFORE, WRITERS, sidecars, with_extra, write_everywhere
from tests.support.system import Script

FORK_IN_PHASE_B = """
import os, sys
import omnigraph
from omnigraph.core.errors import HandleForked
from tests.support.protocol import WRITERS, paused_at
graph = omnigraph.open(sys.argv[1])

def fork():
    if os.fork():
        os.waitpid(-1, 0)
        os._exit(1)
    for call in (graph.snapshot, graph.commits, graph.recoveries, graph.refresh, graph.ensure_indices,
                 lambda: graph.table("Person"), lambda: WRITERS["insert"].run(graph),
                 lambda: WRITERS["append"].run(graph)):
        try:
            call()
        except HandleForked:
            continue
        print("a call went through", flush=True)
    print(os.getpid(), flush=True)
    input()
    os._exit(0)

with paused_at("write.post_table_commit", "call", fork):
    WRITERS["insert"].run(graph)
"""
FORK_AT_REST = """
import os, sys
import omnigraph
from omnigraph.core.errors import HandleForked
from tests.support.protocol import WRITERS
graph = omnigraph.open(sys.argv[1])
COUNT = "query q() { match { $p: Person } return { count($p) as n } }"
before = graph.query(COUNT).rows[0]["n"]
if os.fork() == 0:
    told = []
    for call in (lambda: graph.query(COUNT), lambda: WRITERS["insert"].run(graph), graph.snapshot):
        try:
            call()
        except Exception as error:
            told.append(type(error).__name__)
    print(*told, flush=True)
    os._exit(0)
os.wait()
WRITERS["insert"].run(graph)
print(before, graph.query(COUNT).rows[0]["n"], flush=True)
"""
OPEN_IN_CHILD = """
import os, sys
import omnigraph
from tests.support.books import contents_of
graph = omnigraph.open(sys.argv[1])
if os.fork() == 0:
    os.execv(sys.executable, [sys.executable, "-c", sys.argv[2], sys.argv[1]])
os.wait()
graph.refresh()
print(len(contents_of(graph)["Person"]), flush=True)
"""
CHILD = """
import sys
import omnigraph
from tests.support.protocol import WRITERS
WRITERS["insert"].run(omnigraph.open(sys.argv[1]))
"""


@pytest.mark.case("engine", 316)
def test_a_child_keeps_no_lock_of_a_killed_parent_and_cannot_use_its_handle(root: Path) -> None:
    with Script(FORK_IN_PHASE_B, root) as script:
        child = int(script.read_line())
        (sidecar,) = sidecars(root)
        assert is_taken(sidecar.with_suffix(".lock"))

        script.kill()

        os.kill(child, 0)  # it lives on
        assert not is_taken(sidecar.with_suffix(".lock"))
        with omnigraph.open(root) as graph:
            found = assert_settled(root, BEFORE, recoveries=1)
            assert found.recoveries[0].kind == "RolledBack"
            write_everywhere(graph)
        os.kill(child, signal.SIGKILL)
    assert_settled(root, with_extra(BEFORE), recoveries=1)


@pytest.mark.case("surfaces", 225)
def test_a_parent_goes_on_with_the_handle_that_its_child_cannot_use(root: Path) -> None:
    with Script(FORK_AT_REST, root) as script:
        assert script.read_line() == "HandleForked HandleForked HandleForked"
        assert script.read_line() == "3 4"
        assert script.wait() == 0
    assert_settled(root, WRITERS["insert"].after, recoveries=0)


def test_a_program_that_a_child_becomes_opens_the_graph_itself(root: Path) -> None:
    with Script(OPEN_IN_CHILD, root, CHILD) as script:
        assert script.read_line() == "4"
        assert script.wait() == 0
    assert_settled(root, WRITERS["insert"].after, recoveries=0)
