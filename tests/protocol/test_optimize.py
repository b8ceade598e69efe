"""Optimize beside writers of other processes, and ended inside the work on one table."""

from pathlib import Path

import pytest

import omnigraph
from omnigraph.core.errors import ConflictError
from omnigraph.core.failpoint import ENVIRONMENT, EXIT_STATUS, failpoint
from omnigraph.history.commits import MAINTENANCE_ACTOR
from tests.protocol.conftest import NewRoot
from tests.support.books import assert_settled, books, contents_of
from tests.support.forked import Forked
from tests.support.protocol import (
    BEFORE,
    TABLE_KEYS,
    WRITERS,
    go_on,
    killed,
    sidecars,
    stopped,
    with_extra,
    write_everywhere,
)

pytestmark = pytest.mark.usefixtures("no_syncs")

AFTER_UPDATE = WRITERS["update"].after
OPTIMIZE = """
import sys
import omnigraph
with omnigraph.open(sys.argv[1]) as graph:
    graph.optimize()
"""


@pytest.mark.case("engine", 182)
@pytest.mark.parametrize("skipped", [0, 2])
@pytest.mark.parametrize("healer", ["open", "write"])
def test_a_kill_between_compaction_and_indexes_changes_no_row(
    skipped: int, healer: str, root_for: NewRoot
) -> None:
    root = root_for("optimize")
    known = omnigraph.open(root)
    killed(root, "optimize", f"optimize.post_compact_pre_reindex=skip:{skipped},")
    assert books(root).contents == BEFORE

    graph = omnigraph.open(root) if healer == "open" else known
    write_everywhere(graph)

    found = assert_settled(root, with_extra(BEFORE), recoveries=1)
    (recovery,) = found.recoveries
    assert (recovery.kind, recovery.tables) == ("RolledForward", TABLE_KEYS[: skipped + 1])
    assert graph.optimize().commit is not None
    assert graph.optimize().commit is None
    assert_settled(root, with_extra(BEFORE), recoveries=1)


@pytest.mark.case("engine", 182)
def test_a_kill_before_the_manifest_is_folded_leaves_it_readable(root_for: NewRoot) -> None:
    root = root_for("optimize")

    killed(root, "optimize", "optimize.before_manifest_compaction=")

    found = assert_settled(root, BEFORE, recoveries=0)
    with omnigraph.open(root) as graph:
        assert graph.commits(limit=1)[0].actor_id == MAINTENANCE_ACTOR
        assert graph.optimize().commit is None
        assert len(graph.commits()) == found.commits


@pytest.mark.case("engine", 493)
@pytest.mark.parametrize("finishes", [True, False], ids=["finishes", "dies"])
def test_a_table_below_which_another_writer_is_not_done_is_left_out(
    finishes: bool, root_for: NewRoot
) -> None:
    root = root_for("optimize")
    graph = omnigraph.open(root)
    with Started(root) as writer:
        with failpoint("optimize.post_sidecar_pre_compact", call=writer.commit):
            result = graph.optimize()

        done = {table.table_key: table.committed for table in result.tables[:-1]}
        moved = ("node:Company", "node:Person")
        assert done == {key: key not in moved for key in TABLE_KEYS}
        assert books(root).contents == BEFORE, "half of a write that is not done is visible"
        assert len(sidecars(root)) == 2
        writer.end(finishes=finishes)

    after = AFTER_UPDATE if finishes else BEFORE
    with omnigraph.open(root) as opened:
        assert contents_of(opened) == after
        write_everywhere(opened)
    found = assert_settled(root, with_extra(after), recoveries=1 if finishes else 2)
    if finishes:
        (recovery,) = found.recoveries
        assert (recovery.kind, recovery.writer_kind) == ("RolledForward", "Optimize")
    with omnigraph.open(root) as opened:
        opened.optimize()
        assert opened.optimize().commit is None
        assert contents_of(opened) == with_extra(after)


class Started:
    """A writer of two tables in another process, which commits when it is told and then waits."""

    def __init__(self, root: Path) -> None:
        self._stopped = stopped(root, "update", "write.post_finalize_pre_publisher=")
        self._script: Forked | None = None

    def __enter__(self) -> "Started":
        return self

    def commit(self) -> None:
        """Let it commit its tables; it stands before its publish."""
        self._script = self._stopped.__enter__()

    def end(self, *, finishes: bool) -> None:
        """Let it publish, or kill it."""
        assert self._script is not None
        if finishes:
            go_on(self._script)
        else:
            self._script.kill()

    def __exit__(self, *failure: object) -> None:
        if self._script is not None:
            self._stopped.__exit__(None, None, None)


