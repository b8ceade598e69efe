"""Writers that meet: threads of one handle take turns, and a lost race is run again."""

import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from omnigraph.core.errors import (
    BadRequest,
    ExpectedVersionMismatch,
    PreconditionFailed,
    RecoveryRequired,
    ValidationError,
)
from omnigraph.core.failpoint import failpoint
from omnigraph.graph.graph import Graph
from omnigraph.operations.mutate import MutationResult
from omnigraph.operations.retry import PAUSE_S, PAUSE_S_MAX, RetryTime
from omnigraph.operations.settings import WRITE_RETRY, write_retry_s
from omnigraph.operations.turns import Claim, Ticket, Turns
from tests.support.engine import (
    assert_settled,
    chain,
    foreign,
    head,
    ids,
    ndjson,
    new_graph,
    node,
    reopen,
    rows,
    together,
)
from tests.support.queries import mutation
from tests.support.seam import patched

GATE = "write.post_stage_pre_gate"
ANN = mutation('insert Person { name: "ann" }')


def person(name: str) -> str:
    return mutation(f'insert Person {{ name: "{name}" }}')


def once(call: Callable[[], object]) -> Callable[[], None]:
    """Return a call that happens on the first hit only: a rival passes the same place itself."""
    left = [call]

    def hit() -> None:
        if left:
            left.pop()()

    return hit


# Threads of one handle


@pytest.mark.case("engine", 700)
def test_threads_of_one_handle_all_land_and_the_history_is_one_chain(graph: Graph) -> None:
    names = [[f"t{thread}n{number}" for number in range(5)] for thread in range(4)]

    outcomes = together(*(lambda mine=mine: [graph.mutate(person(name)) for name in mine] for mine in names))

    results = [result for each in outcomes for result in each]  # type: ignore[attr-defined]
    assert ids(graph, "Person") == sorted(name for mine in names for name in mine)
    assert {result.commit.graph_commit_id for result in results} == {
        commit.graph_commit_id for commit in chain(graph)[1:]
    }
    for each in outcomes:  # a thread sees its own writes in their order
        versions = [result.commit.manifest_version for result in each]  # type: ignore[attr-defined]
        assert versions == sorted(versions)
    assert_settled(graph)


class Line:
    """Threads that come one after the other, each behind the one before it."""

    def __init__(self) -> None:
        self.turns = Turns()
        self.went: list[str] = []
        self.free: dict[str, threading.Event] = {}

    def come(self, pool: ThreadPoolExecutor, name: str, claim: Claim) -> None:
        """Send a thread into the line, and return when it is in line."""
        self.free[name] = threading.Event()
        before = len(self.turns._line)
        pool.submit(self._go, name, claim)
        while len(self.turns._line) == before:
            threading.Event().wait(0.001)

    def _go(self, name: str, claim: Claim) -> None:
        with self.turns.turn(claim):
            self.went.append(name)
            self.free[name].wait(60)

    def wait_for(self, *names: str) -> None:
        while len(self.went) < len(names):
            threading.Event().wait(0.001)
        assert sorted(self.went) == sorted(names)


def claim(*moved: str, read: str = "", branch: str = "main") -> Claim:
    return Claim(branch, frozenset(moved), frozenset(read.split()))


@pytest.mark.case("engine", 701)
def test_who_came_first_goes_first_and_strangers_do_not_wait() -> None:
    line = Line()
    with ThreadPoolExecutor(8) as pool:
        line.come(pool, "first", claim("node:A"))
        line.come(pool, "wide", claim("node:A", "node:B"))
        line.come(pool, "behind wide", claim("node:B"))  # B is free, and still it does not overtake
        line.come(pool, "stranger", claim("node:C"))
        line.come(pool, "elsewhere", claim("node:A", branch="june"))
        line.wait_for("first", "stranger", "elsewhere")
        line.come(pool, "reader", claim("edge:E", read="node:C"))
        line.come(pool, "everything", Claim("main", None))
        line.free["first"].set()
        line.wait_for("first", "stranger", "elsewhere", "wide")
        line.free["wide"].set()
        line.wait_for("first", "stranger", "elsewhere", "wide", "behind wide")
        line.free["stranger"].set()
        line.wait_for("first", "stranger", "elsewhere", "wide", "behind wide", "reader")
        line.free["reader"].set()
        line.free["behind wide"].set()
        line.wait_for("first", "stranger", "elsewhere", "wide", "behind wide", "reader", "everything")
        for event in line.free.values():
            event.set()

    assert line.went.index("wide") < line.went.index("behind wide") < line.went.index("everything")
    assert not line.turns._line


