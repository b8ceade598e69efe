"""Stores that do not keep their promises are refused."""

from pathlib import Path

import pytest
from obstore.store import MemoryStore

from omnigraph.core.errors import StorageError
from omnigraph.storage.control.durability import Durability
from omnigraph.storage.control.local_files import LocalFiles
from omnigraph.storage.control.object_store import ObjectStore
from omnigraph.storage.control.probe import probe_store
from omnigraph.storage.control.uri import GraphRoot

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


@pytest.mark.parametrize(
    "dishonest", [IgnoresCreateOnly, OverwritesAndSaysNo, RefusesToCreate, IgnoresMatch, NeverMatches]
)
def test_a_store_that_ignores_conditions_is_refused_by_name(dishonest: type[ObjectStore]) -> None:
    store = MemoryStore()

    with pytest.raises(StorageError, match="s3://bucket/graph") as raised:
        probe_store(dishonest(ROOT, store), ROOT)

    assert raised.value.kind == "configuration"
    assert names_in(store) == []
