"""Control objects on an object store: how a branch ends there."""

from dataclasses import replace

import pytest
from obstore.store import MemoryStore

from omnigraph.core.errors import BranchInUse, InvariantViolation
from omnigraph.history.branches import Branch, Branches
from omnigraph.storage.control.object_store import ObjectStore
from omnigraph.storage.control.uri import GraphRoot

JUNE = Branch("june", "june-1", None, 1, 0, None)


@pytest.fixture
def store() -> ObjectStore:
    return ObjectStore(GraphRoot.parse("s3://bucket/graph"), MemoryStore())


@pytest.fixture
def branches(store: ObjectStore) -> Branches:
    made = Branches(store)
    assert made.create(JUNE)
    return made


@pytest.mark.case("engine", 421)
def test_an_ended_branch_is_in_no_list_and_its_name_is_free(branches: Branches) -> None:
    branches.create(replace(JUNE, name="july", ref="july-1"))

    branches.delete(JUNE)

    assert branches.find("june") is None
    assert branches.names() == ["july", "main"]
    assert [branch.name for branch in branches.all()] == ["july"]
    again = replace(JUNE, ref="june-2")
    assert branches.create(again)
    assert not branches.create(replace(JUNE, ref="june-3"))
    assert branches.require("june") == again
    assert branches.names() == ["july", "june", "main"]


@pytest.mark.case("engine", 421)
def test_whoever_ends_a_branch_again_leaves_the_next_one_of_its_name_alone(branches: Branches) -> None:
    branches.delete(JUNE)
    branches.create(replace(JUNE, ref="june-2"))

    branches.delete(JUNE)  # as a deleter does that was stopped before its request

    assert branches.require("june").ref == "june-2"


@pytest.mark.case("engine", 421)
def test_a_branch_that_was_changed_since_it_was_read_does_not_end(branches: Branches) -> None:
    looked = branches.require("june")
    ending = replace(JUNE, ending_version=3)
    assert branches.change(looked, ending)

    with pytest.raises(BranchInUse):
        branches.delete(looked)

    assert not branches.change(looked, replace(JUNE, ending_version=4))
    assert branches.change(looked, ending), "a repeated request has landed"
    assert branches.require("june") == ending
    branches.delete(ending)
    assert branches.names() == ["main"]


def test_a_control_object_with_members_of_its_own_is_loud(branches: Branches, store: ObjectStore) -> None:
    text = replace(JUNE, ending_version=1).to_text()
    for damaged in (text.replace('"ending_version": 1', '"ending_version": "1"'), text[:-1] + ', "more": 1}'):
        store.write_text(JUNE.file, damaged)
        with pytest.raises(InvariantViolation):
            branches.find("june")


def test_the_number_of_a_lease_in_a_control_object_is_read_and_means_nothing(
    branches: Branches, store: ObjectStore
) -> None:
    """Earlier builds wrote it."""
    store.write_text(JUNE.file, JUNE.to_text()[:-1] + ', "writer_epoch": 7}')

    assert branches.require("june") == JUNE
