"""The checksums that commits recorded, read back from the rows of a manifest.

They are in the column `base_objects` of the commit rows, which nothing else reads.
"""

from contextlib import suppress

import pyarrow as pa

from omnigraph.core.errors import OmnigraphError
from omnigraph.history.fold import where_equal
from omnigraph.history.manifest_rows import COMMIT
from omnigraph.storage.files.sums import FileSum, decode_sums
from omnigraph.storage.files.version_file import TRANSACTIONS_DIR
from omnigraph.storage.tables.manifest_table import ManifestHandle, ManifestTable

_COLUMNS = ["object_type", "base_objects", "published_at"]


def recorded_sums(
    manifest: ManifestTable, handle: ManifestHandle, *, published_after: int | None = None
) -> dict[str, FileSum]:
    """Return the checksums in a manifest by path; what was recorded last counts.

    Those of copies of transactions, which earlier builds recorded, are left out: nobody reads these files,
    and upkeep removes them.

    Raises:
        InvariantViolation: a row holds something else where checksums are kept.
        StorageError: the manifest cannot be read.
    """
    return _sums_in(manifest.read(handle, columns=_COLUMNS, published_after=published_after))


def sums_still_readable(manifest: ManifestTable, handle: ManifestHandle) -> dict[str, FileSum]:
    """Return the checksums in those fragments of a damaged manifest that can be read."""
    found: dict[str, FileSum] = {}
    for number in handle.fragment_ids:
        with suppress(OmnigraphError, ValueError):  # damaged rows may not be JSON, or not text
            found |= _sums_in(manifest.read(handle, fragment_ids=[number], columns=_COLUMNS))
    return found


def _sums_in(rows: pa.Table) -> dict[str, FileSum]:
    commits: pa.Table = where_equal(rows, "object_type", COMMIT).sort_by("published_at")
    found: dict[str, FileSum] = {}
    for lines in commits["base_objects"].to_pylist():
        sums = decode_sums(lines or ())
        found.update((item.path, item) for item in sums if f"/{TRANSACTIONS_DIR}/" not in item.path)
    return found
