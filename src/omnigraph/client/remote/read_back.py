"""The documents of a server as the values that a graph in its storage gives.

What a document does not say is left as its class has it: which engine loaded, which rows a merge looked at.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from omnigraph.catalog.params import ResultField
from omnigraph.changes.model import ChangeBlock, ChangeCause, Endpoints, EntityChange, Image, Op, TypeRef
from omnigraph.client.answer import Document
from omnigraph.client.remote.times import Times
from omnigraph.core.cleared_property import ClearedProperty
from omnigraph.core.merge_conflict import MergeConflict, MergeConflictKind
from omnigraph.history.commits import CommitOperation, GraphCommit
from omnigraph.history.identity import branch_name, stored_name
from omnigraph.history.state import tables_line, tables_shown
from omnigraph.operations.changes.commit_changes import CommitChangesPage
from omnigraph.operations.changes.diff import TableCounts
from omnigraph.operations.changes.feed import ChangeFeedPage
from omnigraph.operations.ensure_indices import PendingIndex
from omnigraph.operations.load.load import LoadResult
from omnigraph.operations.member import MutationResult
from omnigraph.operations.merge.merge import DeleteRefusal, MergeOutcome, MergeResult

if TYPE_CHECKING:
    from omnigraph.commit.recovery.audit import RecoveryRecord
    from omnigraph.operations.index_status import TableIndexes


@dataclass(frozen=True, slots=True)
class RemoteTable:
    """One table of a snapshot; `branch` is the one that wrote the version, None is main."""

    table_key: str
    version: int
    branch: str | None
    row_count: int


@dataclass(frozen=True, slots=True)
class RemoteSnapshot:
    """One state of a branch behind a server: what `Graph.snapshot` says of it, without what opens files.

    None as `branch` is main. `tables` is None where only the commit is known, as on the sides of a diff.
    """

    branch: str | None
    manifest_version: int
    commit_id: str
    tables: tuple[RemoteTable, ...] | None = None

    def __repr__(self) -> str:
        counted = "" if self.tables is None else f", {tables_line(self.tables)}"
        at = f"{branch_name(self.branch)!r} at {self.manifest_version}"
        return f"RemoteSnapshot({at}, {self.commit_id}{counted})"

    def _repr_html_(self) -> str:
        return tables_shown(self.tables or (), repr(self))


@dataclass(frozen=True, slots=True)
class RemoteBranch:
    """A branch that was made, and what it was made from; None is main."""

    name: str
    parent_branch: str | None


@dataclass(frozen=True, slots=True)
class RemoteStoredQuery:
    """A stored query that a server lists."""

    name: str
    tool_name: str
    is_mutation: bool
    parameters: tuple[ResultField, ...]
    description: str | None
    instruction: str | None

    @property
    def kind(self) -> str:
        """What it is called in messages: a read or a mutation."""
        return "mutation" if self.is_mutation else "read"


@dataclass(frozen=True, slots=True)
class RemoteSchemaPlan:
    """The steps from the schema of a branch to another one, as documents; `rows` are those of each step."""

    steps: tuple[Mapping[str, Any], ...]
    is_supported: bool
    rows: tuple[int, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RemoteSchemaApplyResult:
    """What a change of schema did; the steps are documents, and without a commit there was nothing to do."""

    branch: str | None
    steps: tuple[Mapping[str, Any], ...]
    commit: GraphCommit | None
    manifest_version: int
    index_commit: GraphCommit | None
    pending_indexes: tuple[PendingIndex, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def supported(self) -> bool:
        """Whether the plan could be applied; one that cannot raises."""
        return True

    @property
    def applied(self) -> bool:
        """Whether anything changed."""
        return self.commit is not None


def commit_of(document: Document) -> GraphCommit:
    """Return a commit."""
    return GraphCommit(
        document["graph_commit_id"],
        document["manifest_branch"],
        document["manifest_version"],
        document["parent_commit_id"],
        document["merged_parent_commit_id"],
        document["actor_id"],
        document["created_at"],
        document.get("message"),
        tuple(
            CommitOperation(
                item["actor_id"],
                item["query_name"],
                item.get("message"),
                item["affected_nodes"],
                item["affected_edges"],
            )
            for item in document.get("operations", ())
        ),
    )


def snapshot_of(document: Document) -> RemoteSnapshot:
    """Return the newest state of a branch."""
    return RemoteSnapshot(
        stored_name(document["branch"]),
        document["manifest_version"],
        document["graph_commit_id"],
        tuple(
            RemoteTable(item["table_key"], item["table_version"], item["table_branch"], item["row_count"])
            for item in document["tables"]
        ),
    )


def side_of(document: Document) -> RemoteSnapshot:
    """Return one side of a diff."""
    return RemoteSnapshot(stored_name(document["branch"]), document["manifest_version"], document["snapshot"])


def counts_of(stats: Document) -> tuple[TableCounts, ...]:
    """Return how many entities of each table changed."""
    return tuple(
        TableCounts(table_key, of["inserted"], of["updated"], of["deleted"])
        for table_key, of in stats.items()
    )


def branch_of(document: Document) -> RemoteBranch:
    """Return a branch that was made."""
    return RemoteBranch(document["name"], stored_name(document["from"]))


def mutation_of(document: Document) -> MutationResult:
    """Return what a mutation did."""
    return MutationResult(
        stored_name(document["branch"]),
        document["query_name"],
        document["affected_nodes"],
        document["affected_edges"],
        _commit_or_none(document["commit"]),
    )


def load_of(document: Document) -> LoadResult:
    """Return what a load did; a server loads in its own process."""
    return LoadResult(
        stored_name(document["branch"]),
        document["mode"],
        tuple((item["table_key"], item["rows_loaded"]) for item in document["tables"]),
        _commit_or_none(document["commit"]),
        index_commit=_commit_or_none(document["index_commit"]),
        pending_indexes=_pending(document["pending_indexes"]),
        warnings=tuple(document["warnings"]),
        base_branch=document["base_branch"],
        branch_created=document["branch_created"],
        cleared=tuple(ClearedProperty(**item) for item in document.get("cleared", ())),
        is_dry_run=document.get("dry_run", False),
    )


def merge_of(document: Document) -> MergeResult:
    """Return what a merge did, or would do."""
    refusal = document.get("branch_delete_refusal")
    return MergeResult(
        document["source"],
        document["target"],
        MergeOutcome(document["outcome"]),
        _commit_or_none(document["commit"]),
        conflicts=tuple(
            MergeConflict(
                item["table_key"], item.get("row_id"), MergeConflictKind(item["kind"]), item["message"]
            )
            for item in document.get("conflicts", ())
        ),
        branch_deleted=bool(document.get("branch_deleted")),
        branch_delete_error=document.get("branch_delete_error"),
        branch_delete_refusal=None if refusal is None else DeleteRefusal(refusal),
    )


def stored_query_of(document: Document) -> RemoteStoredQuery:
    """Return a stored query."""
    return RemoteStoredQuery(
        document["name"],
        document["tool_name"],
        document["mutation"],
        tuple(
            ResultField(
                item["name"], item["kind"], item["nullable"], item.get("item_kind"), item.get("vector_dim")
            )
            for item in document["params"]
        ),
        document.get("description"),
        document.get("instruction"),
    )


def plan_of(document: Document) -> RemoteSchemaPlan:
    """Return the steps to another schema."""
    steps: Sequence[Document] = document["steps"]
    return RemoteSchemaPlan(
        tuple(steps),
        document["supported"],
        tuple(step.get("rows", 0) for step in steps),
        tuple(document.get("notes", ())),
    )


def schema_applied_of(document: Document) -> RemoteSchemaApplyResult:
    """Return what a change of schema did."""
    return RemoteSchemaApplyResult(
        stored_name(document["branch"]),
        tuple(document["steps"]),
        _commit_or_none(document["commit"]),
        document["manifest_version"],
        _commit_or_none(document["index_commit"]),
        _pending(document["pending_indexes"]),
        tuple(document["warnings"]),
        tuple(document.get("notes", ())),
    )


def indexes_of(document: Document) -> tuple["TableIndexes", ...]:
    """Return the declared indexes of a branch."""
    from omnigraph.operations.index_status import IndexState, TableIndexes

    return tuple(
        TableIndexes(
            table["table_key"],
            tuple(
                IndexState(
                    item["property"],
                    item["kind"],
                    item["coverage"],
                    item.get("reason"),
                    item.get("rows_uncovered") or 0,
                )
                for item in table["indexes"]
            ),
        )
        for table in document["tables"]
    )


def recovery_of(document: Document) -> "RecoveryRecord":
    """Return a finished recovery."""
    from omnigraph.commit.recovery.audit import RecoveryRecord
    from omnigraph.commit.recovery.kinds import RecoveryKind
    from omnigraph.commit.sidecar import Outcome, WriterKind

    kinds = {kind.wire: kind for kind in RecoveryKind}
    writers = {kind.wire: kind.value for kind in WriterKind}
    writer = document.get("writer_kind")
    return RecoveryRecord(
        document["operation_id"],
        kinds[document["recovery_kind"]],
        document.get("graph_commit_id"),
        document.get("recovery_for_actor"),
        None if writer is None else writers[writer],
        document["created_at"],
        tuple(
            Outcome(item["table_key"], item["from_version"], item["to_version"])
            for item in document["tables"]
        ),
    )


def change_of(document: Document, times: Times) -> EntityChange:
    """Return one changed entity."""
    kind, type_ = document["kind"], TypeRef(document["type"]["id"], document["type"]["name"])

    def image(found: Document | None) -> Image | None:
        if found is None:
            return None
        ends = found.get("endpoints")
        return Image(
            times.told(kind, type_.name, found["properties"]),
            None if ends is None else Endpoints(ends["from"], ends["to"]),
        )

    before, after = image(document.get("before")), image(document.get("after"))
    return EntityChange(kind, type_, document["id"], Op(document["op"]), before, after)


def cause_of(document: Document) -> ChangeCause:
    """Return the commit that made changes."""
    return ChangeCause(
        document["graph_commit_id"],
        document["parent_commit_id"],
        document["merged_parent_commit_id"],
        document["authored_branch"],
        document["actor_id"],
        document["authored_at"],
    )


def changes_page_of(document: Document, times: Times) -> CommitChangesPage:
    """Return one page of a commit's changes."""
    return CommitChangesPage(
        cause_of(document["cause"]),
        tuple(change_of(item, times) for item in document["changes"]),
        document.get("next_page_token"),
    )


def feed_page_of(document: Document, times: Times) -> ChangeFeedPage:
    """Return one page of a feed."""
    return ChangeFeedPage(
        tuple(
            ChangeBlock(cause_of(block["cause"]), tuple(change_of(item, times) for item in block["changes"]))
            for block in document["blocks"]
        ),
        document.get("next_page_token"),
        document.get("cursor"),
        document.get("caught_up"),
    )


def _commit_or_none(document: Document | None) -> GraphCommit | None:
    return None if document is None else commit_of(document)


def _pending(documents: Sequence[Document]) -> tuple[PendingIndex, ...]:
    return tuple(PendingIndex(item["table_key"], item["property"], item["reason"]) for item in documents)
