"""Group commit: mutations that wait for the same tables become one commit, and fail alone."""

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from omnigraph.core.errors import (
    BadRequest,
    ConflictError,
    ExpectedVersionMismatch,
    OmnigraphError,
    RecoveryRequired,
    ResourceLimit,
    ValidationError,
)
from omnigraph.core.failpoint import InjectedFault, failpoint
from omnigraph.core.source_errors import TypeCheckError
from omnigraph.graph.graph import Graph
from omnigraph.history.commits import CommitOperation, GraphCommit
from omnigraph.operations.member import MutationCall
from omnigraph.operations.mutate import MutationResult
from omnigraph.operations.turns import Claim
from tests.support.engine import (
    assert_settled,
    chain,
    foreign,
    head,
    ids,
    new_graph,
    pins,
    reopen,
    rows,
)
from tests.support.groups import Waiting, in_line, together_in_line
from tests.support.queries import mutation
from tests.support.seam import internals, patched

SCHEMA = """
node Person { name: String @key  age: I32?  mail: String? @unique }
node Company { name: String @key  size: I32? }
edge Knows: Person -> Person { since: I32? }
edge WorksAt: Person -> Company
"""
GATE, DOOR = "write.post_stage_pre_gate", "write.post_gate_pre_sidecar"


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[Graph]:
    with new_graph(tmp_path / "graph", SCHEMA) as opened:
        yield opened


def run(  # the options are those of `mutate`
    graph: Graph,
    text: str,
    name: str = "m",
    **options: Any,  # noqa: ANN401
) -> Callable[[], MutationResult]:
    return partial(graph.mutate, mutation(text, name=name), **options)


def person(
    graph: Graph,
    name: str,
    **options: Any,  # noqa: ANN401
) -> Callable[[], MutationResult]:
    return run(graph, f'insert Person {{ name: "{name}" }}', **options)


def landed(outcomes: list[object]) -> list[GraphCommit]:
    """Return the commit of each, all of which have one."""
    assert all(isinstance(outcome, MutationResult) and outcome.commit for outcome in outcomes), outcomes
    return [outcome.commit for outcome in outcomes]  # type: ignore[attr-defined]


def once(call: Callable[[], object]) -> Callable[[], None]:
    left = [call]

    def hit() -> None:
        if left:
            left.pop()()

    return hit


# One commit


@pytest.mark.case("engine", 710)
@pytest.mark.case("surfaces", 452)
def test_those_who_wait_for_a_table_become_one_commit_that_lists_them(graph: Graph) -> None:
    before, versions = len(chain(graph)), pins(graph)

    outcomes = together_in_line(
        graph,
        person(graph, "ann", actor="ada", message="first"),
        run(graph, 'insert Person { name: "bob" } insert Person { name: "cid" }', name="two", actor="ben"),
        run(graph, 'insert Knows { from: "ann", to: "bob" }', name="link"),
    )

    (commit,) = set(landed(outcomes))
    assert commit == head(graph) == graph.commit(commit.graph_commit_id)
    assert len(chain(graph)) == before + 1
    assert commit.operations == (
        CommitOperation("ada", "m", "first", 1, 0),
        CommitOperation("ben", "two", None, 2, 0),
        CommitOperation(None, "link", None, 0, 1),
    )
    assert (commit.actor_id, commit.message) == (None, None)
    counts = [(outcome.affected_nodes, outcome.affected_edges) for outcome in outcomes]  # type: ignore[attr-defined]
    assert counts == [(1, 0), (2, 0), (0, 1)]
    assert pins(graph) == {
        **versions,
        "node:Person": versions["node:Person"] + 1,
        "edge:Knows": versions["edge:Knows"] + 1,
    }
    assert [commit.is_by(actor) for actor in ("ada", "ben", None, "zoe")] == [True, True, True, False]
    assert ids(graph, "Person") == ["ann", "bob", "cid"]
    assert_settled(graph)
    assert head(reopen(graph)) == commit


@pytest.mark.case("engine", 710)
def test_what_all_have_in_common_is_the_commit_s_and_one_alone_lists_nothing(graph: Graph) -> None:
    shared = {"actor": "ada", "message": "both"}
    (commit,) = set(landed(together_in_line(graph, *(person(graph, name, **shared) for name in "ab"))))
    alone = graph.mutate(mutation('insert Person { name: "c" }'), actor="ben", message="alone").commit

    assert (commit.actor_id, commit.message, len(commit.operations)) == ("ada", "both", 2)
    assert alone is not None
    assert (alone.actor_id, alone.message, alone.operations) == ("ben", "alone", ())
    assert [alone.is_by(actor) for actor in ("ben", "ada", None)] == [True, False, False]


