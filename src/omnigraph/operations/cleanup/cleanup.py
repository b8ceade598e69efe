"""`cleanup`: remove old versions of tables, and what nothing needs any more.

C1  Nothing is removed before it is known what stays (`retained`), and nothing with unfinished writes, with
    drift on main, or while the schema changes.
C2  It may run beside writers of other processes: what they stage is young, and what they build on stays. The
    writers of this process wait.
C3  No row changes, no commit leaves the history, and no HEAD moves: a commit whose tables were removed is
    still listed, and answers reads with `HistoricalVersionReclaimed`.
C4  The failure of one table, or of one thing that lies around, is its own row. Everything can be done again,
    from wherever it was stopped.
C5  Manifests are trimmed by their own rule (`trim`): publishes are never endangered.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

from omnigraph.commit.parts import Parts
from omnigraph.commit.recovery.quiet import refuse_pending
from omnigraph.commit.retention import Limits
from omnigraph.commit.schema_lock import living_holder
from omnigraph.commit.trim import TrimmedManifest, trim_manifests
from omnigraph.commit.write import refuse_drift
from omnigraph.core.errors import ExpectedVersionMismatch, OmnigraphError, SchemaApplyInProgress
from omnigraph.core.failpoint import hit
from omnigraph.history.identity import MAIN_BRANCH
from omnigraph.history.manifest_rows import MANIFEST_DIR
from omnigraph.operations.cleanup.litter import clean_litter, has_load_of_age, noted_files, remove_dead_loads
from omnigraph.operations.cleanup.model import (
    KEEP_WARNED_BELOW,
    Age,
    CleanupResult,
    CleanupRow,
    given_limits,
)
from omnigraph.operations.cleanup.retained import find_retained
from omnigraph.operations.cleanup.tables import (
    Cleaning,
    clean_table,
    leftover_refs,
    leftover_trees,
    loose_files,
)
from omnigraph.operations.context import OpenGraph
from omnigraph.operations.progress import TableProgressCallback, Tables, unseen
from omnigraph.operations.settings import maintenance_concurrency, reader_grace_s
from omnigraph.policy.request import Action
from omnigraph.storage.control.stored_files import StoredFile, remove_files, stored_files
from omnigraph.storage.tables.handle import ref_path
from omnigraph.storage.versions.newest import TRUSTED_S

_TABLE = re.compile(r"(?:nodes|edges)/[0-9a-f]{16}-[0-9a-f]{16}")


def cleanup(
    graph: OpenGraph,
    *,
    keep: int | None = None,
    older_than: Age | None = None,
    dry_run: bool = False,
    actor: str | None = None,
    progress: TableProgressCallback = unseen,
) -> CleanupResult:
    """Remove versions beyond `keep` newer ones and replaced for longer than `older_than`, and litter.

    A dry run returns what would be removed, and removes nothing.

    Raises:
        BadRequest: neither limit is given, or one is not a number.
        PendingRecovery: a dead writer has left something to recover, or a live one does not finish.
        SchemaApplyInProgress: the schema is being changed.
        DriftNeedsRepair: a table of main is ahead of its pin, and nothing says why.
        OmnigraphError: a live branch cannot be read; nothing was removed.
    """
    limits = given_limits(keep, older_than, grace_s=_grace_s(graph.parts))
    graph.enter_whole(actor, Action.ADMIN)
    if not dry_run:
        graph.require_writable()
    return _clean(graph, limits, dry_run=dry_run, progress=progress)


def preview(graph: OpenGraph, *, keep: int) -> CleanupResult:
    """Return what a cleanup would remove, for a verb that has asked for its own grant.

    Raises:
        OmnigraphError: as `cleanup`.
    """
    limits = given_limits(keep, None, grace_s=_grace_s(graph.parts))
    return _clean(graph, limits, dry_run=True, progress=unseen)


def _clean(
    graph: OpenGraph, limits: Limits, *, dry_run: bool, progress: TableProgressCallback
) -> CleanupResult:
    parts, keep = graph.parts, limits.keep
    refuse_pending(parts, "cleanup")
    hit("cleanup.post_check_pre_gates")
    with _gates(graph):
        refuse_pending(parts, "cleanup")
        _refuse_schema_apply(parts)
        _refuse_drift(parts)
        rows = [] if dry_run else list(remove_dead_loads(parts))
        cleaning = Cleaning(
            parts,
            find_retained(graph),
            limits,
            parts.clock(),
            noted_files(parts),
            takes_loose_files=not has_load_of_age(parts),
            is_dry_run=dry_run,
        )
        files = stored_files(parts.root)
        cleaning = replace(cleaning, links=_links(files))
        rows += _clean_tables(cleaning, cleaning.retained.tables, files, progress)
        dropped = _clean_manifest_refs(cleaning, files)
        trimmed = trim_manifests(parts, graph.publisher, dry_run=dry_run)
        rows.append(_manifest_row(dropped, trimmed))
        outside = {path: file for path, file in files.items() if not path.startswith(("nodes/", "edges/"))}
        leftovers, failed = clean_litter(cleaning, outside)
        rows += failed
    graph.forget_past()
    warnings = list(cleaning.retained.doubts)
    warnings += [
        f"a writer is publishing on '{one.branch}': its manifest waits" for one in trimmed if one.is_busy
    ]
    if keep is not None and keep < KEEP_WARNED_BELOW:
        warnings.append(f"keep={keep} leaves fewer versions than a rollback may want: 10 is recommended")
    return CleanupResult(keep, limits.older_than_s, dry_run, tuple(rows), leftovers, tuple(warnings))


def purge(graph: OpenGraph, locations: Collection[str]) -> tuple[CleanupRow, ...]:
    """Remove every version of some tables but the newest, at once: what was dropped for good is gone.

    What another branch, a reader of this process or the next merge of two branches needs stays all the same.

    Raises:
        PendingRecovery: an unfinished write must be recovered first.
        OmnigraphError: a live branch cannot be read; nothing was removed.
    """
    parts = graph.parts
    with _gates(graph):
        refuse_pending(parts, "the purge of dropped data")
        limits = given_limits(1, None, grace_s=0)
        cleaning = Cleaning(
            parts,
            find_retained(graph),
            limits,
            parts.clock(),
            noted_files(parts),
            takes_loose_files=False,
            is_dry_run=False,
        )
        found = stored_files(parts.root)
        cleaning = replace(cleaning, links=_links(found))
        files = {path: file for path, file in found.items() if path.startswith(tuple(locations))}
        rows = _clean_tables(cleaning, locations, files, unseen)
    graph.forget_past()
    return tuple(rows)


def _grace_s(parts: Parts) -> float:
    """Return how long what was replaced stays for readers of other processes.

    In an object store the version after the one seen last is asked for by its name (`newest`): no version may
    go that could be asked for.
    """
    grace_s = reader_grace_s()
    return grace_s if parts.local_root is not None else max(grace_s, TRUSTED_S)


@contextmanager
def _gates(graph: OpenGraph) -> Iterator[None]:
    """Hold everything that a writer of this process could need, on every branch."""
    parts = graph.parts
    with parts.queues.schema_gate:
        branches = parts.branches.live()
        with parts.queues.branch_gates(branch.name for branch in branches):
            keys = [
                (entry.table_key, branch.name)
                for branch in branches
                for entry in parts.coordinator.state(branch).tables.entries()
            ]
            with parts.queues.acquire_many(keys):
                yield


def _links(files: Mapping[str, StoredFile]) -> tuple[str, ...]:
    return tuple(sorted(path for path, file in files.items() if file.is_link))


def _refuse_schema_apply(parts: Parts) -> None:
    if living_holder(parts) is not None:
        raise SchemaApplyInProgress(
            "cleanup is unavailable while schema changes are applied: try again after it"
        )


def _refuse_drift(parts: Parts) -> None:
    """Refuse if a table of main is ahead of its pin, unless a live writer is on its way (C1)."""
    entries = parts.coordinator.state().tables.entries()
    heads = parts.store.latest_versions([parts.address(entry) for entry in entries])
    for entry, head in zip(entries, heads, strict=True):
        try:
            refuse_drift(parts, entry, head, MAIN_BRANCH)
        except ExpectedVersionMismatch:
            continue


def _clean_tables(
    cleaning: Cleaning, known: Iterable[str], files: dict[str, StoredFile], progress: TableProgressCallback
) -> list[CleanupRow]:
    """Clean every table that is known or that has a folder, several at a time (C4)."""
    by_table: dict[str, dict[str, StoredFile]] = {location: {} for location in known}
    for path, file in files.items():
        found = _TABLE.match(path)
        if found is not None:
            by_table.setdefault(found[0], {})[path] = file
    locations = sorted(location for location, own in by_table.items() if own or cleaning.link_at(location))
    labels = {location: _label(cleaning, location) for location in locations}
    sizes = {location: len(by_table[location]) for location in locations}
    tables = Tables("cleanup", sizes, progress, unit="files", names=labels)

    def clean(location: str) -> CleanupRow:
        with tables.at(location) as advance:
            return _attempted(
                labels[location], lambda: clean_table(cleaning, location, by_table[location], advance)
            )

    with ThreadPoolExecutor(maintenance_concurrency()) as threads:
        rows = list(threads.map(clean, locations))
    return sorted(rows, key=lambda row: row.table_key)


def _label(cleaning: Cleaning, location: str) -> str:
    known = cleaning.retained.tables.get(location)
    return location if known is None else known.table_key


def _manifest_row(dropped: CleanupRow, trimmed: Sequence[TrimmedManifest]) -> CleanupRow:
    errors = [error for error in (dropped.error, *map(_told, trimmed)) if error is not None]
    return CleanupRow(
        MANIFEST_DIR,
        dropped.bytes_removed + sum(one.size for one in trimmed),
        sum(one.versions for one in trimmed),
        dropped.files_removed + sum(one.files for one in trimmed),
        "; ".join(errors) or None,
    )


def _told(trimmed: TrimmedManifest) -> str | None:
    return None if trimmed.error is None else f"branch '{trimmed.branch}': {trimmed.error}"


def _clean_manifest_refs(cleaning: Cleaning, files: dict[str, StoredFile]) -> CleanupRow:
    """Drop refs of the manifest that nothing names, and files that no version of it names (C4)."""
    own = {path: file for path, file in files.items() if path.startswith(f"{MANIFEST_DIR}/")}
    return _attempted(MANIFEST_DIR, lambda: _drop_manifest_refs(cleaning, own))


def _drop_manifest_refs(cleaning: Cleaning, files: dict[str, StoredFile]) -> CleanupRow:
    parts = cleaning.parts
    cleaning.refuse_links(MANIFEST_DIR)
    refs, leftover = leftover_refs(cleaning, MANIFEST_DIR)
    stray = leftover_trees(cleaning, MANIFEST_DIR, refs, files)
    gone = (*(f"{ref_path(MANIFEST_DIR, ref)}/" for ref in leftover), *(f"{folder}/" for folder in stray))
    kept = [ref.name for ref in refs if ref.name not in leftover]
    loose = [path for ref in (None, *kept) for path in loose_files(cleaning, MANIFEST_DIR, ref, files)]
    if not cleaning.is_dry_run:
        for ref in leftover:
            parts.refs.drop(parts.coordinator.address(ref))
        for folder in stray:
            parts.adapter.delete_prefix(folder)
        remove_files(parts.root, loose)
    going = [file for path, file in files.items() if path in loose or (gone and path.startswith(gone))]
    return CleanupRow(MANIFEST_DIR, sum(file.size for file in going), 0, len(going))


def _attempted(label: str, clean: Callable[[], CleanupRow]) -> CleanupRow:
    try:
        return clean()
    except OmnigraphError as error:
        return CleanupRow(label, error=str(error))
    except Exception as error:  # noqa: BLE001 - the row says so, and the other tables are done (C4)
        return CleanupRow(label, error=f"{type(error).__name__}: {error}")
