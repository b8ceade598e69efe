"""Kinds of writers, recoveries and conflicts: one spelling on the disk, one on the wire, and no two alike."""

import pytest

from omnigraph.commit.recovery.kinds import RecoveryKind
from omnigraph.commit.sidecar import WriterKind
from omnigraph.core.merge_conflict import MergeConflictKind

pytestmark = pytest.mark.case("engine", 306)


def test_writer_kinds_map_one_to_one() -> None:
    assert {kind.value: kind.wire for kind in WriterKind} == {
        "Mutation": "mutation",
        "Load": "load",
        "SchemaApply": "schema_apply",
        "BranchMerge": "branch_merge",
        "EnsureIndices": "ensure_indices",
        "Optimize": "optimize",
        "Repair": "repair",
    }


def test_recovery_kinds_map_one_to_one() -> None:
    assert {kind.value: kind.wire for kind in RecoveryKind} == {
        "RolledForward": "rolled_forward",
        "RolledBack": "rolled_back",
        "OrphanedBranchDiscarded": "orphaned_branch_discarded",
        "VersionQuarantined": "version_quarantined",
    }


def test_conflict_kinds_have_one_spelling_everywhere() -> None:
    assert {kind.name.lower(): str(kind) for kind in MergeConflictKind} == {
        "divergent_insert": "divergent_insert",
        "divergent_update": "divergent_update",
        "delete_vs_update": "delete_vs_update",
        "orphan_edge": "orphan_edge",
        "unique_violation": "unique_violation",
        "cardinality_violation": "cardinality_violation",
        "value_constraint_violation": "value_constraint_violation",
        "schema_conflict": "schema_conflict",
        "dropped_type": "dropped_type",
        "dropped_property": "dropped_property",
    }
