"""The error tree.

Codes, statuses and exit codes belong to the class; raising code passes none of them. `detail` names the
additional object that an HTTP body carries.

    OmnigraphError                  internal, 500, exit 1
      BadRequest                    bad_request, 400
        SourceError                 something is wrong at a place in a text
          ParseError                lexer, grammar, checks of one source
            MixedMutation           inserts or updates together with deletes
          CatalogError              a parsed schema that is not a valid catalog
          TypeCheckError            a query that does not fit the schema; type_code T1..T24 or None
          PlanError                 well typed, but without an executable meaning
        ExecutionError              evaluation of values
          ParameterError            missing, undeclared or of the wrong type
          ValidationError           rows that break the schema's rules
          ColumnsLeftOut            an upsert that would clear properties its input does not mention
          EmbeddingModelMismatch    a text for vectors of another model
          EmbeddingError            internal, 500: no provider or key, or the provider failed
        SchemaError                 an unsupported migration
        ChangeCursorRejected        a cursor or page token that does not belong here
      AuthenticationError           unauthorized, 401: no or an unknown token (core/access_errors.py)
      PolicyDenied                  forbidden, 403
      NotFoundError                 not_found, 404
        QueryNotFound, BranchNotFound, CommitNotFound, VersionNotFound, GraphNotFound
      ConflictError                 conflict, 409
        ExpectedVersionMismatch     a table moved since it was read
        ReadSetChanged              something that was only read moved
        SchemaChanged               the schema changed while a write was prepared
        RowLevelCasContention       another publish took a manifest row first
        PublishRetriesExhausted     the same, more often than the budget allows
        CommitConflict              another commit of this table came first; nothing of ours landed
        StaleCommit                 our commit landed after another one
        KeyConflict                 a strict insert met an existing id
        MergeConflicts              two branches that cannot be merged as they are
        AlreadyExistsError          AlreadyInitialized, InitializationClaimed
        CloneUnfinished             a copy of a graph that is not whole yet
        SchemaApplyInProgress, SchemaContractConflict, BranchesBlockSchemaApply, ClusterManaged
        DriftNeedsRepair, PendingRecovery    drift without a sidecar; maintenance beside an unfinished write
        WriterLeaseHeld, WriterEnded    another process writes to an object store, or this one ended
        CommitHasNoParent, ChangeSchemaBoundary    a commit whose changes cannot be determined
      PreconditionFailed            412, exit 4: a lost `if_commit`
      ChangeFeedGap                 410: a feed whose history was cleaned up
      HistoricalVersionReclaimed    410: the past was cleaned up
      ResourceLimit                 413: a configured ceiling
        QueryTimeout                a query that took longer than allowed
        QueryMemoryExceeded         a query that needs more memory than allowed
        CartesianProductRefused     a match of unconnected parts with too many combinations
      BlobRangeError                416: bytes that a value does not have (core/blob_errors.py)
      ExternalBlobError             424: bytes behind a reference (core/blob_errors.py)
      RateLimited                   too_many_requests, 429: enough of this actor (core/access_errors.py)
      RecoveryRequired              503: an unfinished write must be recovered first
      StorageError                  the store failed; `kind` says how
        GraphDamaged                graph_damaged: a file is gone or not what was written (core/damage.py)
      FormatVersionError            a storage format this build does not read
      SidecarCorrupt, SidecarTooNew, InvariantViolation
      InitializationCommitted, InitializationIndeterminate
      HandleForked, HandleClosed    a handle was used in a child of its process, or after it was closed
      SparkUnavailable              no Java, no session, or an executor unlike the driver
      UnsupportedError              not offered here
      TransportError                a server gave no answer that could be understood; nothing was changed
      CommitOutcomeUnknown          the answer to a write was lost: it may have been carried out, or not
"""

from collections.abc import Sequence
from typing import ClassVar

from omnigraph.core.cleared_property import ClearedProperty
from omnigraph.core.merge_conflict import MergeConflict


class OmnigraphError(Exception):
    """The root of every error that Omnigraph raises on purpose; never raised itself."""

    code: ClassVar[str | None] = "internal"
    detail: ClassVar[str | None] = None
    status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 1


class BadRequest(OmnigraphError):
    """The call cannot be carried out as it was made; nothing was executed or stored."""

    code = "bad_request"
    status = 400


