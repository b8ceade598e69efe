"""Whether the files that the library wrote are there, to their end.

V1  The library does not report that the last write of a data or deletion file failed: a disk that is full for
    a moment leaves a file that is cut off, and a success. So nothing is built on such a file before it was
    looked at: before the sidecar of a write, and before every commit. (It does report it of version files.)
V2  A data file is as long as its description says, and every file ends as files of its kind end.
V3  A file that is gone is not whole: a cleanup may have taken what a writer staged and then slept on.
"""

import json
from collections.abc import Iterable
from pathlib import Path

from lance.fragment import FragmentMetadata

from omnigraph.core.errors import StorageError
from omnigraph.storage.control.os_errors import storage_error
from omnigraph.storage.files.data_file import data_file_name
from omnigraph.storage.files.version_file import HollowContent, NamedFile, check_file, refuse_special

_WITH_AN_END = frozenset({".lance", ".idx", ".manifest", ".arrow", ".bin"})


def check_whole(files: Iterable[str]) -> None:
    """Make sure that local files are there and were written to their end (V2, V3).

    Raises:
        StorageError: one of them is not, or cannot be read.
    """
    for file in dict.fromkeys(files):
        path = Path(file)
        try:
            if path.suffix == ".json":  # the description of a fork
                _check_text(path)
            elif path.suffix in _WITH_AN_END:
                check_file(path.parent, NamedFile(path.name, None))
            elif not path.exists():
                raise HollowContent("is missing")
        except HollowContent as hollow:
            raise _not_whole(path, f"{hollow}") from hollow
        except OSError as error:
            raise storage_error(f"read '{_shown(path)}'", error) from error


def check_lengths(root: Path, fragments: Iterable[FragmentMetadata]) -> None:
    """Make sure that the data files of new fragments below a table's own place have their lengths (V2).

    Raises:
        StorageError: one of them has another, is missing, or cannot be read.
    """
    for fragment in fragments:
        for file in fragment.files:
            length = file.file_size_bytes
            if file.base_id is not None or not length:
                continue
            path = root / "data" / data_file_name(file)
            try:
                found = path.stat().st_size
            except FileNotFoundError as gone:
                raise _not_whole(path, "is missing") from gone
            except OSError as error:
                raise storage_error(f"read '{_shown(path)}'", error) from error
            if found != length:
                raise _not_whole(path, f"has {found} of {length} bytes")


def _check_text(path: Path) -> None:
    try:
        refuse_special(path)
        json.loads(path.read_bytes())
    except FileNotFoundError:
        raise HollowContent("is missing") from None
    except ValueError as error:
        raise HollowContent("was not written to its end") from error


def _not_whole(path: Path, how: str) -> StorageError:
    return StorageError(
        f"'{_shown(path)}' {how}: the disk was full for a moment, or something has removed the file."
        " Nothing was built on it: make room and write again",
        kind="permanent",
    )


def _shown(path: Path) -> str:
    """Return the path from the folder of the dataset on: where the graph lies is nobody's business."""
    return "/".join(path.parts[-3:])