@pytest.mark.case("engine", 711)
def test_each_runs_over_what_those_before_it_leave(graph: Graph) -> None:
    graph.mutate(mutation('insert Person { name: "zoe", age: 70 }'))
    outcomes = together_in_line(
        graph,
        run(graph, 'insert Person { name: "ann", age: 1, mail: "a@x" }'),
        run(graph, 'update Person set { age: 2 } where name = "ann"'),
        run(graph, "update Person set { age: 3 } where age = 2"),
        run(graph, "update Person set { age: 9 } where age = 1"),  # nobody is 1 any more
        run(graph, 'update Person set { mail: "b@x" } where name = "ann"'),
        run(graph, 'insert Person { name: "bob", mail: "a@x" }'),  # free again
        run(graph, 'insert Person { name: "cid", mail: "b@x" }'),  # taken
        run(graph, 'insert Knows { from: "ann", to: "bob" }'),
        run(graph, 'insert Knows { from: "ann", to: "cid" }'),  # never came to be
        run(graph, 'insert Person { name: "ann", age: 5 }'),  # replaces the whole row
        run(graph, 'update Person set { age: 71 } where name = "zoe"'),
        run(graph, "update Person set { age: 72 } where age = 70"),  # as it was before the group
    )

    assert isinstance(outcomes[6], ValidationError)
    assert isinstance(outcomes[8], ValidationError)
    assert isinstance(outcomes[3], MutationResult)
    assert (outcomes[3].commit, outcomes[3].affected_nodes) == (None, 0)
    assert isinstance(outcomes[11], MutationResult)
    assert (outcomes[11].commit, outcomes[11].affected_nodes) == (None, 0)
    (commit,) = set(landed([outcomes[place] for place in (0, 1, 2, 4, 5, 7, 9, 10)]))
    assert len(commit.operations) == 8
    people = rows(graph, "Person")
    assert {name: (row["age"], row["mail"]) for name, row in people.items()} == {
        "ann": (5, None),
        "bob": (None, "a@x"),
        "zoe": (71, None),
    }
    assert [(row["src"], row["dst"]) for row in rows(graph, "Knows").values()] == [("ann", "bob")]
    assert_settled(graph)


