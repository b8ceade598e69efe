"""What is known of a dataset's versions without asking the library: newest, synced, starts, row ids.

N1  A commit takes the number after the newest one, and cleanup leaves everything from the version on that the
    library's hint names. From there on versions have no gap, and the newest is found by asking for the
    following ones.
N2  A version below the hint proves nothing: cleanup may have removed those that lead on from it. Without a
    hint that names a version that is there, the library lists.
N3  A folder whose modification time is unchanged has the same newest version, if that time was well past
    when the version was looked for (two commits may share one tick of the file system: some milliseconds, or
    one or two seconds) and if the version after it is not there (the file system's clock need not be ours).
N4  In an object store the version after one that was the newest a while ago is asked for by its name: if it
    is not there, nothing was committed since. It would be too young for a cleanup. A missing name proves
    something only where another version was found by such a name.

A directory of 5,000 versions takes milliseconds to list, and every write looks at least five times. A store
lists a thousand names in a request, and takes several times as long for it as for one name.

Where the refs of a table start is remembered: it never changes, because a ref name is never used again, and
asking for it again costs a read for every ref of the table, however many branches there are.

The row ids of places in fragments are remembered where a single number gives them all:

Q1  The rows of a fragment are named when it is committed, and keep their names: under one data file there is
    one sequence of row ids for good.
Q2  Rows that were loaded together have row ids that follow each other, so the first one gives all. Only such
    sequences are kept: writing one out costs most of a millisecond, and comparing two versions of a large
    table asks for one in every fragment.

Up to which version a dataset was acknowledged, and up to which it is synced, is noted beside its versions,
with the checksums of what the last publish wrote, which no later one has recorded yet:

W1  The note is written after what it describes, so what it says is true whenever it can be read. It is not
    synced itself: a power cut may lose it, which leaves less proven and nothing wrong.
W2  A note that is torn, damaged or of a dataset of another name says nothing. Its check covers content and
    folder name, and main's manifest has one name in all graphs: whoever copies the note of another graph is
    believed. It may show versions and files as missing or changed, and a version as synced that is not.

Without it, a version that a power cut left hollow before it was acknowledged would look like one that was
acknowledged and rotted afterwards.
"""

import os
import threading
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import NamedTuple, final

import numpy as np
from lance.fragment import FragmentMetadata, RowIdSequence

from omnigraph.core.arrays import RowIds
from omnigraph.core.clock import boot_clock
from omnigraph.core.errors import InvariantViolation
from omnigraph.core.recent import Recent
from omnigraph.core.regular_file import read_control_file, write_new
from omnigraph.core.values import read_json
from omnigraph.storage.control.object_store import ObjectStore
from omnigraph.storage.control.os_errors import storage_error
from omnigraph.storage.control.uri import GraphRoot, is_in_store, split_address
from omnigraph.storage.files.data_file import data_file_name
from omnigraph.storage.files.sums import FileSum
from omnigraph.storage.files.version_file import VERSIONS_DIR, version_file_name
from omnigraph.storage.tables.handle import TableAddress

HINT = f"{VERSIONS_DIR}/latest_version_hint.json"
TRUSTED_S = 1_800.0  # half the shortest age at which cleanup takes a version of the manifest
SETTLED_NS = 200_000_000  # many times the tick of a file system that keeps fractions of a second
SETTLED_COARSE_NS = 2_000_000_000 + SETTLED_NS  # FAT counts in two seconds; small inodes of ext4, HFS+ in one
KNOWN_MAX = 1_024  # datasets

SEQUENCES_MAX = 65_536  # fragments; a few million rows take about 30
NUMBER_MAX = 2**63 - 1  # of versions; what is written by others may say anything
MARK = "_acknowledged"
_TEMPORARY = f"{MARK}.new"


@dataclass(frozen=True, slots=True)
class _SeenVersion:
    """A version that was there, when, and the modification time of its folder if it was the newest then."""

    version: int
    at: float
    settled_ns: int | None = None
    is_named: bool = False  # in a store: a version of this dataset was found by its name