@pytest.mark.case("engine", 494)
def test_what_others_publish_meanwhile_lies_below_and_nothing_is_left_out(root_for: NewRoot) -> None:
    """The rows are published between the look at the pins and the work on their tables."""
    root = root_for("optimize")
    graph = omnigraph.open(root)

    def write_elsewhere() -> None:
        with Forked(WRITE, root) as script:
            assert script.wait() == 0

    with failpoint("optimize.post_sidecar_pre_compact", call=write_elsewhere):
        result = graph.optimize()

    assert result.commit is not None
    assert all(table.committed for table in result.tables[:-1])
    assert contents_of(graph) == AFTER_UPDATE
    assert_settled(root, AFTER_UPDATE, recoveries=0)
    assert graph.optimize().commit is None


@pytest.mark.case("engine", 494)
def test_a_pin_that_moves_before_the_publish_is_judged_anew(root_for: NewRoot) -> None:
    """Upkeep of another process publishes what this one has made, and goes on from there."""
    root = root_for("optimize")
    graph = omnigraph.open(root)
    told: list[bool] = []

    def adopt() -> None:
        """Publish the HEAD of a table under the eyes of its owner, as a healer would who thinks it dead."""
        if told:
            return
        told.append(True)
        with omnigraph.open(root, mode="ro") as other:
            _publish_head(other, "node:Person")

    with failpoint("optimize.post_phase_b_pre_manifest_commit", call=adopt):
        result = graph.optimize()

    assert told
    assert result.commit is not None
    assert contents_of(graph) == BEFORE
    assert_settled(root, BEFORE, recoveries=0)


WRITE = """
import sys
import omnigraph
from tests.support.protocol import WRITERS
with omnigraph.open(sys.argv[1]) as graph:
    WRITERS["update"].run(graph)
"""


def _publish_head(graph: omnigraph.Graph, table_key: str) -> None:
    from omnigraph.commit.changes import Expectation, LineageIntent, UpdateTable
    from omnigraph.core.ids import new_ulid
    from omnigraph.history.identity import MAIN, MAIN_BRANCH
    from omnigraph.history.manifest_rows import PublishedPin
    from tests.support.seam import internals

    parts, entry = internals(graph).parts, graph.snapshot().entry(table_key)
    head = parts.store.open_head(parts.address(entry))
    pin = PublishedPin(head.version, None, head.row_count, head.transaction_uuid, MAIN)
    internals(graph).publisher.publish(
        MAIN_BRANCH,
        [UpdateTable(entry.identity, table_key, pin)],
        {entry.identity: Expectation.of(entry)},
        LineageIntent(new_ulid(), MAINTENANCE_ACTOR, 1),
    )


@pytest.mark.case("engine", 148)
def test_optimize_beside_writers_loses_and_invents_no_row(root_for: NewRoot) -> None:
    root = root_for("optimize")
    with Forked(CROWD, root) as crowd, omnigraph.open(root) as graph:
        assert crowd.read_line() == "ready"
        crowd.write_line()
        commits = sum(optimized(graph) for _ in range(6))
        assert crowd.read_line() == "done"
        assert crowd.wait() == 0

    assert commits
    with omnigraph.open(root) as opened:
        names = {row["name"] for row in opened.table("Person").to_pylist()}
    assert names == {"ann", "bob", "cid"} | {f"w{number}" for number in range(25)}
    assert len(sidecars(root)) == 0


def optimized(graph: omnigraph.Graph) -> bool:
    """Optimize beside writers; return whether that made a commit. A conflict heals and is all right."""
    try:
        return graph.optimize().commit is not None
    except ConflictError:
        graph.refresh()
        return False


CROWD = """
import sys
import omnigraph
from omnigraph.core.errors import ConflictError, DriftNeedsRepair
from tests.support.protocol import say
graph = omnigraph.open(sys.argv[1])
say("ready")
input()
for number in range(25):
    while True:
        try:
            graph.mutate(f'query add() {{ insert Person {{ name: "w{number}" }} }}')
            break
        except DriftNeedsRepair:
            raise
        except ConflictError:
            continue
say("done")
"""


@pytest.mark.parametrize("place", ["optimize.post_sidecar_pre_compact", "optimize.post_table"])
def test_a_program_that_dies_leaves_a_graph_for_readers(place: str, root_for: NewRoot) -> None:
    root = root_for("optimize")
    with Forked(OPTIMIZE, root, **{ENVIRONMENT: f"{place}=exit"}) as script:
        assert script.wait() == EXIT_STATUS

    with omnigraph.open(root, mode="ro") as reader:
        assert contents_of(reader) == BEFORE
