"""`load`: many records, one commit or none, in process or on Spark.

E1  Both engines give the same content, the same counts and the same first error.
"""

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Protocol

from omnigraph.bulk.connect.java import require_pyspark
from omnigraph.bulk.connect.progress import Stage, told
from omnigraph.bulk.files import file_exists, file_size
from omnigraph.bulk.sources.sources import SourceInput
from omnigraph.core.errors import AlreadyExistsError, BadRequest
from omnigraph.core.shield import noting
from omnigraph.history.branches import given_name
from omnigraph.history.identity import MAIN, stored_name
from omnigraph.history.state import ManifestState, Snapshot
from omnigraph.operations.branches import create_branch
from omnigraph.operations.context import OpenGraph, check_message
from omnigraph.operations.engine import ChosenEngine, choose_engine
from omnigraph.operations.ensure_indices import build_behind
from omnigraph.operations.index_building import IndexPlacing
from omnigraph.operations.load.local import LocalLoad
from omnigraph.operations.load.model import (
    MODES,
    FrameInput,
    LoadInput,
    LoadMode,
    LoadOptions,
    LoadResult,
    RecordInput,
    TableInput,
)
from omnigraph.operations.load.rejects import refuse_input
from omnigraph.operations.retry import RetryTime, retry_on_conflict
from omnigraph.operations.settings import spark_bytes, write_retry_s
from omnigraph.operations.turns import Claim
from omnigraph.operations.upkeep import after_write
from omnigraph.policy.request import Action

__all__ = [
    "MODES",
    "FrameInput",
    "LoadInput",
    "LoadMode",
    "LoadOptions",
    "LoadResult",
    "RecordInput",
    "TableInput",
    "engine_of",
    "load",
]

if TYPE_CHECKING:
    from omnigraph.operations.load.spark import BulkLoad


class _Load(Protocol):
    """One load on one engine."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do and nothing to report."""
        ...

    @property
    def claim(self) -> Claim | None:
        """What it takes its turn for; None if it takes none."""
        ...

    def prepare(self) -> None:
        """Do what is done once for all attempts, before the load takes its turn."""
        ...

    def attempt(self, state: ManifestState, /) -> tuple[LoadResult, Snapshot]:
        """Validate against the newest state, which the caller has looked up, and publish."""
        ...