class NewestVersions:
    """Remembers which versions were seen; safe to share between threads."""

    def __init__(self) -> None:
        """Know nothing."""
        self._lock = threading.Lock()
        self._seen: Recent[str, _SeenVersion] = Recent(KNOWN_MAX)
        self._buckets: dict[str, ObjectStore] = {}

    def saw(self, address: TableAddress, version: int) -> None:
        """Remember that a version is there."""
        if address.local_path is not None:
            self._remember(address.open_uri, version, None)

    def saw_newest(self, address: TableAddress, version: int, *, is_named: bool = False) -> None:
        """Remember that a version was the newest a moment ago; `is_named` if it was read by its name (N4)."""
        self._remember(address.open_uri, version, None, is_named=is_named)

    def forget(self, address: TableAddress) -> None:
        """Know nothing of a place that is gone."""
        self._seen.forget(lambda uri: uri == address.open_uri)

    def find(self, address: TableAddress) -> int | None:
        """Return the newest version, or `None` where only the library can tell.

        Raises:
            StorageError: an object store failed.
        """
        uri = address.open_uri
        seen = self._seen.get(uri)
        if seen is None or boot_clock() - seen.at > TRUSTED_S:
            return None
        if is_in_store(uri):
            return self._find_in_store(uri, seen)
        root = str(address.local_path) if ":" in uri else uri
        try:
            changed_ns = os.stat(f"{root}/{VERSIONS_DIR}").st_mtime_ns  # noqa: PTH116 - asked by every query
        except OSError:
            return None
        if seen.settled_ns == changed_ns and not _is_there(root, seen.version + 1):
            return seen.version
        looked_ns = time.time_ns()
        newest = _walk(root, seen.version)
        if newest is not None:
            is_settled = looked_ns - changed_ns > _settles_in(changed_ns)
            self._remember(uri, newest, changed_ns if is_settled else None)
        return newest

    def _find_in_store(self, uri: str, seen: _SeenVersion) -> int | None:
        """Return the version that was the newest, if the next one is not there (N4)."""
        if not seen.is_named and not self._is_in_store(uri, seen.version):
            return None
        if self._is_in_store(uri, seen.version + 1):
            return None  # how far it moved, one listing tells
        self._remember(uri, seen.version, None, is_named=True)
        return seen.version

    def _is_in_store(self, uri: str, version: int) -> bool:
        scheme, bucket, key = split_address(uri)
        place = f"{scheme}://{bucket}"
        with self._lock:
            store = self._buckets.get(place)
            if store is None:
                store = self._buckets[place] = ObjectStore(GraphRoot(place, is_local=False))
        return store.has(f"{key}/{version_file_name(version)}")

    def _remember(self, uri: str, version: int, settled_ns: int | None, *, is_named: bool = False) -> None:
        now = boot_clock()
        with self._lock:
            known = self._seen.get(uri)
            if known is not None:
                is_named = is_named or known.is_named
                if known.version > version:
                    version, settled_ns = known.version, None
            self._seen.put(uri, _SeenVersion(version, now, settled_ns, is_named))


def _settles_in(changed_ns: int) -> int:
    """Return how long after a modification time no further commit can have the same one.

    A time without a fraction is taken for that of a file system that keeps none. Where it is chance, that
    only costs a few more looks.
    """
    return SETTLED_NS if changed_ns % 1_000_000_000 else SETTLED_COARSE_NS


def _walk(root: str, known: int) -> int | None:
    """Return the newest version, from the hinted one or a known one above it (N1, N2)."""
    hinted = _hinted(root)
    if not hinted or not _is_there(root, hinted):
        return None
    start = known if known > hinted and _is_there(root, known) else hinted
    return next(version for version in count(start) if not _is_there(root, version + 1))


def _is_there(root: str, version: int) -> bool:
    return os.access(f"{root}/{version_file_name(version)}", os.F_OK)  # no exception inside: every query asks