class ExecutionError(BadRequest):
    """A value that cannot be bound, evaluated or stored."""

    def __init__(self, message: str) -> None:
        """Take the message without the class's label."""
        super().__init__(f"execution error: {message}")
        self.message = message


class ParameterError(ExecutionError):
    """A parameter is missing, undeclared or of the wrong type."""

    def __init__(self, message: str, *, name: str | None = None) -> None:
        """Take the parameter's name, or `None` if the whole parameter object is wrong."""
        super().__init__(message)
        self.name = name


class ValidationError(ExecutionError):
    """Rows break the rules of the schema; the first violation gives message and fields.

    `violations` lists the first of them in order, `total` counts all. `consequences` counts those in `total`
    that only follow from others: edges to refused nodes; they come last. `is_cut_short`: `total` is a least.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: str,
        table_key: str | None = None,
        row_id: str | None = None,
        file: str | None = None,
        line: int | None = None,
        violations: Sequence[object] = (),
        total: int = 1,
        consequences: int = 0,
        is_cut_short: bool = False,
    ) -> None:
        """Take the first violation's place; kind is one of the constraint kinds of `validate`."""
        super().__init__(message)
        self.kind, self.table_key, self.row_id = kind, table_key, row_id
        self.file, self.line = file, line
        self.violations, self.total, self.is_cut_short = tuple(violations), total, is_cut_short
        self.consequences = consequences


class ColumnsLeftOut(ExecutionError):
    """An upsert with strict columns would clear `cleared`, which its input does not mention."""

    detail = "cleared"

    def __init__(self, cleared: Sequence[ClearedProperty]) -> None:
        """Take at least one property that would be cleared."""
        listed = ", ".join(
            f"{item.table_key.partition(':')[2]}.{item.property} of {item.rows} "
            f"{'row' if item.rows == 1 else 'rows'}"
            for item in cleared
        )
        super().__init__(
            f"the input leaves out columns that existing rows have; an upsert replaces whole rows and would "
            f"clear {listed}: add the columns, or load without strict columns"
        )
        self.cleared = tuple(cleared)


class EmbeddingModelMismatch(ExecutionError):
    """A text would be embedded by a different model than the vectors it is compared with."""

    def __init__(self, *, property: str, recorded: str, actual: str) -> None:
        """Take the property, the model it records, and the one that is configured."""
        super().__init__(f"{property} was built with {recorded!r}, this embedder is {actual!r}")
        self.property, self.recorded, self.actual = property, recorded, actual


class EmbeddingError(ExecutionError):
    """A text cannot be embedded: no such provider, no key, or the provider failed."""

    code = "internal"
    status = 500

    def __init__(self, message: str, *, provider: str) -> None:
        """Take what failed and the kind of provider."""
        super().__init__(message)
        self.provider = provider


class SchemaError(BadRequest):
    """A migration that is not supported; `steps` is the whole plan, the blocking steps included."""

    def __init__(self, message: str, *, steps: Sequence[object]) -> None:
        """Take the reason of the first unsupported step, with its code in front."""
        super().__init__(message)
        self.steps = tuple(steps)


class NotFoundError(OmnigraphError):
    """Something named does not exist, according to the authority on it."""

    code = "not_found"
    status = 404


class QueryNotFound(NotFoundError):
    """No query with that name is declared."""

    def __init__(self, name: str, *, known: Sequence[str]) -> None:
        """Take the name asked for and the names that exist."""
        listed = ", ".join(f"'{other}'" for other in known) or "none"
        super().__init__(f"query '{name}' not found; declared: {listed}")
        self.name = name


class BranchNotFound(NotFoundError):
    """There is no branch with that name."""

    def __init__(self, branch: str) -> None:
        """Take the graph branch."""
        super().__init__(f"branch '{branch}' not found")
        self.branch = branch


class CommitNotFound(NotFoundError):
    """No commit with that id is visible."""

    def __init__(self, commit_id: str) -> None:
        """Take the commit id asked for."""
        super().__init__(f"commit '{commit_id}' not found")
        self.commit_id = commit_id


class VersionNotFound(NotFoundError):
    """The branch has no such manifest version."""


