"""Refs: native branches of one table or manifest. Making or dropping one moves no HEAD.

B1  A ref name is minted once and never used again: asked for a known name, the library damages it.
B2  A ref is dropped only when no process can be writing to it: a commit on a dropped ref lands, unreadable.
B3  On a disk the library also makes a second, empty folder of refs beside the graph, under a path with
    percent signs in place of some characters. Nothing is ever stored there, and it is removed at once.
B4  A ref of an earlier format may lie inside the folder of another one (`a/b` in `a`). The outer one is not
    dropped while the inner one is there.
B5  The object that names a ref is written last. A store that took it, and whose answer was lost, refuses it
    when it is sent again: what is listed tells whether a ref is made.
"""

import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import final

from lance import LanceDataset

from omnigraph.core.errors import BadRequest, StorageError
from omnigraph.core.ids import ulid_millis
from omnigraph.storage.files.added_files import files_between
from omnigraph.storage.tables.handle import TableAddress
from omnigraph.storage.tables.lance_errors import LANCE_ERRORS, classify, translate, translated
from omnigraph.storage.tables.listed_refs import listed_refs
from omnigraph.storage.tables.table import TableStore
from omnigraph.storage.versions.newest import RefStart

# Characters that the library's paths spell with a percent sign.
_ENCODED = re.compile(r"""[^ -~]|[\\{^}%`\]">\[~<#|*?]""")


@final
class RefStore:
    """Makes and drops refs."""

    def __init__(self, store: TableStore) -> None:
        """Take the store that opens the tables."""
        self._store = store

    def create(self, source: TableAddress, version: int, ref: str) -> TableAddress:
        """Make a ref that begins as a version of a table, or of another ref of it; return its address.

        Raises:
            BadRequest: the path of the graph does not allow refs.
            StorageError: the store failed; what is left is a ref that nothing names.
        """
        refuse_without_refs(source.uri)
        address = TableAddress(source.uri, ref)
        start = version if source.ref is None else (source.ref, version)
        dataset: LanceDataset = self._store.open_at(source, version)._own_dataset()
        try:
            with translated(f"fork {source.open_uri} at version {version}"):
                dataset.create_branch(ref, start)
        except StorageError:
            if not self._is_listed(address, version):
                raise
        finally:
            self._store.count_io(dataset)
            _remove_stray_folder(TableAddress(source.uri).local_path)
        self._store.ref_starts.learn(address, RefStart(source.ref, version))
        return address

    def _is_listed(self, address: TableAddress, version: int) -> bool:
        """Return whether a ref that was asked for is there although that failed (B5)."""
        assert address.ref is not None, "main is not a ref"
        try:
            found = listed_refs(self._store.open_unshared(TableAddress(address.uri))).get(address.ref)
        except (StorageError, *LANCE_ERRORS):
            return False  # the first error is raised: nobody names what may be left
        return found is not None and found["parent_version"] == version

    def drop(self, address: TableAddress) -> None:
        """Remove a ref with all that was written on it; success when it is gone already (B2).

        Raises:
            StorageError: another ref starts from it or lies inside it (B4), or the store failed.
        """
        assert address.ref is not None, "main is not a ref"
        dataset = self._store.open_unshared(TableAddress(address.uri))
        try:
            if not _is_minted(address.ref):
                _refuse_inner(address, listed_refs(dataset))
            dataset.branches.delete(address.ref)
        except LANCE_ERRORS as error:
            if classify(error) != "not_found":
                raise translate(error, f"drop {address.open_uri}") from error
        finally:
            self._store.count_io(dataset)
            self._store.forget(address)

    def files(self, address: TableAddress, version: int) -> tuple[str, ...]:
        """Return the local files that a new ref consists of, for syncing; none on an object store."""
        if address.local_path is None:
            return ()
        return (
            f"{self.notes(address)}/{address.ref}.json",
            *files_between(self._store, address, older=None, newer=version),
        )

    def notes(self, address: TableAddress) -> str:
        """Return the local folder that names the refs of a table; synced, it forgets the dropped ones."""
        return f"{TableAddress(address.uri).local_path}/_refs/branches"


def _is_minted(ref: str) -> bool:
    """Say whether a ref has a name that was used once: no other can lie inside it."""
    return ulid_millis(ref.rpartition("-")[2]) is not None


def _refuse_inner(address: TableAddress, names: Iterable[str]) -> None:
    inner = sorted(name for name in names if name.startswith(f"{address.ref}/"))
    if inner:
        told = f"ref '{inner[0]}' lies inside '{address.ref}', which goes after it"
        raise StorageError(f"drop {address.open_uri}: {told}", kind="precondition")


def refuse_without_refs(uri: str) -> None:
    """Refuse a path on which the library cannot keep refs.

    It takes what follows a question mark for parameters, and would put a ref into another folder.

    Raises:
        BadRequest: the path has one.
    """
    if "?" in uri and "://" not in uri:
        raise BadRequest(f"'{uri}': a graph in a path with '?' cannot have branches: choose another path")


def _remove_stray_folder(root: Path | None) -> None:
    """Remove the empty folder of refs that the library made beside a graph (B3); what is not empty stays."""
    if root is None:
        return
    parts = [_ENCODED.sub(_percent, part) for part in root.parts]
    stray = Path(*parts)
    same = next(
        (at for at, (one, other) in enumerate(zip(parts, root.parts, strict=True)) if one != other), None
    )
    if same is None:
        return
    folders = [stray / "_refs" / "branches", stray / "_refs", stray, *stray.parents]
    with suppress(OSError):  # of the first one that is not there, is not empty, or is not ours
        for folder in folders[: len(parts) + 2 - same]:
            folder.rmdir()


def _percent(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode())
