"""What the engine asks of the disk, counted where it asks."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pytest

from omnigraph.storage.tables.manifest_table import ManifestHandle, ManifestTable
from tests.support.seam import patched


class Scans:
    """The scans of manifests: for each, how many fragments were read of how many."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[tuple[int, int]] = []
        inner = ManifestTable.read

        def read(
            table: ManifestTable,
            handle: ManifestHandle,
            *,
            fragment_ids: Sequence[int] | None = None,
            columns: Sequence[str] | None = None,
            published_after: int | None = None,
            with_places: bool = False,
        ) -> pa.Table:
            whole = len(handle.fragment_ids)
            self.made.append((whole if fragment_ids is None else len(fragment_ids), whole))
            return inner(
                table,
                handle,
                fragment_ids=fragment_ids,
                columns=columns,
                published_after=published_after,
                with_places=with_places,
            )

        patched(monkeypatch, "omnigraph.storage.tables.manifest_table.ManifestTable.read", read)

    def taken(self) -> list[tuple[int, int]]:
        """Return the scans since the last call."""
        made, self.made = self.made, []
        return made


_listed: list[str] = []
_renamed: list[str] = []
_is_listening = [False]


def _listen(event: str, arguments: tuple[object, ...]) -> None:
    if _is_listening[0] and event in {"os.scandir", "os.listdir"}:
        folder = os.fspath(str(arguments[0]))
        if folder not in sys.path_importer_cache:  # Python itself lists packages, as modules are imported
            _listed.append(folder)
    if _is_listening[0] and event == "os.rename":
        _renamed.append(os.fspath(str(arguments[1])))


sys.addaudithook(_listen)  # cannot be taken back: it does nothing unless a test listens


@contextmanager
def listings() -> Iterator[list[str]]:
    """Collect the folders that our own code lists; Lance lists beneath Python."""
    _listed.clear()
    _is_listening[0] = True
    try:
        yield _listed
    finally:
        _is_listening[0] = False


@contextmanager
def renames() -> Iterator[list[str]]:
    """Collect the places that our own code renames files to, in their order."""
    _renamed.clear()
    _is_listening[0] = True
    try:
        yield _renamed
    finally:
        _is_listening[0] = False
