"""One random program of 500 operations on one graph: alone, with kills, and on a store that fails.

The hypothesis machines of `test_model` try many short programs. These are long enough for upkeep, for folded
manifests and for tables of many versions.
"""

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from omnigraph.core.errors import ConflictError, OmnigraphError, RecoveryRequired, ValidationError
from omnigraph.graph import graph as omnigraph
from tests.crash.writer import Acknowledged, Opened, Request, Started, WriterProcess
from tests.model.contents import SCHEMA, Contents, Refused, difference
from tests.model.faults import Faults
from tests.model.operations import EnsureIndices, Load, Operation, PutKnows, apply, perform
from tests.model.programs import Program
from tests.model.reading import check_whole, read_contents
from tests.support.seeds import fixed_seed, fresh_seed

OPERATIONS = 500
PROGRAMS_FUZZ = 20
KILL_EVERY = 20  # operations
LIVES_MAX = 6  # operations that a writer may survive before a place is chosen that every commit passes
COMMON_PLACE = "mutation.post_finalize_pre_publisher"
CALLS_BETWEEN_FAULTS = 300  # an operation makes some forty calls: about one in four of them fails

WRITE_PLACES = (
    "mutation.post_stage_pre_gate",
    "mutation.post_gate_pre_sidecar",
    "mutation.post_sidecar_pre_commit",
    "mutation.post_table_commit",
    "mutation.post_finalize_pre_publisher",
    "mutation.post_publish_pre_sidecar_delete",
    "mutation.delete_node_pre_primary_delete",
    "ensure_indices.post_stage_pre_commit",
    "ensure_indices.post_sidecar_pre_commit",
    "ensure_indices.post_table_commit",
    "ensure_indices.post_phase_b_pre_manifest_commit",
    "ensure_indices.post_publish_pre_sidecar_delete",
    "load.post_publish_pre_index",
    "publish.before_lock",
    "publish.load_state_retryable_contention",
    "publish.post_open_pre_merge",
    "publish.before_merge",
    "publish.after_merge_ack_lost",
    "lock.post_create_pre_flock",
    "lock.post_flock_pre_sidecar",
    "lock.post_sidecar_delete_pre_unlink",
    "durability.pre_staged_sync",
    "durability.pre_table_sync",
    "durability.pre_manifest_sync",
    "recovery.sidecar_write",
    "recovery.sidecar_delete",
)
UPKEEP_PLACES = (
    "upkeep.post_write_pre_plan",
    "upkeep.post_sidecar_pre_compact",
    "upkeep.post_compact_pre_index",
    "upkeep.post_phase_b_pre_manifest_commit",
    "upkeep.post_publish_pre_sidecar_delete",
)
OPEN_PLACES = (
    "recovery.sidecar_list",
    "recovery.sidecar_read",
    "recovery.post_list_pre_lock",
    "recovery.before_roll_forward_publish",
    "recovery.post_plan_pre_undo",
    "recovery.post_table_undo_pre_publish",
    "recovery.post_rollback_publish_pre_audit",
    "recovery.record_audit",
    "recovery.post_audit_pre_delete",
    "publish.before_merge",
    "open.before_schema_contract_read",
)


class LongProgram(Program):
    """The writes of `Program`, and index builds between loads that leave them undone."""

    def next(self, contents: Contents) -> Operation:
        if self.random.random() < 0.03:
            return EnsureIndices()
        operation = super().next(contents)
        if isinstance(operation, Load) and self.random.random() < 0.3:
            return replace(operation, index=False)
        return operation


