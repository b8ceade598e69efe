"""The shapes of the documents that `wire.documents` makes.

They describe the server, and are all that clients take for an answer.

The documents are made as plain objects; a test holds each of them against its model here, unknown fields
included, so that neither can change without the other.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from omnigraph.core.limits import I64_MAX, I64_MIN

Micros = Annotated[int, Field(ge=I64_MIN, le=I64_MAX)]  # since 1970


class WireDocument(BaseModel):
    """A document that a server answers with, and that a client holds an answer against."""

    # Most programs meet a few of them: each is built when it is first used.
    model_config = ConfigDict(extra="forbid", populate_by_name=True, defer_build=True)


class ManifestConflict(WireDocument):
    """Another writer published this table first."""

    table_key: str
    expected: int
    actual: int


class MergeConflictItem(WireDocument):
    """One disagreement of two branches."""

    table_key: str
    row_id: str | None = None
    kind: str
    message: str


class AmbiguousBase(WireDocument):
    """Two branches that meet in no commit that could be told."""

    source: str
    target: str
    ancestors: list[str]


class ClearedItem(WireDocument):
    """A property that an upsert would clear, or has cleared."""

    table_key: str
    property: str
    rows: int


class KeyConflictItem(WireDocument):
    """A strict insert met an existing id."""

    table_key: str
    row_id: str | None = None


class ReadSetConflict(WireDocument):
    """Something that a write only read has moved."""

    member: str
    expected: Any = None
    actual: Any = None


class ChangeDiffRefusal(WireDocument):
    """A commit whose changes cannot be told."""

    reason: Literal["parentless_commit", "schema_boundary"]
    graph_commit_id: str
    before_commit_id: str | None = None
    type_name: str | None = None


class PreconditionFailure(WireDocument):
    """A lost conditional write."""

    expected: str
    actual: str | None = None


class ResourceLimitItem(WireDocument):
    """A limit, and what would have passed it."""

    resource: str
    limit: int
    actual: int


class BlobRangeItem(WireDocument):
    """Bytes that a value does not have."""

    start: int
    end: int | None = None
    length: int


class RecoveryRequiredItem(WireDocument):
    """An interrupted write that must be recovered first."""

    operation_id: str


class ChangeFeedGapItem(WireDocument):
    """A feed whose history was cleaned up."""

    cursor: str | None = None
    first_unreadable_commit_id: str


class VersionReclaimed(WireDocument):
    """A past version that was cleaned up."""

    table_key: str
    version: int


class ErrorOutput(WireDocument):
    """Why a request was refused or failed; at most one of the details is there."""

    error: str
    code: (
        Literal[
            "unauthorized",
            "forbidden",
            "bad_request",
            "not_found",
            "method_not_allowed",
            "conflict",
            "too_many_requests",
            "internal",
        ]
        | None
    ) = None
    recovery_operation_id: str | None = None
    manifest_conflict: ManifestConflict | None = None
    merge_conflicts: list[MergeConflictItem] | None = None
    ambiguous_merge_base: AmbiguousBase | None = None
    cleared: list[ClearedItem] | None = None
    key_conflict: KeyConflictItem | None = None
    read_set_conflict: ReadSetConflict | None = None
    change_diff_refusal: ChangeDiffRefusal | None = None
    precondition_failure: PreconditionFailure | None = None
    resource_limit: ResourceLimitItem | None = None
    blob_range: BlobRangeItem | None = None
    recovery_required: RecoveryRequiredItem | None = None
    change_feed_gap: ChangeFeedGapItem | None = None
    version_reclaimed: VersionReclaimed | None = None


class HealthOutput(WireDocument):
    """The server is there."""

    status: Literal["ok"]
    version: str
    internal_schema_version: int


class ReadyOutput(HealthOutput):
    """The server is there, and so many of its graphs are."""

    graphs_ready: int
    graphs_quarantined: int


class CommitOperationOutput(WireDocument):
    """One of several mutations that were committed together."""

    actor_id: str | None
    query_name: str
    message: str | None
    affected_nodes: int
    affected_edges: int


class CommitOutput(WireDocument):
    """A commit; a branch of null is main, times are microseconds since 1970.

    `operations` are there if several mutations were committed together.
    """

    graph_commit_id: str
    manifest_branch: str | None
    manifest_version: int
    parent_commit_id: str | None
    merged_parent_commit_id: str | None
    actor_id: str | None
    created_at: Micros
    message: str | None = None
    operations: list[CommitOperationOutput] | None = None


class TableOutput(WireDocument):
    """One table of a snapshot; a branch of null is main."""

    table_key: str
    table_path: str
    table_version: int
    table_branch: str | None
    row_count: int


class SnapshotOutput(WireDocument):
    """What a branch shows: its version and its tables."""

    branch: str
    graph_commit_id: str
    manifest_version: int
    internal_schema_version: int
    tables: list[TableOutput]


class TargetOutput(WireDocument):
    """What was read: the newest state of a branch, or a commit."""

    branch: str | None
    snapshot: str | None


class ReadOutput(WireDocument):
    """The rows of a read."""

    query_name: str
    target: TargetOutput
    row_count: int
    columns: list[str] | None = None
    rows: list[dict[str, Any]]
    graph_commit_id: str | None = None


class ChangeOutput(WireDocument):
    """What a mutation did; without a commit nothing matched."""

    branch: str
    query_name: str
    affected_nodes: int
    affected_edges: int
    actor_id: str | None
    commit: CommitOutput | None


class GraphItem(WireDocument):
    """One graph of a server."""

    graph_id: str
    uri: str


class GraphListOutput(WireDocument):
    """The graphs of a server, by id."""

    graphs: list[GraphItem]


class LoadedTable(WireDocument):
    """How many rows a load brought to one table."""

    table_key: str
    rows_loaded: int


class PendingIndexItem(WireDocument):
    """An index that could not be built yet."""

    table_key: str
    property: str
    reason: str


class LoadOutput(WireDocument):
    """What a load did."""

    branch: str
    base_branch: str | None
    branch_created: bool
    mode: str
    tables: list[LoadedTable]
    actor_id: str | None
    commit: CommitOutput | None
    index_commit: CommitOutput | None
    pending_indexes: list[PendingIndexItem]
    warnings: list[str]
    cleared: list[ClearedItem] | None = None
    dry_run: bool | None = None


class IngestOutput(LoadOutput):
    """What a load did, and where."""

    uri: str


class BranchListOutput(WireDocument):
    """The branches of a graph, sorted."""

    branches: list[str]


class BranchCreateOutput(WireDocument):
    """A branch that was made."""

    uri: str
    from_: str = Field(alias="from")
    name: str
    actor_id: str | None


class BranchDeleteOutput(WireDocument):
    """A branch that was deleted."""

    uri: str
    name: str
    actor_id: str | None


class BranchMergeOutput(WireDocument):
    """What a merge did, or would do."""

    source: str
    target: str
    outcome: Literal["already_up_to_date", "fast_forward", "merged"]
    actor_id: str | None
    commit: CommitOutput | None
    branch_deleted: bool | None = None
    branch_delete_error: str | None = None
    branch_delete_refusal: Literal["moved", "in_use", "forbidden", "failed"] | None = None
    conflicts: list[MergeConflictItem] | None = None


class CommitListOutput(WireDocument):
    """Commits, newest first."""

    commits: list[CommitOutput]


class TypeRefOutput(WireDocument):
    """A type: an id that a rename keeps, and its name."""

    id: str
    name: str


class EndpointsOutput(WireDocument):
    """Both ends of an edge."""

    from_: str = Field(alias="from")
    to: str


class ImageOutput(WireDocument):
    """An entity at one time."""

    properties: dict[str, Any]
    endpoints: EndpointsOutput | None = None


class EntityChangeOutput(WireDocument):
    """One changed entity."""

    kind: Literal["node", "edge"]
    type: TypeRefOutput
    id: str
    op: Literal["insert", "update", "delete"]
    before: ImageOutput | None = None
    after: ImageOutput | None = None


class ChangeCauseOutput(WireDocument):
    """The commit that made changes."""

    graph_commit_id: str
    parent_commit_id: str | None
    merged_parent_commit_id: str | None
    authored_branch: str
    actor_id: str | None
    authored_at: Micros


class ChangeBlockOutput(WireDocument):
    """Changes of one commit."""

    cause: ChangeCauseOutput
    changes: list[EntityChangeOutput]


class CommitChangesOutput(ChangeBlockOutput):
    """One page of a commit's changes."""

    next_page_token: str | None = None


