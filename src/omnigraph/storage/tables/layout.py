"""What maintenance would do to a table, judged by its metadata: no row is read and nothing is written.

Fragments under different segments of an index never fold together, and on a fork those under a segment of its
source not at all. So what a compaction leaves depends on the indexes, and both are looked at here.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from lance import LanceDataset
from lance.fragment import LanceFragment
from lance.optimize import Compaction, CompactionOptions, CompactionTask

from omnigraph.core.limits import MAX_FRAGMENT_ROWS, SMALL_FRAGMENT_ROWS
from omnigraph.storage.files.data_file import data_file_name
from omnigraph.storage.tables.handle import SnapshotHandle
from omnigraph.storage.tables.reading import reading

# The library divides rows among as many fragments as the target fits in: each has less than twice the target.
COMPACTION_TARGET_ROWS = MAX_FRAGMENT_ROWS // 2
DELETED_SHARE = 0.1  # of the rows of a fragment, from which it is rewritten without them
BATCH_ROWS_MAX, BATCH_BYTES = 8_192, 16 * 1024 * 1024  # the library's own number; some batches fit any memory
AUTO_CLEANUP = "lance.auto_cleanup."  # keys by which the library removes versions behind our back


@dataclass(frozen=True, slots=True)
class StoredLayout:
    """How the rows of a version lie, and what is to be done about it."""

    fragments: frozenset[int]
    small_fragments: int  # with fewer rows than a fragment may have
    segments_max: int  # of any index
    to_merge: tuple[str, ...]  # names of the indexes that are not one segment over all rows
    to_rewrite: int  # fragments that the library would rewrite
    auto_cleanup: tuple[str, ...]  # keys that must go

    @property
    def is_folded(self) -> bool:
        """Whether every index is one segment that covers all rows."""
        return not self.to_merge

    @property
    def is_compact(self) -> bool:
        """Whether the library would rewrite nothing."""
        return not self.to_rewrite


def layout_for_maintenance(handle: SnapshotHandle) -> StoredLayout:
    """Look at a version of a table.

    Raises:
        StorageError: the store failed.
    """
    dataset = handle._own_dataset()
    with reading(handle, "layout"):
        parts = dataset.get_fragments()
        options = full_compaction()
        return StoredLayout(
            frozenset(part.fragment_id for part in parts),
            sum(_is_small(part) for part in parts),
            max((len(item.segments) for item in dataset.describe_indices()), default=0),
            tuple(segments_to_merge(dataset)),
            sum(len(task.fragments) for task in compaction_tasks(dataset, options)),
            auto_cleanup_keys(dataset),
        )


def names_in_full(handle: SnapshotHandle, *, builds: bool) -> frozenset[str]:
    """Return the files that bringing a version into its best layout reads to write them anew, or more.

    Which fragments fold together is known only when the indexes are merged, so all that may fold count. An
    index that is built reads all rows.
    """
    dataset = handle._own_dataset()
    with reading(handle, "layout"):
        merged = segments_to_merge(dataset)
        indexes = [item for item in dataset.describe_indices() if item.name in merged]
        covered = [
            {number for segment in item.segments for number in segment.fragment_ids} for item in indexes
        ]
        parts = [
            part
            for part in dataset.get_fragments()
            if builds
            or part.physical_rows < COMPACTION_TARGET_ROWS
            or part.num_deletions > DELETED_SHARE * part.physical_rows
            or any(part.fragment_id not in numbers for numbers in covered)
        ]
        return _names(parts, (str(segment.uuid) for item in indexes for segment in item.segments))


def names_of_small(handle: SnapshotHandle, segments: Iterable[str]) -> frozenset[str]:
    """Return the files of fragments that upkeep may fold, and of segments that it folds new rows into."""
    dataset = handle._own_dataset()
    with reading(handle, "layout"):
        small = (part for part in dataset.get_fragments() if part.physical_rows < SMALL_FRAGMENT_ROWS)
        return _names(small, segments)


def names_of_fragments(handle: SnapshotHandle, numbers: Collection[int] | None = None) -> frozenset[str]:
    """Return the files of some fragments, or of all."""
    dataset = handle._own_dataset()
    with reading(handle, "fragments"):
        parts = dataset.get_fragments()
        return _names((part for part in parts if numbers is None or part.fragment_id in numbers), ())


def auto_cleanup_keys(dataset: LanceDataset) -> tuple[str, ...]:
    """Return the keys of a table's configuration that have the library remove versions by itself."""
    return tuple(key for key in dataset.config() if key.startswith(AUTO_CLEANUP))


def full_compaction() -> CompactionOptions:
    """Return how optimize compacts: into few fragments, none above the limit, deletions materialised."""
    return CompactionOptions(
        target_rows_per_fragment=COMPACTION_TARGET_ROWS,
        materialize_deletions=True,
        materialize_deletions_threshold=DELETED_SHARE,
    )


def batch_rows(dataset: LanceDataset) -> int:
    """Return how many rows to rewrite at a time: few where they are wide, as those with long values are.

    The library's own number is thousands, of which several are under way; of values of megabytes no memory
    holds that. The widest fragment decides. A file whose length is unknown counts as narrow.
    """
    widths = [
        sum(file.file_size_bytes or 0 for file in part.metadata.files) // max(1, part.physical_rows)
        for part in dataset.get_fragments()
    ]
    return min(BATCH_ROWS_MAX, max(1, BATCH_BYTES // max(1, *widths, 1)))


def compaction_tasks(dataset: LanceDataset, options: CompactionOptions) -> list[CompactionTask]:
    """Return what the library would rewrite, without what a fork must leave alone."""
    inherited = under_inherited_indexes(dataset)
    tasks = Compaction.plan(dataset, options).tasks
    return [task for task in tasks if inherited.isdisjoint(part.id for part in task.fragments)]


def under_inherited_indexes(dataset: LanceDataset) -> set[int]:
    """Return the fragments that a segment in another tree covers: a fork has those of its source.

    Compaction rewrites such a segment below the fork but records it as being below the source, where it is
    never found: every lookup on the fork fails from then on.
    """
    return {
        number
        for item in dataset.describe_indices()
        for segment in item.segments
        if segment.base_id is not None
        for number in segment.fragment_ids
    }


def segments_to_merge(dataset: LanceDataset) -> dict[str, int]:
    """Return the indexes that are not one segment over all rows, with how many segments they have."""
    numbers = {part.fragment_id for part in dataset.get_fragments()}
    found = {}
    for item in dataset.describe_indices():
        covered = {number for segment in item.segments for number in segment.fragment_ids}
        if len(item.segments) > 1 or not numbers <= covered:
            found[item.name] = len(item.segments)
    return found


def _names(parts: Iterable[LanceFragment], segments: Iterable[str]) -> frozenset[str]:
    names = {f"_indices/{segment}/" for segment in segments}
    for part in parts:
        metadata = part.metadata
        names |= {f"data/{data_file_name(file)}" for file in metadata.files}
        if metadata.deletion_file is not None:
            names.add(metadata.deletion_file.path(metadata.id))
    return frozenset(names)


def _is_small(part: LanceFragment) -> bool:
    return part.physical_rows < MAX_FRAGMENT_ROWS
