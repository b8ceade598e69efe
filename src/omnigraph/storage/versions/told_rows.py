"""What a version itself says of the rows of its fragments: a scan of them without any column, and cheaper.

T1  A fragment names its rows in order, and the versions of their last change in runs; its deletion file says
    which of them it shows. Together that is what a scan of the virtual columns returns, in the same order.
T2  Where the version does not say one of them, because it lies in a file of its own, or where they do not fit
    each other, nothing is told at all, and the caller scans.
"""

from collections.abc import Sequence

import numpy as np
from lance.fragment import FragmentMetadata

from omnigraph.core.arrays import RowIds
from omnigraph.storage.files.deletions import deleted_places
from omnigraph.storage.tables.carried import decode_runs
from omnigraph.storage.tables.handle import SnapshotHandle
from omnigraph.storage.tables.rows import ROW_ADDRESS, ROW_ID, UPDATED_AT
from omnigraph.storage.versions.newest import RowSequences

_NONE: RowIds = np.empty(0, np.int64)


def told_rows(
    handle: SnapshotHandle,
    fragments: Sequence[FragmentMetadata],
    names: Sequence[str],
    sequences: RowSequences,
) -> dict[str, RowIds] | None:
    """Return the row ids of all rows, and what is asked for besides; `None` where only a scan can tell (T2).

    That can be `ROW_ADDRESS` and `UPDATED_AT`.

    Raises:
        StorageError: a deletion file cannot be read.
    """
    parts = []
    for fragment in fragments:
        told = _told(handle, fragment, names, sequences)
        if told is None:
            return None
        parts.append(told)
    return {name: np.concatenate([_NONE, *(part[name] for part in parts)]) for name in (ROW_ID, *names)}


def _told(
    handle: SnapshotHandle, fragment: FragmentMetadata, names: Sequence[str], sequences: RowSequences
) -> dict[str, RowIds] | None:
    """Return the same of one fragment (T1)."""
    count = fragment.physical_rows
    row_ids = sequences.row_ids_of(fragment)
    if row_ids is None or len(row_ids) != count:
        return None
    places = np.arange(count)
    if fragment.deletion_file is not None:
        is_there = np.ones(count, dtype=bool)
        is_there[deleted_places(handle, fragment)] = False
        places = places[is_there]
    told = {ROW_ID: row_ids[places], ROW_ADDRESS: (fragment.id << 32) + places}
    if UPDATED_AT in names:
        ends, versions = decode_runs(fragment.last_updated_at_version_meta) or (_NONE, _NONE)
        if not len(ends) or ends[-1] != count:
            return None
        told[UPDATED_AT] = versions.astype(np.int64)[np.searchsorted(ends, places, side="right")]
    return told