def test_two_readers_of_a_table_do_not_meet() -> None:
    assert not claim("edge:E", read="node:A").meets(claim("edge:F", read="node:A"))
    assert claim("edge:E", read="node:A").meets(claim("node:A"))
    assert claim("node:A").meets(claim("edge:E", read="node:A"))


@pytest.mark.case("engine", 702)
def test_an_interrupted_wait_gives_up_its_place() -> None:
    line = Line()
    main = threading.main_thread().ident
    assert main == threading.get_ident()

    def interrupt() -> None:
        while len(line.turns._line) < 2:
            threading.Event().wait(0.001)
        signal.pthread_kill(main, signal.SIGINT)

    with ThreadPoolExecutor(3) as pool:
        line.come(pool, "first", claim("node:A"))
        interrupting = pool.submit(interrupt)
        with pytest.raises(KeyboardInterrupt), line.turns.turn(claim("node:A")):
            raise AssertionError("it is another one's turn")
        interrupting.result(60)
        line.come(pool, "behind", claim("node:A"))
        for event in line.free.values():
            event.set()

    assert line.went == ["first", "behind"]
    assert not line.turns._line


@pytest.mark.case("engine", 702)
@pytest.mark.parametrize("is_shielded", [False, True])
def test_an_interrupt_on_the_way_out_is_raised_when_the_turn_is_given_up(*, is_shielded: bool) -> None:
    """Before the shield is up an interrupt cuts the way out short; behind that it waits."""
    cut = [KeyboardInterrupt()]

    class Interrupted(Turns):
        def _leave(self, ticket: Ticket) -> None:
            if cut:
                interrupt = cut.pop()
                if not is_shielded:
                    raise interrupt
                signal.raise_signal(signal.SIGINT)
            super()._leave(ticket)

    turns = Interrupted()
    with pytest.raises(KeyboardInterrupt), turns.turn(claim("node:A")):
        pass

    assert not turns._line
    with turns.turn(claim("node:A")) as ticket:
        assert turns._line == [ticket]


@pytest.mark.case("engine", 702)
def test_a_write_from_within_a_write_goes_on_with_its_turn(graph: Graph) -> None:
    with failpoint(GATE, call=once(lambda: graph.mutate(person("inner")))):
        graph.mutate(person("outer"))

    assert ids(graph, "Person") == ["inner", "outer"]
    assert_settled(graph)


# A lost race


@pytest.mark.case("engine", 703)
@pytest.mark.parametrize(
    "text",
    [
        'insert Person { name: "ann", age: 2 }',
        'update Person set { age: 2 } where name = "ann"',
        'delete Person where name = "zoe"',
    ],
)
def test_a_lost_race_is_run_again_on_what_the_winner_left(graph: Graph, text: str) -> None:
    graph.load(ndjson([node("Person", name="ann", age=1), node("Person", name="zoe")]), "append")
    rival = reopen(graph)

    with failpoint(GATE, call=once(lambda: rival.mutate(person("bob")))):
        result = graph.mutate(mutation(text))

    assert result.affected_nodes == 1
    assert result.commit == head(graph)
    expected = ["ann", "bob"] if text.startswith("delete") else ["ann", "bob", "zoe"]
    assert ids(graph, "Person") == expected
    assert rows(graph, "Person")["ann"]["age"] == (1 if text.startswith("delete") else 2)
    assert_settled(graph)


