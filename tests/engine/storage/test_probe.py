"""Stores that do not keep their promises are refused."""

from pathlib import Path

import pytest
from obstore.store import MemoryStore

from omnigraph.core.errors import StorageError, WriterEnded
from omnigraph.storage.control.durability import Durability
from omnigraph.storage.control.lease import LEASE_LIFETIME
from omnigraph.storage.control.local_files import LocalFiles
from omnigraph.storage.control.object_store import ObjectStore
from omnigraph.storage.control.probe import probe_store
from omnigraph.storage.control.uri import GraphRoot
from omnigraph.storage.control.writers import Writer, WriterRecord, writer_file
from tests.support.times import FakeTime

ROOT = GraphRoot.parse("s3://bucket/graph")


class IgnoresCreateOnly(ObjectStore):
    """Accepts If-None-Match and does not look at it, as rclone's server does."""

    def write_text_if_absent(self, name: str, text: str) -> bool:
        self.write_text(name, text)
        return True


class OverwritesAndSaysNo(ObjectStore):
    """Answers as it should and stores what it should not."""

    def write_text_if_absent(self, name: str, text: str) -> bool:
        was_there = self.exists(name)
        self.write_text(name, text)
        return not was_there


class RefusesToCreate(ObjectStore):
    """Says that everything exists already."""

    def write_text_if_absent(self, name: str, text: str) -> bool:
        return False


class IgnoresMatch(ObjectStore):
    """Accepts If-Match and does not look at it."""

    def write_text_if_match(self, name: str, text: str, token: str) -> bool:
        self.write_text(name, text)
        return True


class NeverMatches(ObjectStore):
    """Refuses every If-Match."""

    def write_text_if_match(self, name: str, text: str, token: str) -> bool:
        return False


class ReplacesAndSaysNo(ObjectStore):
    """Answers as it should to a condition that no longer holds, and replaces the object all the same."""

    def write_text_if_match(self, name: str, text: str, token: str) -> bool:
        is_current = super().write_text_if_match(name, text, token)
        self.write_text(name, text)
        return is_current


class CreatesNothing(ObjectStore):
    """Says that an object was created, and stores something else."""

    def write_text_if_absent(self, name: str, text: str) -> bool:
        return super().write_text_if_absent(name, "")


class LosesAnswers(ObjectStore):
    """Does what it should, and refuses the repeated requests of a client that missed the first answer."""

    def write_text_if_absent(self, name: str, text: str) -> bool:
        super().write_text_if_absent(name, text)
        return False

    def write_text_if_match(self, name: str, text: str, token: str) -> bool:
        super().write_text_if_match(name, text, token)
        return False


def names_in(store: MemoryStore) -> list[str]:
    return [entry["path"] for batch in store.list() for entry in batch]


def test_an_honest_store_passes_and_nothing_is_left() -> None:
    store = MemoryStore()
    store.put("graph/__create_if_absent_probe_of_somebody_else", b"x")

    probe_store(ObjectStore(ROOT, store), ROOT)

    assert names_in(store) == ["graph/__create_if_absent_probe_of_somebody_else"]


def test_a_store_whose_answers_were_lost_passes() -> None:
    store = MemoryStore()

    probe_store(LosesAnswers(ROOT, store), ROOT)

    assert names_in(store) == []


def test_a_disk_passes_and_nothing_is_left(tmp_path: Path) -> None:
    folder = tmp_path / "graph"
    root = GraphRoot.parse(str(folder))

    probe_store(LocalFiles(folder, Durability.FULL), root)

    assert list(folder.iterdir()) == []


class OverwritesOnDisk(LocalFiles):
    """Answers as it should and writes what it should not."""

    def write_text_if_absent(self, name: str, text: str) -> bool:
        was_there = self.exists(name)
        self.write_text(name, text)
        return not was_there


def test_a_disk_that_overwrites_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "graph"
    root = GraphRoot.parse(str(folder))

    with pytest.raises(StorageError, match="overwrites existing objects"):
        probe_store(OverwritesOnDisk(folder, Durability.FULL), root)


DISHONEST = [
    (IgnoresCreateOnly, "overwrites existing objects"),
    (OverwritesAndSaysNo, "overwrites existing objects"),
    (RefusesToCreate, "refuses to create"),
    (CreatesNothing, "refuses to create"),
    (IgnoresMatch, "replaces objects that have changed"),
    (ReplacesAndSaysNo, "replaces objects that have changed"),
    (NeverMatches, "refuses to replace an unchanged object"),
]


@pytest.mark.parametrize(("dishonest", "says"), DISHONEST)
def test_a_store_that_ignores_conditions_is_refused_by_name(dishonest: type[ObjectStore], says: str) -> None:
    store = MemoryStore()

    with pytest.raises(StorageError, match=f"s3://bucket/graph {says}") as raised:
        probe_store(dishonest(ROOT, store), ROOT)

    assert raised.value.kind == "configuration"
    assert names_in(store) == []


@pytest.mark.case("engine", 870)
@pytest.mark.parametrize(("dishonest", "says"), DISHONEST)
def test_a_writer_of_a_store_that_ignores_conditions_is_none(dishonest: type[ObjectStore], says: str) -> None:
    store, time = MemoryStore(), FakeTime()

    with pytest.raises(StorageError, match=f"s3://bucket/graph {says}") as raised:
        begin(dishonest(ROOT, store), time)

    assert raised.value.kind == "configuration"
    assert names_in(store) == []


@pytest.mark.case("engine", 870)
@pytest.mark.parametrize("honest", [ObjectStore, LosesAnswers])
def test_a_writer_proves_the_store_with_its_own_object(honest: type[ObjectStore]) -> None:
    store, time = MemoryStore(), FakeTime()

    writer = begin(honest(ROOT, store), time)

    name = writer_file(writer.writer_id)
    assert names_in(store) == [f"graph/{name}"]
    assert WriterRecord.from_json(name, ObjectStore(ROOT, store).read_text(name)).beat == 1
    writer.check()
    writer.close()
    assert names_in(store) == []


@pytest.mark.case("engine", 870)
def test_a_writer_that_is_ended_while_it_begins_does_not_blame_the_store() -> None:
    store, time = MemoryStore(), FakeTime()

    class Sleeps(ObjectStore):
        """Answers the creation so late that others have ended and removed the object."""

        def write_text_if_absent(self, name: str, text: str) -> bool:
            is_made = super().write_text_if_absent(name, text)
            time.pass_by(LEASE_LIFETIME + 1)
            self.delete(name)
            return is_made

    with pytest.raises(WriterEnded, match="open the graph again"):
        begin(Sleeps(ROOT, store), time)

    assert names_in(store) == []


def begin(adapter: ObjectStore, time: FakeTime) -> Writer:
    """Become a writer in a store that is not proven."""
    return Writer.begin(
        adapter, host="here", boot_id="b", pid=7, boot_clock=time.boot_clock, wait=time.wait, unproven=ROOT
    )
