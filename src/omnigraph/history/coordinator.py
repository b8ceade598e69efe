"""The warm state of every branch that a handle has looked at; and a damaged manifest in users' terms.

The stamp must be one that this build reads (`stamp`).

G1  A probe of the newest manifest version comes before every use of a warm state; equal means current.
G2  States are values: a holder keeps its state, whatever the coordinator learns meanwhile.
G3  Fragments disappear when the manifest is folded, and when a publish that could not be synced is taken
    back: then the new commits do not follow the known ones, and everything is read again.
G4  The stamp is looked at wherever a manifest was opened, before any row of it is used. A branch of an
    earlier format is read whole and not kept: part of it may lie in datasets that no probe looks at.
G5  A state that was made from the head note knows the present and not the past. `newest` may return one,
    `state` never does.
G6  A version that a trim removes under a reader is opened again, once, as the newest one is by then.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from omnigraph import INTERNAL_SCHEMA_VERSION
from omnigraph.core.damage import GraphDamaged
from omnigraph.core.errors import StorageError
from omnigraph.core.together import both
from omnigraph.history.fold import where_above, where_equal
from omnigraph.history.head_note import HeadNotes
from omnigraph.history.identity import MAIN, MAIN_BRANCH, BranchIdentity, TableIdentity
from omnigraph.history.manifest_rows import COMMIT, MANIFEST_DIR, READ_COLUMNS, SCHEMA
from omnigraph.history.stamp import supported_stamp
from omnigraph.history.state import ManifestState
from omnigraph.storage.control.uri import GraphRoot
from omnigraph.storage.damage.manifest_survey import ManifestSurvey, damage_at, folder_of, rows_above, survey
from omnigraph.storage.damage.quarantine import list_versions
from omnigraph.storage.tables.handle import TableAddress
from omnigraph.storage.tables.manifest_table import ManifestHandle, ManifestTable

UNSEEN_MAX = 8  # fragments that are read on top of a note; a whole state is worth more than many requests
VERSIONS_LOOKED_AT = 16  # for schemas that a repair gave up: they lie right below the version that it made


@contextmanager
def damage_explained(address: TableAddress, branch: str) -> Iterator[None]:
    """Add to the error of a damaged manifest the commits that need the file, and the way out."""
    try:
        yield
    except GraphDamaged as error:
        raise explained(error, address, branch) from error


@contextmanager
def table_damage_explained(uri: str, state: ManifestState, identity: TableIdentity) -> Iterator[None]:
    """Add to the error of a damaged table the commit that pinned it, and the way out."""
    try:
        yield
    except GraphDamaged as error:
        pin = state.tables.pins.get(identity)
        commit = None if pin is None else state.commits.head_at(pin.published_at)
        if pin is None or commit is None:
            raise
        raise GraphDamaged(
            file=error.file,
            reason=error.reason,
            dataset=error.dataset,
            versions=error.versions,
            commits=(commit.graph_commit_id,),
            readable=pin.published_at - 1,
            remedy=_remedy(uri, pin.published_at - 1, state.branch.name),
        ) from error


def explained(error: GraphDamaged, address: TableAddress, branch: str) -> GraphDamaged:
    """Return the error with everything that the manifest's files still reveal."""
    if address.local_path is None:
        return error
    try:
        found = survey(address)
        commits = _commits(address, found)
    except StorageError:
        return error  # the second look failed: the first error says what is wrong
    return GraphDamaged(
        file=error.file,
        reason=error.reason,
        dataset=error.dataset,
        versions=found.versions or error.versions,
        commits=commits,
        readable=found.readable,
        remedy=_way_out(address, found, branch),
    )