class EntityNotFound(NotFoundError):
    """No node or edge of that type has this id."""

    def __init__(self, type_name: str, entity_id: str) -> None:
        """Take the type and the id asked for."""
        super().__init__(f"{type_name} '{entity_id}' not found")
        self.type_name, self.entity_id = type_name, entity_id


class GraphNotFound(NotFoundError):
    """There is no graph at this place."""


class ChangeCursorRejected(BadRequest):
    """A cursor or page token is damaged, or belongs to another graph, branch, filter or call."""

    def __init__(self, reason: str) -> None:
        """Take what is wrong with it."""
        super().__init__(f"change cursor rejected: {reason}")
        self.reason = reason


class PolicyDenied(OmnigraphError):
    """The policy says no; nothing was done."""

    code = "forbidden"
    status = 403

    def __init__(
        self,
        *,
        action: str,
        actor: str | None,
        branch: str | None = None,
        target_branch: str | None = None,
        reason: str | None = None,
    ) -> None:
        """Take who wanted to do what where, and why not, in words of its own if there are any."""
        denial = f"policy denied action '{action}' on branch '{branch}' for actor '{actor}'"
        super().__init__(denial if reason is None else reason)
        self.action, self.actor = action, actor
        self.branch, self.target_branch = branch, target_branch


class ConflictError(OmnigraphError):
    """Another writer was first; nothing of this call became visible."""

    code = "conflict"
    status = 409

    recovery_operation_id: str | None = None  # set when effects of this call wait for recovery


class ExpectedVersionMismatch(ConflictError):
    """A table moved since it was read. Reading again and retrying is safe."""

    detail = "manifest_conflict"

    def __init__(
        self, *, table_key: str, expected: int, actual: int, in_flight_operation_id: str | None = None
    ) -> None:
        """Take the table's pin as read and as found; an in-flight operation belongs to a live writer."""
        busy = f" (operation {in_flight_operation_id} is committing)" if in_flight_operation_id else ""
        super().__init__(f"{table_key} moved: expected version {expected}, found {actual}{busy}")
        self.table_key, self.expected, self.actual = table_key, expected, actual
        self.in_flight_operation_id = in_flight_operation_id


class ReadSetChanged(ConflictError):
    """Something this write only read has moved, before any effect."""

    detail = "read_set_conflict"

    def __init__(self, *, member: str, expected: object, actual: object) -> None:
        """Take what moved, and both of its values."""
        super().__init__(
            f"{member} changed while this write was prepared: expected {expected}, found {actual}"
        )
        self.member, self.expected, self.actual = member, expected, actual


class SchemaChanged(ConflictError):
    """The schema of a branch changed while a write to it was prepared. Trying again is safe."""

    def __init__(self, branch: str, *, base: str | None = None) -> None:
        """Take the branch, and the commit whose schema the caller's was made from, if the caller named it."""
        when = "while this write was prepared" if base is None else f"after {base}"
        advice = "try it again" if base is None else "make the change again on the schema that it has now"
        super().__init__(f"the schema of branch '{branch}' changed {when}: {advice}")
        self.branch, self.base = branch, base


class RowLevelCasContention(ConflictError):
    """Another publish took a manifest row between our read and our write."""


class PublishRetriesExhausted(ConflictError):
    """Every attempt to publish lost its race."""

    def __init__(self, attempts: int) -> None:
        """Take how often it was tried."""
        super().__init__(f"the publish lost {attempts} attempts in a row (retry budget {attempts - 1})")
        self.attempts = attempts


class CommitConflict(ConflictError):
    """Another commit of this table came first; nothing of ours landed."""


class StaleCommit(ConflictError):
    """Our commit landed after another one, on rows it was not prepared for; it must not be published."""

    def __init__(self, message: str, *, expected: int, actual: int) -> None:
        """Take the version that was expected and the one that resulted."""
        super().__init__(message)
        self.expected, self.actual = expected, actual


class KeyConflict(ConflictError):
    """A strict insert met an existing id."""

    detail = "key_conflict"

    def __init__(
        self, *, table_key: str, row_id: str, file: str | None = None, line: int | None = None
    ) -> None:
        """Take the table and the id, and the record's place if the input has lines."""
        place = "" if line is None else f"line {line}: " if file is None else f"{file}:{line}: "
        super().__init__(f"{place}{table_key} already has id '{row_id}'")
        self.table_key, self.row_id = table_key, row_id
        self.file, self.line = file, line


