"""Rows of the newest publishes in a note: what is read from memory is what the files say."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.core.errors import StorageError
from omnigraph.graph.graph import Graph
from omnigraph.history.coordinator import Coordinator
from omnigraph.history.head_note import HeadNotes, note_file
from omnigraph.history.identity import MAIN_BRANCH, BranchIdentity
from omnigraph.history.manifest_rows import MANIFEST_DIR
from omnigraph.history.state import ManifestState
from omnigraph.storage.tables.manifest_table import ManifestTable
from omnigraph.storage.tables.recent_publishes import BYTES_MAX, FILE_BYTES_MAX, FILES_MAX, ROWS_MAX
from omnigraph.storage.tables.table import TableStore
from tests.support.engine import view
from tests.support.queries import mutation
from tests.support.seam import internals, patched


def insert(graph: Graph, *names: str, branch: str | None = None) -> None:
    """Insert persons, each in a commit of its own."""
    for name in names:
        graph.mutate(mutation(f'insert Person {{ name: "{name}" }}'), branch=branch)


def with_notes(graph: Graph) -> tuple[Coordinator, TableStore]:
    """Return a fresh look at a graph, as one has that lies in a store, and what it opens tables with."""
    parts, store = internals(graph).parts, TableStore()
    notes = HeadNotes(parts.root, parts.adapter, store, pytest.fail)
    return Coordinator(parts.root, ManifestTable(store), notes), store


def leave_note(graph: Graph, branch: BranchIdentity = MAIN_BRANCH) -> ManifestState:
    """Leave the note of somebody who has read all, and return what was read."""
    coordinator, _ = with_notes(graph)
    coordinator.leave_notes()
    state = coordinator.state(branch)
    coordinator.close()
    return state


def remove_files(graph: Graph, *, but: Callable[[Path], bool] = lambda _: False) -> None:
    """Remove what holds the rows of the manifest, so that none can be read."""
    folder = Path(internals(graph).parts.root.uri, MANIFEST_DIR)
    files = [path for path in folder.rglob("*") if path.parent.name in {"data", "_deletions"}]
    for path in files:
        if not but(path):
            path.unlink()
    assert files


def branch_of(graph: Graph, name: str) -> BranchIdentity:
    return internals(graph).parts.branches.resolve(name)


@pytest.mark.case("engine", 853)
def test_a_whole_state_comes_from_the_note(graph: Graph) -> None:
    insert(graph, "ann", "bob", "cas")
    known = leave_note(graph)
    remove_files(graph)

    coordinator, _ = with_notes(graph)
    assert coordinator.recall()

    assert view(coordinator.state()) == view(known)


@pytest.mark.case("engine", 853)
def test_a_head_that_was_replaced_since_the_note_is_not_there(graph: Graph) -> None:
    insert(graph, "ann", "bob")
    leave_note(graph)
    folder = Path(internals(graph).parts.root.uri, MANIFEST_DIR)
    noted = {path.name for path in folder.rglob("*") if path.is_file()}
    insert(graph, "cas", "dee")
    graph.create_branch("side")
    known = view(with_notes(graph)[0].state())
    remove_files(graph, but=lambda path: path.name not in noted)

    coordinator, store = with_notes(graph)
    assert coordinator.recall()
    found = coordinator.state()

    assert view(found) == known
    handle = coordinator.manifest.open_fresh(coordinator.address())
    heads = coordinator.manifest.read(handle, columns=["object_id", "published_at"])[
        "published_at"
    ].null_count
    assert heads == 1  # of the rows in memory the heads that were replaced are left out
    assert store.publishes.files_of(found.fragments.values()).keys() == set(found.fragments.values())


@pytest.mark.case("engine", 853)
def test_the_note_of_a_branch_serves_that_branch(graph: Graph) -> None:
    insert(graph, "ann")
    graph.create_branch("side")
    insert(graph, "bob", "cas", branch="side")
    side = branch_of(graph, "side")
    known = leave_note(graph, side)
    remove_files(graph)

    assert view(with_notes(graph)[0].state(side)) == view(known)

    graph.create_branch("other", from_="main")
    with pytest.raises(StorageError):
        with_notes(graph)[0].state(branch_of(graph, "other"))


@pytest.mark.case("engine", 853)
def test_a_fold_with_the_heads_of_two_branches_is_read(graph: Graph) -> None:
    insert(graph, "ann")
    graph.create_branch("side")
    insert(graph, "bob", branch="side")
    side = branch_of(graph, "side")
    parts = internals(graph).parts
    parts.coordinator.manifest.compact(parts.coordinator.address(side.ref))
    leave_note(graph, side)
    insert(graph, "cas", branch="side")
    leave_note(graph, side)
    insert(graph, "dee", branch="side")

    coordinator = Coordinator(parts.root, ManifestTable(TableStore()))

    assert view(with_notes(graph)[0].state(side)) == view(coordinator.state(side))


@pytest.mark.case("engine", 853)
@pytest.mark.parametrize("damage", ["", "00000000 {}", "x", "cut"])
def test_a_damaged_note_of_a_branch_is_no_note(graph: Graph, damage: str) -> None:
    graph.create_branch("side")
    insert(graph, "ann", branch="side")
    side = branch_of(graph, "side")
    known = leave_note(graph, side)
    adapter = internals(graph).parts.adapter
    text = adapter.read_text(note_file(side.ref))
    adapter.write_text(note_file(side.ref), text[:-9] if damage == "cut" else damage)

    coordinator, store = with_notes(graph)

    assert view(coordinator.state(side)) == view(known)
    assert store.publishes.files_of(known.fragments.values())  # read from the files, and known from now on


def placed(
    rows: pa.Table, change: Callable[[list[int]], list[Any]], kind: pa.DataType | None = None
) -> pa.Table:
    """Return rows with other places in their file."""
    at = rows.column_names.index("_offset")
    return rows.set_column(
        at, "_offset", pa.array(change(rows["_offset"].to_numpy().tolist()), kind or pa.uint32())
    )


@pytest.mark.case("engine", 853)
@pytest.mark.case("engine", 858)
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda rows: rows.slice(1), id="a row less"),
        pytest.param(lambda rows: pa.concat_tables([rows, rows]), id="rows twice"),
        pytest.param(lambda rows: rows.drop_columns(["metadata"]), id="a column less"),
        pytest.param(lambda rows: rows.drop_columns(["_offset"]), id="without places"),
        pytest.param(lambda rows: placed(rows, lambda at: at[::-1]), id="places backwards"),
        pytest.param(lambda rows: placed(rows, lambda at: [None] * len(at)), id="places missing"),
        pytest.param(lambda rows: placed(rows, lambda at: [0] * len(at)), id="one place"),
        pytest.param(lambda rows: placed(rows, lambda at: [place + 64 for place in at]), id="places beyond"),
        pytest.param(lambda rows: placed(rows, lambda at: list(map(str, at)), pa.utf8()), id="no numbers"),
        pytest.param(lambda rows: placed(rows, lambda at: at, pa.int64()), id="signed numbers"),
        pytest.param(
            lambda rows: rows.append_column("published_at", rows["published_at"]), id="a column twice"
        ),
        pytest.param(
            lambda rows: rows.set_column(0, "object_id", pa.nulls(rows.num_rows, pa.utf8())), id="no ids"
        ),
    ],
)
def test_rows_that_do_not_fit_are_read(graph: Graph, change: Callable[[pa.Table], pa.Table]) -> None:
    insert(graph, "ann", "bob")
    known = leave_note(graph)
    _, noted = with_notes(graph)
    coordinator, store = with_notes(graph)
    Coordinator(
        coordinator.root,
        ManifestTable(noted),
        HeadNotes(coordinator.root, internals(graph).parts.adapter, noted, pytest.fail),
    ).recall()
    files = noted.publishes.files_of(known.fragments.values())
    assert files
    store.publishes.keep({name: change(rows) for name, rows in files.items()})

    assert view(coordinator.state()) == view(known)


def test_what_is_kept_is_bounded(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    insert(graph, "ann", "bob", "cas")
    known = leave_note(graph)
    names = [name for _, name in sorted(known.fragments.items())]
    assert min(ROWS_MAX, FILE_BYTES_MAX, FILES_MAX, BYTES_MAX) > 0

    def kept() -> list[str]:
        coordinator, store = with_notes(graph)
        coordinator.state()
        return list(store.publishes.files_of(names))

    assert kept() == names
    with monkeypatch.context() as patch:
        patched(patch, "omnigraph.storage.tables.recent_publishes.FILES_MAX", 2)
        assert kept() == names[-2:]
    with monkeypatch.context() as patch:
        patched(patch, "omnigraph.storage.tables.recent_publishes.BYTES_MAX", 2_500)
        assert 0 < len(kept()) < len(names)
    with monkeypatch.context() as patch:
        patched(patch, "omnigraph.storage.tables.recent_publishes.FILE_BYTES_MAX", 1)
        assert kept() == []
    with monkeypatch.context() as patch:
        patched(patch, "omnigraph.storage.tables.recent_publishes.ROWS_MAX", 3)
        assert names[0] not in kept()


def test_a_local_disk_keeps_nothing(graph: Graph) -> None:
    insert(graph, "ann")
    store = TableStore()
    state = Coordinator(internals(graph).parts.root, ManifestTable(store)).state()

    assert store.publishes.files_of(state.fragments.values()) == {}
    assert internals(graph).parts.store.publishes.files_of(state.fragments.values()) == {}