class ChangeFeedOutput(WireDocument):
    """One page of a feed; only its last page has a cursor."""

    blocks: list[ChangeBlockOutput]
    next_page_token: str | None = None
    cursor: str | None = None
    caught_up: bool | None = None


class DiffSide(WireDocument):
    """One side of a comparison."""

    branch: str
    snapshot: str
    manifest_version: int


class ChangeCounts(WireDocument):
    """How many entities of one table changed."""

    inserted: int
    updated: int
    deleted: int


class DiffOutput(WireDocument):
    """What differs between two sides: one page of it, and how much there is of it."""

    from_: DiffSide = Field(alias="from")
    to: DiffSide
    changes: list[EntityChangeOutput]
    stats: dict[str, ChangeCounts]
    next_page_token: str | None = None


class DescribedProperty(WireDocument):
    """A property, and what its values are."""

    name: str
    type: str
    annotations: list[str]
    nulls: int
    distinct: int | None
    approximate: bool
    min: Any
    max: Any
    samples: list[Any]


class DescribedEnd(WireDocument):
    """One end of an edge type, and how many of the edges its nodes have."""

    type_name: str
    nodes: int
    nodes_without: int
    min: int
    median: float
    mean: float
    max: int


class TouchingEdgeOutput(WireDocument):
    """An edge type that leaves a node type, or arrives at it."""

    name: str
    source: str
    target: str