class Run:
    """One graph and its model."""

    def __init__(self, root: Path, durability: str, seed: int | None = None) -> None:
        self.root = root
        self.durability = durability
        self.seed = fixed_seed("MODEL_SEED") if seed is None else seed
        self.random = random.Random(self.seed)
        self.program = LongProgram(self.seed)
        self.contents = Contents()
        self.done = Counter[str]()
        self.graph = omnigraph.init(root, SCHEMA, durability=durability)

    def step(self) -> None:
        """Do one operation that succeeds or is refused as it must be, and compare."""
        draw = self.random.random()
        if draw < 0.03:
            self.reopen()
            self.done["reopen"] += 1
        elif draw < 0.06:
            self.be_refused(PutKnows("dangling", ("nobody", "nobody")))
        else:
            operation = self.program.next(self.contents)
            commit_id = perform(self.graph, operation)
            self.done[type(operation).__name__] += 1
            self.accept(operation, commit_id)
        self.compare()

    def be_refused(self, operation: Operation) -> None:
        with pytest.raises(Refused):
            apply(self.contents, operation)
        with pytest.raises(ValidationError):
            perform(self.graph, operation)
        self.done["refused"] += 1

    def accept(self, operation: Operation, commit_id: str | None) -> None:
        after = apply(self.contents, operation)
        assert commit_id is not None or after == self.contents
        self.contents = after

    def reopen(self) -> None:
        self.graph.close()
        self.graph = omnigraph.open(self.root, durability=self.durability)

    def compare(self) -> None:
        assert difference(read_contents(self.graph), self.contents) == ""
        check_whole(self.graph)

    def settle(self, allowed: list[Contents]) -> None:
        """Take over which outcome an operation without an answer had."""
        found = read_contents(self.graph)
        assert found in allowed, difference(found, allowed[0])
        self.contents = found
        check_whole(self.graph)

    def audited(self) -> list[str]:
        """Return the operations that were recovered, each of them once."""
        found = [record.operation_id for record in self.graph.recoveries()]
        assert len(set(found)) == len(found), "a recovery twice in the audit"
        return found

    def pending(self) -> set[str]:
        return {path.stem for path in (self.root / "__recovery").glob("*.json")}

    def was_kept_up(self) -> bool:
        """Return whether a table has gone through a round of upkeep."""
        return any(entry.pin.upkeep_version for entry in self.graph.snapshot().entries.values())


@pytest.mark.fuzz
def test_programs_nobody_has_run_yet_leave_what_the_model_says_after_each(tmp_path: Path) -> None:
    first = fresh_seed("MODEL_SEED")
    for seed in range(first, first + PROGRAMS_FUZZ):
        run = Run(tmp_path / f"graph-{seed}", "process", seed)
        for _ in range(OPERATIONS):
            run.step()
        run.graph.close()


@pytest.mark.case("engine", 284)
def test_five_hundred_operations_leave_what_the_model_says_after_each(tmp_path: Path) -> None:
    run = Run(tmp_path / "graph", durability="process")

    for _ in range(OPERATIONS):
        run.step()

    kinds = {"PutPerson", "SetAge", "DropPeople", "PutKnows", "DropEdge", "PutNote", "PutOwn", "Load"}
    assert run.done.keys() == kinds | {"EnsureIndices", "reopen", "refused"}
    assert run.was_kept_up()
    assert run.audited() == []
    run.graph.close()


