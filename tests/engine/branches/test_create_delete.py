"""Branches come and go: names, control objects, refs, races."""

import json
from pathlib import Path

import pytest

from omnigraph.core.errors import (
    AlreadyExistsError,
    BadRequest,
    BranchInUse,
    BranchNotFound,
    InvariantViolation,
    StorageError,
)
from omnigraph.core.failpoint import InjectedFault, failpoint
from omnigraph.graph.graph import Graph
from omnigraph.history.branches import control_file, mint_ref
from omnigraph.storage.tables.handle import TableAddress
from tests.engine.branches.steps import (
    ages,
    control_files,
    insert,
    manifest_refs,
    names,
    owners,
    refs,
    set_age,
)
from tests.support.engine import files, head, reopen, together
from tests.support.seam import internals

BAD_NAMES = [
    "",
    "   ",
    "main",
    " main ",
    "__schema_apply_lock__",
    "/a",
    "a/",
    "a//b",
    ".",
    "..",
    "a/../b",
    "a b",
    "a\nb",
    "a:b",
    "a\\b",
    "a@b",
    "a*",
    "x" * 201,
    "Ü" * 34,  # six bytes each, when encoded
    "a\ud800",
]


@pytest.mark.case("engine", 219)
def test_a_branch_is_made_listed_deleted_and_made_again(graph: Graph) -> None:
    first = graph.create_branch("review/June", actor="act-mira")

    assert (first.name, first.parent_branch, first.actor_id) == ("review/June", None, "act-mira")
    assert graph.branches() == ["main", "review/June"]
    assert names(graph, "review/June") == ["ann", "bob", "eve"]
    assert head(graph) == graph.commits(branch="review/June")[0]

    graph.delete_branch("review/June")
    assert graph.branches() == ["main"]
    with pytest.raises(BranchNotFound, match="branch 'review/June' not found"):
        names(graph, "review/June")

    second = graph.create_branch("review/June")
    insert(graph, "new", "review/June")
    assert second.ref != first.ref
    commit = graph.commits(branch="review/June")[0]
    assert commit.manifest_branch == "review/June"
    assert second.ref not in str(commit)


@pytest.mark.case("surfaces", 700)
@pytest.mark.parametrize("name", ["x" * 243, "ü" * 90, "../x", "a/../../b", "x\0y", "\ud800"], ids=ascii)
def test_a_source_that_no_branch_can_be(graph: Graph, name: str) -> None:
    before = files(Path(graph.uri))

    with pytest.raises(BranchNotFound):
        graph.create_branch("b", from_=name)
    with pytest.raises(BranchNotFound):
        graph.load(b'{"type": "Person", "data": {"name": "x"}}', "append", branch="b", from_=name)

    assert files(Path(graph.uri)) == before


@pytest.mark.case("engine", 220)
@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_bad_name_leaves_nothing(graph: Graph, name: str) -> None:
    before = files(Path(graph.uri))

    with pytest.raises(BadRequest):
        graph.create_branch(name)

    assert files(Path(graph.uri)) == before


@pytest.mark.parametrize("name", ["a", "A", "x.y-z_1", "müller/straße", "日本", "x" * 200, "a/b/c", "review"])
def test_a_good_name_is_listed_as_it_was_given(graph: Graph, name: str) -> None:
    graph.create_branch(f"  {name} ")

    assert name in graph.branches()
    assert names(graph, name) == names(graph)


@pytest.mark.case("engine", 296)
def test_names_that_differ_by_case_are_two_branches(graph: Graph) -> None:
    for name in ("June", "june", "überprüfung/1"):
        graph.create_branch(name)
    insert(graph, "new", "June")

    assert (len(names(graph, "June")), len(names(graph, "june"))) == (4, 3)
    assert len({file.lower() for file in control_files(graph)}) == 3
    assert control_files(graph)[0] == "%4Aune.json"


def test_blanks_around_the_name_of_main_are_no_way_round_it(graph: Graph) -> None:
    insert(graph, "new", " main ")

    assert "new" in names(graph)


