"""Building the indexes of a table without making them visible."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, assert_never, cast

from lance import LanceDataset
from lance.dataset import Index

from omnigraph.core.errors import InvariantViolation
from omnigraph.storage.tables.handle import SnapshotHandle
from omnigraph.storage.tables.lance_errors import translated
from omnigraph.storage.tables.reading import reading

if TYPE_CHECKING:
    from lance.lance.indices import IndexDescription  # exists for type checkers only

IndexForm = Literal["btree", "fulltext", "vector"]
Coverage = Literal["indexed", "degraded"]

_SUFFIX: dict[IndexForm, str] = {"btree": "__btree", "fulltext": "__fts", "vector": "__vector"}
TEXT_SUFFIX, VECTOR_SUFFIX = _SUFFIX["fulltext"], _SUFFIX["vector"]

# Text analysis of the language specification, 3.9; the query side analyses with the same settings.
TEXT_ANALYSIS: dict[str, str | bool | int] = {
    "base_tokenizer": "simple",
    "language": "English",
    "lower_case": True,
    "ascii_folding": True,
    "remove_stop_words": True,
    "stem": True,
    # The library keeps tokens of *fewer* UTF-8 bytes than this. The specification keeps tokens of up to 40
    # characters, of up to four bytes each; the analysis of a query drops longer ones.
    "max_token_length": 4 * 40 + 1,
    "with_position": True,
}


@dataclass(frozen=True, slots=True)
class IndexRequest:
    """An index that a table should have."""

    column: str
    kind: IndexForm
    given_name: str | None = None  # where another column's index, older than its name, has the usual one

    @property
    def name(self) -> str:
        """The name under which it is asked for."""
        return f"{self.column}{_SUFFIX[self.kind]}"


@dataclass(frozen=True, slots=True)
class PendingColumn:
    """An index that cannot be built yet, and why."""

    column: str
    kind: IndexForm
    reason: str


def name_of(described: "IndexDescription") -> str:
    """Return the name under which an index is asked for: of its column, which may have been renamed."""
    (column, *_), suffix = described.field_names, f"__{described.name.rpartition('__')[2]}"
    return f"{column}{suffix}"


def _free_name(name: str, taken: Collection[str]) -> str:
    """Return a name that no index of the table has: the usual one, unless a renamed column kept it."""
    column, _, suffix = name.rpartition("__")
    names = (name, *(f"{column}.{number}__{suffix}" for number in range(2, len(taken) + 3)))
    return next(free for free in names if free not in taken)


@dataclass(frozen=True, slots=True)
class BuiltIndexes:
    """Indexes that are written and not visible, those that go when they become so, and what must wait."""

    built: tuple[Index, ...] = ()
    replaced: tuple[Index, ...] = ()
    pending: tuple[PendingColumn, ...] = ()


def build_missing(
    handle: SnapshotHandle,
    requests: Sequence[IndexRequest],
    anew: Collection[str] = (),
    advance: Callable[[int], None] = lambda _rows: None,
) -> BuiltIndexes:
    """Write the files of indexes that are requested and do not exist, over all rows of the version.

    Those named in `anew` are written although they exist. One that cannot be built leaves the old one alone.
    `advance` is called after each but the last, with its share of the rows.
    """
    if handle.row_count == 0:
        return BuiltIndexes()
    dataset = handle._own_dataset()
    with reading(handle, "indexes"):  # a long version file is read again for them
        described = dataset.describe_indices()
    existing, taken = {name_of(item): item for item in described}, {item.name for item in described}
    built: list[Index] = []
    replaced: list[Index] = []
    pending: list[PendingColumn] = []
    due = [request for request in requests if request.name not in existing or request.name in anew]
    for number, request in enumerate(due):
        if number:
            advance(handle.row_count // len(due))
        present = existing.get(request.name)
        name = _free_name(request.name, taken) if present is None else present.name
        with translated(f"index {request.name} of {handle.address.open_uri}"):
            outcome = _build(dataset, replace(request, given_name=name))
        if isinstance(outcome, str):
            pending.append(PendingColumn(request.column, request.kind, outcome))
            continue
        built.append(outcome)
        replaced += [] if present is None else _segments(present)
    return BuiltIndexes(tuple(built), tuple(replaced), tuple(pending))


def _segments(described: "IndexDescription") -> list[Index]:
    """Return the segments of an index in the form in which a commit removes them."""
    return [
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
    ]


@dataclass(frozen=True, slots=True)
class IndexExtent:
    """How much of its table an index covers."""

    segments: int
    rows_uncovered: int
    is_whole: bool  # no fragment is without it

    @property
    def coverage(self) -> Coverage:
        """The same in one word."""
        return "indexed" if self.is_whole else "degraded"


def index_extents(handle: SnapshotHandle) -> dict[str, IndexExtent]:
    """Return, for each index by the name it is asked for, how much it covers; read from the metadata.

    Raises:
        StorageError: the store failed.
    """
    rows = {part.fragment_id: part.metadata.num_rows for part in handle._dataset.get_fragments()}
    with reading(handle, "indexes"):
        described = handle._dataset.describe_indices()
    extents = {}
    for item in described:
        covered = {number for segment in item.segments for number in segment.fragment_ids}
        uncovered = rows.keys() - covered
        extents[name_of(item)] = IndexExtent(
            len(item.segments), sum(rows[number] for number in uncovered), is_whole=not uncovered
        )
    return extents


def uncovered_rows(handle: SnapshotHandle) -> int:
    """Return how many rows a lookup has to look through: those that some B-tree does not cover, at most.

    Raises:
        StorageError: the store failed.
    """
    trees = (extent for name, extent in index_extents(handle).items() if name.endswith(_SUFFIX["btree"]))
    return max((extent.rows_uncovered for extent in trees), default=0)


def _build(dataset: LanceDataset, request: IndexRequest) -> Index | str:
    """Return an index that is ready to be committed, or why there cannot be one."""
    match request.kind:
        case "btree":
            return _create(dataset, request, "BTREE", {})
        case "fulltext":
            raw = _create(dataset, request, "INVERTED", TEXT_ANALYSIS)
            # The raw segment holds unfinished parts; committed as it is, every search would fail.
            return check_finished(dataset.merge_existing_index_segments([raw]))
        case "vector":
            return _build_vector(dataset, request)
        case _:
            assert_never(request.kind)


def _build_vector(dataset: LanceDataset, request: IndexRequest) -> Index | str:
    trainable = dataset.count_rows(filter=f"`{request.column}` IS NOT NULL")
    if trainable == 0:
        return "no vector to train on"
    partitions = max(1, math.isqrt(trainable))
    return _create(dataset, request, "IVF_FLAT", {"metric": "L2", "num_partitions": partitions})


def _create(
    dataset: LanceDataset, request: IndexRequest, index_type: str, options: Mapping[str, str | bool | int]
) -> Index:
    fragments = [fragment.fragment_id for fragment in dataset.get_fragments()]
    known = cast("dict[str, Any]", options)  # the library takes the settings of every type as keywords
    return dataset.create_index_uncommitted(
        request.column, index_type, name=request.given_name, fragment_ids=fragments, replace=True, **known
    )


def check_finished(segment: Index) -> Index:
    """Return a full-text segment that searches can use.

    Raises:
        InvariantViolation: it still consists of unfinished parts.
    """
    files = [file.path for file in segment.files or ()]
    if "metadata.lance" not in files or any(name.startswith("staging/") for name in files):
        raise InvariantViolation(f"full-text index {segment.name} is unfinished: {files}")
    return segment
