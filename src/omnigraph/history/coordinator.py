"""The warm state of every branch that a handle has looked at; and a damaged manifest in users' terms.

The stamp must be one that this build reads.

G1  A probe of the newest manifest version comes before every use of a warm state; equal means current.
G2  States are values: a holder keeps its state, whatever the coordinator learns meanwhile.
G3  Fragments disappear when the manifest is folded, and when a publish that could not be synced is taken
    back: then the new commits do not follow the known ones, and everything is read again.
G4  The stamp says which storage format a graph has. Floor and ceiling are checked together, at every place
    that reads a stamp.
G5  A state that was made from the head note knows the present and not the past. `newest` may return one,
    `state` never does.
G6  A version that a trim removes under a reader is opened again, once, as the newest one is by then.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from omnigraph import INTERNAL_SCHEMA_VERSION
from omnigraph.core.damage import GraphDamaged
from omnigraph.core.errors import FormatVersionError, StorageError
from omnigraph.history.fold import where_above, where_equal
from omnigraph.history.head_note import HeadNotes
from omnigraph.history.identity import MAIN, MAIN_BRANCH, BranchIdentity, TableIdentity
from omnigraph.history.manifest_rows import COMMIT, MANIFEST_DIR, READ_COLUMNS, STAMP_KEY
from omnigraph.history.state import ManifestState
from omnigraph.storage.control.uri import GraphRoot
from omnigraph.storage.damage.manifest_survey import ManifestSurvey, rows_above, survey
from omnigraph.storage.tables.handle import TableAddress
from omnigraph.storage.tables.manifest_table import ManifestHandle, ManifestTable

MIN_SUPPORTED_INTERNAL_SCHEMA_VERSION = 4
UNSEEN_MAX = 8  # fragments that are read on top of a note; a whole state is worth more than many requests


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


Migration = Callable[[], None]
MIGRATIONS: Mapping[int, Migration] = {}  # source stamp to the step that raises it by one
LOWEST_REGISTERED_MIGRATION_SOURCE = min(MIGRATIONS, default=INTERNAL_SCHEMA_VERSION)

assert LOWEST_REGISTERED_MIGRATION_SOURCE == MIN_SUPPORTED_INTERNAL_SCHEMA_VERSION, (
    "floor and steps go together"
)


def read_stamp(metadata: Mapping[str, str]) -> int:
    """Return the stamp of a manifest; one without a stamp has the oldest, implicit shape.

    Raises:
        FormatVersionError: the stamp is not a number.
    """
    raw = metadata.get(STAMP_KEY)
    if raw is None:
        return 1
    if not raw.isdecimal():
        raise _refusal(f"the format stamp {raw!r} is not a number", raw)
    return int(raw)


def refuse_if_stamp_unsupported(stamp: int) -> None:
    """Refuse a graph that this build cannot serve (G4).

    Raises:
        FormatVersionError: the stamp is above the ceiling or below the floor.
    """
    reads = f"this build reads {MIN_SUPPORTED_INTERNAL_SCHEMA_VERSION} to {INTERNAL_SCHEMA_VERSION}"
    if stamp > INTERNAL_SCHEMA_VERSION:
        raise _refusal(f"graph format {stamp}, {reads}: upgrade omnigraph", stamp)
    if stamp < MIN_SUPPORTED_INTERNAL_SCHEMA_VERSION:
        route = "export it with the build that wrote it, init a new graph and load the export"
        raise _refusal(f"graph format {stamp}, {reads}: {route}", stamp)


def _refusal(message: str, found: object) -> FormatVersionError:
    return FormatVersionError(
        message, found=found, floor=MIN_SUPPORTED_INTERNAL_SCHEMA_VERSION, ceiling=INTERNAL_SCHEMA_VERSION
    )


class Coordinator:
    """Reads the manifests of one graph; safe to share between threads."""

    def __init__(self, root: GraphRoot, manifest: ManifestTable, notes: HeadNotes | None = None) -> None:
        """Take the graph, the raw access to its manifest, and the head note of one in an object store."""
        self._root = root
        self.manifest = manifest
        self.notes = notes
        self._states: dict[str, ManifestState] = {}
        self._recalled: ManifestState | None = None  # what the note says, not yet compared with the manifest
        self._noted: ManifestState | None = None  # the newest state that was made from it
        self._lock = threading.Lock()

    def address(self, ref: str | None = None) -> TableAddress:
        """Return the address of the manifest of a ref; None is main."""
        return TableAddress(self._root.child(MANIFEST_DIR), ref)

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
                return self.advance(branch, self.manifest.open_fresh(address))
            except StorageError as error:
                if error.kind != "not_found" or isinstance(error, GraphDamaged):
                    raise
                # The version was trimmed while it was read: history is in the rows of the newest one (G6).
                return self.advance(branch, self.manifest.open_fresh(address))

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
            refuse_if_stamp_unsupported(read_stamp(handle.schema_metadata))
            known, self._recalled = noted or self._recalled, None
            advanced = None if known is None else self._on_note(known, handle)
            if advanced is None:
                return self.advance(branch, handle)
        self._noted = advanced
        return advanced

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

    def read_apart(self, branch: BranchIdentity) -> ManifestState:
        """Return the state of a branch that was deleted; it is not kept.

        Raises:
            StorageError: the ref is gone (kind `not_found`), or the store failed.
            FormatVersionError: this build does not read that format.
        """
        handle = self.manifest.open_fresh(self.address(branch.ref))
        refuse_if_stamp_unsupported(read_stamp(handle.schema_metadata))
        return self._read_all(branch, handle)

    def advance(self, branch: BranchIdentity, handle: ManifestHandle) -> ManifestState:
        """Return the state of a manifest that was just opened, reading the fragments not seen yet.

        Raises:
            FormatVersionError: this build does not read that format.
        """
        refuse_if_stamp_unsupported(read_stamp(handle.schema_metadata))
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

    def warm(self, branch: BranchIdentity) -> ManifestState | None:
        """Return the state of a branch that was looked at or made last, if any."""
        with self._lock:
            state = self._states.get(branch.name)
        return state if state is not None and state.branch == branch else None