def _commits(address: TableAddress, found: ManifestSurvey) -> tuple[str, ...]:
    """Return the commits above the newest whole version whose rows can still be read, newest first."""
    rows = None if found.readable is None else rows_above(address, found.readable)
    if rows is None:
        return ()
    commits = where_above(where_equal(rows, "object_type", COMMIT), "table_version", found.readable or 0)
    ids = commits.sort_by([("table_version", "descending")])["object_id"].to_pylist()
    return tuple(dict.fromkeys(str(commit_id) for commit_id in ids))


def _way_out(address: TableAddress, found: ManifestSurvey, branch: str) -> str:
    if found.readable is None:
        return "put the file back from a copy; no older version is whole"
    root = TableAddress(address.uri).local_path
    assert root is not None, "a survey is made of local files"
    return _remedy(str(root.parent), found.readable, branch)


def _remedy(uri: str, version: int, branch: str) -> str:
    where = f"{uri} --to {version}" + ("" if branch == MAIN else f" --branch {branch}")
    return (
        f"put the file back from a copy; or give up what needs it with 'omnigraph repair {where}', "
        "which first says what would be lost"
    )


class Coordinator:
    """Reads the manifests of one graph; safe to share between threads."""

    def __init__(self, root: GraphRoot, manifest: ManifestTable, notes: HeadNotes | None = None) -> None:
        """Take the graph, the raw access to its manifest, and the head note of one in an object store."""
        self.root = root
        self.manifest = manifest
        self.notes = notes
        self._states: dict[str, ManifestState] = {}
        self._recalled: ManifestState | None = None  # what the note says, not yet compared with the manifest
        self._noted: ManifestState | None = None  # the newest state that was made from it
        self._lock = threading.Lock()

    def address(self, ref: str | None = None) -> TableAddress:
        """Return the address of the manifest of a ref; None is main."""
        return TableAddress(self.root.child(MANIFEST_DIR), ref)

    def state(self, branch: BranchIdentity = MAIN_BRANCH) -> ManifestState:
        """Return the newest state of a branch: the warm one if nothing moved, else with the new rows (G1).

        Raises:
            GraphDamaged: a file that it needs is missing or hollow.
        """
        address = self.address(branch.ref)
        warm = self.warm(branch)
        if warm is not None and self.manifest.latest_version(address) == warm.version:
            return warm
        with damage_explained(address, branch.name):
            try:
                return self.advance(branch, self._opened(branch, is_cold=warm is None))
            except StorageError as error:
                if error.kind != "not_found" or isinstance(error, GraphDamaged):
                    raise
                # The version was trimmed while it was read: history is in the rows of the newest one (G6).
                return self.advance(branch, self.manifest.open_fresh(address))

    def _opened(self, branch: BranchIdentity, *, is_cold: bool) -> ManifestHandle:
        """Open the newest version of a branch; of one that was not looked at yet, read the note meanwhile."""
        address, notes = self.address(branch.ref), self.notes
        if not is_cold or notes is None or branch.ref is None:
            return self.manifest.open_fresh(address)
        ref = branch.ref
        handle, _ = both(
            lambda: self.manifest.open_fresh(address), lambda: notes.read_branch(ref), at_once=True
        )
        return handle

    def recall(self) -> bool:
        """Read the head note, for the next call of `newest`; false if there is none.

        Raises:
            StorageError: the store failed.
        """
        self._recalled = None if self.notes is None else self.notes.read()
        return self._recalled is not None

    def newest(self, branch: BranchIdentity = MAIN_BRANCH) -> ManifestState:
        """Return a state that shows what a branch shows now, and may know nothing of the past (G1, G5).

        Raises:
            GraphDamaged: a file that it needs is missing or hollow.
        """
        if self.notes is None or not branch.is_main or self.warm(branch) is not None:
            return self.state(branch)
        address, noted = self.address(), self._noted
        if noted is not None and self.manifest.latest_version(address) == noted.version:
            return noted
        if noted is None and self._recalled is None:
            self.recall()
        with damage_explained(address, branch.name):
            handle = self.manifest.open_fresh(address)
            is_older = supported_stamp(handle.schema_metadata) < INTERNAL_SCHEMA_VERSION
            known, self._recalled = None if is_older else noted or self._recalled, None
            advanced = None if known is None else self._on_note(known, handle)
            if advanced is None:
                return self.advance(branch, handle)
        self._noted = advanced
        return advanced

    @property
    def is_recalled(self) -> bool:
        """Whether there is a head note that was not used yet: a build of this format has written main."""
        return self._recalled is not None

    def stamp(self) -> int:
        """Return the storage format of main, looked up now.

        Raises:
            FormatVersionError: this build does not read it.
        """
        return supported_stamp(self.manifest.open_fresh(self.address()).schema_metadata)

    def is_older(self) -> bool:
        """Return whether main is of an earlier format; if it is not, its state is warm from now on.

        Raises:
            FormatVersionError: this build does not read its format.
            GraphDamaged: a file that it needs is missing or hollow.
        """
        with damage_explained(self.address(), MAIN):
            handle = self.manifest.open_fresh(self.address())
            if supported_stamp(handle.schema_metadata) < INTERNAL_SCHEMA_VERSION:
                return True
            self.advance(MAIN_BRANCH, handle)
        return False

    def known(self) -> ManifestState:
        """Return some state of main, for what never changes: the one that was looked at last, if any."""
        return self.warm(MAIN_BRANCH) or self._noted or self.newest()

    def _on_note(self, noted: ManifestState, handle: ManifestHandle) -> ManifestState | None:
        """Return what a note says together with what was published since; `None` where it is of no use.

        Rows are never changed: all that the note's fragments hold is still there if their data files are.
        Numbers alone prove nothing: a graph that was put back from a copy uses them again.
        """
        present = handle.fragments({})
        unseen = sorted(present.keys() - noted.fragments.keys())
        if not noted.fragments.items() <= present.items() or len(unseen) > UNSEEN_MAX:
            return None
        if noted.version >= handle.version:
            return noted if noted.version == handle.version and not unseen else None
        rows = self.manifest.read(handle, fragment_ids=unseen, columns=READ_COLUMNS)
        return noted.with_rows(rows, version=handle.version, fragments=present)

    def schema_source(self, state: ManifestState) -> str | None:
        """Return the schema of a state as it was written; None if its row is of an earlier build.

        Raises:
            StorageError: the manifest cannot be read.
        """
        texts = self._schema_texts(state)[state.schema.published_at]
        return texts[0] if texts else None

    def schema_upgrades(self, state: ManifestState) -> tuple[str, ...]:
        """Return the commits of main whose schemas a branch took over, the oldest first.

        Raises:
            StorageError: the manifest cannot be read.
        """
        found = sorted(self._schema_texts(state).items())
        return tuple(texts[1] for _, texts in found if len(texts) > 1)

    def _schema_texts(self, state: ManifestState) -> dict[int, list[str]]:
        """Return what each schema of a branch keeps beside its document, by the publish that brought it."""
        handle = self.manifest.open_fresh(self.address(state.ref))
        rows = self.manifest.read(handle, columns=["object_type", "published_at", "base_objects"])
        schemas = where_equal(rows, "object_type", SCHEMA).to_pylist()
        return {row["published_at"]: row["base_objects"] or [] for row in schemas}

    def schemas_given_up(self) -> tuple[str, ...]:
        """Return the schemas, as documents, that versions of main below its newest one show, on a disk.

        A repair leaves what it gives up below the version that it makes. Only the newest ones are looked at.

        Raises:
            StorageError: the manifest cannot be read.
        """
        if not self.root.is_local:
            return ()
        address, found = self.address(), dict[str, None]()
        for version in list_versions(folder_of(address))[:VERSIONS_LOOKED_AT]:
            if damage_at(address, version) is None:
                rows = self.manifest.read(self.manifest.open_at(address, version))
                texts = where_equal(rows, "object_type", SCHEMA)["metadata"].to_pylist()
                found.update(dict.fromkeys(map(str, texts)))
        return tuple(found)

    def read_apart(self, branch: BranchIdentity) -> ManifestState:
        """Return the state of a branch that was deleted; it is not kept.

        Raises:
            StorageError: the ref is gone (kind `not_found`), or the store failed.
            FormatVersionError: this build does not read that format.
        """
        handle = self.manifest.open_fresh(self.address(branch.ref))
        stamp = supported_stamp(handle.schema_metadata)
        if stamp < INTERNAL_SCHEMA_VERSION:
            return self._read_older(branch, handle, stamp)
        return self._read_all(branch, handle)

    def advance(self, branch: BranchIdentity, handle: ManifestHandle) -> ManifestState:
        """Return the state of a manifest that was just opened, reading the fragments not seen yet.

        Raises:
            FormatVersionError: this build does not read that format.
        """
        stamp = supported_stamp(handle.schema_metadata)
        if stamp < INTERNAL_SCHEMA_VERSION:
            return self._read_older(branch, handle, stamp)
        warm = self.warm(branch) or ManifestState(branch, 0)
        if warm.version >= handle.version:  # another thread may have looked after this handle was opened
            return warm
        present = handle.fragments(warm.fragments)
        unseen = sorted(present.keys() - warm.fragments.keys())
        is_folded = not warm.fragments.keys() <= present.keys()
        rows = self.manifest.read(
            handle,
            fragment_ids=unseen,
            columns=READ_COLUMNS,
            published_after=warm.sequence if is_folded else None,
            with_places=True,
        )
        advanced = warm.with_rows(rows, version=handle.version, fragments=present)
        if is_folded and not (unseen and advanced.continues(warm)):  # G3
            advanced = self._read_all(branch, handle)
        return self.adopt(advanced)

    def adopt(self, state: ManifestState) -> ManifestState:
        """Keep a state as the warm one, unless there is already a newer one, and return it."""
        with self._lock:
            warm = self._states.get(state.branch.name)
            is_newer = warm is None or warm.branch != state.branch or warm.version < state.version
            if is_newer:
                self._states[state.branch.name] = state
        if is_newer and self.notes is not None:
            self.notes.leave(state)
        return state

    def leave_notes(self) -> None:
        """Leave a head note behind every newer state of main from now on: this handle writes."""
        if self.notes is not None:
            self.notes.is_kept = True

    def close(self) -> None:
        """Drop every warm state, and wait for a note that is being written."""
        self.forget()
        if self.notes is not None:
            self.notes.finish()

    def forget(self) -> None:
        """Drop every warm state; the next use reads afresh."""
        with self._lock:
            self._states.clear()
        self._recalled = self._noted = None

    def forget_branch(self, branch: str) -> None:
        """Drop the warm state of a branch that is gone."""
        with self._lock:
            self._states.pop(branch, None)

    def _read_all(self, branch: BranchIdentity, handle: ManifestHandle) -> ManifestState:
        rows = self.manifest.read(handle, columns=READ_COLUMNS, with_places=True)
        return ManifestState(branch, 0).with_rows(
            rows, version=handle.version, fragments=handle.fragments({})
        )

    def _read_older(self, branch: BranchIdentity, handle: ManifestHandle, stamp: int) -> ManifestState:
        from omnigraph.history.older_formats import OlderFormats

        return OlderFormats(self.root, self.manifest).state(branch, handle, stamp)

    def seen(self, name: str) -> ManifestState | None:
        """Return the state that was looked at last under a name, which may mean another branch by now."""
        with self._lock:
            return self._states.get(name)

    def warm(self, branch: BranchIdentity) -> ManifestState | None:
        """Return the state of a branch that was looked at or made last, if any."""
        with self._lock:
            state = self._states.get(branch.name)
        return state if state is not None and state.branch == branch else None
