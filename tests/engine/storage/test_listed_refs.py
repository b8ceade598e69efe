"""Refs are listed while others drop theirs: the list says which are there, and never that a table is not."""

from collections.abc import Callable
from pathlib import Path

import pytest
from lance.dataset import Branches

from omnigraph.core.errors import StorageError
from omnigraph.storage.tables.handle import TableAddress
from omnigraph.storage.tables.refs import RefStore
from omnigraph.storage.tables.table import TableStore
from tests.support.raw_lance import new_dataset

GONE = "Not found: some/graph/_refs/branches/other.json, refs.rs:956:21"  # a lost race


@pytest.fixture
def losing(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Let the next lists of refs meet one that goes between the listing and the reading."""
    real = Branches.list

    def lose(times: int) -> None:
        left = [times]

        def listed(branches: Branches) -> object:
            if left[0]:
                left[0] -= 1
                raise ValueError(GONE)
            return real(branches)

        monkeypatch.setattr(Branches, "list", listed)

    return lose


def test_a_list_that_met_a_ref_going_is_made_again(tmp_path: Path, losing: Callable[[int], None]) -> None:
    dataset = new_dataset(tmp_path)
    dataset.create_branch("a")
    losing(2)

    assert [ref.name for ref in TableStore().list_refs(TableAddress(dataset.uri))] == ["a"]


def test_a_ref_is_dropped_though_another_went_meanwhile(
    tmp_path: Path, losing: Callable[[int], None]
) -> None:
    dataset = new_dataset(tmp_path)
    dataset.create_branch("a")
    losing(1)

    RefStore(TableStore()).drop(TableAddress(dataset.uri, "a"))

    assert dataset.branches.list() == {}


def test_refs_that_keep_going_are_no_missing_table(tmp_path: Path, losing: Callable[[int], None]) -> None:
    dataset = new_dataset(tmp_path)
    losing(10_000)

    with pytest.raises(StorageError) as caught:
        TableStore().list_refs(TableAddress(dataset.uri))

    assert caught.value.kind == "transient"
    assert "try again" in str(caught.value)
