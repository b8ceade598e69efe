"""The shapes of operations that make a commit strict.

Lance has no expected version: it rebases a stale append, update or delete over whatever it finds compatible.
These shapes leave it nothing compatible.

S1  Every update and delete lists the anchor, the lowest fragment of its base version, as updated or removed;
    any two of them on one base collide.
S2  A table without fragments has no anchor: there a write is a merge, and any two merges collide.
S3  An update names every field as rewritten. Otherwise text and vector indexes would count the new fragments
    as covered, and searches would silently miss their rows and show the old ones.
S4  The plain append never leaves this package: the anchor does not exclude it.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
from lance import LanceDataset, LanceOperation
from lance.fragment import FragmentMetadata, write_fragments

from omnigraph.core.limits import MAX_FRAGMENT_ROWS
from omnigraph.storage.files.data_file import field_ids
from omnigraph.storage.tables.lance_errors import translated


def write_rows(dataset: LanceDataset, rows: pa.Table) -> list[FragmentMetadata]:
    """Write rows as fragments below the dataset's own place, not visible to any reader."""
    if rows.num_rows == 0:
        return []
    with translated(f"write rows of {dataset.uri}"):
        written = write_fragments(rows, dataset, max_rows_per_file=MAX_FRAGMENT_ROWS)
    assert isinstance(written, list)
    return written


def addition(dataset: LanceDataset, fragments: list[FragmentMetadata]) -> LanceOperation.BaseOperation:
    """Return the operation that adds fragments and changes nothing else (S1, S2)."""
    if not dataset.get_fragments():
        return LanceOperation.Merge(fragments, dataset.lance_schema)
    return replacement(dataset, removed=[], updated=[], new=fragments)


def replacement(
    dataset: LanceDataset,
    *,
    removed: list[int],
    updated: list[FragmentMetadata],
    new: list[FragmentMetadata],
) -> LanceOperation.BaseOperation:
    """Return an update with its anchor and all its fields (S1, S3)."""
    return LanceOperation.Update(
        removed_fragment_ids=removed,
        updated_fragments=with_anchor(dataset, removed, updated),
        new_fragments=new,
        fields_for_preserving_frag_bitmap=list(field_ids(dataset.lance_schema.fields())),
        update_mode="rewrite_rows",
    )


def deletion(
    dataset: LanceDataset, *, removed: list[int], updated: list[FragmentMetadata]
) -> LanceOperation.BaseOperation:
    """Return a delete with its anchor (S1)."""
    # The predicate is a note in the transaction file; the rows are named by the deletion files.
    return LanceOperation.Delete(with_anchor(dataset, removed, updated), removed, "rows by address")


def with_anchor(
    dataset: LanceDataset, removed: Iterable[int], updated: Sequence[FragmentMetadata]
) -> list[FragmentMetadata]:
    """Return the updated fragments, and the anchor unless the operation touches it anyway (S1)."""
    anchor = min(dataset.get_fragments(), key=lambda fragment: fragment.fragment_id)
    touched = {*removed, *(fragment.id for fragment in updated)}
    return list(updated) if anchor.fragment_id in touched else [*updated, anchor.metadata]


def delete_addresses(
    dataset: LanceDataset, addresses: "np.ndarray[tuple[int], np.dtype[np.uint64]]"
) -> tuple[list[int], list[FragmentMetadata]]:
    """Write the deletion files for rows; return the fragments they empty, and those they change."""
    removed: list[int] = []
    updated: list[FragmentMetadata] = []
    numbers = addresses >> np.uint64(32)
    for number in np.unique(numbers).tolist():
        offsets = addresses[numbers == number] & np.uint64(0xFFFFFFFF)
        fragment = dataset.get_fragment(number)
        assert fragment is not None, "addresses come from a scan of this version"
        with translated(f"delete rows of {dataset.uri}"):
            changed = fragment.delete_rows(offsets.tolist())
        if changed is None:
            removed.append(number)
        else:
            updated.append(changed)
    return removed, updated
