"""The head note: an open that uses it sees what one without it sees, whatever the note is like.

The note belongs to object stores; what it says and when it counts is the same on a disk, where this is quick.
"""

import json
import shutil
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from omnigraph.core.errors import FormatVersionError, StorageError
from omnigraph.graph.graph import Graph
from omnigraph.graph.opening import open as open_graph
from omnigraph.history.coordinator import UNSEEN_MAX, Coordinator
from omnigraph.history.head_note import HEAD_NOTE, HeadNotes, note_text, read_note, read_recent
from omnigraph.history.identity import MAIN_BRANCH
from omnigraph.history.manifest_rows import MANIFEST_DIR, STAMP_KEY
from omnigraph.history.state import ManifestState
from omnigraph.storage.tables.manifest_table import ManifestTable
from omnigraph.storage.tables.table import TableStore
from tests.support.engine import cold_state, view
from tests.support.queries import mutation
from tests.support.seam import internals, patched

Edit = Callable[[str], str]


def insert(graph: Graph, *names: str) -> None:
    """Insert persons, each in a commit of its own."""
    for name in names:
        graph.mutate(mutation(f'insert Person {{ name: "{name}" }}'))


def with_notes(graph: Graph) -> Coordinator:
    """Return a fresh look at a graph, with its note."""
    parts = internals(graph).parts
    store = TableStore()
    notes = HeadNotes(parts.root, parts.adapter, store, pytest.fail)
    return Coordinator(parts.root, ManifestTable(store), notes)


def leave_note(graph: Graph) -> None:
    """Leave the note that a writer in a store would have left now."""
    internals(graph).parts.adapter.write_text(HEAD_NOTE, note_text(cold_state(graph)))


def signed(document: str) -> str:
    """Return a document as the text of a note."""
    return f"{zlib.crc32(document.encode()):08x} {document}"


def edited(**changes: object) -> Edit:
    """Return how to change members of a note, with a sum that fits."""
    return lambda text: signed(json.dumps(json.loads(text.partition(" ")[2]) | changes))


def resigned(text: str, old: str, new: str) -> str:
    """Return a note with some text replaced, with a sum that fits."""
    return signed(text.partition(" ")[2].replace(old, new))