@pytest.mark.case("engine", 221)
def test_a_branch_and_one_below_its_name_are_independent(graph: Graph) -> None:
    for name in ("a", "a/b"):
        graph.create_branch(name)
        insert(graph, f"on {name[-1]}", name)
    for gone, kept in (("a", "a/b"), ("a/b", "a")):
        before = ages(graph, kept)
        graph.delete_branch(gone)
        assert ages(graph, kept) == before
        graph.create_branch(gone)
        insert(graph, "again", gone)
        assert ages(graph, kept) == before
    assert graph.branches() == ["a", "a/b", "main"]


@pytest.mark.case("engine", 222)
def test_a_ref_without_a_control_object_is_no_branch(graph: Graph) -> None:
    with failpoint("branch_create.post_ref_pre_control", "raise"), pytest.raises(InjectedFault):
        graph.create_branch("june")

    assert len(manifest_refs(graph)) == 1
    assert graph.branches() == ["main"]
    with pytest.raises(BranchNotFound):
        names(graph, "june")
    made = graph.create_branch("june")
    assert made.ref in manifest_refs(graph)
    assert len(manifest_refs(graph)) == 2


@pytest.mark.case("engine", 297)
@pytest.mark.parametrize("place", ["branch_create.control_ack_lost", "branch_delete.control_ack_lost"])
def test_a_lost_answer_is_settled_by_the_control_object(graph: Graph, place: str) -> None:
    with failpoint(place, "raise"):
        graph.create_branch("june")
        assert graph.branches() == ["june", "main"]
        graph.delete_branch("june")
    assert graph.branches() == ["main"]


@pytest.mark.case("engine", 223)
def test_a_branch_that_is_needed_is_not_deleted(graph: Graph) -> None:
    with pytest.raises(BadRequest, match="main"):
        graph.delete_branch("main")
    graph.create_branch("a")
    insert(graph, "new", "a")
    graph.create_branch("a/b")  # below it by name only
    graph.create_branch("child", "a")

    with pytest.raises(BranchInUse, match="'child' was created from it") as refusal:
        graph.delete_branch("a")
    assert refusal.value.branch == "a"
    with graph.branch("child") as bound, pytest.raises(BranchInUse, match="bound"):
        bound.delete_branch("child")
    control = Path(graph.uri, control_file("child"))
    text = control.read_text()
    control.write_text(json.dumps(json.loads(text) | {"parent_branch": None}))  # as of a migrated graph
    with pytest.raises(BranchInUse, match="'child' still reads its tables"):
        graph.delete_branch("a")
    control.write_text(text)

    graph.delete_branch("child")
    graph.delete_branch("a")
    assert graph.branches() == ["a/b", "main"]


