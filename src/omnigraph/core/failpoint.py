"""Named places where a test stops, fails or delays the engine.

With nothing configured a hit is one dictionary lookup. Tests use the `failpoint` context manager; processes
that a test starts read `OMNIGRAPH_FAILPOINTS="name=action;name=action"`.

Actions: `raise`, `raise:once`, `raise:<n>` (the first n hits), `skip:<n>,<action>` (from the n+1st hit),
`contention`, `exit` (at once, status 86), `delay:<ms>`, and, in process, `call` and `pause` with an object.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from omnigraph.core.errors import RowLevelCasContention

EXIT_STATUS = 86
ENVIRONMENT = "OMNIGRAPH_FAILPOINTS"


class InjectedFault(Exception):
    """What a failpoint raises: a fault that no code expects."""


@dataclass(slots=True)
class _Armed:
    action: str
    call: Callable[[], None] | None = None
    hits: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


_armed: dict[str, _Armed] = {}


def hit(name: str) -> None:
    """Do what is configured for a place, normally nothing.

    Raises:
        InjectedFault: a test asked for it.
        RowLevelCasContention: a test asked for contention.
    """
    if _armed and name in _armed:
        _act(name, _armed[name])


@contextmanager
def failpoint(name: str, action: str = "call", call: Callable[[], None] | None = None) -> Iterator[None]:
    """Arm one place for the duration of a block; it is always disarmed afterwards."""
    assert name in CATALOG, f"unknown failpoint {name}"
    _armed[name] = _Armed(action, call)
    try:
        yield
    finally:
        del _armed[name]


def arm_from_environment() -> None:
    """Arm what the environment asks for; the engine calls this once, when it is imported."""
    for entry in filter(None, os.environ.get(ENVIRONMENT, "").split(";")):
        name, _, action = entry.partition("=")
        assert name in CATALOG, f"unknown failpoint {name} in {ENVIRONMENT}"
        _armed[name] = _Armed(action)


def _act(name: str, armed: _Armed) -> None:
    with armed.lock:
        armed.hits += 1
        hits = armed.hits
    action = armed.action
    if action.startswith("skip:"):
        skipped, _, action = action.removeprefix("skip:").partition(",")
        hits -= int(skipped)
        if hits < 1:
            return
    verb, _, argument = action.partition(":")
    if verb == "call":
        if armed.call is not None:
            armed.call()
    elif verb == "exit":
        os._exit(EXIT_STATUS)
    elif verb == "delay":
        time.sleep(int(argument) / 1_000)
    elif verb == "contention":
        raise RowLevelCasContention(f"contention injected at {name}")
    elif verb == "raise":
        limit = {"": None, "once": 1}.get(argument, argument)
        if limit is None or hits <= int(limit):
            raise InjectedFault(f"fault injected at {name}")
    else:
        raise AssertionError(f"unknown failpoint action {action!r} at {name}")


CATALOG = frozenset(
    {
        "write.post_stage_pre_gate",
        "write.post_gate_pre_sidecar",
        "write.post_sidecar_pre_commit",
        "write.pre_table_commit_at_once",
        "write.post_table_commit",
        "write.post_finalize_pre_publisher",
        "write.post_publish_pre_sidecar_delete",
        "mutation.delete_node_pre_primary_delete",
        "fork.before_create",
        "fork.post_create_pre_stage",
        "fork.before_classify",
        "fork.before_reclaim",
        "branch_create.post_ref_pre_control",
        "branch_create.control_ack_lost",
        "branch_delete.control_ack_lost",
        "branch_delete.post_control_pre_refs",
        "branch_delete.post_look_pre_control",
        "branch_delete.post_ending_pre_fence",
        "branch_merge.post_capture",
        "branch_merge.post_sidecar_pre_commit",
        "branch_merge.between_chunks",
        "branch_merge.after_reshape_pre_append",
        "branch_merge.after_append_pre_upsert",
        "branch_merge.after_upsert_pre_delete",
        "branch_merge.after_delete_pre_confirm",
        "branch_merge.post_table",
        "branch_merge.post_phase_b_pre_confirm",
        "branch_merge.post_phase_b_pre_manifest_commit",
        "branch_merge.post_publish_pre_sidecar_delete",
        "ensure_indices.post_stage_pre_commit",
        "ensure_indices.post_sidecar_pre_commit",
        "ensure_indices.post_table_commit",
        "ensure_indices.post_phase_b_pre_manifest_commit",
        "ensure_indices.post_publish_pre_sidecar_delete",
        "load.post_publish_pre_index",
        "schema_apply.post_lock_pre_plan",
        "schema_apply.post_stage_pre_gate",
        "schema_apply.post_sidecar_pre_commit",
        "schema_apply.post_table_commit",
        "schema_apply.before_manifest_commit",
        "schema_apply.after_manifest_commit",
        "schema_apply.mid_promote",
        "schema_apply.post_promote",
        "schema_apply.pre_purge",
        "schema_apply.post_unlock_pre_index",
        "bulk.post_write_pre_report",
        "upkeep.post_write_pre_plan",
        "upkeep.post_sidecar_pre_compact",
        "upkeep.post_compact_pre_index",
        "upkeep.post_phase_b_pre_manifest_commit",
        "upkeep.post_publish_pre_sidecar_delete",
        "migration.v1_to_v2.pre_stamp",
        "migration.v2_to_v3.post_ref_drop",
        "migration.v2_to_v3.pre_stamp",
        "migration.v3_to_v4.post_control",
        "migration.v3_to_v4.legacy_open",
        "migration.v3_to_v4.legacy_actor_open",
        "migration.v3_to_v4.post_merge_pre_stamp",
        "migration.v4_stamp.force_incompatible",
        "optimize.post_recovery_check_pre_gates",
        "optimize.post_sidecar_pre_compact",
        "optimize.post_compact_pre_reindex",
        "optimize.inject_reindex_conflict",
        "optimize.post_table",
        "optimize.post_phase_b_pre_manifest_commit",
        "optimize.post_publish_pre_sidecar_delete",
        "optimize.before_manifest_compaction",
        "publish.load_state_retryable_contention",
        "publish.before_update",
        "publish.after_update_ack_lost",
        "publish.before_auto_compaction",
        "publish.post_open_pre_update",
        "publish.before_lock",
        "table_lock.held_by_others",
        "lock.post_create_pre_flock",
        "lock.post_flock_pre_sidecar",
        "lock.post_sidecar_delete_pre_unlink",
        "durability.pre_staged_sync",
        "durability.pre_table_sync",
        "durability.pre_manifest_sync",
        "quarantine.pre_move",
        "quarantine.post_move_pre_audit",
        "repair.post_sidecar_pre_manifest",
        "repair.post_manifest_pre_tables",
        "repair.post_sync_pre_publish",
        "query.post_pin_pre_read",
        "trim.pre_remove",
        "cleanup.post_check_pre_gates",
        "cleanup.reconcile_fork",
        "cleanup.resolve_branch_snapshot",
        "cleanup.table_gc",
        "cleanup.post_versions_pre_files",
        "lease.renew",
        "lease.takeover",
        "writers.renew",
        "writers.before_end",
        "recovery.sidecar_write",
        "recovery.sidecar_confirm",
        "recovery.sidecar_delete",
        "recovery.sidecar_list",
        "recovery.sidecar_read",
        "recovery.post_list_pre_read",
        "recovery.post_list_pre_lock",
        "recovery.before_claim",
        "recovery.before_fence",
        "recovery.before_roll_forward_publish",
        "recovery.post_plan_pre_undo",
        "recovery.post_table_undo_pre_publish",
        "recovery.post_rollback_publish_pre_audit",
        "recovery.record_audit",
        "recovery.post_audit_pre_delete",
        "init.after_schema_source",
        "init.after_schema_contract",
        "init.after_table_create",
        "init.manifest_create_ack_lost",
        "init.manifest_create_probe",
        "init.post_manifest_create",
        "init.schema_cleanup_delete",
        "clone.post_journal_pre_copy",
        "clone.before_file",
        "clone.post_files_pre_control",
        "clone.post_control_pre_manifest",
        "clone.post_manifest_pre_journal_delete",
        "open.before_schema_contract_read",
        "refresh.before_schema_reload",
    }
)
arm_from_environment()
