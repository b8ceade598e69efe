"""The warm state of every branch that a handle has looked at.

G1  A probe of the newest manifest version comes before every use of a warm state; equal means current.
G2  States are values: a holder keeps its state, whatever the coordinator learns meanwhile.
G3  Fragments disappear when the manifest is folded, and when a publish that could not be synced is taken
    back: then the new commits do not follow the known ones, and everything is read again.
"""

import threading

from omnigraph.history.damage import damage_explained
from omnigraph.history.manifest_rows import MANIFEST_DIR, READ_COLUMNS
from omnigraph.history.stamp import read_stamp, refuse_if_stamp_unsupported
from omnigraph.history.state import ManifestState
from omnigraph.storage.control.uri import GraphRoot
from omnigraph.storage.tables.handle import TableAddress
from omnigraph.storage.tables.manifest_table import ManifestHandle, ManifestTable

MAIN = "main"


class Coordinator:
    """Reads the manifests of one graph; safe to share between threads."""

    def __init__(self, root: GraphRoot, manifest: ManifestTable) -> None:
        """Take the graph and the raw access to its manifest."""
        self._root = root
        self.manifest = manifest
        self._states: dict[str | None, ManifestState] = {}
        self._lock = threading.Lock()

    def address(self, ref: str | None = None) -> TableAddress:
        """Return the address of the manifest of a ref; None is main."""
        return TableAddress(self._root.child(MANIFEST_DIR), ref)

    def state(self, branch: str | None = None, ref: str | None = None) -> ManifestState:
        """Return the newest state of a branch: the warm one if nothing moved, else with the new rows (G1).

        Raises:
            GraphDamaged: a file that it needs is missing or hollow.
        """
        warm = self._warm(branch, ref)
        if warm is not None and self.manifest.latest_version(self.address(ref)) == warm.version:
            return warm
        with damage_explained(self.address(ref), branch):
            return self.advance(branch, ref, self.manifest.open_fresh(self.address(ref)))

    def read_apart(self, branch: str | None, ref: str) -> ManifestState:
        """Return the state of a ref that no longer belongs to a branch; it is not kept.

        Raises:
            StorageError: the ref is gone (kind `not_found`), or the store failed.
            FormatVersionError: this build does not read that format.
        """
        handle = self.manifest.open_fresh(self.address(ref))
        refuse_if_stamp_unsupported(read_stamp(handle.schema_metadata))
        return self._read_all(branch, ref, handle)

    def advance(self, branch: str | None, ref: str | None, handle: ManifestHandle) -> ManifestState:
        """Return the state of a manifest that was just opened, reading the fragments not seen yet.

        Raises:
            FormatVersionError: this build does not read that format.
        """
        refuse_if_stamp_unsupported(read_stamp(handle.schema_metadata))
        warm = self._warm(branch, ref) or ManifestState(branch, ref, 0)
        if warm.version >= handle.version:  # another thread may have looked after this handle was opened
            return warm
        present = frozenset(handle.fragment_ids)
        unseen = sorted(present - warm.fragments)
        rows = self.manifest.read(handle, fragment_ids=unseen, columns=READ_COLUMNS)
        advanced = warm.with_rows(rows, version=handle.version, fragments=present)
        if not warm.fragments <= present and not (unseen and advanced.continues(warm)):  # G3
            advanced = self._read_all(branch, ref, handle)
        return self.adopt(advanced)

    def adopt(self, state: ManifestState) -> ManifestState:
        """Keep a state as the warm one, unless there is already a newer one, and return it."""
        with self._lock:
            warm = self._states.get(state.branch)
            if warm is None or warm.ref != state.ref or warm.version < state.version:
                self._states[state.branch] = state
        return state

    def forget(self) -> None:
        """Drop every warm state; the next use reads afresh."""
        with self._lock:
            self._states.clear()

    def forget_branch(self, branch: str) -> None:
        """Drop the warm state of a branch that is gone."""
        with self._lock:
            self._states.pop(branch, None)

    def _read_all(self, branch: str | None, ref: str | None, handle: ManifestHandle) -> ManifestState:
        rows = self.manifest.read(handle, columns=READ_COLUMNS)
        fragments = frozenset(handle.fragment_ids)
        return ManifestState(branch, ref, 0).with_rows(rows, version=handle.version, fragments=fragments)

    def _warm(self, branch: str | None, ref: str | None) -> ManifestState | None:
        with self._lock:
            state = self._states.get(branch)
        return state if state is not None and state.ref == ref else None
