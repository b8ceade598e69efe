"""Healing at the entry of a write, the drift guard, and what both leave alone."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import lance
import pytest

import omnigraph
from omnigraph.commit.parts import WriteQueueManager
from omnigraph.core.errors import (
    CommitConflict,
    ConflictError,
    DriftNeedsRepair,
    ExpectedVersionMismatch,
    RecoveryRequired,
)
from omnigraph.core.failpoint import failpoint
from omnigraph.graph.graph import Graph
from omnigraph.operations.context import refresh_coordinator_only
from omnigraph.operations.index_status import IndexState
from tests.support.books import (
    assert_reopening_changes_nothing,
    assert_settled,
    books,
    contents_of,
    fingerprint,
)
from tests.support.protocol import (
    BEFORE,
    SCHEMA,
    TABLE_KEYS,
    WRITERS,
    give_up,
    go_on,
    paused_at,
    sidecars,
    stopped,
    with_extra,
    write_everywhere,
)
from tests.support.seam import internals

pytestmark = pytest.mark.usefixtures("no_syncs")

AFTER_INSERT = WRITERS["insert"].after
TOUCH_COMPANY = 'query touch() { update Company set { city: "Graz" } where name = "acme" }'
TOUCH_PERSON = 'query touch() { update Person set { age: 31 } where name = "ann" }'
PHASE_B = "write.post_finalize_pre_publisher="
COMPANY_TOUCHED = frozenset({("acme", "Graz"), ("ibex", None)})


# Entries


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param("load", marks=pytest.mark.case("engine", 205)),
        pytest.param("mutate", marks=pytest.mark.case("engine", 205)),
        pytest.param("merge", marks=pytest.mark.case("engine", 205)),
        pytest.param("refresh", marks=pytest.mark.case("engine", 206)),
    ],
)
def test_an_entry_heals_without_a_reopen(entry: str, root: Path) -> None:
    """Of case 205 the schema apply is missing, as the verb is."""
    graph = omnigraph.open(root)
    graph.create_branch("july")
    graph.mutate(TOUCH_COMPANY, branch="july")
    give_up(root, "insert", "P3")
    assert contents_of(graph) == BEFORE

    if entry == "load":
        write_everywhere(graph)
    elif entry == "mutate":
        graph.mutate(TOUCH_COMPANY)
    elif entry == "merge":
        graph.merge("july")
    else:
        graph.refresh()

    expected = {
        "load": with_extra(AFTER_INSERT),
        "mutate": {**AFTER_INSERT, "Company": COMPANY_TOUCHED},
        "merge": {**AFTER_INSERT, "Company": COMPANY_TOUCHED},
        "refresh": AFTER_INSERT,
    }[entry]
    assert contents_of(graph) == expected
    assert_settled(root, expected, recoveries=1)


@pytest.mark.case("engine", 206)
def test_a_refresh_heals_and_follows_the_schema(root: Path) -> None:
    graph = omnigraph.open(root)
    with omnigraph.open(root) as other:
        other.apply_schema(SCHEMA.replace("city: String?", "city: String? @index"), index=False)
    give_up(root, "insert", "P3")

    graph.refresh()

    assert [found.property for found in _declared(graph, "node:Company")] == ["id", "city", "name"]
    assert contents_of(graph) == AFTER_INSERT
    assert_settled(root, AFTER_INSERT, recoveries=1)


def _declared(graph: Graph, table_key: str) -> tuple[IndexState, ...]:
    return next(found.indexes for found in graph.index_status() if found.table_key == table_key)


def test_a_read_heals_nothing(root: Path) -> None:
    graph = omnigraph.open(root)
    give_up(root, "insert", "P3")
    before = fingerprint(root)

    graph.snapshot()
    graph.commits()
    graph.recoveries()
    assert contents_of(graph) == BEFORE
    omnigraph.open(root, mode="ro").refresh()

    assert fingerprint(root) == before


@pytest.mark.case("engine", 211)
@pytest.mark.parametrize("point", ["P1", "P2", "P3", "P5"])
def test_a_refresh_of_the_coordinator_alone_touches_no_sidecar(point: str, root: Path) -> None:
    graph = omnigraph.open(root)
    stale = graph.snapshot()
    omnigraph.open(root).mutate(TOUCH_COMPANY)
    give_up(root, "insert", point)
    before = fingerprint(root)

    with failpoint("recovery.sidecar_list", "raise"):  # not even a look
        state = refresh_coordinator_only(internals(graph))

    assert fingerprint(root) == before
    published = books(root).pins
    assert {entry.table_key: entry.version for entry in state.tables.entries()} == published
    assert state.version > stale.manifest_version


@pytest.mark.case("engine", 211)
def test_a_writer_may_refresh_the_coordinator_over_its_own_sidecar(root: Path) -> None:
    graph = omnigraph.open(root)
    seen: list[tuple[bool, int]] = []

    def look() -> None:
        before = fingerprint(root)
        state = refresh_coordinator_only(internals(graph))
        seen.append((fingerprint(root) == before, state.version))

    with paused_at("write.post_finalize_pre_publisher", "call", look):
        WRITERS["insert"].run(graph)

    assert [is_untouched for is_untouched, _ in seen] == [True]
    assert_settled(root, AFTER_INSERT, recoveries=0)


@pytest.mark.case("engine", 207)
def test_a_heal_leaves_the_sidecar_of_another_process_that_lives(root: Path) -> None:
    with stopped(root, "insert", PHASE_B) as script, omnigraph.open(root) as graph:
        (sidecar,) = sidecars(root)
        before = sidecar.read_bytes()

        graph.mutate(TOUCH_COMPANY)

        assert sidecar.read_bytes() == before
        assert books(root).recovery_commits == ()
        go_on(script)
    assert_settled(root, {**AFTER_INSERT, "Company": COMPANY_TOUCHED}, recoveries=0)


@pytest.mark.case("engine", 207)
@pytest.mark.case("engine", 216)
def test_a_heal_and_an_open_leave_the_sidecar_of_another_handle_that_lives(root: Path) -> None:
    writer, other = omnigraph.open(root), omnigraph.open(root)
    seen: list[tuple[object, ...]] = []

    def meanwhile() -> None:
        before = sidecars(root)[0].read_bytes()
        other.mutate(TOUCH_COMPANY)
        omnigraph.open(root).close()
        found = books(root)
        seen.append((sidecars(root)[0].read_bytes() == before, found.recoveries, found.recovery_commits))

    with paused_at("write.post_finalize_pre_publisher", "call", _in_a_thread(meanwhile)):
        WRITERS["insert"].run(writer)

    assert seen == [(True, (), ())]
    assert_settled(root, {**AFTER_INSERT, "Company": COMPANY_TOUCHED}, recoveries=0)


@pytest.mark.case("engine", 216)
def test_an_open_beside_a_process_in_phase_b_changes_nothing(root: Path) -> None:
    with stopped(root, "delete", "write.post_table_commit=") as script:
        before = fingerprint(root)
        with omnigraph.open(root) as graph:
            assert contents_of(graph) == BEFORE
            assert graph.recoveries() == []
        assert fingerprint(root) == before
        go_on(script)
    assert_settled(root, WRITERS["delete"].after, recoveries=0)


# The drift guard


@pytest.mark.case("engine", 212)
def test_a_sidecar_that_needs_a_restore_blocks_its_tables_and_no_other(root: Path) -> None:
    graph = omnigraph.open(root)
    give_up(root, "overwrite", "P2")
    (sidecar,) = sidecars(root)

    with pytest.raises(RecoveryRequired, match="requires rollback — reopen the graph read-write") as caught:
        graph.mutate('query add() { insert Knows { from: "ann", to: "cid" } }')
    graph.mutate(TOUCH_COMPANY)

    assert caught.value.operation_id == sidecar.stem
    assert sidecars(root) == (sidecar,)
    omnigraph.open(root).close()
    write_everywhere(graph)
    assert_settled(root, with_extra({**BEFORE, "Company": COMPANY_TOUCHED}), recoveries=1)


WRITES_OF_PERSON: dict[str, Callable[[Graph], object]] = {
    "mutation": lambda graph: graph.mutate(TOUCH_PERSON),
    "delete": WRITERS["delete"].run,
    "load": WRITERS["append"].run,
    "overwrite": WRITERS["overwrite"].run,
    "ensure_indices": WRITERS["ensure_indices"].run,
}


@pytest.mark.case("engine", 213)
@pytest.mark.parametrize("writer", WRITES_OF_PERSON)
def test_drift_that_nobody_explains_is_refused_before_any_effect(writer: str, root: Path) -> None:
    graph = omnigraph.open(root)
    pin, head = _drift(root, graph, "node:Person")
    before = fingerprint(root / "__manifest"), books(root).heads

    with pytest.raises(DriftNeedsRepair, match="run omnigraph repair") as caught:
        WRITES_OF_PERSON[writer](graph)

    assert (caught.value.table_key, caught.value.pin, caught.value.head) == ("node:Person", pin, head)
    assert (fingerprint(root / "__manifest"), books(root).heads) == before
    assert books(root).files == ()
    graph.mutate(TOUCH_COMPANY)


@pytest.mark.case("engine", 213)
def test_drift_that_nobody_explains_stops_a_merge_before_any_effect(root: Path) -> None:
    graph = omnigraph.open(root)
    graph.create_branch("june")
    graph.mutate(TOUCH_PERSON, branch="june")
    pin, head = _drift(root, graph, "node:Person")
    before = fingerprint(root / "__manifest"), books(root).heads

    with pytest.raises(DriftNeedsRepair, match="run omnigraph repair") as caught:
        graph.merge("june")

    assert (caught.value.table_key, caught.value.pin, caught.value.head) == ("node:Person", pin, head)
    assert (fingerprint(root / "__manifest"), books(root).heads) == before
    assert books(root).files == ()


@pytest.mark.case("engine", 213)
def test_drift_under_the_index_build_of_a_load_is_a_warning(root: Path) -> None:
    graph = omnigraph.open(root)

    with paused_at(
        "load.post_publish_pre_index", "call", lambda: _drift(root, graph, "node:Person") and None
    ):
        result = graph.load(b'{"type": "Person", "data": {"name": "dan", "age": 50}}\n', "append")

    assert result.commit is not None
    assert result.index_commit is None
    assert "run omnigraph repair" in result.warnings[0]
    assert {pending.table_key for pending in result.pending_indexes} == {"node:Person"}
    assert books(root).contents["Person"] == BEFORE["Person"] | {("dan", 50)}


def test_a_guard_that_cannot_list_says_that_both_could_apply(root: Path) -> None:
    graph = omnigraph.open(root)
    _drift(root, graph, "node:Person")
    corrupt = root / "__recovery" / "01J00000000000000000000000.json"

    with (
        paused_at("write.post_stage_pre_gate", "call", corrupt.touch),
        pytest.raises(ConflictError, match=r"repair or recovery could apply.*cannot be listed"),
    ):
        graph.mutate(TOUCH_PERSON)


@pytest.mark.case("engine", 217)
@pytest.mark.parametrize("point", ["P2", "P3"])
def test_ensure_indices_heals_nothing(point: str, root: Path) -> None:
    graph = omnigraph.open(root)
    give_up(root, "insert", point)
    (sidecar,) = sidecars(root)
    before = fingerprint(root)

    with pytest.raises(RecoveryRequired) as caught:
        graph.ensure_indices()

    assert caught.value.operation_id == sidecar.stem
    after = fingerprint(root)
    assert {name: after[name] for name in before} == before
    assert not {name for name in after.keys() - before.keys() if "_versions" in name or "__" in name}


def test_a_write_on_a_branch_explains_nothing_about_main(root: Path) -> None:
    """The writer is alive, and moves another HEAD of the same table."""
    told: list[Exception] = []
    with omnigraph.open(root) as graph:
        graph.create_branch("june")
        person = graph.snapshot().entry("node:Person")

        def look() -> None:
            lance.dataset(str(root / person.location)).delete("id = 'bob'")
            try:
                graph.mutate(TOUCH_PERSON)
            except ConflictError as error:  # raised here, it would be one of the writer's own
                told.append(error)

        with paused_at("write.post_table_commit", "call", look):
            graph.mutate(TOUCH_PERSON, branch="june")

    assert [type(error) for error in told] == [DriftNeedsRepair]


# Upkeep


def test_upkeep_that_loses_a_race_half_way_leaves_a_sidecar(
    due_template: Path, root_for: Callable[[str], Path]
) -> None:
    """Compaction has landed when the index fold is refused: without a sidecar that would be drift."""
    root = root_for("upkeep")

    def refuse() -> None:
        raise CommitConflict("the table moved on")

    with omnigraph.open(root) as graph:
        with failpoint("upkeep.post_compact_pre_index", "call", refuse):
            WRITERS["upkeep"].run(graph)
        assert len(sidecars(root)) == 1

        write_everywhere(graph)

    found = assert_settled(root, with_extra(WRITERS["upkeep"].after), recoveries=1)
    assert (found.recoveries[0].kind, found.recoveries[0].tables) == ("RolledForward", ("node:Person",))
    assert_reopening_changes_nothing(root)


# Queues


@pytest.mark.case("engine", 215)
def test_opposite_orders_never_deadlock() -> None:
    manager = WriteQueueManager.for_root("a root of this test")
    holders: dict[str, int] = dict.fromkeys(TABLE_KEYS, 0)

    def work(seed: int) -> None:
        random = Random(seed)
        for _ in range(200):
            keys = random.sample(TABLE_KEYS, random.randint(1, len(TABLE_KEYS)))
            with manager.acquire_many((key, "main") for key in keys):
                for key in keys:
                    holders[key] += 1
                    assert holders[key] == 1
                for key in keys:
                    holders[key] -= 1

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(work, range(16))) == [None] * 16


def test_two_spellings_of_a_root_share_their_queues(root: Path) -> None:
    one, other = omnigraph.open(root), omnigraph.open(f"{root.parent}/./{root.name}/")

    assert internals(one).parts.queues is internals(other).parts.queues


def test_a_writer_that_was_overtaken_while_it_staged_has_no_effect(root: Path) -> None:
    """Both were prepared from one pin: the second looks again when the first has published."""
    first, second = omnigraph.open(root), omnigraph.open(root)

    with (
        paused_at("write.post_stage_pre_gate", "call", lambda: _touch_person(first)),
        pytest.raises(ExpectedVersionMismatch) as caught,
    ):
        second.mutate('query touch() { update Person set { age: 32 } where name = "ann" }', retry=0)

    assert (caught.value.table_key, caught.value.expected, caught.value.actual) == ("node:Person", 2, 3)
    assert caught.value.recovery_operation_id is None
    assert_settled(root, {**BEFORE, "Person": frozenset({("ann", 31), ("bob", 40), ("cid", None)})}, 0)


def _touch_person(graph: Graph) -> None:
    graph.mutate(TOUCH_PERSON)


def _in_a_thread(call: Callable[[], None]) -> Callable[[], None]:
    """Run something while this thread waits for it: what it does is done by somebody else."""

    def run() -> None:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(call).result(timeout=60)

    return run


def _drift(root: Path, graph: Graph, table_key: str) -> tuple[int, int]:
    """Move a table without saying so, as a script with a lance of its own would."""
    entry = graph.snapshot().entry(table_key)
    dataset = lance.dataset(str(root / entry.location))
    dataset.delete("id = 'cid'")
    return entry.version, dataset.version


def test_a_writer_that_died_behind_the_sweep_is_healed_by_the_next_try(root: Path) -> None:
    graph = omnigraph.open(root)
    times = iter([True])

    def die_once() -> None:
        if next(times, False):
            give_up(root, "insert", "P3")

    touch = 'query touch() { update Person set { age: 31 } where name = "ann" }'
    with (
        failpoint("write.post_stage_pre_gate", "call", die_once),
        pytest.raises(ExpectedVersionMismatch),
    ):
        graph.mutate(touch, retry=0)
    graph.mutate(touch)

    assert not sidecars(root)
    assert len(books(root).recoveries) == 1