class MergeConflicts(ConflictError):
    """Two branches disagree; nothing was written. Resolve each conflict on one side and merge again."""

    detail = "merge_conflicts"

    def __init__(self, conflicts: Sequence[MergeConflict]) -> None:
        """Take all conflicts, in order."""
        assert conflicts, "there is at least one conflict"
        first = conflicts[0]
        where = first.table_key if first.row_id is None else f"{first.table_key} '{first.row_id}'"
        more = f"; and {len(conflicts) - 1} more" if len(conflicts) > 1 else ""
        super().__init__(f"merge conflicts: {where} ({first.kind}){more}")
        self.conflicts = tuple(conflicts)


class AmbiguousMergeBase(ConflictError):
    """What two branches have in common cannot be determined, so nothing was merged or guessed."""

    detail = "ambiguous_merge_base"

    def __init__(self, *, source: str, target: str, ancestors: Sequence[str], reason: str) -> None:
        """Take both branches, the commits that are in the way, and why."""
        super().__init__(
            f"branch '{source}' cannot be merged into '{target}': {reason}. Make a branch from '{target}',"
            f" apply to it what '{source}' should contribute, and merge that"
        )
        self.source, self.target, self.ancestors, self.reason = source, target, tuple(ancestors), reason


class AlreadyExistsError(ConflictError):
    """The name or place is taken."""


class AlreadyInitialized(AlreadyExistsError):
    """There is a graph, or what is left of one, at this place."""


class InitializationClaimed(AlreadyExistsError):
    """Another init is running here, or died without recording its outcome."""


class CloneUnfinished(ConflictError):
    """A place holds a part of a copy of a graph; nothing is read or written there until it is whole."""

    def __init__(self, *, place: str, source: str, reason: str = "is not whole yet") -> None:
        """Take the place, what is copied there, and what stands in the way."""
        super().__init__(
            f"{place} is a copy of {source} and {reason}: finish it with 'omnigraph clone' and the same "
            "source and options, or remove it"
        )
        self.place, self.source = place, source


class BranchInUse(ConflictError):
    """A branch cannot be deleted: something else still needs it."""

    def __init__(self, branch: str, reason: str) -> None:
        """Take the graph branch and what needs it."""
        super().__init__(f"branch '{branch}' cannot be deleted: {reason}")
        self.branch, self.reason = branch, reason


class BranchMoved(ConflictError):
    """A branch is not at the required commit; it was left as it is."""

    def __init__(self, branch: str, *, expected: str, actual: str) -> None:
        """Take the graph branch, the required head and the actual one."""
        super().__init__(
            f"branch '{branch}' has moved on to commit {actual}, and only {expected} was merged:"
            f" merge it again, or delete it with everything in it"
        )
        self.branch, self.expected, self.actual = branch, expected, actual


class SchemaApplyInProgress(ConflictError):
    """A schema change is being applied; try again when it is done."""


class BranchesBlockSchemaApply(ConflictError):
    """A schema change that was to be alone in its graph met branches; nothing changed."""

    def __init__(self, branches: Sequence[str], hidden: int = 0) -> None:
        """Take the names of the branches, and how many there are that the caller may not know of."""
        unnamed = [f"{hidden} that you may not read"] if hidden else []
        names = ", ".join([*branches, *unnamed])
        super().__init__(
            f"schema apply needs a graph with only main; found: {names}. Merge or delete them, or do without"
            " --exclusive: branches keep the schema they have until they are upgraded or merged"
        )
        self.branches, self.hidden = tuple(branches), hidden


class SchemaContractConflict(ConflictError):
    """The schema files and the manifest do not describe the same tables."""


class ClusterManaged(ConflictError):
    """A cluster manages this graph; it is changed through the cluster's configuration."""


class DriftNeedsRepair(ConflictError):
    """A table is ahead of its pin and nothing says why."""

    def __init__(self, *, table_key: str, pin: int, head: int, branch: str = "main") -> None:
        """Take the published version and the table's newest one, and the branch that shows it."""
        flag = "" if branch == "main" else f" --branch {branch}"
        super().__init__(f"{table_key} is at {head}, published at {pin}: run omnigraph repair{flag}")
        self.table_key, self.pin, self.head, self.branch = table_key, pin, head, branch


