"""Every writer, ended at every point between its last look and its last file.

Each cell of the table in 16.9 is shown four times: killed, raised and opened again, raised and followed by
the next write on the same handle, and stopped while alive.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

import omnigraph
from omnigraph.core.errors import RecoveryRequired
from omnigraph.core.failpoint import InjectedFault, failpoint
from omnigraph.graph.graph import Graph
from omnigraph.history.contract import SCHEMA_FILES
from tests.protocol.conftest import NewRoot
from tests.support.books import assert_reopening_changes_nothing, assert_settled, books, fingerprint
from tests.support.protocol import (
    BEFORE,
    EVOLVED,
    POINTS,
    SCHEMA,
    WRITERS,
    Contents,
    WarmWriter,
    Writer,
    killed,
    with_extra,
    write_everywhere,
)

pytestmark = pytest.mark.usefixtures("no_syncs")
PUBLISHED = ("P5", "P6", "P7")
LAYOUT_KINDS = ("EnsureIndices", "Optimize")
MUTATION_CASES = {"P0": 157, "P1": 158, "P2": 159, "P3": 160, "P5": 161}
WRITER_CASES = {
    "delete": 162,
    "append": 163,
    "merge": 164,
    "overwrite": 165,
    "branch_merge": 174,
    "ensure_indices": 181,
    "optimize": 182,
    "schema_apply": 168,
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One writer at one point, and what the table says about it."""

    writer: Writer
    point: str

    @property
    def place(self) -> str:
        """The failpoint, up to its action."""
        return self.writer.points[self.point]

    @property
    def visible(self) -> Contents:
        """What a reader sees before anybody recovers anything."""
        lands = self.writer.lands_first or self.point in PUBLISHED
        return self.writer.after if lands else BEFORE

    @property
    def recovered(self) -> Contents:
        """What a reader sees afterwards."""
        lands = self.writer.lands_first or self.point in ("P3", *PUBLISHED)
        return self.writer.after if lands else BEFORE

    def outcome(self, *, was_killed: bool) -> tuple[str, tuple[str, ...]] | None:
        """Return the kind of the audit row and its tables, or none where there is nothing to recover."""
        goes_on = self.writer.settles_all and not was_killed
        first = self.writer.tables if goes_on else self.writer.tables[:1]
        is_layout = self.writer.kind in LAYOUT_KINDS
        outcomes = {
            "P1": ("RolledBack", ()),
            "P2": ("RolledForward" if is_layout else "RolledBack", first),
            "P3": ("RolledForward", self.writer.tables),
            "P5": ("RolledForward", self.writer.tables),
            "P6": ("RolledForward", self.writer.tables),
        }
        return outcomes.get(self.point)

    @property
    def waits_for_open(self) -> bool:
        """Whether only a read-write open can undo it."""
        return self.point == "P2" and self.writer.needs_restore


def cells() -> Iterator[object]:
    for writer in WRITERS.values():
        for point in POINTS:
            case = WRITER_CASES.get(writer.name)
            if writer.name in {"insert", "update"}:
                case = MUTATION_CASES.get(point)
            marks = [] if case is None else [pytest.mark.case("engine", case)]
            if point == "P6":
                marks.append(pytest.mark.case("engine", 189))
            yield pytest.param(Cell(writer, point), id=f"crash[{writer.name},{point}]", marks=marks)


each_cell = pytest.mark.parametrize("cell", list(cells()))


@each_cell
def test_a_killed_writer_is_finished_or_undone_by_the_next_open(cell: Cell, root_for: NewRoot) -> None:
    root = root_for(cell.writer.name)
    killed(root, cell.writer.name, cell.place)
    assert books(root).contents == cell.visible

    with omnigraph.open(root) as graph:
        assert_recovered(root, cell, cell.recovered)
        write_everywhere(graph)

    assert_recovered(root, cell, with_extra(cell.recovered))
    assert_reopening_changes_nothing(root)


@each_cell
def test_a_writer_that_failed_is_finished_or_undone_by_the_next_open(cell: Cell, root_for: NewRoot) -> None:
    root = root_for(cell.writer.name)
    with omnigraph.open(root) as failed, failing(cell):
        cell.writer.run(failed)
    assert books(root).contents == cell.visible

    with omnigraph.open(root) as graph:
        assert_recovered(root, cell, cell.recovered, was_killed=False)
        write_everywhere(graph)

    assert_recovered(root, cell, with_extra(cell.recovered), was_killed=False)
    assert_reopening_changes_nothing(root)