@pytest.mark.case("engine", 712)
def test_one_that_fails_fails_alone(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_KEYED_WRITE_MAX_ROWS", "3")
    many = " ".join(f'insert Person {{ name: "x{number}" }}' for number in range(4))
    add = mutation("insert Person { name: $n, age: $a }", params="$n: String, $a: I32")

    outcomes = together_in_line(
        graph,
        person(graph, "ann"),
        partial(graph.mutate, add, params={"n": "bad", "a": "not a number"}),
        partial(graph.mutate, add, params={"n": "bad"}),
        run(graph, 'insert Knows { from: "ann", to: "nobody" }'),
        run(graph, 'insert Person { name: "bad", wings: 2 }'),
        run(graph, many),
        person(graph, "bob"),
    )

    assert [type(outcome) for outcome in outcomes[2:6]][1:] == [
        ValidationError,
        TypeCheckError,
        ResourceLimit,
    ]
    assert all(isinstance(outcome, OmnigraphError) for outcome in outcomes[1:6])
    (commit,) = set(landed([outcomes[0], outcomes[6]]))
    assert len(commit.operations) == 2
    assert ids(graph, "Person") == ["ann", "bob"]
    assert ids(graph, "Knows") == []
    assert_settled(graph)


@pytest.mark.case("engine", 712)
def test_a_first_one_that_fails_or_matches_nothing_does_not_hold_the_others_up(graph: Graph) -> None:
    outcomes = together_in_line(
        graph,
        run(graph, 'insert Knows { from: "a", to: "b" } insert Person { name: "lost" }'),
        run(graph, 'update Person set { age: 1 } where name = "nobody"'),
        person(graph, "ann"),
        person(graph, "bob"),
    )

    assert isinstance(outcomes[0], ValidationError)
    assert isinstance(outcomes[1], MutationResult)
    assert outcomes[1].commit is None
    (commit,) = set(landed(outcomes[2:]))
    assert len(commit.operations) == 2
    assert ids(graph, "Person") == ["ann", "bob"]


@pytest.mark.case("engine", 713)
def test_who_removes_or_requires_or_is_elsewhere_has_a_commit_of_its_own(graph: Graph) -> None:
    graph.mutate(mutation('insert Person { name: "zoe" }'))
    graph.create_branch("june")
    required = head(graph).graph_commit_id

    outcomes = together_in_line(
        graph,
        run(graph, 'insert Person { name: "ann" }', if_commit=required),
        person(graph, "bob"),
        person(graph, "cid"),
        run(graph, 'delete Person where name = "bob"'),
        person(graph, "dot"),
        person(graph, "eve"),
    )
    with in_line(graph, person(graph, "fay"), run(graph, 'insert Company { name: "acme" }')) as waiting:
        elsewhere = run(graph, 'insert Person { name: "june" }', branch="june")
        with ThreadPoolExecutor(1) as pool:  # main's line is not june's
            on_june = pool.submit(elsewhere).result(60)

    alone, bob, cid, removal, dot, eve = landed(outcomes)
    fay, acme = landed(waiting.outcomes)
    assert bob == cid
    assert dot == eve
    assert len({alone, bob, removal, dot, fay, acme}) == 6
    order = [alone, bob, removal, dot]
    assert [commit.manifest_version for commit in order] == sorted(c.manifest_version for c in order)
    assert [commit.operations for commit in (alone, removal, fay, acme)] == [()] * 4
    assert ids(graph, "Person") == ["ann", "cid", "dot", "eve", "fay", "zoe"]
    assert on_june.commit is not None
    assert on_june.commit.manifest_branch == "june"
    assert_settled(graph)


# What a member sees


def at_the_leader(patch: pytest.MonkeyPatch, call: Callable[[], object]) -> None:
    """Make a call when the next leader has its state, and begins to prepare its own."""
    real, meanwhile = MutationCall.prepare, once(call)

    def prepare(member: MutationCall, *view: Any) -> object:  # noqa: ANN401
        meanwhile()
        return real(member, *view)

    patched(patch, "omnigraph.operations.member.MutationCall.prepare", prepare)


@pytest.mark.case("engine", 770)
@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_who_comes_behind_an_acknowledged_write_sees_it(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, *, is_elsewhere: bool
) -> None:
    """Each would fail, match nothing, or count too few on the state that the leader had first."""
    graph.mutate(mutation('insert Person { name: "ann" }'))
    other = foreign(graph) if is_elsewhere else graph
    company, nobody = 'update Company set { size: 1 } where name = "{}"', 'where name = "nobody"'
    members = {
        'insert WorksAt { from: "ann", to: "{}" }': (0, 1),
        f"{company} update Person set {{ age: 1 }} {nobody}": (1, 0),
        f'{company} insert Person {{ name: "bob" }}': (2, 0),
    }

    for number, (text, counts) in enumerate(members.items()):
        made = f"c{number}"
        with in_line(graph, person(graph, f"leader{number}")) as waiting:

            def acknowledge(made: str = made, text: str = text, waiting: Waiting = waiting) -> None:
                with ThreadPoolExecutor(1) as pool:  # this thread has the turn of the leader
                    insert = run(other, f'insert Company {{ name: "{made}" }}')
                    landed([pool.submit(insert).result(60)])
                waiting.add(run(graph, text.replace("{}", made)))

            at_the_leader(monkeypatch, acknowledge)

        landed(waiting.outcomes)
        _, seen = waiting.outcomes
        assert isinstance(seen, MutationResult)
        assert (seen.affected_nodes, seen.affected_edges) == counts, text
    assert_settled(graph)


@pytest.mark.case("engine", 770)
def test_who_comes_while_a_leader_prepares_goes_with_it_if_nothing_landed(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    with in_line(graph, person(graph, "leader")) as waiting:
        at_the_leader(monkeypatch, lambda: waiting.add(person(graph, "late")))

    (commit,) = set(landed(waiting.outcomes))
    assert len(commit.operations) == 2


# Outcomes


@pytest.mark.case("engine", 714)
def test_an_unknown_outcome_is_that_of_every_member_with_rows(graph: Graph) -> None:
    with failpoint("write.post_finalize_pre_publisher", "raise:once"):
        outcomes = together_in_line(
            graph,
            person(graph, "ann"),
            person(graph, "bob"),
            run(graph, 'update Person set { age: 1 } where name = "nobody"'),
        )

    errors = outcomes[:2]
    assert all(isinstance(error, RecoveryRequired) for error in errors)
    assert errors[0] is not errors[1]
    assert len({error.operation_id for error in errors}) == 1  # type: ignore[attr-defined]
    assert isinstance(outcomes[2], MutationResult), "it had nothing in that commit, and was run again"
    graph.mutate(mutation('insert Person { name: "next" }'))
    assert ids(graph, "Person") == ["ann", "bob", "next"], "recovery finished it as a whole"
    assert_settled(graph)


@pytest.mark.case("engine", 714)
def test_a_group_that_is_refused_at_its_first_table_is_run_again_as_a_whole(graph: Graph) -> None:
    rival = foreign(graph)

    with failpoint(DOOR, call=once(lambda: rival.mutate(mutation('insert Person { name: "rival" }')))):
        outcomes = together_in_line(graph, *(person(graph, name) for name in ("ann", "bob", "cid")))

    (commit,) = set(landed(outcomes))
    assert len(commit.operations) == 3
    assert ids(graph, "Person") == ["ann", "bob", "cid", "rival"]
    assert_settled(graph)


@pytest.mark.case("engine", 715)
def test_an_error_before_any_effect_is_the_first_one_s_alone(graph: Graph) -> None:
    with failpoint(DOOR, "raise:2"):  # once with all of them, once alone
        outcomes = together_in_line(graph, *(person(graph, name) for name in ("ann", "bob", "cid")))

    assert isinstance(outcomes[0], InjectedFault)
    (commit,) = set(landed(outcomes[1:]))
    assert len(commit.operations) == 2
    assert ids(graph, "Person") == ["bob", "cid"]
    assert_settled(graph)


@pytest.mark.case("engine", 716)
def test_a_member_that_asks_for_no_retry_gets_the_conflict_and_the_others_land(graph: Graph) -> None:
    rival = reopen(graph)

    with failpoint(GATE, call=once(lambda: rival.mutate(mutation('insert Person { name: "rival" }')))):
        outcomes = together_in_line(
            graph, person(graph, "ann"), person(graph, "bob", retry=0), person(graph, "cid")
        )

    assert isinstance(outcomes[1], ExpectedVersionMismatch)
    (commit,) = set(landed([outcomes[0], outcomes[2]]))
    assert len(commit.operations) == 2
    assert ids(graph, "Person") == ["ann", "cid", "rival"]
    assert_settled(graph)


@pytest.mark.case("engine", 716)
def test_a_first_member_that_asks_for_no_retry_leaves_the_others_their_time(graph: Graph) -> None:
    rival = reopen(graph)

    with failpoint(GATE, call=once(lambda: rival.mutate(mutation('insert Person { name: "rival" }')))):
        outcomes = together_in_line(
            graph, person(graph, "ann", retry=0), person(graph, "bob", retry=0), person(graph, "cid")
        )

    assert isinstance(outcomes[0], ConflictError)
    assert isinstance(outcomes[1], ConflictError)
    assert outcomes[0] is not outcomes[1]
    landed(outcomes[2:])
    assert ids(graph, "Person") == ["cid", "rival"]
    assert_settled(graph)


@pytest.mark.case("engine", 716)
def test_a_table_that_others_move_keeps_only_its_own_writers_back(graph: Graph) -> None:
    graph.mutate(mutation('insert Person { name: "ann" } insert Company { name: "acme" }'))
    rival = reopen(graph)
    sizes: list[int] = []

    def overtake() -> None:
        sizes.append(len(sizes))
        if len(sizes) == 1:
            rival.mutate(mutation('insert Company { name: "ibex" }'))

    with failpoint(GATE, call=overtake):
        outcomes = together_in_line(
            graph,
            person(graph, "bob"),
            run(graph, 'insert Person { name: "cid" } insert Company { name: "oryx" }'),
        )

    bob, both = landed(outcomes)
    assert bob != both, "the first one did not wait for a table that it has nothing to do with"
    assert ids(graph, "Company") == ["acme", "ibex", "oryx"]
    assert_settled(graph)


# Limits


@pytest.mark.case("engine", 717)
def test_a_group_is_bounded_by_members_and_by_rows(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    patched(monkeypatch, "omnigraph.operations.group.GROUP_MEMBERS_MAX", 3)
    by_members = landed(together_in_line(graph, *(person(graph, f"m{number}") for number in range(5))))
    patched(monkeypatch, "omnigraph.operations.group.GROUP_MEMBERS_MAX", 64)
    patched(monkeypatch, "omnigraph.operations.group.GROUP_ROWS_MAX", 4)
    two = [
        run(graph, f'insert Person {{ name: "r{number}" }} insert Person {{ name: "s{number}" }}')
        for number in range(3)
    ]
    by_rows = landed(together_in_line(graph, *two))
    large = " ".join(f'insert Person {{ name: "l{number}" }}' for number in range(6))
    by_size = landed(together_in_line(graph, run(graph, large), person(graph, "t0"), person(graph, "t1")))

    assert [len(commit.operations) for commit in dict.fromkeys(by_members)] == [3, 2]
    assert [len(commit.operations) for commit in dict.fromkeys(by_rows)] == [2, 0]
    assert [len(commit.operations) for commit in dict.fromkeys(by_size)] == [0, 2]


@pytest.mark.case("engine", 717)
def test_a_ceiling_for_one_commit_holds_for_a_group(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_KEYED_WRITE_MAX_ROWS", "2")

    commits = landed(together_in_line(graph, *(person(graph, f"p{number}") for number in range(5))))

    assert [len(commit.operations) for commit in dict.fromkeys(commits)] == [2, 2, 0]
    assert len(ids(graph, "Person")) == 5


# Interrupts


def interrupt_main() -> None:
    ident = threading.main_thread().ident
    assert ident is not None
    signal.pthread_kill(ident, signal.SIGINT)


@pytest.mark.case("engine", 715)
def test_an_interrupted_member_leaves_its_group_before_the_commit(graph: Graph) -> None:
    """The main thread waits, and is interrupted when its mutation has been prepared by another thread."""
    line = internals(graph).turns

    def interrupt() -> None:
        interrupt_main()
        Waiting.until(lambda: len(line._line) < 3)  # leader, main and the other one

    with failpoint(GATE, call=once(interrupt)):
        outcomes = _with_main_behind(graph, "interrupted", before="leader", behind="other")

    assert isinstance(outcomes["interrupted"], KeyboardInterrupt)
    assert not getattr(outcomes["interrupted"], "__notes__", [])
    assert ids(graph, "Person") == ["leader", "other"]
    (commit,) = set(landed([outcomes["leader"], outcomes["other"]]))
    assert len(commit.operations) == 2
    assert_settled(graph)


@pytest.mark.case("engine", 715)
def test_an_interrupt_behind_the_beginning_of_the_commit_waits_for_its_end(graph: Graph) -> None:
    with failpoint("write.post_finalize_pre_publisher", call=once(interrupt_main)):
        outcomes = _with_main_behind(graph, "late", before="leader", behind="other")

    interrupt = outcomes["late"]
    assert isinstance(interrupt, KeyboardInterrupt)
    assert interrupt.__notes__ == [f"the write had already landed, as commit {head(graph).graph_commit_id}"]
    assert ids(graph, "Person") == ["late", "leader", "other"]
    assert_settled(graph)


@pytest.mark.case("engine", 715)
@pytest.mark.parametrize(("place", "has_landed"), [(GATE, False), ("write.post_table_commit", True)])
def test_an_interrupted_leader_leaves_the_others_what_is_theirs(
    graph: Graph, place: str, has_landed: bool
) -> None:
    with failpoint(place, call=once(interrupt_main)):
        outcomes = _with_main_behind(graph, "main", before=None, behind="other")

    assert isinstance(outcomes["main"], KeyboardInterrupt)
    assert isinstance(outcomes["other"], MutationResult)
    assert ids(graph, "Person") == (["main", "other"] if has_landed else ["other"])
    assert any("landed" in note for note in getattr(outcomes["main"], "__notes__", [])) == has_landed
    (commit,) = landed([outcomes["other"]])
    assert len(commit.operations) == (2 if has_landed else 0)
    assert_settled(graph)


def _with_main_behind(graph: Graph, mine: str, *, before: str | None, behind: str) -> dict[str, object]:
    """Insert persons in one group, one of them from the main thread; return what became of each."""
    outcomes: dict[str, object] = {}
    line = internals(graph).turns
    free = threading.Event()

    def insert(name: str) -> None:
        outcomes[name] = graph.mutate(mutation(f'insert Person {{ name: "{name}" }}'))

    def hold() -> None:
        with line.turn(Claim("main", None)):
            free.wait(60)

    def wait_for(count: int) -> None:
        while len(line._line) < count:
            threading.Event().wait(0.001)

    threads = [threading.Thread(target=hold)]
    threads[0].start()
    wait_for(1)
    if before is not None:
        threads.append(threading.Thread(target=insert, args=(before,)))
        threads[-1].start()
        wait_for(2)
    ahead = 2 if before is not None else 1

    def follow() -> None:
        wait_for(ahead + 1)
        last = threading.Thread(target=insert, args=(behind,))
        last.start()
        wait_for(ahead + 2)
        free.set()
        last.join(60)

    threads.append(threading.Thread(target=follow))
    threads[-1].start()
    try:
        insert(mine)
    except KeyboardInterrupt as interrupt:
        outcomes[mine] = interrupt
    for thread in threads:
        thread.join(60)
    return outcomes


def test_a_read_is_no_mutation(graph: Graph) -> None:
    with pytest.raises(BadRequest, match="use query"):
        graph.mutate("query q() { match { $p: Person } return { $p.name } }")