def _hinted(root: str) -> int:
    """Return the version that the library's hint names; 0 for a hint that is missing or damaged."""
    try:
        return int(read_json(read_control_file(f"{root}/{HINT}"))["version"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0


class RefStart(NamedTuple):
    """The ref, or main, that a ref was forked from, and at which version."""

    parent: str | None
    version: int


@final
class RefStarts:
    """Starts of refs by their addresses; safe to share between threads."""

    def __init__(self) -> None:
        """Know none."""
        self._lock = threading.Lock()
        self._starts: dict[TableAddress, RefStart] = {}

    def find(self, address: TableAddress) -> RefStart | None:
        """Return where a ref starts, if that is known."""
        return self._starts.get(address)

    def learn(self, address: TableAddress, start: RefStart) -> None:
        """Keep where a ref starts."""
        with self._lock:
            self._starts[address] = start

    def forget(self, address: TableAddress) -> None:
        """Drop what is kept about a ref that is gone."""
        with self._lock:
            self._starts.pop(address, None)


@final
class RowSequences:
    """Remembers first row ids by data file; safe to share between threads."""

    def __init__(self) -> None:
        """Know none."""
        self._first: Recent[str, int] = Recent(SEQUENCES_MAX)

    def row_ids_at(self, fragment: FragmentMetadata, places: RowIds) -> RowIds | None:
        """Return the row ids of places of a fragment, or `None` if the version does not say them."""
        first = self._first.get(data_file_name(fragment.files[0]))
        if first is not None:
            return first + places
        row_ids = self.row_ids_of(fragment)
        return None if row_ids is None else row_ids[places]

    def row_ids_of(self, fragment: FragmentMetadata) -> RowIds | None:
        """Return the row ids of all places of a fragment, deleted or not; `None` as above."""
        path = data_file_name(fragment.files[0])
        first = self._first.get(path)
        if first is not None:
            return first + np.arange(fragment.physical_rows)
        if fragment.row_id_meta is None:
            return None
        try:
            sequence = RowIdSequence.from_inline_metadata(fragment.row_id_meta)
        except (ValueError, OSError, NotImplementedError):  # kept in its own file
            return None
        row_ids: RowIds = sequence.to_pyarrow().to_numpy().astype(np.int64)
        if len(row_ids) and (np.diff(row_ids) == 1).all():
            self._first.put(path, int(row_ids[0]))
        return row_ids


@dataclass(frozen=True, slots=True)
class Mark:
    """The newest version that was acknowledged, with the files it added, and the newest one on the disk."""

    acknowledged: int = 0
    synced: int = 0
    sums: tuple[FileSum, ...] = ()


def read_mark(folder: Path) -> Mark:
    """Return what is noted about a dataset; zeros where nothing is (W2).

    Raises:
        StorageError: the note is there and cannot be read.
    """
    try:
        text = read_control_file(folder / MARK)
    except (FileNotFoundError, NotADirectoryError):
        return Mark()
    except OSError as error:
        raise storage_error(f"read '{folder.name}/{MARK}'", error) from error
    first, *lines = text.splitlines() or [b""]
    numbers, _, check = first.rpartition(b" ")
    versions = numbers.split()
    is_whole = len(versions) == 2 and all(number.isdigit() and len(number) < 20 for number in versions)
    if not is_whole or check != _check(folder, numbers, lines):
        return Mark()
    acknowledged, synced = map(int, versions)
    try:
        sums = tuple(FileSum.of_text(line.decode()) for line in lines)
    except (UnicodeDecodeError, InvariantViolation):
        return Mark()
    return Mark() if acknowledged > NUMBER_MAX else Mark(acknowledged, min(synced, acknowledged), sums)


def write_mark(folder: Path, version: int, *, is_synced: bool, sums: Sequence[FileSum] = ()) -> None:
    """Note that every version up to this one is acknowledged, and perhaps synced (W1).

    The caller holds the dataset's publish lock.

    Raises:
        StorageError: the system failed; less is proven than is true.
    """
    before = Mark() if is_synced and sums else read_mark(folder)
    synced = version if is_synced else min(version, before.synced)
    if not sums and before.acknowledged == version:
        sums = before.sums  # whoever notes it again has not written it
    numbers, lines = f"{version} {synced}".encode(), [item.to_text().encode() for item in sums]
    try:
        temporary = folder / _TEMPORARY
        first = numbers + b" " + _check(folder, numbers, lines)
        write_new(temporary, b"\n".join([first, *lines, b""]))
        os.replace(temporary, folder / MARK)  # noqa: PTH105 - on the path of every commit
    except OSError as error:
        raise storage_error(f"write '{folder.name}/{MARK}'", error) from error


def _check(folder: Path, numbers: bytes, lines: Sequence[bytes]) -> bytes:
    return f"{zlib.crc32(b' '.join([folder.name.encode(), numbers, *lines])):08x}".encode()
