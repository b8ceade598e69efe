"""What the library can only do by committing: callers that move a HEAD in one call ask for this by name."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import final

from lance import LanceDataset
from lance.fragment import LanceFragment
from lance.optimize import Compaction, CompactionOptions

from omnigraph.core.errors import CommitConflict
from omnigraph.core.limits import INLINE_ROW_IDS_BYTES_MAX, SMALL_FRAGMENT_ROWS
from omnigraph.storage.tables.handle import SnapshotHandle, TableAddress
from omnigraph.storage.tables.index import TEXT_SUFFIX, VECTOR_SUFFIX
from omnigraph.storage.tables.lance_errors import LANCE_ERRORS, classify, translate
from omnigraph.storage.tables.layout import (
    DELETED_SHARE,
    batch_rows,
    compaction_tasks,
    names_of_small,
    segments_to_merge,
    under_inherited_indexes,
)
from omnigraph.storage.tables.reading import reading
from omnigraph.storage.tables.staged import files_added
from omnigraph.storage.tables.table import TableStore

BTREE_SEGMENTS_MAX = 8  # 64 writes each: one merge of 0.1-0.3 s in 512 writes to a table of a million rows
# What a compaction does with sequences of row ids and versions (C2 of `carried.py`); kept by the table.
_ROW_IDS_IN_FILES: dict[str, str | None] = {
    "lance.row_lineage.spill": "true",
    "lance.row_lineage.inline_max_bytes": str(INLINE_ROW_IDS_BYTES_MAX),
}


@dataclass(frozen=True, slots=True)
class CompactionOutcome:
    """Where a compaction left a table; `files` are the local files it wrote, for syncing."""

    version: int
    fragments_removed: int
    fragments_added: int
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IndexFoldOutcome:
    """Where folding new rows into the indexes left a table; `files` as above."""

    version: int
    files: tuple[str, ...]


@final
class InlineCommitResidual:
    """The two maintenance calls without a staged form; covered by the sidecars of optimize and upkeep."""

    def __init__(self, store: TableStore) -> None:
        """Take the store that opens the tables."""
        self._store = store

    def compact_files(
        self, address: TableAddress, *, target_rows: int, rewrite_deletions: bool = False
    ) -> CompactionOutcome:
        """Fold fragments below the target into fragments up to it; larger ones stay as they are.

        With `rewrite_deletions` larger ones with many deleted rows are rewritten too. On a fork, fragments
        that an index of its source covers stay until the fork has an index of its own over them.

        Inline because the library makes a reserve and a rewrite commit in one call; HEAD moves by two, or not
        at all when there is nothing to fold. The first compaction of a table makes a third commit before, by
        which the table keeps long sequences of row ids in files. A refused one may leave these behind.

        Raises:
            CommitConflict: a planned fragment was changed in the meantime.
            StorageError: the store failed; whether it landed is unknown.
        """
        dataset = self._store.open_unshared(address)
        before = dataset.checkout_version(dataset.version)
        with self._committing(f"compact {address.open_uri}", dataset):
            options = CompactionOptions(
                target_rows_per_fragment=target_rows,
                materialize_deletions=rewrite_deletions,
                materialize_deletions_threshold=DELETED_SHARE,
                batch_size=batch_rows(dataset),
            )
            _keep_row_ids_in_files(dataset, options)
            if under_inherited_indexes(dataset):
                tasks = compaction_tasks(dataset, options)
                metrics = Compaction.commit(dataset, [task.execute(dataset) for task in tasks])
            else:
                metrics = dataset.optimize.compact_files(
                    target_rows_per_fragment=target_rows,
                    materialize_deletions=rewrite_deletions,
                    materialize_deletions_threshold=DELETED_SHARE,
                    batch_size=options["batch_size"],
                )
        return CompactionOutcome(
            dataset.version,
            metrics.fragments_removed,
            metrics.fragments_added,
            files_added(address, before, dataset),
        )

    def optimize_indices(self, address: TableAddress, *, merge_segments: bool = False) -> IndexFoldOutcome:
        """Cover rows that no index covers, at the cost that a small write can afford (see `_fold`).

        With `merge_segments` every index becomes one segment that covers everything, whatever it costs.

        Inline because folding rows into an existing index has no uncommitted form; HEAD moves by one for each
        way of folding, three at most, and not at all when there is nothing to fold.

        Raises:
            CommitConflict: the table was rewritten in the meantime.
            StorageError: the store failed; whether it landed is unknown.
        """
        dataset = self._store.open_unshared(address)
        before = dataset.checkout_version(dataset.version)
        with self._committing(f"fold indexes of {address.open_uri}", dataset):
            folds = _merges(dataset) if merge_segments else _folds(dataset)
            for merged, names in folds.items():
                dataset.optimize.optimize_indices(num_indices_to_merge=merged, index_names=names)
        return IndexFoldOutcome(dataset.version, files_added(address, before, dataset))

    @contextmanager
    def _committing(self, what: str, dataset: LanceDataset) -> Iterator[None]:
        try:
            yield
        except LANCE_ERRORS as error:
            if classify(error) in {"conflict", "incompatible"}:
                raise CommitConflict(f"{what}: the table moved on") from error
            raise translate(error, what) from error
        finally:
            self._store.count_io(dataset)


def names_before_upkeep(handle: SnapshotHandle) -> frozenset[str]:
    """Return the files that folding small fragments, and new rows into the indexes, will write anew."""
    dataset = handle._own_dataset()
    with reading(handle, "layout"):
        folds = {name: merged for merged, names in _folds(dataset).items() for name in names}
        segments = [
            str(segment.uuid)
            for item in dataset.describe_indices()
            if folds.get(item.name)
            for segment in item.segments[-folds[item.name] :]
        ]
    return names_of_small(handle, segments)


def _keep_row_ids_in_files(dataset: LanceDataset, options: CompactionOptions) -> None:
    """Tell a table that is about to be compacted, once, where to keep the row ids.

    Without it the library writes those of every folded row into the version, and again at each commit.
    """
    if _ROW_IDS_IN_FILES.items() <= dataset.config().items():
        return
    if Compaction.plan(dataset, options).num_tasks():
        dataset.update_config(_ROW_IDS_IN_FILES)


def _merges(dataset: LanceDataset) -> dict[int, list[str]]:
    """Return the indexes that become one segment, by how many they have."""
    merges: dict[int, list[str]] = defaultdict(list)
    for name, count in segments_to_merge(dataset).items():
        merges[count].append(name)
    return merges


def _folds(dataset: LanceDataset) -> dict[int, list[str]]:
    """Return the indexes that have something to fold, by how many of their segments it goes into."""
    fragments = {part.fragment_id: part for part in dataset.get_fragments()}
    folds: dict[int, list[str]] = defaultdict(list)
    for item in dataset.describe_indices():
        segments = [set(segment.fragment_ids) & fragments.keys() for segment in item.segments]
        uncovered = [part for number, part in fragments.items() if not any(number in s for s in segments)]
        if not uncovered:
            continue
        newest = sum(fragments[number].count_rows() for number in segments[-1])
        merged = _fold(dataset, item.name, uncovered, segment_count=len(segments), newest_rows=newest)
        if merged is not None:
            folds[merged].append(item.name)
    return folds


def _fold(
    dataset: LanceDataset,
    name: str,
    uncovered: list[LanceFragment],
    *,
    segment_count: int,
    newest_rows: int,
) -> int | None:
    """Say into how many segments of an index its uncovered rows go: 0 for a new one, `None` for not now.

    Fragments under different segments are never compacted together, so segments must not grow in number with
    the writes. New rows extend the newest segment, beside the large first one, until it is large itself. Rows
    that replace others make the library rewrite every segment they are merged into, the first one included:

    - a B-tree takes a few segments more before it does so;
    - a vector index is too large for that: its rows wait, found exactly, until they fill a segment;
    - a text index would find the old words again in another segment: its rows wait for a merge of all.
    """
    if not _replaces_rows(dataset, uncovered):
        return 1 if segment_count > 1 and newest_rows < SMALL_FRAGMENT_ROWS else 0
    if name.endswith(TEXT_SUFFIX):
        return None
    if name.endswith(VECTOR_SUFFIX):
        return 0 if sum(part.count_rows() for part in uncovered) >= SMALL_FRAGMENT_ROWS else None
    return 0 if segment_count < BTREE_SEGMENTS_MAX else segment_count


def _replaces_rows(dataset: LanceDataset, fragments: list[LanceFragment]) -> bool:
    """Say whether a row of these fragments replaces an older one, whose row id it carries."""
    replaced = dataset.scanner(
        columns=["_rowid"],
        filter="_row_created_at_version < _row_last_updated_at_version",
        fragments=fragments,
        limit=1,
    )
    return replaced.to_table().num_rows > 0
