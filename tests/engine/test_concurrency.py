"""Writers and readers at once, in threads of one process."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from omnigraph.catalog.arrow_schema import with_moments
from omnigraph.core.errors import (
    ConflictError,
    ExpectedVersionMismatch,
    InvariantViolation,
    ValidationError,
)
from omnigraph.core.failpoint import failpoint
from omnigraph.exec.mutation import CommittedTables
from omnigraph.graph.graph import Graph
from omnigraph.history.commits import MAINTENANCE_ACTOR, GraphCommit
from omnigraph.operations.mutate import MutationResult
from omnigraph.storage.tables.handle import SnapshotHandle
from omnigraph.storage.tables.table import HANDLES_MAX, TableStore
from tests.support.engine import (
    assert_settled,
    chain,
    edge,
    head,
    ids,
    ndjson,
    new_graph,
    node,
    reopen,
    rows,
    table_path,
    together,
)
from tests.support.queries import mutation
from tests.support.seam import internals
from tests.support.tables import Workbench, names
from tests.support.tables import rows as table_rows

EIGHT = "\n".join(f"node T{number} {{ name: String @key }}" for number in range(8))


def insert(graph: Graph, type_name: str, name: str, *, retry: float | None = None) -> MutationResult:
    """Insert one keyed node."""
    return graph.mutate(mutation(f'insert {type_name} {{ name: "{name}" }}'), retry=retry)


def writes_in(commit: GraphCommit) -> int:
    """Return how many writes a commit is."""
    return len(commit.operations) or 1


def until_it_lands(call: Callable[[], object]) -> int:
    """Retry a write as a caller does, and return how many conflicts it met."""
    for conflicts in range(1_000):
        try:
            call()
        except ConflictError:
            continue
        return conflicts
    raise AssertionError("a thousand conflicts in a row")


class Meeting:
    """Lets the first so many threads that pass a place go on together."""

    def __init__(self, parties: int) -> None:
        self._barrier = threading.Barrier(parties, timeout=30)
        self._left = parties
        self._lock = threading.Lock()

    def __call__(self) -> None:
        with self._lock:
            is_one = self._left > 0
            self._left -= 1
        if is_one:
            self._barrier.wait()


# Writers


@pytest.mark.case("engine", 132)
def test_of_two_writers_of_one_table_from_one_pin_one_wins(graph: Graph) -> None:
    for number in range(5):
        sides = [graph, reopen(graph)]
        before = len(graph.commits())

        with failpoint("write.post_stage_pre_gate", call=Meeting(2)):
            outcomes = together(
                *(
                    partial(insert, side, "Person", f"r{number}s{place}", retry=0)
                    for place, side in enumerate(sides)
                )
            )

        (winner,) = [place for place, outcome in enumerate(outcomes) if isinstance(outcome, MutationResult)]
        assert isinstance(outcomes[1 - winner], ExpectedVersionMismatch)
        assert len(graph.commits()) == before + 1
        assert [key for key in ids(graph, "Person") if key.startswith(f"r{number}")] == [
            f"r{number}s{winner}"
        ]
        assert_settled(graph)


@pytest.mark.case("engine", 135)
@pytest.mark.parametrize("place", ["write.post_stage_pre_gate", "write.post_finalize_pre_publisher"])
def test_writers_of_disjoint_tables_both_commit(graph: Graph, place: str) -> None:
    other = reopen(graph)

    with failpoint(place, call=Meeting(2)):
        outcomes = together(
            partial(insert, graph, "Person", "ann"), partial(insert, other, "Company", "acme")
        )

    assert all(isinstance(outcome, MutationResult) for outcome in outcomes)
    commits = {outcome.commit for outcome in outcomes if isinstance(outcome, MutationResult)}
    assert set(chain(graph)[1:]) == commits
    assert len(chain(graph)) == 3
    assert_settled(graph)


@pytest.mark.case("engine", 136)
@pytest.mark.parametrize("handles", ["shared", "own"])
def test_eight_writers_of_eight_tables_make_one_chain(tmp_path: Path, handles: str) -> None:
    graph = new_graph(tmp_path / "eight", EIGHT)
    sides = [graph if handles == "shared" else reopen(graph) for _ in range(8)]

    with failpoint("write.post_stage_pre_gate", call=Meeting(8)):
        outcomes = together(
            *(
                partial(until_it_lands, partial(insert, side, f"T{number}", "x"))
                for number, side in enumerate(sides)
            )
        )

    assert not [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    assert len(chain(graph)) == 9
    assert internals(graph).state().heads == {"main": head(graph).graph_commit_id}
    assert all(ids(graph, f"T{number}") == ["x"] for number in range(8))
    assert_settled(graph)


class Crowd:
    """Writers of all kinds on four tables, each with what it did."""

    def __init__(self, root: Path, writers: int) -> None:
        self.graph = new_graph(root, _SCHEMA, *_START)
        self.sides = [self.graph if number % 2 else reopen(self.graph) for number in range(writers)]
        self.landed: Counter[str] = Counter()
        self._lock = threading.Lock()

    def work(self, number: int, goes_on: Callable[[int], bool]) -> None:
        """Insert, update, delete and load in turn, as long as it goes on."""
        graph, step = self.sides[number], 0
        while goes_on(step):
            name = f"w{number}s{step}"
            kind, call = self._step(graph, name, step)
            until_it_lands(call)
            with self._lock:
                self.landed[kind] += 1
            step += 1

    def _step(self, graph: Graph, name: str, step: int) -> tuple[str, Callable[[], object]]:
        previous = f"{name.partition('s')[0]}s{step - 5}"
        match step % 6:
            case 0:
                return "person", partial(insert, graph, "Person", name)
            case 1:
                return "company", partial(insert, graph, "Company", name)
            case 2:
                text = mutation(f'insert Knows {{ from: "p{step % 4}", to: "p0" }}')
                return "knows", partial(graph.mutate, text)
            case 3:
                record = ndjson([edge("WorksAt", f"w{name}", "c0", id=name), node("Person", name=f"w{name}")])
                return "works", partial(graph.load, record, "merge", index=False)
            case 4:
                text = mutation(f'update Person set {{ age: {step} }} where name = "p1"')
                return "update", partial(graph.mutate, text)
            case _:
                return "delete", partial(graph.mutate, mutation(f'delete Person where name = "{previous}"'))

    def check(self) -> None:
        """Check that everything that was acknowledged is there, once, and nothing else."""
        graph, landed = reopen(self.graph), self.landed
        writes = [commit for commit in chain(graph)[2:] if commit.actor_id is None]
        assert sum(map(writes_in, writes)) == landed.total()
        assert len(ids(graph, "Person")) == 4 + landed["person"] + landed["works"] - landed["delete"]
        assert len(ids(graph, "Company")) == 1 + landed["company"]
        assert len(ids(graph, "Knows")) == landed["knows"]
        assert len(ids(graph, "WorksAt")) == landed["works"]
        for key, entry in graph.snapshot().entries.items():
            assert entry.row_count == len(rows(graph, key.split(":")[1]))
        assert_settled(graph)


_SCHEMA = """\
node Person  { name: String @key  age: I32? }
node Company { name: String @key }
edge Knows:   Person -> Person
edge WorksAt: Person -> Company
"""
_START = [*(node("Person", name=f"p{number}") for number in range(4)), node("Company", name="c0")]


@pytest.mark.case("surfaces", 194)
def test_two_threads_that_share_a_handle_lose_no_update(graph: Graph) -> None:
    def work(prefix: str) -> None:
        for number in range(50):
            until_it_lands(partial(insert, graph, "Person", f"{prefix}{number}"))

    outcomes = together(partial(work, "a"), partial(work, "b"))

    assert outcomes == [None, None]
    written = [commit for commit in chain(graph)[1:] if commit.actor_id != MAINTENANCE_ACTOR]
    assert sum(map(writes_in, written)) == 100
    assert set(ids(graph, "Person")) == {f"{prefix}{number}" for prefix in "ab" for number in range(50)}
    assert_settled(graph)


def test_a_small_crowd_loses_nothing(tmp_path: Path) -> None:
    crowd = Crowd(tmp_path / "crowd", writers=6)

    outcomes = together(*(partial(crowd.work, number, lambda step: step < 6) for number in range(6)))

    assert outcomes == [None] * 6
    crowd.check()


@pytest.mark.slow
@pytest.mark.case("engine", 149)
def test_thirty_two_writers_for_ten_seconds_lose_nothing(tmp_path: Path) -> None:
    crowd = Crowd(tmp_path / "crowd", writers=32)
    end = time.monotonic() + 10

    outcomes = together(
        *(partial(crowd.work, number, lambda _: time.monotonic() < end) for number in range(32))
    )

    assert outcomes == [None] * 32
    assert crowd.landed.total() > 32
    crowd.check()


def test_readers_of_a_shared_handle_see_whole_commits(graph: Graph) -> None:
    stop = threading.Event()

    def write() -> None:
        for number in range(15):
            text = f'insert Person {{ name: "p{number}" }} insert Company {{ name: "p{number}" }}'
            graph.mutate(mutation(text))
        stop.set()

    def read() -> int:
        reads = 0
        while not stop.is_set() or reads == 0:
            snapshot = graph.snapshot()
            counts = {snapshot.entry(key).row_count for key in ("node:Person", "node:Company")}
            assert len(counts) == 1
            assert snapshot.head == graph.commit(snapshot.head.graph_commit_id)
            reads += 1
        return reads

    outcomes = together(write, read, read)

    assert not [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    assert len(ids(graph, "Person")) == 15


# Handles and attempts


def test_the_cache_of_handles_is_safe_to_share(tmp_path: Path) -> None:
    bench = Workbench(tmp_path)
    versions = [bench.append(table_rows([name])).version for name in names(8)]
    store = TableStore()

    def look(side: int) -> list[tuple[int, int]]:
        found = []
        for turn in range(20):
            version = versions[(side + turn) % len(versions)]
            handle: SnapshotHandle = store.open_at(bench.address, version)
            found.append((handle.version - version, store.count_rows(handle) - versions.index(version) - 1))
            store.latest_version(bench.address)
            store.io_stats()
        return found

    outcomes = together(*(partial(look, side) for side in range(8)))

    assert outcomes == [[(0, 0)] * 20] * 8
    cached = [store.open_at(bench.address, version) for version in versions]
    assert [store.open_at(bench.address, version) for version in versions] == cached
    assert len(store._handles) <= HANDLES_MAX


def test_a_staged_write_is_spent_after_any_commit(tmp_path: Path) -> None:
    bench = Workbench(tmp_path)
    bench.append(table_rows(["a"]))
    base = bench.head()
    winner, loser = (bench.stager.stage_append(base, table_rows([name])) for name in ("b", "c"))
    bench.commit(winner)

    with pytest.raises(ConflictError):
        bench.commit(loser)
    for spent in (winner, loser):
        with pytest.raises(InvariantViolation):
            bench.commit(spent)

    assert sorted(bench.ids()) == ["a", "b"]


def test_a_retry_starts_from_a_fresh_base(tmp_path: Path) -> None:
    graph = new_graph(tmp_path / "unique", "node N { k: String @key  u: String? @unique }")
    rival = reopen(graph)
    bases: list[int] = []

    def write() -> MutationResult:
        return graph.mutate(mutation('insert N { k: "mine", u: "taken" }'), retry=0)

    def overtake() -> None:
        bases.append(graph.snapshot().entry("node:N").version)
        if len(bases) == 1:
            rival.mutate(mutation('insert N { k: "theirs", u: "taken" }'))

    with failpoint("write.post_stage_pre_gate", call=_guarded(overtake)):
        with pytest.raises(ExpectedVersionMismatch):
            write()
        # The second attempt validates against what the rival wrote: nothing of the first is used again.
        with pytest.raises(ValidationError, match="@unique"):
            write()

    assert ids(graph, "N") == ["theirs"]
    assert_settled(graph)


def _guarded(call: Callable[[], None]) -> Callable[[], None]:
    """Return a call that does not enter itself: a rival passes the same places."""
    inside: list[bool] = []

    def guarded() -> None:
        if inside:
            return
        inside.append(True)
        call()
        inside.clear()

    return guarded


def test_maintenance_in_between_is_prepared_again_without_the_caller(graph: Graph) -> None:
    graph.load(ndjson([node("Person", name="zoe")]), "append", index=False)
    other = reopen(graph)
    passes: list[int] = []

    def build() -> None:
        passes.append(len(passes))
        if len(passes) == 1:
            other.ensure_indices()

    with failpoint("write.post_stage_pre_gate", call=build):
        result = graph.mutate(mutation('update Person set { age: 7 } where name = "zoe"'))

    assert len(passes) == 2
    assert result.affected_nodes == 1
    assert rows(graph, "Person")["zoe"]["age"] == 7
    assert [commit.actor_id for commit in chain(graph)[2:]] == ["omnigraph:maintenance", None]


@pytest.mark.case("engine", 298)
def test_a_table_opened_through_an_attempt_is_at_the_captured_base(library: Graph) -> None:
    parts = internals(library).parts
    snapshot = library.snapshot()
    captured = {key: rows(library, key.split(":")[1]) for key in snapshot.entries}
    attempt = CommittedTables(snapshot, parts.store, parts.pinned)

    # HEAD of every table moves: by another handle's commits, and by one that nobody published.
    other = reopen(library)
    for statement in ('delete Book where code = "AA-2"', 'insert Shelf { room: "east", slot: 1 }'):
        other.mutate(mutation(statement))
    place = table_path(library, "node:Author")
    Workbench(place.parent, name=place.name).delete(["dot"])

    for store in (parts.store, TableStore()):
        attempt = CommittedTables(snapshot, store, parts.pinned)
        for key, entry in snapshot.entries.items():
            assert attempt.handle(key).version == entry.version
            table = with_moments(attempt.scan(key).sort_by("id")).to_pylist()
            assert {row["id"]: row for row in table} == captured[key]
    # Nobody published the last one: every opener, old and new, still shows the pin.
    for opened in (library, other, reopen(library, mode="ro")):
        assert rows(opened, "Author") == captured["node:Author"]
        assert opened.snapshot().entry("node:Author").version == snapshot.entry("node:Author").version
        assert opened.index_status()