def reads(coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that grows by the number of fragments of each read."""
    counted: list[int] = []
    real = ManifestTable.read

    def read(table: ManifestTable, handle: object, **options: object) -> object:
        wanted = options.get("fragment_ids")
        counted.append(-1 if wanted is None else len(list(wanted)))  # type: ignore[call-overload]
        return real(table, handle, **options)  # type: ignore[arg-type]

    patched(monkeypatch, "omnigraph.storage.tables.manifest_table.ManifestTable.read", read)
    return counted


@pytest.mark.case("engine", 441)
def test_a_note_shows_the_present_and_nothing_is_read(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    insert(graph, "ann", "bob")
    leave_note(graph)
    coordinator = with_notes(graph)
    read = reads(coordinator, monkeypatch)

    noted = coordinator.newest()

    assert read == []
    assert noted.snapshot() == cold_state(graph).snapshot()
    assert coordinator.newest() is noted
    assert coordinator.known().commits.genesis_id == cold_state(graph).commits.genesis_id


@pytest.mark.case("engine", 441)
def test_what_was_published_since_is_read_on_top(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    insert(graph, "ann")
    leave_note(graph)
    insert(graph, "bob", "cas")
    coordinator = with_notes(graph)
    read = reads(coordinator, monkeypatch)

    assert coordinator.newest().snapshot() == cold_state(graph).snapshot()
    assert read[:1] == [2]
    read.clear()
    insert(graph, "dan")
    read.clear()
    assert coordinator.newest().snapshot() == graph.snapshot()
    assert read == [1]


@pytest.mark.case("engine", 441)
def test_the_past_is_read_when_it_is_asked_for(graph: Graph) -> None:
    insert(graph, "ann", "bob")
    leave_note(graph)
    coordinator = with_notes(graph)
    coordinator.newest()

    whole = coordinator.state()

    assert view(whole) == view(cold_state(graph))
    assert coordinator.newest() is whole


def test_a_note_far_behind_is_not_worth_its_requests(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    insert(graph, "ann", "bob")
    leave_note(graph)
    insert(graph, *(f"p{number}" for number in range(UNSEEN_MAX + 1)))
    coordinator = with_notes(graph)

    found = coordinator.newest()

    assert view(found) == view(cold_state(graph))


@pytest.mark.case("engine", 442)
@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda _: "", id="empty"),
        pytest.param(lambda text: text[:-20], id="cut"),
        pytest.param(lambda text: text.replace('"row_count": 2', '"row_count": 7'), id="changed"),
        pytest.param(lambda _: signed("[]"), id="a list"),
        pytest.param(lambda _: signed("{"), id="no JSON"),
        pytest.param(edited(format=1), id="another format"),
        pytest.param(edited(rows=[]), id="no rows"),
        pytest.param(edited(rows=[{"object_id": 7}]), id="no such row"),
        pytest.param(edited(fragments=["x"]), id="no fragments"),
        pytest.param(edited(fragments=[[0, "a"], [3_000, "b"]]), id="other fragments"),
        pytest.param(edited(version=3_000), id="a version to come"),
        pytest.param(edited(version=10**400), id="a version without end"),
        pytest.param(edited(version=True), id="a version that is no number"),
        pytest.param(edited(fragments={"0": "a"}), id="fragments of another kind"),
        pytest.param(edited(fragments=[[0.5, "a"]]), id="half a fragment"),
        pytest.param(edited(rows=7), id="rows that are none"),
        pytest.param(edited(rows=[7]), id="a row that is none"),
        pytest.param(lambda _: signed("[" * 100_000), id="nested"),
        pytest.param(lambda text: resigned(text, '"table_version": 3', '"table_version": -3'), id="negative"),
        pytest.param(
            lambda text: resigned(text, '"table_version": 3', f'"table_version": {2**63}'), id="great"
        ),
        pytest.param(lambda text: resigned(text, '"table_version": 3', '"table_version": 3.0'), id="a float"),
        pytest.param(lambda text: resigned(text, "graph_head:", "graph_heap:"), id="another head"),
    ],
)
def test_a_note_that_does_not_fit_is_no_note(graph: Graph, damage: Edit) -> None:
    insert(graph, "ann", "bob")
    text = note_text(cold_state(graph))
    assert damage(text) != text
    internals(graph).parts.adapter.write_text(HEAD_NOTE, damage(text))

    found = with_notes(graph).newest()

    assert view(found) == view(cold_state(graph))


def test_a_note_of_another_format_is_not_read(graph: Graph) -> None:
    text = note_text(cold_state(graph))

    assert read_note(text) is not None
    assert read_note(edited(format=1)(text)) is None


def test_the_note_is_that_of_main(graph: Graph) -> None:
    insert(graph, "ann")
    graph.create_branch("side")
    graph.mutate(mutation('insert Person { name: "bob" }'), branch="side")
    parts = internals(graph).parts
    writer = with_notes(graph)
    writer.leave_notes()

    writer.state(parts.branches.resolve("side"))
    writer.close()

    assert parts.adapter.read_text_if_exists(HEAD_NOTE) is None


@pytest.mark.case("engine", 442)
def test_a_note_from_before_a_fold_is_no_note(graph: Graph) -> None:
    insert(graph, "ann", "bob")
    leave_note(graph)
    coordinator = internals(graph).parts.coordinator
    coordinator.manifest.compact(coordinator.address())
    insert(graph, "cas")

    found = with_notes(graph).newest()

    assert view(found) == view(cold_state(graph))


@pytest.mark.case("engine", 442)
def test_a_note_from_before_the_graph_was_put_back_from_a_copy_is_no_note(
    graph: Graph, tmp_path: Path
) -> None:
    """Versions and fragments have the same numbers as before, and hold something else."""
    insert(graph, "ann")
    copy = Path(shutil.copytree(graph.uri, tmp_path / "copy"))
    insert(graph, "bob", "cas")
    leave_note(graph)
    stale, number = Path(graph.uri, HEAD_NOTE).read_text(), cold_state(graph).version
    with open_graph(copy) as restored:
        insert(restored, "dan", "eve")
        assert cold_state(restored).version == number
        Path(copy, HEAD_NOTE).write_text(stale)
        assert view(with_notes(restored).newest()) == view(cold_state(restored))

        insert(restored, "fay")
        assert with_notes(restored).newest().snapshot() == cold_state(restored).snapshot()


def test_a_note_does_not_open_a_format_of_the_future(graph: Graph) -> None:
    insert(graph, "ann")
    before = cold_state(graph)
    coordinator = internals(graph).parts.coordinator
    coordinator.manifest.stamp(coordinator.manifest.open_fresh(coordinator.address()), {STAMP_KEY: "99"})
    fresh = with_notes(graph)
    stamped = fresh.manifest.open_fresh(fresh.address())
    note = note_text(replace(before, version=stamped.version))
    internals(graph).parts.adapter.write_text(HEAD_NOTE, note)

    with pytest.raises(FormatVersionError):
        fresh.newest()


def test_a_history_without_a_commit_leaves_no_note(graph: Graph) -> None:
    writer = with_notes(graph)
    assert writer.notes is not None
    writer.leave_notes()

    writer.notes.leave(ManifestState(MAIN_BRANCH, 1))
    writer.close()

    assert not internals(graph).parts.adapter.exists(HEAD_NOTE)


@pytest.mark.case("engine", 443)
def test_only_a_handle_that_writes_leaves_notes(graph: Graph) -> None:
    insert(graph, "ann")
    adapter = internals(graph).parts.adapter
    reader, writer = with_notes(graph), with_notes(graph)
    writer.leave_notes()

    reader.state()
    reader.close()
    assert adapter.read_text_if_exists(HEAD_NOTE) is None

    state = writer.state()
    writer.close()
    assert read_note(str(adapter.read_text_if_exists(HEAD_NOTE))) is not None
    text = adapter.read_text(HEAD_NOTE)
    assert read_note(text) is not None
    assert text == note_text(state, read_recent(text))
    assert read_recent(text).keys() == {MANIFEST_DIR}


@pytest.mark.case("engine", 443)
def test_a_note_that_cannot_be_written_is_a_warning(graph: Graph) -> None:
    class Full:
        """Control files of a store that takes nothing more."""

        def write_text(self, name: str, text: str) -> None:
            raise StorageError("the bucket is full", kind="permanent")

    said: list[str] = []
    notes = HeadNotes(internals(graph).parts.root, Full(), TableStore(), said.append)  # type: ignore[arg-type]
    notes.is_kept = True

    notes.leave(cold_state(graph))
    notes.finish()

    assert said == ["the next open will read more: the head note could not be written: the bucket is full"]


def test_of_states_that_wait_only_the_newest_is_written(graph: Graph) -> None:
    written: list[str] = []

    class Slow:
        """Control files that take the first note only when two more wait."""

        def write_text(self, name: str, text: str) -> None:
            if not written:
                written.append(text)
                for state in later:
                    notes.leave(state)
            else:
                written.append(text)

    states: list[ManifestState] = []
    for name in ("ann", "bob", "cas"):
        insert(graph, name)
        states.append(cold_state(graph))
    first, *later = states
    notes = HeadNotes(internals(graph).parts.root, Slow(), TableStore(), pytest.fail)  # type: ignore[arg-type]
    notes.is_kept = True

    notes.leave(first)
    notes.finish()

    assert written == [note_text(first), note_text(later[-1])]
