"""Tables are forked when a branch first writes them, and never before."""

from pathlib import Path

import pytest

from omnigraph.commit.reclaim import ORPHAN_GRACE_S
from omnigraph.core.errors import (
    BranchNotFound,
    ExpectedVersionMismatch,
    StorageError,
)
from omnigraph.core.failpoint import EXIT_STATUS, InjectedFault, failpoint
from omnigraph.graph.graph import Graph
from tests.engine.branches.steps import (
    ages,
    everything,
    insert,
    names,
    owners,
    refs,
    remove,
    set_age,
)
from tests.support.engine import foreign, reopen
from tests.support.forked import Forked
from tests.support.protocol import paused_at
from tests.support.seam import internals

FIRST_WRITE = """
import sys
import omnigraph as og
graph = og.open(sys.argv[1])
try:
    graph.mutate('query q() { insert Person { name: "' + sys.argv[2] + '" } }', branch="june")
except og.ExpectedVersionMismatch as error:
    print(f"refused {error.recovery_operation_id}", flush=True)
else:
    print("done", flush=True)
"""


@pytest.mark.case("engine", 225)
def test_a_write_forks_what_it_touches_and_a_read_nothing(graph: Graph) -> None:
    graph.create_branch("june")
    everything(graph, "june")
    assert set(owners(graph, "june").values()) == {None}
    assert refs(graph, "node:Person") == set()

    set_age(graph, "ann", 31, "june")
    touched = {key for key, owner in owners(graph, "june").items() if owner is not None}
    assert touched == {"node:Person"}

    remove(graph, "ann", "june")  # with the edge at it
    touched = {key for key, owner in owners(graph, "june").items() if owner is not None}
    assert touched == {"node:Person", "edge:Knows"}
    assert len(refs(graph, "node:Person")) == 1
    assert ages(graph) == {"ann": 30, "bob": 40, "eve": 50}
    assert graph.table("Knows").num_rows == 1
    assert graph.table("Knows", branch="june").num_rows == 0


@pytest.mark.case("engine", 226)
def test_a_branch_of_a_branch_forks_from_what_it_inherited(graph: Graph) -> None:
    graph.create_branch("a")
    set_age(graph, "ann", 31, "a")
    graph.create_branch("b", "a")
    for age in (60, 61):
        set_age(graph, "eve", age)
        set_age(graph, "bob", age, "a")

    insert(graph, "new", "b")

    assert ages(graph, "b") == {"ann": 31, "bob": 40, "eve": 50, "new": 1}
    assert ages(graph, "a") == {"ann": 31, "bob": 61, "eve": 50}
    assert ages(graph) == {"ann": 30, "bob": 40, "eve": 61}
    assert owners(graph, "b")["node:Person"] != owners(graph, "a")["node:Person"]


@pytest.mark.case("engine", 227)
def test_of_two_first_writers_one_wins_and_the_other_drops_its_fork(graph: Graph) -> None:
    graph.create_branch("june")
    environment = {"OMNIGRAPH_FAILPOINTS": ""}

    def rival() -> None:
        with Forked(FIRST_WRITE, graph.uri, "rival", **environment) as script:
            assert script.read_line() == "done"
            assert script.wait() == 0

    with (
        failpoint("write.post_finalize_pre_publisher", "call", rival),
        pytest.raises(ExpectedVersionMismatch) as refusal,
    ):
        graph.mutate('query q() { insert Person { name: "loser" } }', branch="june", retry=0)

    assert refusal.value.recovery_operation_id is None
    assert names(graph, "june") == ["ann", "bob", "eve", "rival"]
    assert refs(graph, "node:Person") == {owners(graph, "june")["node:Person"]}
    insert(graph, "loser", "june")
    assert "loser" in names(graph, "june")


@pytest.mark.parametrize("place", ["fork.before_create", "fork.post_create_pre_stage"])
def test_a_first_write_that_fails_leaves_no_fork(graph: Graph, place: str) -> None:
    graph.create_branch("june")
    with failpoint(place, "raise"), pytest.raises(InjectedFault):
        insert(graph, "new", "june")

    assert refs(graph, "node:Person") == set()
    insert(graph, "new", "june")
    assert "new" in names(graph, "june")