@pytest.mark.case("engine", 703)
def test_a_second_run_is_validated_against_what_the_winner_left(tmp_path: Path) -> None:
    graph = new_graph(tmp_path / "unique", "node N { k: String @key  u: String? @unique }")
    rival = reopen(graph)
    theirs = mutation('insert N { k: "theirs", u: "taken" }')

    with (
        failpoint(GATE, call=once(lambda: rival.mutate(theirs))),
        pytest.raises(ValidationError, match="@unique"),
    ):
        graph.mutate(mutation('insert N { k: "mine", u: "taken" }'))

    assert ids(graph, "N") == ["theirs"]
    assert_settled(graph)


@pytest.mark.case("engine", 704)
@pytest.mark.parametrize(
    "text", ['update Person set { age: 2 } where name = "ann"', 'delete Person where name = "ann"']
)
def test_a_second_run_that_matches_nothing_is_a_no_op(graph: Graph, text: str) -> None:
    graph.mutate(ANN)
    rival = reopen(graph)
    remove = mutation('delete Person where name = "ann"')

    with failpoint(GATE, call=once(lambda: rival.mutate(remove))):
        result = graph.mutate(mutation(text))

    assert (result.commit, result.affected_nodes, result.affected_edges) == (None, 0, 0)
    assert len(chain(graph)) == 3
    assert_settled(graph)


@pytest.mark.case("engine", 705)
def test_when_the_time_has_passed_the_conflict_is_raised(graph: Graph) -> None:
    rival = reopen(graph)
    names = (f"rival{number}" for number in range(1_000))
    inside: list[bool] = []

    def overtake() -> None:
        if inside:
            return
        inside.append(True)
        rival.mutate(person(next(names)))
        inside.clear()

    with failpoint(GATE, call=overtake), pytest.raises(ExpectedVersionMismatch) as caught:
        graph.mutate(ANN, retry=0.2)

    assert caught.value.table_key == "node:Person"
    assert caught.value.recovery_operation_id is None
    assert len(ids(graph, "Person")) >= 2, "it was run again at least once"
    assert "ann" not in ids(graph, "Person")
    assert_settled(graph)


@pytest.mark.case("engine", 706)
def test_a_precondition_is_never_run_again(graph: Graph) -> None:
    graph.mutate(person("zoe"))
    required = head(graph).graph_commit_id
    rival = reopen(graph)
    hits: list[bool] = []

    def overtake() -> None:
        hits.append(True)
        if len(hits) == 1:
            rival.mutate(person("bob"))

    with failpoint(GATE, call=overtake), pytest.raises(PreconditionFailed):
        graph.mutate(ANN, if_commit=required)

    assert len(hits) == 2, "ours and the rival's"
    assert ids(graph, "Person") == ["bob", "zoe"]
    assert_settled(graph)


@pytest.mark.case("engine", 706)
def test_a_precondition_whose_table_is_taken_at_the_door_is_not_run_again(graph: Graph) -> None:
    graph.mutate(person("zoe"))
    rival = foreign(graph)

    with (
        failpoint("write.post_gate_pre_sidecar", call=once(lambda: rival.mutate(person("bob")))),
        pytest.raises(ExpectedVersionMismatch),
    ):
        graph.mutate(ANN, if_commit=head(graph).graph_commit_id)

    assert ids(graph, "Person") == ["bob", "zoe"]
    assert_settled(graph)


@pytest.mark.case("engine", 707)
def test_an_unknown_outcome_is_never_run_again(graph: Graph) -> None:
    hits: list[bool] = []

    with (
        failpoint(GATE, call=lambda: hits.append(True)),
        failpoint("write.post_finalize_pre_publisher", "raise:once"),
        pytest.raises(RecoveryRequired),
    ):
        graph.mutate(ANN)

    assert hits == [True]
    graph.mutate(person("bob"))
    assert ids(graph, "Person") == ["ann", "bob"]
    assert_settled(graph)