class KilledRun(Run):
    """Every so often the next operations are another process's, which dies of one of them."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, durability="full")
        self.sidecars: set[str] = set()
        self.died_at = Counter[str]()
        self.next_writer = WriterProcess(root)

    def kill(self) -> None:
        """Let a writer die, perhaps the next one too as it recovers, and look at what is there."""
        self.graph.close()
        writer = self._writer()
        writer.begin()
        assert writer.receive(60) == Opened()
        place = self._place()
        allowed = self._write_until_dead(writer, place)
        self.sidecars |= self.pending()
        while self.random.random() < 0.4:
            self._die_in_open(self.random.choice(OPEN_PLACES))
        self.graph = omnigraph.open(self.root, durability=self.durability)
        self.settle(allowed)
        assert set(self.audited()) == self.sidecars

    def _place(self) -> str:
        """Return where to die: in upkeep, if the next write of some table is followed by it."""
        with omnigraph.open(self.root, mode="ro") as graph:
            entries = graph.snapshot().entries.values()
            is_due = any(entry.version - entry.pin.upkeep_version >= 58 for entry in entries)
        return self.random.choice(UPKEEP_PLACES if is_due else WRITE_PLACES)

    def _writer(self) -> WriterProcess:
        writer, self.next_writer = self.next_writer, WriterProcess(self.root)
        return writer

    def _write_until_dead(self, writer: WriterProcess, place: str) -> list[Contents]:
        for life in range(2 * LIVES_MAX):
            if life == LIVES_MAX:
                place = COMMON_PLACE
            operation = EnsureIndices() if place.startswith("ensure") else self.program.next(self.contents)
            writer.ask(Request("doomed", operation, (place, "exit")))
            assert writer.receive(60) == Started("doomed")
            message = writer.receive(60)
            if message is None:
                assert writer.has_died()
                writer.kill()
                self.died_at[place] += 1
                return [self.contents, apply(self.contents, operation)]
            assert isinstance(message, Acknowledged), f"{operation} was answered with {message}"
            self.accept(operation, message.commit_id)
        raise AssertionError("no write has come to its commit")

    def _die_in_open(self, place: str) -> None:
        writer = self._writer()
        writer.begin((place, "exit"))
        if writer.receive(60) is None:
            assert writer.has_died()
            self.died_at[place] += 1
        writer.kill()


@pytest.mark.case("engine", 285)
@pytest.mark.slow
@pytest.mark.timeout(600)  # the disk is waited for, not the processor
def test_kills_at_failpoints_among_five_hundred_operations_change_nothing_else(tmp_path: Path) -> None:
    run = KilledRun(tmp_path / "graph")

    for number in range(1, OPERATIONS + 1):
        if number % KILL_EVERY:
            run.step()
        else:
            run.kill()

    run.next_writer.kill()
    assert run.died_at.total() >= OPERATIONS // KILL_EVERY
    assert len(run.died_at) > 5
    assert run.sidecars
    run.graph.close()


class FailingRun(Run):
    """Calls of the store fail at random; after each fault the graph is opened again."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, durability="full")
        self.faults = Faults(self.seed, CALLS_BETWEEN_FAULTS)
        self.told = Counter[str]()

    def attempt(self) -> None:
        """Do one operation, which may fail with an error of ours, and compare."""
        operation = self.program.next(self.contents)
        before, after = self.contents, apply(self.contents, operation)
        count = len(self.faults.raised)
        allowed, is_failed = [after], False
        try:
            with self.faults.armed():
                perform(self.graph, operation)
        except OmnigraphError as error:
            is_failed = True
            self.told[type(error).__name__] += 1
            is_open = isinstance(error, RecoveryRequired) or (
                isinstance(error, ConflictError) and error.recovery_operation_id is not None
            )
            allowed = [before, after] if is_open else [before]
        if len(self.faults.raised) == count:
            assert not is_failed, f"{operation} fails without a fault"
            self.contents = after
            self.compare()
            return
        pending = self.pending() | set(self.audited())
        self._reopen_in_spite_of_faults()
        self.settle(allowed)
        assert set(self.audited()) == pending

    def _reopen_in_spite_of_faults(self) -> None:
        self.graph.close()
        try:
            with self.faults.armed():
                self.graph = omnigraph.open(self.root, durability=self.durability)
        except OmnigraphError as error:
            self.told[f"open: {type(error).__name__}"] += 1
            self.graph = omnigraph.open(self.root, durability=self.durability)


@pytest.mark.case("engine", 286)
@pytest.mark.slow
@pytest.mark.timeout(600)  # the disk is waited for, not the processor
def test_a_store_that_fails_at_random_calls_fails_writes_with_our_errors_alone(tmp_path: Path) -> None:
    run = FailingRun(tmp_path / "graph")

    with run.faults.installed():
        for _ in range(OPERATIONS):
            run.attempt()

    assert {"StorageError", "RecoveryRequired"} <= run.told.keys()
    run.graph.close()