@pytest.mark.case("engine", 101)
@pytest.mark.case("engine", 167)
@pytest.mark.parametrize(
    ("place", "lands", "forks"),
    [
        ("fork.post_create_pre_stage", False, 1),  # a leftover: nothing names it, and it is too young to go
        ("write.post_sidecar_pre_commit", False, 0),
        ("write.post_finalize_pre_publisher", True, 1),
        ("write.post_publish_pre_sidecar_delete", True, 1),
    ],
)
@pytest.mark.parametrize("reopened", [True, False])
def test_a_killed_first_write_is_finished_or_dropped(
    graph: Graph, place: str, lands: bool, forks: int, reopened: bool
) -> None:
    graph.create_branch("june")
    with Forked(FIRST_WRITE, graph.uri, "killed", OMNIGRAPH_FAILPOINTS=f"{place}=exit") as script:
        assert script.wait() == EXIT_STATUS

    if reopened:
        with reopen(graph) as healed:
            assert ("killed" in names(healed, "june")) is lands
            assert len(refs(healed, "node:Person")) == forks
    insert(graph, "next", "june")

    expected = ["ann", "bob", "eve", *(["killed"] if lands else []), "next"]
    assert names(graph, "june") == expected
    assert names(graph) == ["ann", "bob", "eve"]
    assert not list((Path(graph.uri) / "__recovery").iterdir())
    with reopen(graph) as again:
        assert names(again, "june") == expected


@pytest.mark.case("engine", 101)
def test_a_leftover_goes_when_it_is_old_enough(graph: Graph) -> None:
    graph.create_branch("june")
    with Forked(
        FIRST_WRITE, graph.uri, "killed", OMNIGRAPH_FAILPOINTS="fork.post_create_pre_stage=exit"
    ) as script:
        assert script.wait() == EXIT_STATUS
    (leftover,) = refs(graph, "node:Person")

    insert(graph, "young", "june")
    assert leftover in refs(graph, "node:Person")

    parts = internals(graph).parts
    later = parts.clock() + (ORPHAN_GRACE_S + 60) * 1_000_000
    graph.create_branch("july")
    object.__setattr__(parts, "clock", lambda: later)
    insert(graph, "old", "july")

    assert leftover not in refs(graph, "node:Person")
    assert names(graph, "june") == ["ann", "bob", "eve", "young"]


@pytest.mark.case("engine", 228)
@pytest.mark.parametrize("place", ["fork.before_classify", "fork.before_reclaim"])
def test_doubt_keeps_every_fork(graph: Graph, place: str) -> None:
    graph.create_branch("june")
    with Forked(
        FIRST_WRITE, graph.uri, "killed", OMNIGRAPH_FAILPOINTS="fork.post_create_pre_stage=exit"
    ) as script:
        assert script.wait() == EXIT_STATUS
    (leftover,) = refs(graph, "node:Person")
    parts = internals(graph).parts
    later = parts.clock() + (ORPHAN_GRACE_S + 60) * 1_000_000
    object.__setattr__(parts, "clock", lambda: later)

    with failpoint(place, "raise"):
        insert(graph, "new", "june")

    assert leftover in refs(graph, "node:Person")
    assert "new" in names(graph, "june")


@pytest.mark.case("engine", 166)
@pytest.mark.parametrize(
    ("place", "lands"),
    [
        ("write.post_gate_pre_sidecar", False),
        ("write.post_sidecar_pre_commit", False),
        ("write.post_table_commit", False),
        ("write.post_finalize_pre_publisher", True),
        ("write.post_publish_pre_sidecar_delete", True),
    ],
)
def test_a_load_on_a_branch_is_judged_by_the_branch(graph: Graph, place: str, lands: bool) -> None:
    graph.create_branch("june")
    insert(graph, "first", "june")
    graph.load(
        b'{"edge": "Knows", "from": "ann", "to": "eve", "data": {"id": "k2"}}\n', "append", branch="june"
    )
    before, main = everything(graph, "june"), everything(graph)
    program = """
import sys
import omnigraph as og
data = b'{"type": "Person", "data": {"name": "new"}}\\n'
data += b'{"edge": "Knows", "from": "new", "to": "ann", "data": {"id": "k3"}}\\n'
og.open(sys.argv[1]).load(data, "append", branch="june")
"""
    with Forked(program, graph.uri, OMNIGRAPH_FAILPOINTS=f"{place}=exit") as script:
        assert script.wait() == EXIT_STATUS

    with reopen(graph) as healed:
        found = everything(healed, "june")
        assert (len(found["Person"]) == len(before["Person"]) + 1) is lands
        assert (len(found["Knows"]) == len(before["Knows"]) + 1) is lands
        assert lands or found == before
        assert everything(healed) == main
        insert(healed, "more", "june")
        recovered = [c for c in healed.commits(branch="june") if c.actor_id == "omnigraph:recovery"]
        assert len(recovered) == (0 if place.endswith("gate_pre_sidecar") else 1)
        assert not [c for c in healed.commits() if c.actor_id == "omnigraph:recovery"]


