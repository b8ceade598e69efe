"""Kinds of writers and of recoveries: one spelling on the disk, one on the wire, and no two alike."""

import pytest

from omnigraph.commit.recovery.kinds import RecoveryKind
from omnigraph.commit.sidecar import WriterKind

pytestmark = pytest.mark.case("engine", 306)


def test_writer_kinds_map_one_to_one() -> None:
    assert {kind.value: kind.wire for kind in WriterKind} == {
        "Mutation": "mutation",
        "Load": "load",
        "SchemaApply": "schema_apply",
        "BranchMerge": "branch_merge",
        "EnsureIndices": "ensure_indices",
        "Optimize": "optimize",
    }


def test_recovery_kinds_map_one_to_one() -> None:
    assert {kind.value: kind.wire for kind in RecoveryKind} == {
        "RolledForward": "rolled_forward",
        "RolledBack": "rolled_back",
        "OrphanedBranchDiscarded": "orphaned_branch_discarded",
        "VersionQuarantined": "version_quarantined",
    }
