"""A type is dropped while a writer of it stands between its table commits and its publish."""

from pathlib import Path

import pytest

import omnigraph
from omnigraph.core.failpoint import failpoint
from omnigraph.graph.graph import Graph
from tests.support.forked import Forked
from tests.support.protocol import SCHEMA, sidecars
from tests.support.seam import patched

pytestmark = pytest.mark.usefixtures("no_syncs")

PROGRAM = """
import sys
import omnigraph
from omnigraph.core.errors import OmnigraphError
from tests.support.protocol import WRITERS, paused_at, say, tell_and_wait
root, branch, point = sys.argv[1:]
with omnigraph.open(root) as graph, paused_at(point, "call", tell_and_wait):
    try:
        graph.mutate(
            'query q() { insert Person { name: "dan" } insert Knows { from: "dan", to: "ann" } }',
            branch=branch,
        )
    except OmnigraphError as error:
        say(type(error).__name__)
"""
DROP = """
import sys
import omnigraph
from tests.protocol.test_drop_beside_writer import WITHOUT_KNOWS
print(omnigraph.open(sys.argv[1]).apply_schema(WITHOUT_KNOWS, index=False).applied, flush=True)
"""
WITHOUT_KNOWS = SCHEMA.replace("edge Knows: Person -> Person {\n    since: I32?\n}\n", "")
BEFORE_PUBLISH = "write.post_finalize_pre_publisher"


def people(graph: Graph, branch: str) -> set[object]:
    return {row["name"] for row in graph.table("Person", branch=branch).to_pylist()}


def assert_goes_on(root: Path, branch: str) -> None:
    """The write has gone back, its sidecar is settled, and every other verb works."""
    with omnigraph.open(root) as graph:
        assert people(graph, branch) == {"ann", "bob", "cid"}
        assert sidecars(root) == ()
        assert [str(found.recovery_kind) for found in graph.recoveries()] == ["RolledBack"]
        graph.mutate('query q() { insert Person { name: "eve" } }', branch=branch)
        graph.optimize()
        graph.cleanup(keep=3)
        assert graph.verify(deep=True).is_whole
        assert people(graph, branch) == {"ann", "bob", "cid", "eve"}


@pytest.mark.case("engine", 652)
@pytest.mark.parametrize(
    ("branch", "is_hard", "end"),
    [
        ("main", False, "goes on"),
        ("main", True, "dies"),
        ("june", False, "dies"),
        ("june", True, "goes on"),
    ],
)
def test_the_write_goes_back_when_its_type_is_dropped(
    branch: str, is_hard: bool, end: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patched(monkeypatch, "omnigraph.commit.recovery.quiet.WAIT_S", 0.1)  # the purge gives up on the writer
    with omnigraph.open(root) as graph:
        if branch != "main":
            graph.create_branch(branch)
            # So that the next write stands on the forks that the branch shows, and not on new ones.
            graph.load(b'{"edge":"Knows","from":"cid","to":"ann"}\n', "append", branch=branch, index=False)
            graph.mutate('query q() { update Person set { age: 1 } where name = "ann" }', branch=branch)
        with Forked(PROGRAM, root, branch, BEFORE_PUBLISH) as script:
            assert script.read_line() == "paused"
            assert graph.apply_schema(
                WITHOUT_KNOWS, branch=branch, allow_data_loss=is_hard, index=False
            ).applied
            if end == "goes on":
                script.write_line()
                assert script.read_line() == "ExpectedVersionMismatch"
                assert script.wait() == 0

    assert_goes_on(root, branch)


@pytest.mark.case("engine", 652)
def test_a_drop_in_the_middle_of_a_roll_forward_turns_it_back(root: Path) -> None:
    with Forked(PROGRAM, root, "main", BEFORE_PUBLISH) as script:
        assert script.read_line() == "paused"

    def drop() -> None:
        with Forked(DROP, root) as other:
            assert other.read_line() == "True"

    with failpoint("recovery.before_roll_forward_publish", call=drop):
        omnigraph.open(root).close()

    assert sidecars(root) == ()  # at once: nothing is left for the next open
    assert_goes_on(root, "main")
