"""Threads that write one handle at random, against a model that runs their operations in commit order."""

import random
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from omnigraph.core.errors import ValidationError
from omnigraph.graph.graph import Graph
from omnigraph.graph.opening import init
from omnigraph.history.commits import MAINTENANCE_ACTOR
from omnigraph.operations.mutate import MutationResult
from tests.models.groups.model import (
    SCHEMA,
    Insert,
    InsertFriends,
    Link,
    Model,
    Operation,
    Refused,
    Remove,
    SetAge,
    SetMail,
)
from tests.support.engine import assert_settled, rows

THREADS, STEPS = 5, 10
NAMES, MAILS = [f"p{number}" for number in range(6)], [f"m{number}@x" for number in range(4)]


@dataclass
class Call:
    """One call of a thread: its operation, its name in the commit, and what became of it."""

    thread: int
    name: str
    operation: Operation
    outcome: MutationResult | ValidationError | None = None

    @property
    def commit_id(self) -> str | None:
        done = self.outcome
        return done.commit.graph_commit_id if isinstance(done, MutationResult) and done.commit else None


def random_operation(chance: random.Random) -> Operation:
    name, other = chance.choice(NAMES), chance.choice(NAMES)
    age, mail = chance.randrange(4), chance.choice(MAILS)
    choices: list[Operation] = [
        Insert(name, age, chance.choice([mail, None])),
        InsertFriends(name, other),
        SetAge(age, chance.randrange(4)),
        SetMail(name, mail),
        Link(name, other),
        Remove(name),
    ]
    return chance.choices(choices, weights=[4, 2, 3, 3, 3, 1])[0]


def play(graph: Graph, programs: Sequence[Sequence[Call]]) -> None:
    """Let every thread make its calls, beginning together."""
    start = threading.Barrier(len(programs))
    failed: list[BaseException] = []

    def work(program: Sequence[Call]) -> None:
        try:
            start.wait(60)
            for call in program:
                text = f"query {call.name}() {{ {call.operation.text} }}"
                try:
                    call.outcome = graph.mutate(text, actor=f"t{call.thread}")
                except ValidationError as error:
                    call.outcome = error
        except BaseException as error:  # noqa: BLE001 - raised below
            failed.append(error)

    threads = [threading.Thread(target=work, args=(program,)) for program in programs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert not failed, failed


def in_commit_order(graph: Graph, calls: Sequence[Call]) -> list[Call]:
    """Return the calls that have a commit, in the order of commits and of their operations."""
    by_name = {call.name: call for call in calls}
    ordered: list[Call] = []
    for commit in reversed(graph.commits()[:-1]):
        if commit.actor_id == MAINTENANCE_ACTOR:
            continue
        mine = [call for call in calls if call.commit_id == commit.graph_commit_id]
        if commit.operations:
            listed = [by_name[operation.query_name] for operation in commit.operations]
            assert sorted(call.name for call in mine) == sorted(call.name for call in listed)
            for call, operation in zip(listed, commit.operations, strict=True):
                assert operation.actor_id == f"t{call.thread}"
                assert isinstance(call.outcome, MutationResult)
                counts = (call.outcome.affected_nodes, call.outcome.affected_edges)
                assert counts == (operation.affected_nodes, operation.affected_edges)
            mine = listed
        assert mine, "every commit is somebody's"
        ordered += mine
    return ordered


def check(graph: Graph, programs: Sequence[Sequence[Call]]) -> None:
    """Compare counts, refusals and rows with the model."""
    ordered = in_commit_order(graph, [call for program in programs for call in program])
    states = [Model()]
    for call in ordered:
        model, counts = states[-1].after(call.operation)
        assert isinstance(call.outcome, MutationResult)
        assert (call.outcome.affected_nodes, call.outcome.affected_edges) == counts, call
        states.append(model)
    place = {call.name: number for number, call in enumerate(ordered, start=1)}
    for program in programs:
        least = 0
        for position, call in enumerate(program):
            if call.name in place:
                assert place[call.name] > least, "a thread's own writes land in their order"
                least = place[call.name]
                continue
            later = [place[other.name] for other in program[position:] if other.name in place]
            most = min(later, default=len(ordered) + 1)
            assert any(is_like(states[number], call) for number in range(least, most)), call
    people = {name: (row["age"], row["mail"]) for name, row in rows(graph, "Person").items()}
    assert people == states[-1].people
    edges = sorted((row["src"], row["dst"]) for row in rows(graph, "Knows").values())
    assert edges == sorted(states[-1].knows)


def is_like(state: Model, call: Call) -> bool:
    """Return whether a call without a commit would end like that in a state."""
    try:
        _, counts = state.after(call.operation)
    except Refused:
        return isinstance(call.outcome, ValidationError)
    return isinstance(call.outcome, MutationResult) and counts == (0, 0)


def run(root: Path, seed: int) -> int:
    chance = random.Random(seed)
    programs = [
        [Call(thread, f"t{thread}s{step}", random_operation(chance)) for step in range(STEPS)]
        for thread in range(THREADS)
    ]
    with init(root, SCHEMA, durability="process") as graph:
        play(graph, programs)
        check(graph, programs)
        assert_settled(graph)
        return max(len(commit.operations) for commit in graph.commits())


@pytest.mark.case("engine", 719)
def test_threads_leave_what_their_operations_leave_one_by_one(tmp_path: Path) -> None:
    largest = [run(tmp_path / str(seed), seed) for seed in range(3)]

    assert max(largest) > 1, "some were committed together"


@pytest.mark.slow
@pytest.mark.case("engine", 719)
def test_more_threads_leave_what_their_operations_leave_one_by_one(tmp_path: Path) -> None:
    for seed in range(100, 112):
        run(tmp_path / str(seed), seed)
