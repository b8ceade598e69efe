"""A process that dies with a group of mutations inside: all of it or nothing, never less than it said."""

from pathlib import Path

import pytest

import omnigraph
from omnigraph.core.failpoint import ENVIRONMENT, EXIT_STATUS
from tests.support.engine import assert_settled
from tests.support.forked import Forked

SCHEMA = "node Person { name: String @key }  edge Knows: Person -> Person"
GROUP = ("ann", "bob", "cid")

# The first write passes each place once (of its two tables, twice); the group dies there.
WRITERS = """
import sys, threading
import omnigraph as og
from omnigraph.operations.turns import Claim
from tests.support.seam import internals
graph = og.open(sys.argv[1])
TEXT = 'query q($n: String) { insert Person { name: $n } insert Knows { from: $n, to: $n } }'
def write(name):
    graph.mutate(TEXT, params={"n": name}, actor=name)
    print(name, flush=True)
write("first")
turns = internals(graph).turns
with turns.turn(Claim("main", None)):
    threads = [threading.Thread(target=write, args=(name,)) for name in sys.argv[2:]]
    for place, thread in enumerate(threads, start=2):
        thread.start()
        while len(turns._line) < place:
            threading.Event().wait(0.001)
for thread in threads:
    thread.join()
"""
NOTHING = [
    "write.post_stage_pre_gate=skip:1,",
    "write.post_sidecar_pre_commit=skip:1,",
    "write.post_table_commit=skip:2,",  # one table of two has moved: it goes back
]
EVERYTHING = [
    "write.post_table_commit=skip:3,",
    "write.post_finalize_pre_publisher=skip:1,",
    "publish.after_update_ack_lost=skip:1,",
    "durability.pre_manifest_sync=skip:1,",
    "write.post_publish_pre_sidecar_delete=skip:1,",
    "lock.post_sidecar_delete_pre_unlink=skip:1,",
]


@pytest.mark.slow
@pytest.mark.case("engine", 718)
@pytest.mark.parametrize("place", [*NOTHING, *EVERYTHING])
def test_a_group_that_dies_is_there_as_a_whole_or_not_at_all(tmp_path: Path, place: str) -> None:
    root = tmp_path / "graph"
    omnigraph.init(root, SCHEMA).close()
    said: list[str] = []

    with Forked(WRITERS, root, *GROUP, **{ENVIRONMENT: f"{place}exit"}) as script:
        while line := script.read_line():
            said.append(line)
        assert script.wait() == EXIT_STATUS

    expected = {"first"} if place in NOTHING else {"first", *GROUP}
    assert set(said) <= expected
    assert "first" in said
    with omnigraph.open(root) as graph:
        people = set(graph.table("Person")["name"].to_pylist())
        assert people == expected
        assert sorted(map(str, graph.table("Knows")["src"].to_pylist())) == sorted(expected)
        graph.mutate('query q() { insert Person { name: "next" } }')
        assert_settled(graph)
