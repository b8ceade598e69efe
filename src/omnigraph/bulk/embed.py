"""Filling vectors inside a graph: the work of tasks, the same in process and on executors.

V1  A row that gets a vector keeps all its other values and its row id.
V2  A task is told its rows by numbers alone: a fragment of one version, a filter, and a range of what the
    filter selects there. The same numbers mean the same rows to the task that writes new ones and to the one
    that deletes the old ones, so every row that is written replaces exactly the one that is deleted.
V3  A provider's key is sent with a task only while tasks run on this machine. Elsewhere executors find it in
    their own environment, or say that it is missing.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.bulk.connect.jobs import Jobs, TaskFailure
from omnigraph.bulk.load.tasks import FRAGMENT_BYTES_MAX
from omnigraph.catalog.model import EdgeType, NodeType
from omnigraph.core.errors import EmbeddingError, OmnigraphError
from omnigraph.core.limits import MAX_FRAGMENT_ROWS
from omnigraph.core.runs import runs
from omnigraph.embedding.config import DEFAULTS, EmbeddingConfig
from omnigraph.embedding.embedder import open_provider
from omnigraph.embedding.provider import Provider
from omnigraph.embedding.remembering import RememberingProvider

if TYPE_CHECKING:
    from omnigraph.staging.fragments import Replaced, StagedFragments
    from omnigraph.storage.tables.filter import RowFilter
    from omnigraph.storage.tables.fragments import TaskTable, WrittenFragment

TAKEN_ROWS = 4_096  # what is held as columns at a time; with a vector a row has several kilobytes


@dataclass(frozen=True, slots=True)
class VectorColumn:
    """A vector property, and the property whose text it stands for."""

    source: str
    target: str
    dimension: int


def vector_columns(type_: NodeType | EdgeType) -> tuple[VectorColumn, ...]:
    """Return the vectors of a type that stand for texts."""
    found = []
    for item in type_.properties.values():
        if item.embed is not None:
            assert item.type.dimension is not None, "only vectors are embedded"
            found.append(VectorColumn(item.embed.source, item.name, item.type.dimension))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Filling:
    """What is filled in one table, and how: the part that its tasks share.

    `where` selects the rows. With `is_again`, existing vectors are made again. `batch` is how many texts
    a provider is given at a time.
    """

    table_key: str
    table: "TaskTable"
    columns: tuple[VectorColumn, ...]
    where: "RowFilter"
    is_again: bool
    config: EmbeddingConfig
    batch: int


@dataclass(frozen=True, slots=True)
class Share:
    """A range of the rows that a filter selects in one fragment (V2)."""

    fragment: int
    start: int
    end: int

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class FillTask:
    """The rows of one task."""

    number: int
    filling: Filling
    shares: tuple[Share, ...]


@dataclass(frozen=True, slots=True)
class FillReport:
    """What a task wrote, even where it then failed: its files must be removed."""

    written: "StagedFragments"
    vectors: int
    failure: TaskFailure | None = None


@dataclass(frozen=True, slots=True)
class DeleteTask:
    """The rows of one fragment that written ones replace."""

    filling: Filling
    fragment: int
    rows: int


def cut(pieces: Iterable[tuple[int, int]], rows_max: int) -> Iterator[tuple[Share, ...]]:
    """Yield shares of fragments, given with their rows, for tasks of at most `rows_max` rows each."""
    shares: list[Share] = []
    room = rows_max
    for fragment, count in pieces:
        start = 0
        while start < count:
            end = min(count, start + room)
            shares.append(Share(fragment, start, end))
            room -= end - start
            start = end
            if not room:
                yield tuple(shares)
                shares, room = [], rows_max
    if shares:
        yield tuple(shares)


def for_executors(config: EmbeddingConfig, jobs: Jobs) -> EmbeddingConfig:
    """Return the settings that tasks are given (V3)."""
    return replace(config, api_key=config.find_key() if jobs.is_local else None)


def fill_on_executors(jobs: Jobs, tasks: Sequence[FillTask]) -> list[FillReport]:
    """Let executors make the vectors of all tasks; what failed is in the reports.

    Raises:
        SparkUnavailable: a job failed.
    """
    return jobs.each(tasks, fill_with_own_provider)


def delete_on_executors(jobs: Jobs, tasks: Sequence[DeleteTask]) -> "list[Replaced]":
    """Let executors write the deletions of the rows that are replaced.

    Raises:
        SparkUnavailable: a job failed.
    """
    return jobs.each(tasks, delete_rows)


def fill(task: FillTask, provider: Provider) -> FillReport:
    """Make the vectors of a task's rows and write the rows, with their row ids, as new fragments (V1).

    An error of ours is part of the report, beside what was written before it.
    """
    from omnigraph.staging.fragments import StagedFragments, fingerprint
    from omnigraph.storage.tables.fragments import FragmentWriter

    table = task.filling.table
    schema = pa.ipc.read_schema(pa.py_buffer(table.schema))
    fragments: list[WrittenFragment] = []
    vectors, failure = 0, None
    try:
        writer = FragmentWriter(table)
        for rows, row_ids, made in _chunks(_filled(task, schema, provider)):
            fragments.append(writer.write(rows, row_ids=row_ids))
            vectors += made
        writer.sync()
    except OmnigraphError as error:
        failure = TaskFailure.of(error)
    count = sum(item.rows for item in fragments)
    written = StagedFragments(
        task.filling.table_key,
        table.pinned.version,
        fingerprint(schema),
        tuple(fragments),
        count,
        task.number,
    )
    return FillReport(written, vectors, failure)


def delete_rows(task: DeleteTask) -> "Replaced":
    """Write the deletions of the rows of one fragment that are replaced (V2).

    Raises:
        StorageError: the store failed.
    """
    from omnigraph.staging.fragments import Replaced
    from omnigraph.storage.tables.fragments import delete_committed
    from omnigraph.storage.tables.pinned import selected_rows

    table = task.filling.table
    handle = table.pinned.open()
    found = selected_rows(handle, task.fragment, task.filling.where)
    assert len(found.addresses) == task.rows, "a version does not change"
    removed, updated, sums = delete_committed(table, found.addresses.tolist())
    return Replaced(tuple(removed), tuple(updated), task.rows, sums)


def fill_with_own_provider(task: FillTask) -> FillReport:
    """Fill the rows of a task with a provider that is opened for it, on an executor (V3).

    Raises:
        EmbeddingError: there is no key for the provider here.
    """
    with own_provider(task.filling.config) as provider:
        return fill(task, provider)


@contextmanager
def own_provider(config: EmbeddingConfig) -> Iterator[Provider]:
    """Yield the provider of a task, on an executor (V3).

    Raises:
        EmbeddingError: there is no key for the provider here.
    """
    import socket

    names = DEFAULTS[config.kind].key_variables
    if names and config.find_key() is None:
        raise EmbeddingError(
            f"the executor on {socket.gethostname()} has no {' or '.join(names)}: "
            "a key is not sent over the network; set it in the environment of the executors",
            provider=config.kind,
        )
    provider = RememberingProvider(open_provider(config))
    try:
        yield provider
    finally:
        provider.close()


_Rows = tuple[pa.Table, npt.NDArray[np.int64], int]  # rows, their row ids, and how many vectors are new


def _filled(task: FillTask, schema: pa.Schema, provider: Provider) -> Iterator[_Rows]:
    """Yield the rows of a task with their vectors, some at a time."""
    from omnigraph.storage.tables.pinned import selected_rows
    from omnigraph.storage.tables.rows import take_rows

    filling = task.filling
    handle = filling.table.pinned.open()
    for share in task.shares:
        found = selected_rows(handle, share.fragment, filling.where)
        chosen = found.row_ids[share.start : share.end]
        assert len(chosen) == share.rows, "a version does not change"
        for start in range(0, len(chosen), TAKEN_ROWS):
            row_ids = chosen[start : start + TAKEN_ROWS]
            rows = take_rows(handle, row_ids, schema.names)
            made = 0
            for column in filling.columns:
                rows, count = with_vectors(
                    rows, column, provider, batch=filling.batch, again=filling.is_again
                )
                made += count
            yield rows, row_ids, made


def with_vectors(
    rows: pa.Table, column: VectorColumn, provider: Provider, *, batch: int, again: bool
) -> tuple[pa.Table, int]:
    """Return rows with the vectors that are wanted, and how many those are; a row without text has none.

    Raises:
        EmbeddingError: the provider failed.
    """
    texts = rows[column.source].to_pylist()
    has_vector = np.asarray(rows[column.target].combine_chunks().is_valid())
    wanted = [place for place, text in enumerate(texts) if text and (again or not has_vector[place])]
    return with_vectors_at(rows, column, wanted, provider, batch=batch), len(wanted)


def with_vectors_at(
    rows: pa.Table, column: VectorColumn, wanted: Sequence[int], provider: Provider, *, batch: int
) -> pa.Table:
    """Return rows with new vectors at some places, each of which has a text.

    Raises:
        EmbeddingError: the provider failed.
    """
    texts = [str(text) for text in rows[column.source].take(pa.array(wanted, pa.int64())).to_pylist()]
    made: npt.NDArray[np.float32] = np.empty((len(wanted), column.dimension), dtype=np.float32)
    for start in range(0, len(wanted), batch):
        asked = texts[start : start + batch]
        made[start : start + batch] = provider.embed(asked, "document", column.dimension)
    return with_numbers_at(rows, column, wanted, made)


def with_numbers_at(
    rows: pa.Table, column: VectorColumn, places: Sequence[int], numbers: npt.NDArray[np.float32] | float
) -> pa.Table:
    """Return rows whose vectors at some places are these, or have one number throughout."""
    if not places:
        return rows
    old = rows[column.target].combine_chunks()
    has_vector = np.array(old.is_valid())
    values = np.zeros((rows.num_rows, column.dimension), dtype=np.float32)
    kept = np.asarray(pc.list_flatten(old), dtype=np.float32)  # nulls have no numbers here
    values[has_vector] = kept.reshape(-1, column.dimension)
    values[places] = numbers
    has_vector[places] = True
    vectors = pa.FixedSizeListArray.from_arrays(
        pa.array(values.ravel()), column.dimension, mask=pa.array(~has_vector)
    )
    place = rows.schema.get_field_index(column.target)
    field = rows.schema.field(place)
    return rows.set_column(place, field, vectors.cast(field.type))


def _chunks(parts: Iterable[_Rows]) -> Iterator[_Rows]:
    """Yield rows in pieces that each fit in one fragment."""
    rows_max = (lambda part: part[0].num_rows, MAX_FRAGMENT_ROWS)
    bytes_max = (lambda part: part[0].nbytes, FRAGMENT_BYTES_MAX)
    return map(_joined, runs(parts, rows_max, bytes_max))


def _joined(held: Sequence[_Rows]) -> _Rows:
    rows = pa.concat_tables([part[0] for part in held])
    return rows, np.concatenate([part[1] for part in held]), sum(part[2] for part in held)
