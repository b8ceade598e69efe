"""Building the indexes of a table without making them visible, as a whole or in parts.

N1  What is due is decided once, for all rows of one version. A part has some of its fragments, whichever
    process builds it, and parts that are put together answer as the index that one process builds.
N2  The parts of a vector index share centroids, trained on all of the table.
N3  Only an index that searches can use is handed on: a full-text index whose parts were never put together is
    none, although it could be committed.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, assert_never, cast

import pyarrow as pa
from lance import LanceDataset
from lance.dataset import Index

from omnigraph.core.errors import InvariantViolation
from omnigraph.storage.tables.handle import SnapshotHandle
from omnigraph.storage.tables.index import TEXT_ANALYSIS, IndexRequest, PendingColumn, name_of
from omnigraph.storage.tables.lance_errors import translated
from omnigraph.storage.tables.reading import reading

if TYPE_CHECKING:
    from lance.lance.indices import IndexDescription  # exists for type checkers only


SAMPLED_MAX = 256  # vectors for each partition that centroids are trained on, as where the library trains
StagedIndex = (
    Index  # files that nothing names yet, and their description, which can be sent between processes
)


@dataclass(frozen=True, slots=True)
class DueIndex:
    """An index that is to be built over all rows of a version, and the segments that go when it is there."""

    request: IndexRequest
    fragments: tuple[int, ...]
    rows: int
    partitions: int = 0  # of vectors
    replaced: tuple[Index, ...] = ()


@dataclass(frozen=True, slots=True)
class IndexPart:
    """Some fragments of an index that is due; a part of vectors has the centroids of the whole (N2)."""

    due: DueIndex
    fragments: tuple[int, ...]
    centroids: bytes | None = None


def due_indexes(
    handle: SnapshotHandle, requests: Sequence[IndexRequest], anew: Collection[str] = ()
) -> tuple[tuple[DueIndex, ...], tuple[PendingColumn, ...]]:
    """Return the indexes that are requested and do not exist, and those that cannot be built yet.

    Those named in `anew` are due although they exist. Without rows nothing is.

    Raises:
        StorageError: the store failed.
    """
    if handle.row_count == 0:
        return (), ()
    dataset = handle._own_dataset()
    with reading(handle, "indexes"):  # a long version file is read again for them
        described = dataset.describe_indices()
    existing, taken = {name_of(item): item for item in described}, {item.name for item in described}
    fragments = tuple(fragment.fragment_id for fragment in dataset.get_fragments())
    due: list[DueIndex] = []
    pending: list[PendingColumn] = []
    for request in requests:
        present = existing.get(request.name)
        if present is not None and request.name not in anew:
            continue
        partitions = 0
        if request.kind == "vector":
            with translated(f"vectors of {request.column} of {handle.address.open_uri}"):
                trainable = dataset.count_rows(filter=f"`{request.column}` IS NOT NULL")
            if trainable == 0:
                pending.append(PendingColumn(request.column, request.kind, "no vector to train on"))
                continue
            partitions = max(1, math.isqrt(trainable))
        name = _free_name(request.name, taken) if present is None else present.name
        replaced = () if present is None else _segments(present)
        due.append(
            DueIndex(replace(request, given_name=name), fragments, handle.row_count, partitions, replaced)
        )
    return tuple(due), tuple(pending)


def build_all(
    handle: SnapshotHandle,
    due: Sequence[DueIndex],
    advance: Callable[[int], None] = lambda _rows: None,
) -> list[StagedIndex]:
    """Write the files of indexes in this process.

    `advance` is called after each but the last, with its share of the rows.

    Raises:
        StorageError: the store failed.
    """
    built: list[StagedIndex] = []
    for number, index in enumerate(due):
        if number:
            advance(index.rows // len(due))
        built.append(build_whole(handle, index))
    return built


def build_whole(handle: SnapshotHandle, due: DueIndex) -> StagedIndex:
    """Write the files of one index.

    Raises:
        StorageError: the store failed.
    """
    part = build_part(handle, IndexPart(due, due.fragments))
    return put_together(handle, due, [part])


def cut(handle: SnapshotHandle, due: DueIndex, count: int) -> tuple[IndexPart, ...]:
    """Return an index in at most so many parts of whole fragments, each of which a process can build alone.

    Raises:
        StorageError: the store failed.
    """
    step = math.ceil(len(due.fragments) / count)
    groups = [due.fragments[start : start + step] for start in range(0, len(due.fragments), step)]
    centroids = _trained(handle, due) if due.request.kind == "vector" and len(groups) > 1 else None
    return tuple(IndexPart(due, group, centroids) for group in groups)


def build_part(handle: SnapshotHandle, part: IndexPart) -> StagedIndex:
    """Write the files of a part, which nothing names.

    Raises:
        StorageError: the store failed.
    """
    due, dataset = part.due, handle._own_dataset()
    options: dict[str, object]
    match due.request.kind:
        case "btree":
            index_type, options = "BTREE", {}
        case "fulltext":
            index_type, options = "INVERTED", {**TEXT_ANALYSIS}
        case "vector":
            index_type, options = "IVF_FLAT", {"metric": "L2", "num_partitions": due.partitions}
            if part.centroids is not None:
                options["ivf_centroids"] = _centroids_of(part.centroids)
        case _:
            assert_never(due.request.kind)
    with _indexing(handle, due):
        return _create(dataset, due.request, part.fragments, index_type, options)


def put_together(handle: SnapshotHandle, due: DueIndex, parts: Sequence[StagedIndex]) -> StagedIndex:
    """Write one index for all parts of it; their own files are of no use afterwards (N3).

    Raises:
        StorageError: the store failed.
        InvariantViolation: the library left a full-text index unfinished.
    """
    if due.request.kind != "fulltext" and len(parts) == 1:
        return parts[0]
    with _indexing(handle, due):
        whole = handle._own_dataset().merge_existing_index_segments(list(parts))
    return check_finished(whole) if due.request.kind == "fulltext" else whole


def check_finished(segment: StagedIndex) -> StagedIndex:
    """Return a full-text segment that searches can use (N3).

    Raises:
        InvariantViolation: it still consists of unfinished parts.
    """
    files = [file.path for file in segment.files or ()]
    if "metadata.lance" not in files or any(name.startswith("staging/") for name in files):
        raise InvariantViolation(f"full-text index {segment.name} is unfinished: {files}")
    return segment


def _trained(handle: SnapshotHandle, due: DueIndex) -> bytes:
    """Return the centroids of a vector index, trained on a sample of all rows (N2)."""
    from lance.indices import IndicesBuilder

    with _indexing(handle, due):
        builder = IndicesBuilder(handle._own_dataset(), due.request.column)
        sampled = min(SAMPLED_MAX, due.rows // due.partitions)
        model = builder.train_ivf(num_partitions=due.partitions, distance_type="l2", sample_rate=sampled)
    batch = pa.RecordBatch.from_arrays([model.centroids], names=["centroid"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def _centroids_of(data: bytes) -> "pa.Array[Any]":
    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        return reader.read_all()["centroid"].combine_chunks()


def _create(
    dataset: LanceDataset,
    request: IndexRequest,
    fragments: Sequence[int],
    index_type: str,
    options: Mapping[str, object],
) -> Index:
    known = cast("dict[str, Any]", options)  # the library takes the settings of every type as keywords
    return dataset.create_index_uncommitted(
        request.column,
        index_type,
        name=request.given_name,
        fragment_ids=list(fragments),
        replace=True,
        **known,
    )


def _indexing(handle: SnapshotHandle, due: DueIndex) -> AbstractContextManager[None]:
    return translated(f"index {due.request.name} of {handle.address.open_uri}")


def _free_name(name: str, taken: Collection[str]) -> str:
    """Return a name that no index of the table has: the usual one, unless a renamed column kept it."""
    column, _, suffix = name.rpartition("__")
    names = (name, *(f"{column}.{number}__{suffix}" for number in range(2, len(taken) + 3)))
    return next(free for free in names if free not in taken)


def _segments(described: "IndexDescription") -> tuple[Index, ...]:
    """Return the segments of an index in the form in which a commit removes them."""
    return tuple(
        Index(
            segment.uuid,
            described.name,
            list(described.fields),
            segment.dataset_version_at_last_update,
            segment.fragment_ids,
            segment.index_version,
            base_id=segment.base_id,
        )
        for segment in described.segments
    )