@pytest.mark.case("engine", 185)
def test_sidecars_of_two_branches_are_each_judged_by_their_own(graph: Graph) -> None:
    graph.create_branch("june")
    insert(graph, "first", "june")
    program = """
import sys
import omnigraph as og
graph = og.open(sys.argv[1])
print("open", flush=True)
input()
graph.mutate('query q() { insert Person { name: "new" } }', branch=sys.argv[2])
"""
    # Both have opened the graph before either leaves anything: a second open would heal the first.
    environment = {"OMNIGRAPH_FAILPOINTS": "write.post_finalize_pre_publisher=exit"}
    with Forked(program, graph.uri, "main", **environment) as main:
        assert main.read_line() == "open"
        with Forked(program, graph.uri, "june", **environment) as june:
            assert june.read_line() == "open"
            for script in (main, june):
                script.write_line()
                assert script.wait() == EXIT_STATUS

    with reopen(graph) as healed:
        assert "new" in names(healed)
        assert "new" in names(healed, "june")
        kinds = [record.recovery_kind.wire for record in healed.recoveries()]
        assert kinds == ["rolled_forward", "rolled_forward"]


@pytest.mark.case("engine", 144)
@pytest.mark.parametrize(
    "place",
    [
        "write.post_stage_pre_gate",
        "write.post_sidecar_pre_commit",
        "write.post_finalize_pre_publisher",
        "publish.before_update",
        "write.post_publish_pre_sidecar_delete",
    ],
)
def test_writers_on_different_branches_neither_wait_for_nor_see_one_another(graph: Graph, place: str) -> None:
    """The write on June stands still, with whatever it holds at that place, until all others have ended."""
    graph.create_branch("june")
    graph.create_branch("july")
    seen: list[list[list[str]]] = []

    def write_elsewhere() -> None:
        if seen:
            return
        seen.append([])
        with reopen(graph) as same_process, foreign(graph) as other_process:
            for number, handle in enumerate((same_process, other_process)):
                insert(handle, f"main {number}")
                insert(handle, f"july {number}", "july")
                seen[0].append([*names(handle)[3:], *names(handle, "july")[3:]])

    with failpoint(place, "call", write_elsewhere):
        insert(graph, "june", "june")

    assert seen == [[["main 0", "july 0"], ["main 0", "main 1", "july 0", "july 1"]]]
    assert names(graph, "june") == ["ann", "bob", "eve", "june"]
    assert names(graph, "july") == ["ann", "bob", "eve", "july 0", "july 1"]
    assert names(graph) == ["ann", "bob", "eve", "main 0", "main 1"]
    assert graph.recoveries() == []


def test_a_lost_race_is_without_effect_only_if_every_table_was_a_fork(graph: Graph) -> None:
    """One table is the branch's own, and has moved: without a sidecar nobody could say why."""
    graph.create_branch("june")
    insert(graph, "first", "june")

    def be_faster() -> None:
        with foreign(graph) as other:
            other.mutate('query q() { insert Company { name: "theirs" } }', branch="june")

    both = 'query q() { insert Person { name: "second" } insert Company { name: "ours" } }'
    with (
        paused_at("write.post_finalize_pre_publisher", "call", be_faster),
        pytest.raises(ExpectedVersionMismatch) as lost,
    ):
        graph.mutate(both, branch="june")

    assert lost.value.recovery_operation_id is not None
    insert(graph, "later", "june")  # heals first
    assert names(graph, "june") == ["ann", "bob", "eve", "first", "later"]


@pytest.mark.case("engine", 146)
def test_a_write_that_meets_the_deletion_of_its_branch(graph: Graph) -> None:
    graph.create_branch("june")
    insert(graph, "first", "june")
    with (
        reopen(graph) as other,
        failpoint("write.post_stage_pre_gate", "call", lambda: other.delete_branch("june")),
        pytest.raises(BranchNotFound),
    ):
        insert(graph, "late", "june")

    assert graph.branches() == ["main"]
    assert names(graph) == ["ann", "bob", "eve"]


def test_a_fork_that_cannot_be_made_fails_the_write_alone(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph.create_branch("june")

    def refuse(*_arguments: object) -> None:
        raise StorageError("the disk is full", kind="permanent")

    with monkeypatch.context() as patch:
        patch.setattr(type(internals(graph).parts.refs), "create", refuse)
        with pytest.raises(StorageError, match="disk is full"):
            insert(graph, "new", "june")
    insert(graph, "new", "june")
    assert "new" in names(graph, "june")
