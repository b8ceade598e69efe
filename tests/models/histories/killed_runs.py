"""Runs in which the next steps are another process's every so often, which dies of one of them."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import omnigraph
from omnigraph.commit.publish import UPKEEP_INTERVAL
from omnigraph.history.fold import TableEntry
from tests.models.dag.model import MAIN
from tests.models.dag.steps import Delete
from tests.models.histories.branching import Answer, Expected, On, Step, expect, is_free
from tests.models.histories.operations import EnsureIndices, Operation, Optimize, PutKnows, PutNote, PutPerson
from tests.models.histories.runs import Run, step_name
from tests.protocol.crash.writer import (
    Acknowledged,
    Failed,
    Opened,
    Request,
    Started,
    StepRequest,
    WriterProcess,
)

LIVES_MAX = 6  # steps that a writer may survive before a place is chosen that every commit passes
DRAWS_MAX = 50  # steps drawn in the hope of one that comes to the place
COMMON_PLACE = "publish.before_update"
KEPT_UP = {"node:Person": PutPerson, "node:Note": PutNote, "edge:Knows": PutKnows}  # each makes one version

WRITE_PLACES = (
    "write.post_stage_pre_gate",
    "write.post_gate_pre_sidecar",
    "write.post_sidecar_pre_commit",
    "write.post_table_commit",
    "write.post_finalize_pre_publisher",
    "write.post_publish_pre_sidecar_delete",
    "mutation.delete_node_pre_primary_delete",
    "ensure_indices.post_stage_pre_commit",
    "ensure_indices.post_sidecar_pre_commit",
    "ensure_indices.post_table_commit",
    "ensure_indices.post_phase_b_pre_manifest_commit",
    "ensure_indices.post_publish_pre_sidecar_delete",
    "load.post_publish_pre_index",
    "publish.before_lock",
    "publish.load_state_retryable_contention",
    "publish.post_open_pre_update",
    "publish.before_update",
    "publish.after_update_ack_lost",
    "lock.post_create_pre_flock",
    "lock.post_flock_pre_sidecar",
    "lock.post_sidecar_delete_pre_unlink",
    "durability.pre_staged_sync",
    "durability.pre_table_sync",
    "durability.pre_manifest_sync",
    "recovery.sidecar_write",
    "recovery.sidecar_delete",
)
CREATE_PLACES = ("branch_create.post_ref_pre_control", "branch_create.control_ack_lost")
DELETE_PLACES = (
    "branch_delete.post_look_pre_control",
    "branch_delete.control_ack_lost",
    "branch_delete.post_control_pre_refs",
)
BRANCH_PLACES = (*CREATE_PLACES, *DELETE_PLACES, "fork.before_create", "fork.post_create_pre_stage")
MERGE_PLACES = (
    "branch_merge.post_capture",
    "branch_merge.post_sidecar_pre_commit",
    "branch_merge.after_append_pre_upsert",
    "branch_merge.after_upsert_pre_delete",
    "branch_merge.after_delete_pre_confirm",
    "branch_merge.post_table",
    "branch_merge.post_phase_b_pre_confirm",
    "branch_merge.post_phase_b_pre_manifest_commit",
    "branch_merge.post_publish_pre_sidecar_delete",
    "recovery.sidecar_confirm",
    "publish.before_update",
    "durability.pre_table_sync",
    "durability.pre_manifest_sync",
)
UPKEEP_PLACES = (
    "upkeep.post_write_pre_plan",
    "upkeep.post_sidecar_pre_compact",
    "upkeep.post_compact_pre_index",
    "upkeep.post_phase_b_pre_manifest_commit",
    "upkeep.post_publish_pre_sidecar_delete",
)
OPTIMIZE_PLACES = (
    "optimize.post_recovery_check_pre_gates",
    "optimize.post_sidecar_pre_compact",
    "optimize.post_compact_pre_reindex",
    "optimize.post_table",
    "optimize.post_phase_b_pre_manifest_commit",
    "optimize.post_publish_pre_sidecar_delete",
    "optimize.before_manifest_compaction",
)
SCHEMA_PLACES = (
    "schema_apply.post_lock_pre_plan",
    "schema_apply.post_stage_pre_gate",
    "schema_apply.post_sidecar_pre_commit",
    "schema_apply.post_table_commit",
    "schema_apply.before_manifest_commit",
    "schema_apply.after_manifest_commit",
    "schema_apply.mid_promote",
    "schema_apply.post_promote",
    "schema_apply.post_unlock_pre_index",
)
CLEANUP_PLACES = ("cleanup.post_check_pre_gates", "cleanup.table_gc", "cleanup.post_versions_pre_files")
PLACES_OF_KINDS = {
    "Create": CREATE_PLACES,
    "Delete": DELETE_PLACES,
    "Merge": MERGE_PLACES,
    "Optimize": OPTIMIZE_PLACES,
    "ChangeSchema": SCHEMA_PLACES,
    "CleanUp": CLEANUP_PLACES,
}
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
    "publish.before_update",
    "open.before_schema_contract_read",
)


class KilledRun(Run):
    """`kill` is a step like any other, with more to find out behind it."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, durability="full")
        self.sidecars: set[str] = set()
        self.died_at = Counter[str]()
        self.died_of = Counter[str]()
        self.next_writer = WriterProcess(root)
        self._due: list[str] = []  # tables of main that a few writes more bring to their upkeep

    def kill(self) -> None:
        """Let a writer die, perhaps the next one too as it recovers, and look at what is there."""
        places = self._places()
        self.graph.close()
        writer = self._writer()
        writer.begin()
        assert writer.receive(60) == Opened()
        step, expected = self._work_until_dead(writer, places)
        self.sidecars |= self.pending()
        while self.random.random() < 0.4:
            self._die_in_open(self.random.choice(OPEN_PLACES))
        self.graph = omnigraph.open(self.root, durability=self.durability)
        self.settle(step, expected, landed=None)
        assert set(self.audited()) == self.sidecars

    def _places(self) -> tuple[str, ...]:
        """Return where to die: first so that some writer has died of each kind of step, then anywhere.

        In upkeep only if the next write of some table of main is followed by it.
        """
        entries = (self.graph.snapshot().entry(key) for key in KEPT_UP)
        self._due = [entry.table_key for entry in entries if _writes_to_upkeep(entry) <= LIVES_MAX]
        for kind, places in PLACES_OF_KINDS.items():
            if kind not in self.died_of:
                return places
        weights = {
            WRITE_PLACES: 2,
            BRANCH_PLACES: 3,
            MERGE_PLACES: 3,
            OPTIMIZE_PLACES: 2,
            SCHEMA_PLACES: 2,
            CLEANUP_PLACES: 1,
            UPKEEP_PLACES: 6 if self._due else 0,
        }
        return self.random.choices(list(weights), list(weights.values()))[0]

    def _writer(self) -> WriterProcess:
        writer, self.next_writer = self.next_writer, WriterProcess(self.root)
        return writer

    def _work_until_dead(self, writer: WriterProcess, places: tuple[str, ...]) -> tuple[Step, Expected]:
        """Return the step that a writer died of, and what it would have had to do."""
        place = self.random.choice(places)
        for life in range(2 * LIVES_MAX):
            if life == LIVES_MAX:
                place = COMMON_PLACE
            step, expected = self._draw(places, place)
            failpoint = (place, "exit")
            if isinstance(step, On):
                writer.ask(Request("doomed", step.operation, failpoint, step.branch))
            else:
                writer.ask(StepRequest("doomed", step, failpoint))
            assert writer.receive(60) == Started("doomed")
            message = writer.receive(60)
            if message is None:
                assert writer.has_died()
                writer.kill()
                self.died_at[place] += 1
                self.died_of[step_name(step)] += 1
                return step, expected
            self._hear(message, step, expected)
        raise AssertionError("no step has come to its commit")

    def _draw(self, places: tuple[str, ...], place: str) -> tuple[Step, Expected]:
        """Return a step that must succeed, if possible one that comes to a place."""
        for _ in range(DRAWS_MAX):
            step = self._aimed(places, place)
            expected = expect(self.model, step)
            if not expected.refusals and expected.outcome != "already_up_to_date":
                return step, expected
        step = self.program.write(self.model, MAIN)
        return step, expect(self.model, step)

    def _aimed(self, places: tuple[str, ...], place: str) -> Step:
        """Return a step that may come to a place, or one after which another may."""
        free = [name for name in self.model.branches if is_free(self.model, name)]
        if places is MERGE_PLACES and free:
            return self.program.merge(self.model)
        is_of_branches = places in (BRANCH_PLACES, CREATE_PLACES, DELETE_PLACES)
        if is_of_branches and not free:
            return self.program.create(self.model)
        if place.startswith("branch_create") and self.program.has_room(self.model):
            return self.program.create(self.model)
        if is_of_branches and place.startswith("branch_"):
            return Delete(self.random.choice(free))
        if place.startswith("fork"):
            return self.program.write(self.model, free[-1])  # the newest, which has fewest forks yet
        looks_after: dict[tuple[str, ...], Callable[[], Operation]] = {
            OPTIMIZE_PLACES: Optimize,
            SCHEMA_PLACES: self.program.change_schema,
            CLEANUP_PLACES: self.program.clean_up,
        }
        if places in looks_after and place != COMMON_PLACE:
            return On(MAIN, looks_after[places]())
        if place.startswith("ensure"):
            return On(self.random.choice(list(self.model.branches)), EnsureIndices())
        if places is not UPKEEP_PLACES:
            return self.program.write(self.model)
        kind = KEPT_UP[self._due[0]]
        drawn = (self.program.write(self.model, MAIN) for _ in range(DRAWS_MAX))
        return next((step for step in drawn if isinstance(step.operation, kind)), On(MAIN, EnsureIndices()))

    def _hear(self, message: object, step: Step, expected: Expected) -> None:
        """Take the answer of a writer that has lived on."""
        if expected.refusals:
            assert isinstance(message, Failed), f"{step} was answered with {message}"
            assert message.error in expected.refusals
            return
        assert isinstance(message, Acknowledged), f"{step} was answered with {message}"
        with omnigraph.open(self.root, mode="ro") as graph:
            self.accept(graph, step, expected, Answer(message.commit_id, expected.outcome))

    def _die_in_open(self, place: str) -> None:
        writer = self._writer()
        writer.begin((place, "exit"))
        if writer.receive(60) is None:
            assert writer.has_died()
            self.died_at[place] += 1
        writer.kill()


def _writes_to_upkeep(entry: TableEntry) -> int:
    return UPKEEP_INTERVAL - (entry.version - entry.pin.upkeep_version) % UPKEEP_INTERVAL
