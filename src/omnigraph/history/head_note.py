"""The head note: what an open needs of main's manifest, in one object beside it, in an object store.

Commits are rows in small files until the manifest is folded, and a store is asked for each file. The note has
the rows that decide what main shows: names and pins of its tables, its schema, its newest commit and its
first one.

H1  The note is derived and decides nothing. It may be missing, old, damaged or of another graph; what was
    published since is read on top of it, and where its fragments, with their data files, are not all in the
    newest version it is not used.
    A sum tells what was damaged. It is no signature: like a data file, a note is believed to be of a writer.
H2  Nobody waits for it. A writer leaves it behind a publish, from a thread of its own; of several states that
    wait, only the newest is written.
H3  What it lacks is the past: only views of the present are made from it.
H4  It also has rows of small fragments: of the tables, as a writer read them behind its own commits, and of
    the manifest. They are kept by data file, whatever version the note is of
    (`storage/tables/recent_rows.py`, `storage/tables/recent_publishes.py`).
H5  A branch has a note of its own, beside its manifest: rows of small fragments alone. What it shows is read
    from the manifest as without a note.
"""

import json
import threading
import zlib
from collections.abc import Callable, Mapping
from typing import Any

from omnigraph.core.errors import StorageError
from omnigraph.core.values import read_json
from omnigraph.history.commits import lineage_row
from omnigraph.history.identity import MAIN_BRANCH
from omnigraph.history.manifest_rows import (
    MANIFEST_DIR,
    ManifestRow,
    head_row,
    pin_row,
    registration_row,
    rows_table,
    schema_row,
)
from omnigraph.history.state import ManifestState
from omnigraph.storage.control.object_store import StorageAdapter
from omnigraph.storage.control.uri import GraphRoot
from omnigraph.storage.tables.handle import TableAddress, ref_path
from omnigraph.storage.tables.recent_rows import RecentFiles, from_document, to_document
from omnigraph.storage.tables.table import TableStore
from omnigraph.storage.versions.newest import NUMBER_MAX

NOTE = "_head_note"
HEAD_NOTE = f"{MANIFEST_DIR}/{NOTE}"
FORMAT = 3  # 1 had the numbers of fragments without their data files, 2 no schema
PAUSE_S = 0.1  # behind a publish: what follows at once shares its note, and the write itself ends first
BYTES_MAX = 524_288  # of all rows of tables in a note: every commit writes them again


def note_file(ref: str | None) -> str:
    """Return the graph-relative name of the note of main, or of the branch of a ref."""
    return f"{ref_path(MANIFEST_DIR, ref)}/{NOTE}"


def note_text(state: ManifestState, recent: Mapping[str, RecentFiles] | None = None) -> str:
    """Return the text of the note for a state, with rows of small fragments by their places."""
    found = {place: to_document(files) for place, files in (recent or {}).items() if files}
    document = _document(state) if state.branch.is_main else {"format": FORMAT}
    text = json.dumps(document | {"recent": found}, ensure_ascii=False)
    return f"{zlib.crc32(text.encode()):08x} {text}"


def _document(state: ManifestState) -> dict[str, Any]:
    genesis = state.commits.find(state.commits.genesis_id)
    assert genesis is not None, "it was found by its id"
    rows: list[ManifestRow] = []
    for entry in state.tables.entries():
        registered_at = state.tables.registrations[entry.identity].published_at
        rows.append(registration_row(entry.identity, entry.table_key, at=registered_at))
        rows.append(pin_row(entry.identity, entry.table_key, entry.pin, at=entry.pin.published_at))
    rows.append(schema_row(state.schema.text, at=state.schema.published_at))
    ends = {commit.graph_commit_id: commit for commit in (genesis, state.head)}
    rows += [lineage_row(commit) for commit in ends.values()]
    rows += [head_row(name, commit_id, None) for name, commit_id in state.heads.items()]
    kept = [{name: value for name, value in row.items() if value is not None} for row in rows]
    return {
        "format": FORMAT,
        "version": state.version,
        "fragments": [list(item) for item in sorted(state.fragments.items())],
        "rows": kept,
        "recent": {},
    }


def read_note(text: str) -> ManifestState | None:
    """Return what a note says, as a state without a past; `None` for a text that is no whole note (H1)."""
    if not _is_whole(text):
        return None
    try:
        return _state(read_json(text.partition(" ")[2]))
    except Exception:  # noqa: BLE001 - somebody may have written anything with a sum that fits
        return None


def _is_whole(text: str) -> bool:
    sum_, _, document = text.partition(" ")
    return sum_ == f"{zlib.crc32(document.encode()):08x}"


