"""Omnigraph: a typed property graph with git-style history on open Lance tables.

`init` and `open` give a `Graph`. Names are looked up when they are first used: importing the package alone
loads neither Lance nor Arrow.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omnigraph.changes.model import EntityChange
    from omnigraph.commit.recovery.audit import RecoveryRecord
    from omnigraph.commit.recovery.restore import Quarantined
    from omnigraph.core.damage import GraphDamaged
    from omnigraph.core.errors import (
        AlreadyExistsError,
        AlreadyInitialized,
        AmbiguousMergeBase,
        BadRequest,
        BranchInUse,
        BranchMoved,
        BranchNotFound,
        CartesianProductRefused,
        CatalogError,
        ChangeCursorRejected,
        ChangeFeedGap,
        ChangeSchemaBoundary,
        ClusterManaged,
        ColumnsLeftOut,
        CommitConflict,
        CommitHasNoParent,
        CommitNotFound,
        ConflictError,
        DriftNeedsRepair,
        EmbeddingError,
        EmbeddingModelMismatch,
        EntityNotFound,
        ExecutionError,
        ExpectedVersionMismatch,
        FormatVersionError,
        GraphNotFound,
        HandleClosed,
        HandleForked,
        HistoricalVersionReclaimed,
        InitializationClaimed,
        InitializationCommitted,
        InitializationIndeterminate,
        InvariantViolation,
        KeyConflict,
        MergeConflicts,
        MixedMutation,
        NotFoundError,
        OmnigraphError,
        ParameterError,
        ParseError,
        PlanError,
        PolicyDenied,
        PreconditionFailed,
        PublishRetriesExhausted,
        QueryMemoryExceeded,
        QueryNotFound,
        QueryTimeout,
        ReadSetChanged,
        RecoveryRequired,
        ResourceLimit,
        RowLevelCasContention,
        SchemaApplyInProgress,
        SchemaContractConflict,
        SchemaError,
        SidecarCorrupt,
        SidecarTooNew,
        SourceError,
        SparkUnavailable,
        StaleCommit,
        StorageError,
        TypeCheckError,
        UnsupportedError,
        ValidationError,
        VersionNotFound,
        WriterLeaseHeld,
    )
    from omnigraph.core.merge_conflict import MergeConflict, MergeConflictKind
    from omnigraph.embedding import EmbeddingConfig
    from omnigraph.graph.graph import Graph, init, open
    from omnigraph.graph.repair import quarantined, repair, restore_quarantined
    from omnigraph.graph.result import Result
    from omnigraph.graph.snapshot_view import SnapshotView
    from omnigraph.history.branches import Branch
    from omnigraph.history.commits import GraphCommit
    from omnigraph.history.state import Snapshot
    from omnigraph.operations.baseline import Baseline
    from omnigraph.operations.commit_changes import CommitChanges, CommitChangesPage
    from omnigraph.operations.diff import Diff
    from omnigraph.operations.embed_model import EmbedResult
    from omnigraph.operations.ensure_indices import IndexResult, PendingIndex
    from omnigraph.operations.export import Export
    from omnigraph.operations.feed import ChangeFeed, ChangeFeedPage
    from omnigraph.operations.load import LoadMode, LoadResult
    from omnigraph.operations.merge import DeleteRefusal, MergeOutcome, MergeResult
    from omnigraph.operations.mutate import MutationResult
    from omnigraph.operations.repair import RepairResult
    from omnigraph.operations.verify import VerifyReport
    from omnigraph.plan.describe import Explanation

__version__ = "0.1.0"
INTERNAL_SCHEMA_VERSION = 4

_HOMES = {
    "Baseline": "omnigraph.operations.baseline",
    "Branch": "omnigraph.history.branches",
    "ChangeFeed": "omnigraph.operations.feed",
    "ChangeFeedPage": "omnigraph.operations.feed",
    "CommitChanges": "omnigraph.operations.commit_changes",
    "CommitChangesPage": "omnigraph.operations.commit_changes",
    "DeleteRefusal": "omnigraph.operations.merge",
    "Diff": "omnigraph.operations.diff",
    "EmbedResult": "omnigraph.operations.embed_model",
    "EmbeddingConfig": "omnigraph.embedding",
    "EntityChange": "omnigraph.changes.model",
    "Explanation": "omnigraph.plan.describe",
    "Export": "omnigraph.operations.export",
    "Graph": "omnigraph.graph.graph",
    "GraphDamaged": "omnigraph.core.damage",
    "GraphCommit": "omnigraph.history.commits",
    "IndexResult": "omnigraph.operations.ensure_indices",
    "LoadMode": "omnigraph.operations.load",
    "LoadResult": "omnigraph.operations.load",
    "MergeConflict": "omnigraph.core.merge_conflict",
    "MergeConflictKind": "omnigraph.core.merge_conflict",
    "MergeOutcome": "omnigraph.operations.merge",
    "MergeResult": "omnigraph.operations.merge",
    "MutationResult": "omnigraph.operations.mutate",
    "PendingIndex": "omnigraph.operations.ensure_indices",
    "Quarantined": "omnigraph.commit.recovery.restore",
    "RecoveryRecord": "omnigraph.commit.recovery.audit",
    "RepairResult": "omnigraph.operations.repair",
    "Result": "omnigraph.graph.result",
    "Snapshot": "omnigraph.history.state",
    "SnapshotView": "omnigraph.graph.snapshot_view",
    "VerifyReport": "omnigraph.operations.verify",
    "init": "omnigraph.graph.graph",
    "open": "omnigraph.graph.graph",
    "quarantined": "omnigraph.graph.repair",
    "repair": "omnigraph.graph.repair",
    "restore_quarantined": "omnigraph.graph.repair",
}
_ERRORS = "omnigraph.core.errors"

__all__ = [
    "INTERNAL_SCHEMA_VERSION",
    "AlreadyExistsError",
    "AlreadyInitialized",
    "AmbiguousMergeBase",
    "BadRequest",
    "Baseline",
    "Branch",
    "BranchInUse",
    "BranchMoved",
    "BranchNotFound",
    "CartesianProductRefused",
    "CatalogError",
    "ChangeCursorRejected",
    "ChangeFeed",
    "ChangeFeedGap",
    "ChangeFeedPage",
    "ChangeSchemaBoundary",
    "ClusterManaged",
    "ColumnsLeftOut",
    "CommitChanges",
    "CommitChangesPage",
    "CommitConflict",
    "CommitHasNoParent",
    "CommitNotFound",
    "ConflictError",
    "DeleteRefusal",
    "Diff",
    "DriftNeedsRepair",
    "EmbedResult",
    "EmbeddingConfig",
    "EmbeddingError",
    "EmbeddingModelMismatch",
    "EntityChange",
    "EntityNotFound",
    "ExecutionError",
    "ExpectedVersionMismatch",
    "Explanation",
    "Export",
    "FormatVersionError",
    "Graph",
    "GraphCommit",
    "GraphDamaged",
    "GraphNotFound",
    "HandleClosed",
    "HandleForked",
    "HistoricalVersionReclaimed",
    "IndexResult",
    "InitializationClaimed",
    "InitializationCommitted",
    "InitializationIndeterminate",
    "InvariantViolation",
    "KeyConflict",
    "LoadMode",
    "LoadResult",
    "MergeConflict",
    "MergeConflictKind",
    "MergeConflicts",
    "MergeOutcome",
    "MergeResult",
    "MixedMutation",
    "MutationResult",
    "NotFoundError",
    "OmnigraphError",
    "ParameterError",
    "ParseError",
    "PendingIndex",
    "PlanError",
    "PolicyDenied",
    "PreconditionFailed",
    "PublishRetriesExhausted",
    "Quarantined",
    "QueryMemoryExceeded",
    "QueryNotFound",
    "QueryTimeout",
    "ReadSetChanged",
    "RecoveryRecord",
    "RecoveryRequired",
    "RepairResult",
    "ResourceLimit",
    "Result",
    "RowLevelCasContention",
    "SchemaApplyInProgress",
    "SchemaContractConflict",
    "SchemaError",
    "SidecarCorrupt",
    "SidecarTooNew",
    "Snapshot",
    "SnapshotView",
    "SourceError",
    "SparkUnavailable",
    "StaleCommit",
    "StorageError",
    "TypeCheckError",
    "UnsupportedError",
    "ValidationError",
    "VerifyReport",
    "VersionNotFound",
    "WriterLeaseHeld",
    "__version__",
    "init",
    "open",
    "quarantined",
    "repair",
    "restore_quarantined",
]


def __getattr__(name: str) -> object:
    """Import a public name from its home on first use, and keep it."""
    if name not in __all__:
        raise AttributeError(f"module 'omnigraph' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES.get(name, _ERRORS)), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names without importing what is behind them."""
    return sorted(__all__)