class PendingRecovery(ConflictError):
    """A maintenance operation found writes that are unfinished."""

    def __init__(self, operation: str, operation_ids: Sequence[str]) -> None:
        """Take what was asked for, and the unfinished writes."""
        unfinished = ", ".join(operation_ids)
        super().__init__(
            f"{operation} needs a graph without pending recovery; reopen it read-write first,"
            f" as any command that writes does (unfinished: {unfinished})"
        )
        self.operation, self.operation_ids = operation, tuple(operation_ids)


class WriterLeaseHeld(ConflictError):
    """Another process writes to this graph on an object store, or took the lease from this one."""

    def __init__(self, *, host: str, pid: int, expires_at: str, was_ours: bool = False) -> None:
        """Take who holds the lease, and until when; one that was ours may be free again by now."""
        if was_ours:
            text = "this process was the only writer and has lost its lease to another: open the graph again"
        else:
            text = f"held by {host} (pid {pid}) until {expires_at}: open read-only or stop it"
        super().__init__(text)
        self.host, self.pid, self.expires_at = host, pid, expires_at


class WriterEnded(ConflictError):
    """This process was silent for too long on an object store: others have taken over what it left."""


class CommitHasNoParent(ConflictError):
    """A first commit: there is nothing to compare it with."""

    detail = "change_diff_refusal"
    reason: ClassVar[str] = "parentless_commit"
    type_name: str | None = None
    before_commit_id: str | None = None

    def __init__(self, commit_id: str) -> None:
        """Take the commit."""
        super().__init__(f"commit '{commit_id}' has no parent: take a baseline")
        self.graph_commit_id = commit_id


class ChangeSchemaBoundary(ConflictError):
    """A type's properties differ on the two sides, so its rows cannot be compared; nothing is guessed."""

    detail = "change_diff_refusal"
    reason: ClassVar[str] = "schema_boundary"
    cursor: str | None = None  # of a feed that ends here: before the commit

    def __init__(self, *, type_name: str, before_commit_id: str, commit_id: str, way_out: str) -> None:
        """Take the type, the commits on both sides, and what can be done where they were compared."""
        super().__init__(
            f"the schema of '{type_name}' differs between commits '{before_commit_id}' and '{commit_id}': "
            f"{way_out}"
        )
        self.type_name, self.graph_commit_id = type_name, commit_id
        self.before_commit_id: str | None = before_commit_id  # None from a server that does not tell it


class PreconditionFailed(OmnigraphError):
    """The branch is not at the commit that the caller required; nothing was done."""

    code = None
    detail = "precondition_failure"
    status = 412
    exit_code = 4

    def __init__(self, *, branch: str, expected: str, actual: str) -> None:
        """Take the head that was required and the one found."""
        super().__init__(f"branch '{branch}': expected head {expected}, found {actual}")
        self.branch, self.expected, self.actual = branch, expected, actual


class ChangeFeedGap(OmnigraphError):
    """The next commit of a feed can no longer be read; trying again will not help."""

    code = None
    detail = "change_feed_gap"
    status = 410

    def __init__(self, *, cursor: str | None, first_unreadable_commit_id: str) -> None:
        """Take the feed's position, if it was given a cursor, and the commit that is gone."""
        super().__init__(f"commit '{first_unreadable_commit_id}' was cleaned up: take a baseline")
        self.cursor, self.first_unreadable_commit_id = cursor, first_unreadable_commit_id


class HistoricalVersionReclaimed(OmnigraphError):
    """A past version of a table was cleaned up: the commits that show it are listed and cannot be read."""

    code = None
    detail = "version_reclaimed"
    status = 410

    def __init__(self, *, table_key: str, version: int, commit_id: str | None = None, told: str = "") -> None:
        """Take the table and version that are gone, what is told of them, and the commit if it is known."""
        super().__init__(f"{table_key} version {version} {told or 'was cleaned up'}")
        self.table_key, self.version, self.commit_id = table_key, version, commit_id