@pytest.mark.case("engine", 224)
def test_refs_that_cannot_be_removed_do_not_stop_a_deletion(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    graph.create_branch("june")
    insert(graph, "old", "june")

    def refuse(address: TableAddress) -> None:
        raise StorageError(f"{address.ref} is stuck", kind="transient")

    with monkeypatch.context() as patch:
        patch.setattr(type(internals(graph).parts.refs), "drop", staticmethod(refuse))
        graph.delete_branch("june")
    assert "is stuck" in caplog.text

    assert graph.branches() == ["main"]
    graph.create_branch("june")
    insert(graph, "new", "june")
    assert names(graph, "june") == ["ann", "bob", "eve", "new"]


def test_a_deletion_that_stops_behind_its_control_object_has_happened(graph: Graph) -> None:
    graph.create_branch("june")
    insert(graph, "old", "june")
    with failpoint("branch_delete.post_control_pre_refs", "raise"), pytest.raises(InjectedFault):
        graph.delete_branch("june")

    assert graph.branches() == ["main"]
    graph.create_branch("june")
    assert "old" not in names(graph, "june")


def test_deletion_takes_the_storage_along(graph: Graph) -> None:
    graph.create_branch("june")
    insert(graph, "old", "june")
    assert len(refs(graph, "node:Person")) == len(manifest_refs(graph)) == 1

    graph.delete_branch("june")

    assert refs(graph, "node:Person") == manifest_refs(graph) == set()
    assert control_files(graph) == []
    assert not [path for path in (Path(graph.uri) / "__locks").iterdir() if "june" in path.name]


def test_one_of_two_creators_wins(graph: Graph) -> None:
    with reopen(graph) as other:
        outcomes = together(lambda: graph.create_branch("june"), lambda: other.create_branch("june"))

    refused = [outcome for outcome in outcomes if isinstance(outcome, AlreadyExistsError)]
    assert len(refused) == 1
    assert graph.branches() == ["june", "main"]
    assert len(manifest_refs(graph)) == 1


@pytest.mark.case("engine", 229)
def test_a_warm_handle_does_not_show_a_branch_that_was_made_again(graph: Graph) -> None:
    graph.create_branch("june")
    insert(graph, "old", "june")
    with reopen(graph) as other:
        assert names(other, "june") == ["ann", "bob", "eve", "old"]
        graph.delete_branch("june")
        with pytest.raises(BranchNotFound):
            names(other, "june")
        graph.create_branch("june")

        assert names(other, "june") == ["ann", "bob", "eve"]
        assert [c.manifest_branch for c in other.commits(branch="june")].count("june") == 0

        def delete_and_recreate() -> None:
            graph.delete_branch("june")
            graph.create_branch("june")

        with (
            failpoint("write.post_stage_pre_gate", "call", delete_and_recreate),
            pytest.raises(BranchNotFound),
        ):
            insert(other, "late", "june")
        assert "late" not in names(graph, "june")


@pytest.mark.case("engine", 230)
def test_objects_that_vanish_while_they_are_listed(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        graph.create_branch(name)
    branches = internals(graph).parts.branches
    listed = branches._listed
    ghosts = [{"a", "b", "ghost"}, {"a", "b"}]
    monkeypatch.setattr(branches, "_listed", lambda: ghosts.pop(0) if ghosts else listed())
    assert [branch.name for branch in branches.all()] == ["a", "b"]

    monkeypatch.setattr(branches, "_listed", lambda: {"a", "b", "ghost"})
    with pytest.raises(StorageError, match="change too fast"):
        branches.all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "other"}, "names branch 'other'"),
        ({"format": 2}, "a format that this build cannot read"),
        ({"ref": None}, "has missing or unknown members"),
        ({"more": 1}, "has missing or unknown members"),
    ],
)
def test_a_damaged_control_object_is_loud(graph: Graph, change: dict[str, object], message: str) -> None:
    graph.create_branch("june")
    path = Path(graph.uri) / control_file("june")
    path.write_text(json.dumps(json.loads(path.read_text()) | change))

    with pytest.raises(InvariantViolation, match=message):
        names(graph, "june")
    path.write_text("{")
    with pytest.raises(InvariantViolation, match="is not JSON"):
        names(graph, "june")


def test_refs_are_flat_short_and_readable() -> None:
    ref = mint_ref("Review/Jüne" + "x" * 60, "01ARZ3NDEKTSV4RRFFQ69G5FAV")

    assert ref == f"review-j-ne{'x' * 29}-01ARZ3NDEKTSV4RRFFQ69G5FAV"


def test_a_handle_that_only_reads_makes_and_deletes_no_branch(graph: Graph) -> None:
    graph.create_branch("june")
    with reopen(graph, mode="ro") as reader:
        assert reader.branches() == ["june", "main"]
        with pytest.raises(BadRequest, match="read-only"):
            reader.create_branch("july")
        with pytest.raises(BadRequest, match="read-only"):
            reader.delete_branch("june")


def test_a_branch_of_a_branch_sees_what_that_had(graph: Graph) -> None:
    graph.create_branch("a")
    set_age(graph, "ann", 31, "a")
    graph.create_branch("b", "a")
    set_age(graph, "ann", 32, "a")

    assert ages(graph, "b")["ann"] == 31
    assert owners(graph, "b")["node:Person"] in refs(graph, "node:Person")
    with pytest.raises(BranchNotFound, match="nowhere"):
        graph.create_branch("c", "nowhere")