@each_cell
def test_a_writer_that_failed_is_finished_or_undone_by_the_next_write(cell: Cell, root_for: NewRoot) -> None:
    root = root_for(cell.writer.name)
    with omnigraph.open(root) as graph:
        with failing(cell):
            cell.writer.run(graph)

        if cell.waits_for_open:
            refuses_its_tables_only(root, graph)
            omnigraph.open(root).close()
        write_everywhere(graph)

        if cell.point == "P7":  # a lone lock file waits for the next open
            omnigraph.open(root).close()
        assert_recovered(root, cell, with_extra(cell.recovered), was_killed=False)
        assert_reopening_changes_nothing(root)
        assert graph.snapshot().head == omnigraph.open(root).snapshot().head


@each_cell
def test_a_stopped_writer_is_left_alone(cell: Cell, root_for: NewRoot, warm_writer: WarmWriter) -> None:
    root = root_for(cell.writer.name)
    with warm_writer.stopped(root, cell.writer.name, cell.place):
        before = fingerprint(root)

        with omnigraph.open(root) as graph:
            graph.refresh()

        assert untouched(fingerprint(root)) == untouched(before)
        assert books(root).contents == cell.visible
    assert_settled(root, cell.writer.after, recoveries=0)
    if cell.writer.name == "schema_apply":
        assert_schema(root, EVOLVED)
    with omnigraph.open(root) as graph:
        write_everywhere(graph)
    assert_settled(root, with_extra(cell.writer.after), recoveries=0)
    assert_reopening_changes_nothing(root)


def untouched(files: dict[str, str]) -> dict[str, str]:
    """Return files without those that repeat a published schema: any open may write them."""
    return {name: text for name, text in files.items() if name not in SCHEMA_FILES}


@contextmanager
def failing(cell: Cell) -> Iterator[None]:
    """Raise at the place of a cell, and expect what the caller is told."""
    name, _, skip = cell.place.partition("=")
    is_told = cell.point not in {"P6", "P7"} and not cell.writer.lands_first
    with failpoint(name, f"{skip}raise"):
        if not is_told:
            yield
        elif cell.point == "P0":
            with pytest.raises(InjectedFault):
                yield
        else:
            with pytest.raises(RecoveryRequired, match="the next write or open finishes or undoes it"):
                yield


def refuses_its_tables_only(root: Path, graph: Graph) -> None:
    """Check that a sidecar which needs a restore blocks its own table and no other."""
    before = books(root)
    with pytest.raises(RecoveryRequired, match="requires rollback — reopen the graph read-write"):
        graph.mutate('query add() { insert Knows { from: "ann", to: "cid" } }')
    graph.mutate('query touch() { update Company set { city: "Bonn" } where name = "acme" }')
    after = books(root)
    assert (after.contents, after.files, after.recoveries) == (before.contents, before.files, ())
    assert after.heads["edge:Knows"] == before.heads["edge:Knows"]


def assert_recovered(root: Path, cell: Cell, contents: Contents, *, was_killed: bool = True) -> None:
    if cell.writer.name == "schema_apply":
        assert_schema(root, EVOLVED if cell.point in ("P3", *PUBLISHED) else SCHEMA)
    outcome = cell.outcome(was_killed=was_killed)
    found = assert_settled(root, contents, recoveries=0 if outcome is None else 1)
    if outcome is not None:
        (recovery,) = found.recoveries
        assert (recovery.kind, recovery.tables) == outcome
        assert recovery.writer_kind == cell.writer.kind
        assert recovery.actor == (None if cell.writer.kind in LAYOUT_KINDS else "writer")


def assert_schema(root: Path, schema: str) -> None:
    """Check that files, manifest and tables have one schema."""
    assert (root / "_schema.pg").read_text() == schema
    with omnigraph.open(root, mode="ro") as graph:
        assert graph.schema() == schema
        is_new = schema == EVOLVED
        assert ("email" in graph.table("Person").column_names) == is_new
        assert ("until" in graph.table("Knows").column_names) == is_new
