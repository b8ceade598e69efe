"""A manifest with many commits, made in one go instead of commit by commit."""

from pathlib import Path

from omnigraph.core.ids import new_ulid
from omnigraph.graph.graph import Graph
from omnigraph.history.identity import MAIN, MAIN_BRANCH
from omnigraph.history.manifest_rows import (
    ManifestRow,
    PublishedPin,
    commit_row,
    head_row,
    pin_row,
    rows_table,
)
from omnigraph.storage.files.version_file import (
    FOOTER,
    LENGTH,
    encode,
    fields,
    manifest_message,
    version_file_name,
)
from tests.support.seam import internals

_VERSION_FIELD = 3


def seed_commits(graph: Graph, table_key: str, count: int) -> None:
    """Give a graph so many commits that each pinned one table, as if all but the newest version were trimmed.

    Pins and commits are rows with rising manifest versions. They are written at once and folded; then
    the number of the manifest's newest version is raised to the last of them. The graph must be opened again.
    """
    parts = internals(graph).parts
    coordinator = parts.coordinator
    handle = coordinator.manifest.open_fresh(coordinator.address())
    state = coordinator.advance(MAIN_BRANCH, handle)
    entry = state.snapshot().entry(table_key)
    first = handle.version + 1
    parent = state.head.graph_commit_id
    rows: list[ManifestRow] = []
    for at in range(first, first + count):
        commit_id = new_ulid()
        pin = PublishedPin(entry.version, entry.pin.ref, entry.row_count, entry.pin.transaction_uuid, MAIN)
        metadata = {"parent_commit_id": parent, "actor_id": "seed", "created_at": parts.clock()}
        rows += [pin_row(entry.identity, table_key, pin, at=at), commit_row(commit_id, MAIN, metadata, at=at)]
        parent = commit_id
    rows.append(head_row(MAIN, parent, str(rows[-1]["object_id"])))
    replaced = state.replaced_places(rows)
    coordinator.manifest.publish(handle, rows_table(rows), commit_id=parent, replaced=replaced)
    folded = coordinator.manifest.compact(coordinator.address())
    _renumber(Path(graph.uri, "__manifest", "_versions"), folded, first + count - 1)
    graph.close()


def _renumber(folder: Path, old: int, new: int) -> None:
    """Make one version the only one, under another number."""
    data = memoryview((folder / Path(version_file_name(old)).name).read_bytes())
    message = manifest_message(data)
    kept = [(number, value) for number, value in fields(message) if number != _VERSION_FIELD]
    renumbered = encode([*kept, (_VERSION_FIELD, new)])
    position, *formats = FOOTER.unpack(data[len(data) - FOOTER.size :])
    head = bytes(data[:position])
    for other in folder.iterdir():
        other.unlink()
    content = head + LENGTH.pack(len(renumbered)) + renumbered + FOOTER.pack(position, *formats)
    (folder / Path(version_file_name(new)).name).write_bytes(content)
