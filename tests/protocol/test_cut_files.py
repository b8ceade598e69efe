"""A disk that is full for a moment cuts files off, and the library reports a success.

The limit on the size of files stands in for the disk: it refuses only what a file has beyond the limit, and
the library does not report that its last write was refused.
"""

from pathlib import Path

import pytest

import omnigraph
from omnigraph.core.errors import StorageError
from omnigraph.core.failpoint import failpoint
from tests.support.books import assert_reopening_changes_nothing, assert_settled
from tests.support.forked import Forked
from tests.support.protocol import BEFORE, WRITERS, Contents, with_extra, write_everywhere

PROGRAM = """
import resource, sys
import omnigraph
from omnigraph.core.errors import OmnigraphError
from tests.support.protocol import WRITERS, paused_at
root, writer, place, durability, limit = sys.argv[1:]
_, unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)

def fill():
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), unlimited))

graph = omnigraph.open(root, durability=durability)
if not place:
    fill()
try:
    with paused_at(place, "call", fill):
        WRITERS[writer].run(graph)
    print("written", flush=True)
except OmnigraphError as error:
    print(type(error).__name__, flush=True)
"""
STAGED = ("", 300, "StorageError", BEFORE, 0)
PUBLISHED = ("write.post_finalize_pre_publisher", 4000, "RecoveryRequired", WRITERS["insert"].after, 1)


@pytest.mark.case("engine", 650)
@pytest.mark.parametrize("durability", ["full", "process"])
@pytest.mark.parametrize(
    ("place", "limit", "told", "contents", "recoveries"), [STAGED, PUBLISHED], ids=["staged", "publish"]
)
def test_a_file_that_is_cut_off_is_not_built_on(
    durability: str, place: str, limit: int, told: str, contents: Contents, recoveries: int, root: Path
) -> None:
    with Forked(PROGRAM, root, "insert", place, durability, limit) as script:
        assert script.read_line() == told
        assert script.wait() == 0

    with omnigraph.open(root) as graph:
        write_everywhere(graph)
    assert_settled(root, with_extra(contents), recoveries)
    assert_reopening_changes_nothing(root)


@pytest.mark.case("engine", 650)
@pytest.mark.parametrize("writer", ["delete", "overwrite", "ensure_indices"])
def test_whatever_a_writer_stages_is_looked_at(writer: str, root: Path) -> None:
    with Forked(PROGRAM, root, writer, "", "process", 300) as script:
        assert script.read_line() == "StorageError"
        assert script.wait() == 0

    assert_settled(root, BEFORE, recoveries=0)


@pytest.mark.case("engine", 651)
@pytest.mark.parametrize("durability", ["full", "process"])
@pytest.mark.parametrize("place", ["write.post_stage_pre_gate", "write.post_gate_pre_sidecar"])
def test_a_write_whose_staged_files_were_taken_away_has_no_effect(
    durability: str, place: str, root: Path
) -> None:
    before = {*root.glob("*/*/data/*")}

    def take_away() -> None:
        for file in {*root.glob("*/*/data/*")} - before:
            file.unlink()

    with omnigraph.open(root, durability=durability) as graph:
        with failpoint(place, call=take_away), pytest.raises(StorageError, match="is missing") as raised:
            WRITERS["insert"].run(graph)
        assert type(raised.value) is StorageError
        assert_settled(root, BEFORE, recoveries=0)

        WRITERS["insert"].run(graph)

    assert_settled(root, WRITERS["insert"].after, recoveries=0)