def _state(document: dict[str, Any]) -> ManifestState | None:
    rows, version, fragments = document["rows"], document["version"], dict(document["fragments"])
    values = [value for row in rows for value in row.values()]
    if not all(map(_is_number, [version, *fragments, *(v for v in values if not isinstance(v, str))])):
        return None
    state = ManifestState(MAIN_BRANCH, 0).with_rows(rows_table(rows), version=version, fragments=fragments)
    return state if _document(state) == {**document, "recent": {}} else None  # a writer would say the same


def _is_number(value: object) -> bool:
    return type(value) is int and 0 <= value <= NUMBER_MAX


def read_recent(text: str) -> dict[str, RecentFiles]:
    """Return the rows of tables that a whole note has, by place; none where they cannot be read (H1)."""
    try:
        documents = read_json(text.partition(" ")[2])["recent"]
        return {str(place): from_document(document) for place, document in documents.items()}
    except Exception:  # noqa: BLE001 - as for the note itself
        return {}


class HeadNotes:
    """Reads the note of a graph, and leaves new ones; safe to share between threads."""

    def __init__(
        self, root: GraphRoot, adapter: StorageAdapter, store: TableStore, warn: Callable[[str], None]
    ) -> None:
        """Take a graph in an object store, and where to say that a note was lost."""
        self._root = root
        self._adapter = adapter
        self._store = store
        self._warn = warn
        self._lock = threading.Lock()
        self._waiting: dict[str | None, ManifestState] = {}
        self._thread: threading.Thread | None = None
        self._is_wanted_now = threading.Event()
        self.is_kept = False  # by a handle that writes
        store.publishes.is_on = True

    def read(self) -> ManifestState | None:
        """Return what the note says; `None` without a whole one.

        Raises:
            StorageError: the store failed.
        """
        try:
            text = self._adapter.read_text_if_exists(HEAD_NOTE)
        except StorageError as error:
            if error.kind != "permanent":  # not even text
                raise
            return None
        state = None if text is None else read_note(text)
        if text is not None and state is not None:
            self._keep(read_recent(text))
        return state

    def read_branch(self, ref: str) -> None:
        """Keep what the note of a branch says; it may be missing, or be anything (H1, H5)."""
        try:
            text = self._adapter.read_text_if_exists(note_file(ref))
        except StorageError:
            return
        if text is not None and _is_whole(text):
            self._keep(read_recent(text))

    def _keep(self, found: Mapping[str, RecentFiles]) -> None:
        for place, files in found.items():
            if place == MANIFEST_DIR:
                self._store.publishes.keep(files)
            else:
                self._store.keep_recent(self._address(place), files)

    def leave(self, state: ManifestState) -> None:
        """Have a state written, if this handle writes; returns at once (H2)."""
        if not self.is_kept:
            return
        if not len(state.commits):
            return  # a note names the first commit and the newest one
        with self._lock:
            self._waiting[state.ref] = state
            if self._thread is None:
                self._thread = threading.Thread(target=self._write, name="omnigraph-head-note", daemon=True)
                self._thread.start()

    def finish(self) -> None:
        """Wait until what was left is written."""
        thread = self._thread
        if thread is not None:
            self._is_wanted_now.set()
            thread.join()
            self._is_wanted_now.clear()

    def _address(self, place: str) -> TableAddress:
        return TableAddress(self._root.child(place))

    def _recent(self, state: ManifestState) -> dict[str, RecentFiles]:
        """Return rows of small fragments, as far as they are known or were just written (H4)."""
        names = [name for _, name in sorted(state.fragments.items())]
        found: dict[str, RecentFiles] = {MANIFEST_DIR: self._store.publishes.files_of(names)}
        size = 0
        for entry in state.tables.entries():
            place = ref_path(entry.location, entry.pin.ref)
            address = TableAddress(self._root.child(entry.location), entry.pin.ref)
            files = self._store.recent_files(address, entry.version)
            size += sum(rows.nbytes for rows in files.values())
            if size <= BYTES_MAX:
                found[place] = files
        return found

    def _write(self) -> None:
        while True:
            self._is_wanted_now.wait(PAUSE_S)
            with self._lock:
                waiting, self._waiting = self._waiting, {}
                if not waiting:
                    self._thread = None
                    return
            for state in waiting.values():
                self._write_one(state)

    def _write_one(self, state: ManifestState) -> None:
        try:
            self._adapter.write_text(note_file(state.ref), note_text(state, self._recent(state)))
        except StorageError as error:
            self._warn(f"the next open will read more: the head note could not be written: {error}")
