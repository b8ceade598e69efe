"""`embed`: vectors for texts that have none, inside a graph, as one commit.

E1  A run is one commit, or none: a provider that fails for one text fails the run, and nothing is written.
E2  Vectors are computed by the model that their property records, where it records one.
E3  In process and on Spark a run produces the same vectors and the same rows.
"""

from dataclasses import replace

from omnigraph.bulk.connect.progress import Stage, told
from omnigraph.bulk.embed import VectorColumn, vector_columns
from omnigraph.catalog.model import Catalog, NodeType
from omnigraph.core.errors import BadRequest, EmbeddingModelMismatch
from omnigraph.core.shield import delivering_behind, noting
from omnigraph.embedding.config import EmbeddingConfig
from omnigraph.embedding.embedder import open_provider
from omnigraph.operations.context import OpenGraph, check_message
from omnigraph.operations.embed.model import EmbedOptions, EmbedResult, EmbedTarget
from omnigraph.operations.embed.run import EmbedRun
from omnigraph.operations.embed.select import check_types, selected_filter
from omnigraph.operations.ensure_indices import build_behind
from omnigraph.operations.retry import RetryTime, retry_on_conflict
from omnigraph.operations.upkeep import after_write
from omnigraph.policy.request import Action
from omnigraph.storage.tables.filter import And, Compare, IsNull, Or, RowFilter


def embed(
    graph: OpenGraph,
    options: EmbedOptions,
    *,
    branch: str | None = None,
    actor: str | None = None,
    message: str | None = None,
    index: bool = True,
) -> EmbedResult:
    """Heal, find the rows, compute their vectors, publish once (E1); then indexes and upkeep.

    Raises:
        BadRequest: a type, property or value is invalid.
        EmbeddingModelMismatch: a property records another model (E2).
        EmbeddingError: there is no such provider, its key is missing, or it fails; nothing was written.
        ConflictError: another writer was first; nothing of this run is visible.
        SparkUnavailable: the run needs Spark, which is not available.
    """
    name = graph.enter(actor, Action.CHANGE, branch)
    graph.require_writable()
    check_message(message)
    graph.require_branch(name)
    config = graph.embedding or EmbeddingConfig.from_environment()
    provider = open_provider(config)
    try:
        found = targets(graph.catalog_on(name), options, provider.model)
        graph.heal_if_due()
        run = EmbedRun(graph, options, found, config, provider, branch=name, actor=actor, message=message)
        with delivering_behind():
            try:
                result, before = retry_on_conflict(graph, name, run.attempt, time=RetryTime(run.retry_s))
            finally:
                run.discard()
    finally:
        provider.close()
    commit = result.commit
    if commit is None:
        return result
    with noting(f"the vectors had already landed, as commit {commit.graph_commit_id}"):
        if index:
            with told(options.progress, Stage.INDEX):
                built, warnings = build_behind(graph, name, [table.table_key for table in result.tables])
            result = replace(
                result, index_commit=built.commit, pending_indexes=built.pending, warnings=warnings
            )
        rows = sum(table.rows for table in result.tables) if index else 0
        after_write(graph, before, commit, rows=rows)
    return result


def targets(catalog: Catalog, options: EmbedOptions, model: str) -> tuple[EmbedTarget, ...]:
    """Return what to fill, by type name.

    Raises:
        BadRequest: a type or property cannot be embedded, or a selector selects nothing.
        EmbeddingModelMismatch: a property records another model (E2).
    """
    found = []
    for type_, columns in _chosen(catalog, options):
        selected = selected_filter(options.selectors, type_) if options.selectors else None
        if options.selectors and selected is None:
            continue
        for column in columns:
            embedded = type_.properties[column.target].embed
            if embedded is not None and embedded.model not in {None, model}:
                raise EmbeddingModelMismatch(
                    property=f"{type_.name}.{column.target}", recorded=str(embedded.model), actual=model
                )
        wanted = Or(tuple(_lacking(column, again=options.is_again) for column in columns))
        found.append(EmbedTarget(type_, columns, wanted if selected is None else And((selected, wanted))))
    if options.selectors and not found:
        raise BadRequest(f"no embedded type has a property '{options.selectors[0].field}'")
    return tuple(found)


def _chosen(catalog: Catalog, options: EmbedOptions) -> list[tuple[NodeType, tuple[VectorColumn, ...]]]:
    """Return the types with embedded vectors, and those of their vectors that are asked for."""
    known = {type_.name: vector_columns(type_) for type_ in catalog.nodes.values() if vector_columns(type_)}
    names = [name.partition(".")[0] for name in options.types]
    check_types(names, options.selectors, known, "one with an @embed property")
    chosen = {name: columns for name, columns in known.items() if not names or name in names}
    for given in options.types:
        name, dot, property_ = given.partition(".")
        if not dot:
            continue
        only = tuple(column for column in known[name] if column.target == property_)
        if not only:
            there = ", ".join(column.target for column in known[name])
            raise BadRequest(f"{name} has no @embed property '{property_}'; use one of {there}")
        chosen[name] = only
    return [(catalog.nodes[name], columns) for name, columns in chosen.items()]


def _lacking(column: VectorColumn, *, again: bool) -> RowFilter:
    """Return which rows need a vector: those with a text, and as a rule without a vector."""
    has_text = Compare(column.source, "ne", "")
    return has_text if again else And((has_text, IsNull(column.target)))
