"""A disk that takes nothing more: a typed error, nothing lost, and the next write works.

The limit on the size of files stands in for the disk: from one moment on every byte written to a file is
refused, to the library as to us, until the limit is lifted.
"""

from pathlib import Path

import pytest

import omnigraph
from tests.support.books import assert_reopening_changes_nothing, assert_settled
from tests.support.forked import Forked
from tests.support.protocol import BEFORE, WRITERS, Contents, with_extra, write_everywhere

PROGRAM = """
import resource, sys
import omnigraph
from omnigraph.core.errors import OmnigraphError
from tests.support.protocol import WRITERS, paused_at, write_everywhere
root, writer, place = sys.argv[1:]
_, unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)

def fill():
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, unlimited))

graph = omnigraph.open(root)
if not place:
    fill()
try:
    with paused_at(place, "call", fill):
        WRITERS[writer].run(graph)
    print("written", flush=True)
except OmnigraphError as error:
    print(type(error).__name__, flush=True)
input()
resource.setrlimit(resource.RLIMIT_FSIZE, (unlimited, unlimited))
write_everywhere(graph)
print("done", flush=True)
"""
AFTER = WRITERS["insert"].after
STAGES = {
    "while staging": ("", "StorageError", BEFORE, 0),
    "while the sidecar is written": ("write.post_gate_pre_sidecar", "StorageError", BEFORE, 0),
    "at the first commit": ("write.post_sidecar_pre_commit", "RecoveryRequired", BEFORE, 1),
    "at the second commit": ("write.post_table_commit", "RecoveryRequired", BEFORE, 1),
    "at the publish": ("write.post_finalize_pre_publisher", "RecoveryRequired", AFTER, 1),
    "after the publish": ("write.post_publish_pre_sidecar_delete", "written", AFTER, 0),
}


@pytest.mark.parametrize(("place", "told", "contents", "recoveries"), STAGES.values(), ids=STAGES)
def test_a_full_disk_fails_the_write_and_nothing_else(
    place: str, told: str, contents: Contents, recoveries: int, root: Path
) -> None:
    with Forked(PROGRAM, root, "insert", place) as script:
        assert script.read_line() == told
        script.write_line()
        assert script.read_line() == "done"
        assert script.wait() == 0

    assert_settled(root, with_extra(contents), recoveries)
    assert_reopening_changes_nothing(root)


@pytest.mark.parametrize("writer", ["update", "delete", "merge", "overwrite", "ensure_indices"])
def test_a_disk_that_fills_up_while_any_writer_stages_loses_nothing(writer: str, root: Path) -> None:
    with Forked(PROGRAM, root, writer, "") as script:
        assert script.read_line() == "StorageError"
        assert_settled(root, BEFORE, recoveries=0)

    with omnigraph.open(root) as graph:
        WRITERS[writer].run(graph)
        write_everywhere(graph)
    assert_settled(root, with_extra(WRITERS[writer].after), recoveries=0)


def test_a_disk_that_fills_up_during_recovery_leaves_it_to_the_next_open(root: Path) -> None:
    program = """
import resource, sys
import omnigraph
from omnigraph.core.errors import OmnigraphError
from tests.support.protocol import give_up, paused_at
from pathlib import Path
root = Path(sys.argv[1])
give_up(root, "insert", "P2")
_, unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
fill = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, unlimited))
with paused_at("recovery.post_table_undo_pre_publish", "call", fill):
    try:
        omnigraph.open(root)
    except OmnigraphError as error:
        print(type(error).__name__, flush=True)
"""
    with Forked(program, root) as script:
        assert script.read_line() == "StorageError"
        assert script.wait() == 0

    with omnigraph.open(root) as graph:
        write_everywhere(graph)
    found = assert_settled(root, with_extra(BEFORE), recoveries=1)
    assert found.recoveries[0].kind == "RolledBack"