class DescribeOutput(WireDocument):
    """A type and what its rows hold: of an edge type with its ends, of a node type with its edges."""

    uri: str
    branch: str
    commit_id: str
    kind: Literal["node", "edge"]
    name: str
    table_key: str
    row_count: int
    annotations: list[str]
    properties: list[DescribedProperty]
    source: DescribedEnd | None = None
    target: DescribedEnd | None = None
    interfaces: list[str] | None = None
    edges: list[TouchingEdgeOutput] | None = None


class EntityOutput(WireDocument):
    """A node or an edge, and the commit that shows it; values of Blobs are left to their route."""

    table_key: str
    graph_commit_id: str
    entity: dict[str, Any]


class ExplainOutput(WireDocument):
    """How a read would be carried out: as a document, and as text for people."""

    plan: dict[str, Any]
    text: str


class LintOutput(WireDocument):
    """What a check of a query file found."""

    status: Literal["ok", "error"]
    schema_source: dict[str, str]
    query_path: str | None
    queries_processed: int
    errors: int
    warnings: int
    infos: int
    results: list[dict[str, Any]]
    findings: list[dict[str, Any]]


class IndexItem(WireDocument):
    """A declared index with what it covers."""

    property: str
    kind: str
    coverage: Literal["indexed", "degraded", "missing", "pending"]
    reason: str | None = None
    rows_uncovered: int | None = None


class TableIndexesItem(WireDocument):
    """The declared indexes of a table."""

    table_key: str
    indexes: list[IndexItem]


class IndexStatusOutput(WireDocument):
    """Every declared index of a branch."""

    uri: str
    branch: str
    tables: list[TableIndexesItem]


class RecoveredTable(WireDocument):
    """What a recovery did to one table."""

    table_key: str
    from_version: int | None
    to_version: int | None


class RecoveryItem(WireDocument):
    """One finished recovery."""

    operation_id: str
    recovery_kind: str
    graph_commit_id: str | None = None
    recovery_for_actor: str | None = None
    writer_kind: str | None = None
    created_at: int
    tables: list[RecoveredTable]


class RecoveryListOutput(WireDocument):
    """Finished recoveries, newest first."""

    recoveries: list[RecoveryItem]


class QueryParameter(WireDocument):
    """One parameter of a stored query."""

    name: str
    kind: str
    item_kind: str | None = None
    vector_dim: int | None = None
    nullable: bool


class QueryCatalogEntry(WireDocument):
    """One stored query."""

    name: str
    tool_name: str
    description: str | None = None
    instruction: str | None = None
    mutation: bool
    params: list[QueryParameter]


class QueryListOutput(WireDocument):
    """The stored queries that are listed."""

    queries: list[QueryCatalogEntry]


class WriteOutput(WireDocument):
    """What became of a write: `status` and `answer` are what its caller was sent, or would have been."""

    write_id: str
    state: Literal["under_way", "done", "not_begun"]
    status: int | None = None
    answer: dict[str, Any] | None = None
    error_class: str | None = None
