"""Two processes on one graph: who wins, and what the other one leaves."""

from pathlib import Path

import pytest

from omnigraph.commit.changes import UpdateTable
from omnigraph.commit.publish import FRAGMENTS_MAX
from omnigraph.core.errors import ExpectedVersionMismatch
from omnigraph.core.failpoint import failpoint
from omnigraph.graph.graph import Graph
from tests.support.engine import (
    Publisher,
    assert_settled,
    chain,
    cold_state,
    heads,
    ids,
    pin,
    pins,
    recovery_files,
    reopen,
)
from tests.support.forked import Forked
from tests.support.queries import mutation

# Stops at a place for each name that it reads, says so, and goes on when told.
WRITER = """
import sys
from pathlib import Path
from omnigraph.core.failpoint import failpoint
from tests.support.engine import reopen
graph = reopen(Path(sys.argv[1]))
def stop():
    print("there", flush=True)
    sys.stdin.readline()
print("open", flush=True)
for name in map(str.strip, sys.stdin):
    try:
        with failpoint(sys.argv[2], call=stop):
            graph.mutate('query m() { insert Person { name: "%s" } }' % name, retry=0)
        print("published", flush=True)
    except Exception as error:
        print(type(error).__name__, flush=True)
"""


def insert(graph: Graph, name: str, *, retry: float | None = None) -> None:
    """Insert one person."""
    graph.mutate(mutation(f'insert Person {{ name: "{name}" }}'), retry=retry)


def writer(graph: Graph, place: str) -> Forked:
    """Start a process that writes persons and stops at a place each time."""
    return Forked(WRITER, graph.uri, place)


@pytest.mark.case("engine", 133)
def test_of_two_processes_from_one_pin_one_wins(graph: Graph) -> None:
    won: list[str] = []
    place = "write.post_stage_pre_gate"
    with writer(graph, place) as first, writer(graph, place) as second:
        for side in (first, second):
            assert side.read_line() == "open"
        for number in range(6):
            names = [f"r{number}a", f"r{number}b"]
            for side, name in zip((first, second), names, strict=True):
                side.write_line(name)
                assert side.read_line() == "there"
            for side in (first, second):
                side.write_line()
            outcomes = [side.read_line() for side in (first, second)]

            assert sorted(outcomes) == ["ExpectedVersionMismatch", "published"]
            won.append(names[outcomes.index("published")])
            assert ids(graph, "Person") == sorted(won)
            assert_settled(graph)
    assert len(chain(graph)) == 1 + len(won)


@pytest.mark.case("engine", 134)
def test_a_process_that_commits_second_is_refused_and_cleans_up(graph: Graph) -> None:
    with writer(graph, "write.post_sidecar_pre_commit") as loser:
        assert loser.read_line() == "open"
        loser.write_line("loser")
        assert loser.read_line() == "there"
        assert len(recovery_files(graph)) == 2

        insert(graph, "winner")
        loser.write_line()
        assert loser.read_line() == "ExpectedVersionMismatch"

        assert recovery_files(graph) == []
        assert heads(graph) == pins(graph)
        assert ids(graph, "Person") == ["winner"]
        assert len(chain(graph)) == 2
        assert reopen(graph).recoveries() == []

        loser.write_line("retried")
        assert loser.read_line() == "there"
        loser.write_line()
        assert loser.read_line() == "published"
    assert ids(graph, "Person") == ["retried", "winner"]


def test_a_live_writer_between_commit_and_publish_is_named_and_left_alone(graph: Graph) -> None:
    with writer(graph, "write.post_finalize_pre_publisher") as other:
        assert other.read_line() == "open"
        other.write_line("theirs")
        assert other.read_line() == "there"
        operation = recovery_files(graph)[0].removesuffix(".json")

        with pytest.raises(ExpectedVersionMismatch) as caught:
            insert(graph, "mine", retry=0)
        assert caught.value.in_flight_operation_id == operation
        graph.mutate(mutation('insert Company { name: "elsewhere" }'))
        other.write_line()
        assert other.read_line() == "published"

    insert(graph, "mine")
    assert ids(graph, "Person") == ["mine", "theirs"]
    assert_settled(graph)


PUBLISHER = """
import sys
from pathlib import Path
from omnigraph.commit.changes import UpdateTable
from tests.support.engine import Publisher, pin, reopen
graph = reopen(Path(sys.argv[1]))
entry = graph.snapshot().entry("node:Company")
publisher = Publisher(graph)
print("open", flush=True)
sys.stdin.readline()
for number in range(int(sys.argv[2])):
    publisher.publish(UpdateTable(entry.identity, "node:Company", pin(number + 2)))
print("done", flush=True)
"""


@pytest.mark.case("engine", 290)
def test_two_processes_that_compact_the_manifest_at_once_both_publish(graph: Graph) -> None:
    entry, publisher, count = graph.snapshot().entry("node:Person"), Publisher(graph), 70
    with Forked(PUBLISHER, graph.uri, count) as other:
        assert other.read_line() == "open"
        other.write_line()
        for number in range(count):
            publisher.publish(UpdateTable(entry.identity, "node:Person", pin(number + 2)))
        assert other.read_line() == "done"

    assert len(chain(graph)) == 1 + 2 * count
    state = cold_state(graph)
    assert {state.snapshot().entry(key).version for key in ("node:Person", "node:Company")} == {count + 1}
    assert len(state.fragments) < 2 * 64


@pytest.mark.case("engine", 290)
def test_a_compaction_that_fails_does_not_fail_its_publish(graph: Graph, tmp_path: Path) -> None:
    entry, publisher = graph.snapshot().entry("node:Person"), Publisher(graph)

    with failpoint("publish.before_auto_compaction", "raise"):
        for number in range(FRAGMENTS_MAX + 6):
            publisher.publish(UpdateTable(entry.identity, "node:Person", pin(number + 2)))

    assert len(cold_state(graph).fragments) == FRAGMENTS_MAX + 7
    publisher.publish()
    assert len(cold_state(graph).fragments) == 1
    assert len(chain(graph)) == FRAGMENTS_MAX + 8
