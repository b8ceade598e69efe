"""What a write costs: counts, never times."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from omnigraph.commit.publish import UPKEEP_INTERVAL
from omnigraph.core.failpoint import failpoint
from omnigraph.graph.graph import Graph
from omnigraph.graph.opening import init
from omnigraph.graph.opening import open as open_graph
from omnigraph.history.fold import where_equal
from tests.engine.counting import Scans, listings
from tests.support.deep_graph import seed_commits
from tests.support.engine import PEOPLE, Counts, counts, ndjson, node, people, reopen
from tests.support.queries import mutation
from tests.support.seam import internals
from tests.support.tables import put_rows


def insert(graph: Graph, number: int) -> None:
    """Insert one person."""
    graph.mutate(mutation(f'insert Person {{ name: "p{number}" }}'))


@pytest.fixture
def warm(graph: Graph) -> Graph:
    """A handle five commits deep that has seen them all."""
    graph.load(ndjson([node("Person", name="zoe")]), "append")
    for number in range(5):
        insert(graph, number)
    return graph


# Scans


@pytest.mark.case("engine", 141)
def test_a_write_on_a_warm_handle_scans_no_fragment_twice(
    warm: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    scans, other = Scans(monkeypatch), reopen(warm)
    scans.taken()

    insert(warm, 10)
    assert scans.taken() == []  # what it published itself it has folded already

    for number in range(3):
        insert(other, 20 + number)
        scans.taken()
        insert(warm, 30 + number)
        made = scans.taken()
        assert len(made) == 1
        assert made[0][0] <= 2  # the rival's publish, and on the first round its warm-up
        assert made[0][0] < made[0][1]


@pytest.mark.case("engine", 141)
def test_each_further_attempt_scans_once_and_only_what_is_new(
    warm: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinator = internals(reopen(warm)).parts.coordinator
    scans = Scans(monkeypatch)
    attempts: list[list[tuple[int, int]]] = []

    def publish_first() -> None:
        attempts.append(scans.taken())
        if len(attempts) > 3:
            return
        handle = coordinator.manifest.open_fresh(coordinator.address())
        rows = where_equal(coordinator.manifest.read(handle), "object_type", "graph_head")
        put_rows(coordinator.manifest, handle, rows)  # as a publish on another host would
        scans.taken()

    with failpoint("publish.before_update", call=publish_first):
        insert(warm, 10)

    assert [len(made) for made in attempts] == [0, 1, 1, 1]
    assert all(read == 1 < whole for made in attempts[1:] for read, whole in made)


@pytest.mark.case("engine", 142)
def test_an_uncontended_write_stays_within_its_budget(warm: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    scans = Scans(monkeypatch)
    insert(warm, 10)
    scans.taken()
    before = counts(warm)

    with listings() as listed:
        insert(warm, 11)

    spent = counts(warm) - before
    assert len(scans.taken()) <= 2
    assert spent.reads <= 8, spent
    assert spent.writes <= 9, spent
    assert [Path(folder).name for folder in listed] == ["__recovery"]


def test_durability_process_syncs_nothing_and_full_a_fixed_number(warm: Graph) -> None:
    insert(warm, 10)
    assert counts(warm).fsyncs == 0

    synced = open_graph(warm.uri, durability="full")
    insert(synced, 11)
    spent = []
    for number in range(3):
        before = counts(synced)
        insert(synced, 12 + number)
        spent.append((counts(synced) - before).fsyncs)
    assert len(set(spent)) == 1
    assert 0 < spent[0] <= 14


def test_a_round_of_upkeep_reads_no_ids_again(warm: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    scanner = lance.LanceDataset.scanner
    scanned: list[object] = []

    def watched(dataset: lance.LanceDataset, columns: object = None, **more: object) -> object:
        scanned.append(columns)
        return scanner(dataset, columns, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(lance.LanceDataset, "scanner", watched)

    for number in range(10, 10 + 2 * UPKEEP_INTERVAL):
        insert(warm, number)

    assert [columns for columns in scanned if columns == ["id"]] == []


# Depth


@dataclass(frozen=True, slots=True)
class Cost:
    """What one round of upkeep asked of the disk."""

    reads: int
    writes: int
    fsyncs: int
    lists: int
    commits: int

    @property
    def total(self) -> int:
        """All of them together."""
        return self.reads + self.writes + self.fsyncs + self.lists


def period(graph: Graph, number: int) -> tuple[Cost, int]:
    """Return what one whole round of the manifest's upkeep costs, and the next free number.

    It begins right after a compaction and ends with the next one, so that both rounds of a comparison
    see every phase once.
    """
    first = _until_compacted(graph, number)
    before = counts(graph)
    with listings() as listed:
        last = _until_compacted(graph, first)
    spent = counts(graph) - before
    return Cost(spent.reads, spent.writes, spent.fsyncs, len(listed), last - first), last


def _until_compacted(graph: Graph, number: int) -> int:
    fragments = len(internals(graph).state().fragments)
    while True:
        insert(graph, number)
        number += 1
        now = len(internals(graph).state().fragments)
        if now < fragments:
            return number
        fragments = now


def _deepen(root: Path, first: int, last: int) -> None:
    with reopen(root) as graph:
        for number in range(first, last):
            insert(graph, number)


def _new_graph(root: Path) -> None:
    with init(root, PEOPLE, durability="process") as graph:
        graph.load(ndjson([node("Person", name="zoe")]), "append")


def _assert_flat(root: Path, depths: Sequence[int]) -> None:
    _new_graph(root)
    spent, number = [], 0
    for depth in depths:
        _deepen(root, number, depth)
        with open_graph(root, durability="full") as graph:
            costs, number = period(graph, max(number, depth))
        spent.append(costs)
    # One look for sidecars per write; what upkeep lists besides are the folders of its new index segments.
    assert all(costs.lists - costs.commits <= 8 for costs in spent), spent
    assert {costs.commits for costs in spent} == {UPKEEP_INTERVAL}
    assert max(costs.total for costs in spent) <= min(costs.total for costs in spent) * 1.02, (depths, spent)


def test_a_round_of_upkeep_costs_the_same_at_depth_10_and_140(tmp_path: Path) -> None:
    _assert_flat(tmp_path / "graph", [10, 140])  # where the first measurement ends, or a little later


@pytest.mark.slow
def test_a_round_of_upkeep_costs_the_same_at_depth_10_and_1000(tmp_path: Path) -> None:
    _assert_flat(tmp_path / "graph", [10, 1_000])


@pytest.mark.slow
@pytest.mark.case("engine", 142)
def test_a_round_of_upkeep_costs_the_same_at_any_depth(tmp_path: Path) -> None:
    """The tables are the same at every depth, so that nothing but the number of commits can cost more."""
    _new_graph(tmp_path / "10")
    _deepen(tmp_path / "10", 0, 7)  # and the genesis, the load, its indexes
    for depth in (5_000, 100_000):
        shutil.copytree(tmp_path / "10", tmp_path / str(depth))
        deeper = reopen(tmp_path / str(depth))
        seed_commits(deeper, "node:Person", depth - len(internals(deeper).state().commits))

    spent = []
    for depth in (10, 5_000, 100_000):
        with open_graph(tmp_path / str(depth), durability="full") as graph:
            assert len(internals(graph).state().commits) == depth
            spent.append(period(graph, depth)[0])

    assert {costs.commits for costs in spent} == {UPKEEP_INTERVAL}
    assert len({(costs.writes, costs.fsyncs, costs.lists) for costs in spent}) == 1, spent
    assert max(costs.total for costs in spent) <= min(costs.total for costs in spent) * 1.02, spent


def test_an_update_by_key_looks_the_row_up(tmp_path: Path) -> None:
    with init(tmp_path / "graph", PEOPLE, durability="process") as graph:
        graph.load({"Person": people(*(f"p{number:06d}" for number in range(100_000)))}, "append")
        update = 'query touch() { update Person set { age: 30 } where name = "p012345" }'
        graph.mutate(update)
        store = internals(graph).parts.store
        before = store.io_stats().read_bytes

        graph.mutate(update)

        assert store.io_stats().read_bytes - before < 100_000  # the keys alone have eight times as much


def _costs_of_updates(root: Path, size: int, places: Sequence[float]) -> list[Counts]:
    """Return what updates of one row cost in a table of some size, one after the other on a warm handle."""
    names = pc.utf8_lpad(pa.array(range(size)).cast(pa.utf8()), 7, "0")
    with init(root, PEOPLE, durability="process") as graph:
        graph.load({"Person": pa.table({"name": names})}, "append")
    costs = []
    with open_graph(root, durability="full") as graph:
        for age, place in enumerate([0.5, *places]):
            before = counts(graph)
            graph.mutate(mutation(f'update Person set {{ age: {age} }} where name = "{int(place):07}"'))
            costs.append(counts(graph) - before)
    return costs[1:]


@pytest.mark.slow
@pytest.mark.case("engine", 347)
def test_an_update_by_key_costs_the_same_at_100_000_and_at_3_000_000_rows(tmp_path: Path) -> None:
    small, large = 100_000, 3_000_000
    near = [12_345, 50_000, 77, 99_999, 23]

    few = _costs_of_updates(tmp_path / "few", small, near)
    many = _costs_of_updates(tmp_path / "many", large, near)

    assert many == few


@pytest.mark.slow
@pytest.mark.case("engine", 347)
def test_rows_all_over_a_table_cost_one_more_fragment_each_and_no_more(tmp_path: Path) -> None:
    shares = [0.1, 0.9, 0.3, 0.7, 0.25, 0.75]
    small, large = 100_000, 1_000_000

    few = _costs_of_updates(tmp_path / "few", small, [share * small for share in shares])
    many = _costs_of_updates(tmp_path / "many", large, [share * large for share in shares])

    assert [(cost.writes, cost.fsyncs) for cost in many] == [(cost.writes, cost.fsyncs) for cost in few]
    # The first look into a fragment opens its file; the number of rows has no part in that.
    assert all(more.reads - less.reads <= 6 for more, less in zip(many, few, strict=True)), (few, many)
