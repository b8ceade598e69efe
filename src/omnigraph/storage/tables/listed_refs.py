"""The refs of a table as the library lists them, while other processes drop some.

The library lists the files of all refs and then reads each. A ref that goes between the two fails the whole
list with "Not found", which nobody may take for a table, or the ref that he asked for, not being there.
"""

from lance import LanceDataset
from lance.dataset import Branch

from omnigraph.core.errors import StorageError
from omnigraph.storage.tables.lance_errors import LANCE_ERRORS, classify

_FILES = "_refs/branches/"
TRIES = 50  # each failed one is a ref that somebody dropped meanwhile


def listed_refs(dataset: LanceDataset) -> dict[str, Branch]:
    """Return the refs of a table by name.

    Raises:
        StorageError: refs kept going while they were listed (kind `transient`).
    """
    for _ in range(TRIES):
        try:
            return dataset.branches.list()
        except LANCE_ERRORS as error:
            if classify(error) != "not_found" or _FILES not in str(error):
                raise
            last = error
    told = f"refs of {dataset.uri} kept going while they were listed: try again"
    raise StorageError(told, kind="transient") from last