def load(
    graph: OpenGraph,
    inputs: Iterable[LoadInput],
    options: LoadOptions | LoadMode,
    *,
    branch: str | None = None,
    from_: str | None = None,
    actor: str | None = None,
    message: str | None = None,
    index: bool = True,
    retry: float | None = None,
) -> LoadResult:
    """Heal, read everything, validate everything, publish once; then indexes and upkeep.

    A lost race is run again for `retry` seconds, except by one that replaces whole tables, or that makes
    vectors on Spark, where all would be made again. In process, a load waits for its turn among the writers
    of its handle; on Spark it takes none, because all would wait for it.

    Raises:
        ValidationError: with the first violation by file and line; nothing was written.
        ColumnsLeftOut: the options ask for all columns, and an upsert would clear some; nothing was written.
        KeyConflict: a strict insert met an existing id.
        ConflictError: another writer was first; nothing of this load is visible.
        SparkUnavailable: the load needs Spark, which is not available.
        EmbeddingError, EmbeddingModelMismatch: a vector could not be made; nothing was written.
    """
    name = graph.enter(actor, Action.CHANGE, branch)
    graph.require_writable()
    check_message(message)
    retry_s = write_retry_s(retry)
    if not isinstance(options, LoadOptions):
        options = LoadOptions(options)
    if options.is_dry_run and from_ is not None and not _is_there(graph, name):
        graph.enter_target(actor, Action.BRANCH_CREATE, name, source=given_name(from_))
        name = given_name(from_)  # what would be made shows what this one shows
    is_created = not options.is_dry_run and _create_missing(graph, name, from_, actor)
    graph.require_branch(name)
    graph.heal_if_due()
    given = list(inputs)
    if options.rejects is not None:
        refuse_input(options.rejects, [item for item in given if isinstance(item, SourceInput)])
        names = (item.path if isinstance(item, SourceInput) else item.name for item in given)
        options = replace(options, input_names=tuple(names))
    engine = engine_of(given, options)
    begin = LocalLoad if engine == "local" else _spark_load()
    begun: _Load = begin(graph, given, options, branch=name, actor=actor, message=message)
    base = (None if from_ is None else from_.strip()) if is_created else None
    if begun.is_empty:
        return LoadResult(
            stored_name(name),
            options.mode,
            (),
            None,
            engine=engine,
            is_dry_run=options.is_dry_run,
            base_branch=base,
            branch_created=is_created,
        )
    begun.prepare()
    is_once = options.mode == "overwrite" or (options.makes_vectors and engine == "spark")
    time = RetryTime(0.0 if is_once else retry_s)
    with nullcontext() if begun.claim is None else graph.turns.turn(begun.claim):
        result, before = retry_on_conflict(graph, name, begun.attempt, time=time)
    result = replace(result, engine=engine, base_branch=base, branch_created=is_created)
    commit = result.commit
    if commit is None:
        return result
    with noting(f"the load had already landed, as commit {commit.graph_commit_id}"):
        if index:
            rows_of = None if engine == "spark" else result.tables
            with told(options.progress, Stage.INDEX, tables=rows_of):
                placing = IndexPlacing(master=options.master, is_beside_spark=engine == "spark")
                keys = [key for key, _ in result.tables]
                built, warnings = build_behind(graph, name, keys, placing=placing)
            result = replace(
                result, index_commit=built.commit, pending_indexes=built.pending, warnings=warnings
            )
        rows = sum(count for _, count in result.tables) if index else 0
        after_write(graph, before, commit, rows=rows)
    return result


def require_load(graph: OpenGraph, *, branch: str | None, from_: str | None, actor: str | None) -> None:
    """Ask for what a load asks for, without one.

    Raises:
        PolicyDenied: the actor may not change the branch, or may not make it if there is none.
    """
    name = graph.enter(actor, Action.CHANGE, branch)
    if from_ is not None and not _is_there(graph, name):
        graph.enter_target(actor, Action.BRANCH_CREATE, name, source=given_name(from_))


def _is_there(graph: OpenGraph, name: str) -> bool:
    return name == MAIN or graph.parts.branches.find(name) is not None


def _create_missing(graph: OpenGraph, name: str, from_: str | None, actor: str | None) -> bool:
    """Create the branch of a load that names the one to start from; otherwise a typo would create one."""
    if from_ is None or _is_there(graph, name):
        return False
    try:
        create_branch(graph, name, from_=from_, actor=actor)
    except AlreadyExistsError:  # another process just created it
        return False
    return True


def engine_of(inputs: Sequence[LoadInput], options: LoadOptions) -> ChosenEngine:
    """Return where a load runs: where the options say, else by what it reads.

    Spark takes DataFrames, files above a total size, in one folder or many, and everything while a master or
    a Connect server is set.
    """

    def is_large() -> bool:
        files = (item for item in inputs if isinstance(item, SourceInput))
        return any(isinstance(item, FrameInput) for item in inputs) or _reaches(spark_bytes(), files)

    return choose_engine(options.engine, options.master, is_large)


def _reaches(size: int, files: Iterable[SourceInput]) -> bool:
    """Return whether files add up to this many bytes; no more of them are looked at than necessary."""
    return any(total >= size for total in accumulate(map(_size, files)))


def _size(source: SourceInput) -> int:
    """Return the size of a file; a missing one is left to its reader to report."""
    try:
        return file_size(source.location) if file_exists(source.location) else 0
    except OSError as error:
        raise BadRequest(f"cannot read {source.path}: {error.strerror or error}") from error


def _spark_load() -> "type[BulkLoad]":
    require_pyspark()
    from omnigraph.operations.load.spark import BulkLoad

    return BulkLoad