@pytest.mark.case("engine", 708)
@pytest.mark.parametrize("mode", ["append", "merge"])
def test_a_load_that_lost_a_race_is_run_again(graph: Graph, mode: str) -> None:
    rival = reopen(graph)

    with failpoint(GATE, call=once(lambda: rival.mutate(person("bob")))):
        result = graph.load(ndjson([node("Person", name="ann")]), mode, index=False)  # type: ignore[arg-type]

    assert result.commit == head(graph)
    assert ids(graph, "Person") == ["ann", "bob"]
    assert_settled(graph)


@pytest.mark.case("engine", 708)
@pytest.mark.parametrize(("mode", "retry"), [("append", 0), ("overwrite", None)])
def test_a_load_that_asks_for_it_or_replaces_tables_is_not(
    graph: Graph, mode: str, retry: int | None
) -> None:
    rival = reopen(graph)

    with (
        failpoint(GATE, call=once(lambda: rival.mutate(person("bob")))),
        pytest.raises(ExpectedVersionMismatch),
    ):
        graph.load(ndjson([node("Person", name="ann")]), mode, index=False, retry=retry)  # type: ignore[arg-type]

    assert ids(graph, "Person") == ["bob"]
    assert_settled(graph)


@pytest.mark.case("engine", 708)
def test_loads_and_mutations_of_one_handle_take_turns(graph: Graph) -> None:
    def load(name: str) -> object:
        return graph.load(ndjson([node("Person", name=name)]), "append", index=False, retry=0)

    def insert(name: str) -> MutationResult:
        return graph.mutate(person(name), retry=0)

    outcomes = together(
        *(partial(load, f"l{number}") for number in range(4)),
        *(partial(insert, f"m{number}") for number in range(4)),
    )

    assert not [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    assert len(ids(graph, "Person")) == 8
    assert_settled(graph)


# How long


@pytest.mark.case("surfaces", 450)
@pytest.mark.parametrize("retry", [-1, True, "10", float("nan"), float("inf"), 86_401, 10**400])
def test_what_is_no_number_of_seconds_is_refused(graph: Graph, retry: object) -> None:
    with pytest.raises(BadRequest, match="retry must be a number of seconds from 0 to 86400"):
        graph.mutate(ANN, retry=retry)  # type: ignore[arg-type]
    with pytest.raises(BadRequest, match="retry must be a number of seconds"):
        graph.load(ndjson([node("Person", name="ann")]), "append", retry=retry)  # type: ignore[arg-type]

    assert ids(graph, "Person") == []


@pytest.mark.case("surfaces", 450)
def test_the_time_is_ten_seconds_unless_it_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(WRITE_RETRY, raising=False)
    assert write_retry_s() == 10.0
    monkeypatch.setenv(WRITE_RETRY, "3")
    assert (write_retry_s(), write_retry_s(0), write_retry_s(0.5)) == (3.0, 0.0, 0.5)
    monkeypatch.setenv(WRITE_RETRY, "soon")
    assert write_retry_s() == 10.0


def test_patience_begins_with_the_first_lost_race(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    patched(monkeypatch, "omnigraph.operations.retry.boot_clock", lambda: now[0])
    patience, none = RetryTime(10.0), RetryTime(0.0)
    now[0] = 500.0  # the first attempt took long

    assert (patience.is_over, none.is_over) == (False, True)
    now[0] = 509.0
    assert not patience.is_over
    now[0] = 510.0
    assert patience.is_over


def test_pauses_grow_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(threading.Event, "wait", lambda _self, time_s: waited.append(time_s))
    patience = RetryTime(1_000.0)
    monkeypatch.setattr(patience._random, "uniform", lambda _least, most: most)

    for _ in range(9):
        patience.pause()

    assert waited == [PAUSE_S * 2**number for number in range(6)] + [PAUSE_S_MAX] * 3
