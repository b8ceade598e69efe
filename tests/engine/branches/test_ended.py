"""Control objects on an object store: how a branch ends there, and what a claim keeps from ending."""

from dataclasses import replace

import pytest
from obstore.store import MemoryStore

from omnigraph.core.errors import BranchInUse, BranchNotFound, InvariantViolation
from omnigraph.history.branches import Branch, Branches
from omnigraph.storage.control.object_store import ObjectStore
from omnigraph.storage.control.uri import GraphRoot

JUNE = Branch("june", "june-1", None, 1, 0, None, 1)


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
    with pytest.raises(BranchNotFound):
        branches.claim(JUNE.identity, 2)
    again = replace(JUNE, ref="june-2")
    assert branches.create(again)
    assert not branches.create(replace(JUNE, ref="june-3"))
    assert branches.require("june") == again
    assert branches.names() == ["july", "june", "main"]


@pytest.mark.case("engine", 421)
def test_only_what_is_left_of_the_branch_itself_is_removed(branches: Branches, store: ObjectStore) -> None:
    branches.delete(JUNE)
    branches.remove_ended(JUNE)
    assert store.list_dir("__branches") == []

    branches.create(replace(JUNE, ref="june-2"))
    branches.remove_ended(JUNE)

    assert branches.names() == ["june", "main"]


@pytest.mark.case("engine", 421)
def test_a_claim_keeps_whoever_looked_before_it_from_ending_the_branch(branches: Branches) -> None:
    looked = branches.require("june")

    claimed = branches.claim(JUNE.identity, 2)
    with pytest.raises(BranchInUse):
        branches.delete(looked)

    assert branches.require("june") == claimed == replace(JUNE, writer_epoch=2)
    assert branches.claim(JUNE.identity, 1) == claimed, "an earlier writer takes nothing from a later one"
    branches.delete(claimed)
    assert branches.names() == ["main"]


def test_a_control_object_with_members_of_its_own_is_loud(branches: Branches, store: ObjectStore) -> None:
    text = JUNE.to_text()
    for damaged in (text.replace('"writer_epoch": 1', '"writer_epoch": "1"'), text[:-1] + ', "more": 1}'):
        store.write_text(JUNE.file, damaged)
        with pytest.raises(InvariantViolation):
            branches.find("june")
