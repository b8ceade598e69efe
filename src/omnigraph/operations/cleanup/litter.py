"""What lies around a graph besides its tables: files of processes that died, and of builds long gone.

Each has a rule that proves it dead: a lock that is free, silence for a lifetime, or an age beyond the grace
period. Where there is none, a thing stays.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from omnigraph.bulk.connect.leftovers import SPOOL, TOKEN, remove_leftovers
from omnigraph.bulk.load.spool import NOTES
from omnigraph.commit.parts import Parts
from omnigraph.commit.reclaim import ORPHAN_GRACE_S
from omnigraph.commit.recovery.pending import remove_litter
from omnigraph.commit.sidecar import RECOVERY_DIR
from omnigraph.core.errors import StorageError
from omnigraph.core.ids import ulid_millis
from omnigraph.operations.cleanup.model import CleanupRow
from omnigraph.operations.cleanup.tables import Cleaning
from omnigraph.storage.control.locks import is_taken
from omnigraph.storage.control.stored_files import StoredFile, remove_files, stored_files
from omnigraph.storage.control.uri import is_temporary
from omnigraph.storage.damage.quarantine import QUARANTINE_DIR, translated
from omnigraph.storage.tables.task_notes import TaskNotes

LEGACY_RUNS = ("_graph_runs.lance", "_graph_run_actors.lance")  # of builds before stamp 4; nothing reads them


def noted_files(parts: Parts) -> frozenset[str]:
    """Return the files that tasks of bulk loads have noted, by their paths below the root.

    Raises:
        StorageError: a note cannot be read.
        InvariantViolation: a note names what no task writes.
    """
    start = parts.root.child("")
    return frozenset(
        path.removeprefix(start)
        for folder in _folders(parts, SPOOL)
        for path in TaskNotes(parts.root.uri, f"{folder}/{NOTES}").files()
    )


def has_load_of_age(parts: Parts) -> bool:
    """Return whether a bulk load lives that is older than the grace period: its files have no other sign.

    Raises:
        StorageError: the graph's folder cannot be listed.
    """
    root = parts.local_root
    if root is None:
        return False
    with translated("look for bulk loads that live"):
        return any(
            _is_old(parts, path.name, TOKEN) and is_taken(path)
            for path in root.glob(f"{TOKEN}*")
            if not path.is_symlink()  # nobody who lives has one there
        )


def remove_dead_loads(parts: Parts) -> tuple[CleanupRow, ...]:
    """Remove what dead bulk loads have left: their notes would protect files that nobody will name.

    Returns a row for each that could not be removed.
    """
    if parts.root.is_local:
        failed = remove_leftovers(parts.root, now_micros=parts.clock())
        return tuple(CleanupRow(name, error=str(error)) for name, error in failed.items())
    for folder in _folders(parts, SPOOL):
        files = stored_files(parts.root, folder)
        oldest_kept = parts.clock() - ORPHAN_GRACE_S * 1_000_000
        if _is_old(parts, folder, SPOOL) and all(file.written_at < oldest_kept for file in files.values()):
            parts.adapter.delete_prefix(folder)
            parts.adapter.delete(f"{TOKEN}{folder.removeprefix(SPOOL)}")
    return ()


def clean_litter(
    cleaning: Cleaning, files: dict[str, StoredFile]
) -> tuple[tuple[str, ...], tuple[CleanupRow, ...]]:
    """Remove litter; return what it was, and a row for each thing that could not be removed.

    A dry run removes nothing. `files` are those outside of tables.

    Raises:
        StorageError: something cannot be listed.
    """
    parts, failed = cleaning.parts, list[CleanupRow]()
    found = [*_folders_to_go(cleaning, files), *_files_to_go(cleaning, files)]
    if not cleaning.is_dry_run:
        for name, remove in found:
            try:
                remove(name)
            except StorageError as error:
                failed.append(CleanupRow(name, error=str(error)))
        try:
            remove_litter(parts)
        except StorageError as error:
            failed.append(CleanupRow(RECOVERY_DIR, error=str(error)))
        if parts.writer is not None:
            parts.writer.watch.tidy()
    kept = {row.table_key for row in failed}
    return tuple(name for name, _ in found if name not in kept), tuple(failed)


def _folders_to_go(
    cleaning: Cleaning, files: dict[str, StoredFile]
) -> Iterator[tuple[str, Callable[[str], None]]]:
    parts = cleaning.parts
    tops = {path.partition("/")[0] for path in files}
    yield from ((name, parts.adapter.delete_prefix) for name in LEGACY_RUNS if name in tops)
    start = f"{QUARANTINE_DIR}/"
    folders = {path.removeprefix(start).partition("/")[0] for path in files if path.startswith(start)}
    for name in sorted(folders):
        if _is_old(parts, name, ""):
            yield f"{start}{name}", parts.adapter.delete_prefix


def _files_to_go(
    cleaning: Cleaning, files: dict[str, StoredFile]
) -> Iterator[tuple[str, Callable[[str], None]]]:
    """Yield what was never written to its end."""
    for path, file in sorted(files.items()):
        if is_temporary(Path(path).name) and cleaning.is_litter_of_age(file):
            yield path, lambda name: remove_files(cleaning.parts.root, [name])


def _folders(parts: Parts, prefix: str) -> list[str]:
    """Return the folders right below the root whose names begin in a certain way."""
    root = parts.local_root
    if root is not None:
        with translated("list the graph's folder"):
            return sorted(
                path.name for path in root.glob(f"{prefix}*") if path.is_dir() and not path.is_symlink()
            )
    return sorted({path.partition("/")[0] for path in stored_files(parts.root) if path.startswith(prefix)})


def _is_old(parts: Parts, name: str, prefix: str) -> bool:
    made = ulid_millis(name.removeprefix(prefix))
    return made is not None and parts.clock() // 1_000 - made >= ORPHAN_GRACE_S * 1_000