class ResourceLimit(OmnigraphError):
    """A configured limit, reached before any effect."""

    code = "bad_request"
    detail = "resource_limit"
    status = 413

    def __init__(self, *, resource: str, limit: int, actual: int, setting: str | None = None) -> None:
        """Take what is limited, the limit, how much was requested, and perhaps the setting that sets it."""
        help = "" if setting is None else f"; {setting} sets the limit"
        super().__init__(f"{resource}: {actual} over {limit}{help}")
        self.resource, self.limit, self.actual = resource, limit, actual


class QueryTimeout(ResourceLimit):
    """A query took longer than its limit; it changed nothing."""

    def __init__(self, *, limit_ms: int, elapsed_ms: int) -> None:
        """Take the limit, and the time when exceeding it was noticed."""
        super().__init__(resource="query time in ms", limit=limit_ms, actual=elapsed_ms)


class QueryMemoryExceeded(ResourceLimit):
    """A query needs more memory than its limit; found before the memory was allocated."""

    def __init__(self, *, limit: int, needed: int) -> None:
        """Take the limit and the total after the next step, in bytes."""
        super().__init__(resource="query memory in bytes", limit=limit, actual=needed)


class CartesianProductRefused(ResourceLimit):
    """Parts of a match that no traversal or equality connects have too many combinations."""

    def __init__(self, *, variable: str, limit: int, estimate: int) -> None:
        """Take the variable that is combined with all earlier rows, and how many rows that would make."""
        super().__init__(
            resource=f"rows of a Cartesian product with '${variable}'; connect it or narrow it down",
            limit=limit,
            actual=estimate,
        )
        self.variable = variable


class RecoveryRequired(OmnigraphError):
    """An unfinished write blocks this one, or this write's own outcome is unknown."""

    code = None
    detail = "recovery_required"
    status = 503

    def __init__(self, operation_id: str, reason: str) -> None:
        """Take the operation that must be recovered, and why."""
        super().__init__(f"operation {operation_id}: {reason}")
        self.operation_id = operation_id


class StorageError(OmnigraphError):
    """The store failed; the kind alone never permits a replay.

    Kinds: transient, configuration, not_found, precondition, permanent, unknown.
    """

    def __init__(self, message: str, *, kind: str) -> None:
        """Take what failed and how."""
        super().__init__(message)
        self.kind = kind


class FormatVersionError(OmnigraphError):
    """This build does not read the graph's storage format."""

    def __init__(self, message: str, *, found: object, floor: int, ceiling: int) -> None:
        """Take the stamp found and the bounds of this build."""
        super().__init__(message)
        self.found, self.floor, self.ceiling = found, floor, ceiling


class SidecarCorrupt(OmnigraphError):
    """A recovery sidecar cannot be understood; it stays where it is."""

    def __init__(self, uri: str, reason: str) -> None:
        """Take the file and what is wrong with it."""
        super().__init__(f"{uri} is not a valid recovery sidecar: {reason}")
        self.uri = uri


class SidecarTooNew(OmnigraphError):
    """A recovery sidecar was written by a newer build; it stays where it is."""

    def __init__(self, uri: str, found: int) -> None:
        """Take the file and its format."""
        super().__init__(f"{uri} has format {found}: upgrade omnigraph to recover it")
        self.uri, self.found = uri, found


class InvariantViolation(OmnigraphError):
    """The stored state breaks a promise of the engine; nothing can continue from here."""


class InitializationCommitted(OmnigraphError):
    """The graph was created, but a later step failed: open it."""


class InitializationIndeterminate(OmnigraphError):
    """It is unknown whether the graph was created; the claim stays."""


class HandleForked(OmnigraphError):
    """A handle opened before `fork` was used in the child."""

    def __init__(self) -> None:
        """Say what to do instead."""
        super().__init__("this handle was opened before fork: open a new one in the child")


class HandleClosed(OmnigraphError):
    """A handle, or something that reads through it, was used after it was closed."""

    def __init__(self) -> None:
        """Say what to do instead."""
        super().__init__("this handle is closed: open the graph again")


class SparkUnavailable(OmnigraphError):
    """A bulk operation has no usable Java, session or executor; nothing was written."""

    def __init__(self, reason: str) -> None:
        """Take what is missing and, where useful, how to get it."""
        super().__init__(reason)
        self.reason = reason


class UnsupportedError(OmnigraphError):
    """Not offered here."""
