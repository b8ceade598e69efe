"""Who counts as a reader, and for how long."""

import gc

from omnigraph.history.commits import GraphCommit
from omnigraph.history.fold import TableEntry
from omnigraph.history.identity import MAIN, MAIN_BRANCH, TableIdentity
from omnigraph.history.manifest_rows import PublishedPin
from omnigraph.history.readers import Readers
from omnigraph.history.state import Snapshot


class View:
    """Something that a user holds."""


def snapshot(version: int, ref: str | None = None) -> Snapshot:
    pin = PublishedPin(version, ref, 1, None, MAIN)
    entry = TableEntry(TableIdentity(1, 2), "node:Person", "nodes/x", pin)
    commit = GraphCommit("c", None, version, None, None, None, 1, None)
    return Snapshot(MAIN_BRANCH, version, {"node:Person": entry}, commit)


def test_a_block_counts_while_it_lasts() -> None:
    readers = Readers()

    with readers.reading(snapshot(3)) as reader:
        reader.pin(snapshot(4, "june"))
        assert readers.pinned() == {("nodes/x", None, 3), ("nodes/x", "june", 4)}

    assert readers.pinned() == frozenset()


def test_an_object_counts_while_somebody_holds_it() -> None:
    readers = Readers()
    view = View()
    readers.keep(view, snapshot(3))
    assert readers.pinned() == {("nodes/x", None, 3)}

    del view
    gc.collect()

    assert readers.pinned() == frozenset()


def test_two_readers_of_one_snapshot_are_two() -> None:
    readers = Readers()

    with readers.reading(snapshot(3)):
        with readers.reading(snapshot(3)):
            pass
        assert readers.pinned() == {("nodes/x", None, 3)}


def test_handles_on_one_root_share_the_readers() -> None:
    one = Readers.for_root("/graph")

    assert Readers.for_root("/graph") is one
    assert Readers.for_root("/other") is not one
