"""Merges that stop half-way: between the steps of a table, between tables, around the confirmation.

The matrix of 16.9 shows a fast-forward onto main at the points that all writers have. Here are the points
that only merges have, and merges of the other shapes.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import omnigraph
from omnigraph.commit.sidecar import RECOVERY_DIR
from omnigraph.core.errors import RecoveryRequired
from omnigraph.core.failpoint import failpoint
from omnigraph.graph.graph import Graph
from omnigraph.operations.merge.merge import MergeOutcome
from tests.protocol.conftest import NewRoot
from tests.support.books import (
    assert_reopening_changes_nothing,
    assert_settled,
    contents_of,
    recovery_files,
)
from tests.support.protocol import (
    BEFORE,
    WRITERS,
    Contents,
    records,
    sidecars,
    with_extra,
    write_everywhere,
)
from tests.support.seam import internals, patched

pytestmark = pytest.mark.usefixtures("no_syncs")

STEPS = (
    "branch_merge.post_sidecar_pre_commit",
    "branch_merge.after_append_pre_upsert",
    "branch_merge.after_upsert_pre_delete",
    "branch_merge.after_delete_pre_confirm",
    "branch_merge.post_phase_b_pre_confirm",
    "recovery.sidecar_confirm",
)
CONFIRMED = "branch_merge.post_phase_b_pre_manifest_commit"
PUBLISHED = "branch_merge.post_publish_pre_sidecar_delete"
AFTER = WRITERS["branch_merge"].after
MOVED: Contents = {"Company": frozenset({("ibex", "Graz")})}


@dataclass(frozen=True, slots=True)
class Shape:
    """A merge: how the graph is prepared for it, and what it leads to."""

    prepare: Callable[[Graph], None]
    before: Contents
    after: Contents
    source: str = "june"
    into: str = "main"

    @property
    def target(self) -> str | None:
        return None if self.into == "main" else self.into


def _nothing(_graph: Graph) -> None:
    pass


def _diverge(graph: Graph) -> None:
    graph.load(records(MOVED), "merge", index=False)


def _other_branch(graph: Graph) -> None:
    graph.create_branch("july")
    graph.load(records(MOVED), "merge", index=False, branch="july")


def _owner(graph: Graph) -> None:
    """Give the target a fork of people, so that one table is owned and one is forked by the merge."""
    _other_branch(graph)
    graph.mutate('query touch() { update Person set { age: 41 } where name = "bob" }', branch="july")
    graph.mutate('query touch() { update Person set { age: 40 } where name = "bob" }', branch="july")


def _main_moves(graph: Graph) -> None:
    """Let main change a table that the branch also changed, in two ways, and one that it did not."""
    _main_moves_in_one_way(graph)
    graph.mutate('query more() { insert Person { name: "eve", age: 22 } }')


def _main_moves_in_one_way(graph: Graph) -> None:
    graph.load(records(MOVED), "merge", index=False)
    graph.mutate('query touch() { update Person set { age: 41 } where name = "bob" }')


def _two_tables_in_one_way(graph: Graph) -> None:
    """Let a branch change rows of two tables, and neither add nor remove any."""
    graph.create_branch("july")
    graph.mutate('query touch() { update Person set { age: 41 } where name = "bob" }', branch="july")
    graph.mutate('query move() { update Company set { city: "Graz" } where name = "acme" }', branch="july")


def _with(contents: Contents, **changed: set[tuple[object, ...]]) -> Contents:
    return {**contents, **{name: frozenset(found) for name, found in changed.items()}}


COMPANIES: set[tuple[object, ...]] = {("acme", "Bonn"), ("ibex", "Graz")}
JUNE_PEOPLE: set[tuple[object, ...]] = {("ann", 31), ("bob", 40), ("dan", 50)}
SHAPES = {
    "fast-forward": Shape(_nothing, BEFORE, AFTER),
    "three-way": Shape(_diverge, _with(BEFORE, Company=COMPANIES), _with(AFTER, Company=COMPANIES)),
    "into a branch that owns nothing": Shape(
        _other_branch, _with(BEFORE, Company=COMPANIES), _with(AFTER, Company=COMPANIES), into="july"
    ),
    "into a branch that owns people": Shape(
        _owner, _with(BEFORE, Company=COMPANIES), _with(AFTER, Company=COMPANIES), into="july"
    ),
    "main into a branch, with a repointed table": Shape(
        _main_moves,
        AFTER,
        _with(AFTER, Company=COMPANIES, Person=(JUNE_PEOPLE - {("bob", 40)}) | {("bob", 41), ("eve", 22)}),
        source="main",
        into="june",
    ),
}
STAGED = {  # every table takes one commit
    "a branch into main": Shape(
        _two_tables_in_one_way,
        BEFORE,
        _with(
            BEFORE,
            Company={("acme", "Graz"), ("ibex", None)},
            Person={(name, 41 if name == "bob" else age) for name, age in BEFORE["Person"]},
        ),
        source="july",
    ),
    "main into a branch, with a repointed table": Shape(
        _main_moves_in_one_way,
        AFTER,
        _with(AFTER, Company=COMPANIES, Person=(JUNE_PEOPLE - {("bob", 40)}) | {("bob", 41)}),
        source="main",
        into="june",
    ),
}
FORWARD_CASES = {
    "fast-forward": 174,
    "three-way": 175,
    "into a branch that owns nothing": 176,
    "into a branch that owns people": 176,
    "main into a branch, with a repointed table": 177,
}


def contents(root: Path, branch: str | None) -> Contents:
    with omnigraph.open(root, mode="ro") as graph:
        return contents_of(graph._bound(branch) if branch else graph)


def drifted(root: Path, branch: str | None) -> dict[str, tuple[int, int]]:
    """Return the tables that a branch owns whose HEAD is not their pin."""
    with omnigraph.open(root, mode="ro") as graph:
        parts, found = internals(graph).parts, {}
        for key, entry in graph.snapshot(branch).entries.items():
            head = parts.store.latest_version(parts.address(entry))
            if (branch is None or entry.owner is not None) and head != entry.version:
                found[key] = (entry.version, head)
        return found


def cut(root: Path, shape: Shape, point: str, action: str = "raise") -> None:
    """Prepare a graph, and merge until a point."""
    with omnigraph.open(root) as graph:
        shape.prepare(graph)
        with failpoint(point, action), pytest.raises(RecoveryRequired):
            graph.merge(shape.source, shape.into, actor="writer")
    assert len(sidecars(root)) == 1


def shapes_and_points() -> list[object]:
    full = [name for name in SHAPES if FORWARD_CASES[name] in {174, 175}]
    pairs = [(name, point) for name in full for point in STEPS]
    pairs += [
        (name, point)
        for name in SHAPES
        if name not in full
        for point in ("branch_merge.post_table", "branch_merge.post_phase_b_pre_confirm")
    ]
    return [
        pytest.param(
            name, point, id=f"{name}, {point}", marks=pytest.mark.case("engine", FORWARD_CASES[name])
        )
        for name, point in pairs
    ]


@pytest.mark.parametrize(("name", "point"), shapes_and_points())
def test_a_merge_that_is_not_confirmed_goes_back(name: str, point: str, root_for: NewRoot) -> None:
    root, shape = root_for("branch_merge"), SHAPES[name]
    cut(root, shape, point)
    assert contents(root, shape.target) == shape.before

    with omnigraph.open(root) as graph:
        assert contents(root, shape.target) == shape.before
        assert drifted(root, shape.target) == {}
        (record,) = graph.recoveries()
        assert (record.recovery_kind.value, record.writer_kind) == ("RolledBack", "BranchMerge")
        assert recovery_files(root) == ()

        result = graph.merge(shape.source, shape.into)

    assert result.commit is not None
    assert contents(root, shape.target) == shape.after
    assert drifted(root, shape.target) == {}
    assert_reopening_changes_nothing(root)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.case("engine", case)) for name, case in FORWARD_CASES.items()],
)
def test_a_confirmed_merge_goes_forward_to_the_confirmed_versions(name: str, root_for: NewRoot) -> None:
    root, shape = root_for("branch_merge"), SHAPES[name]
    cut(root, shape, CONFIRMED)
    (file,) = sidecars(root)
    written = json.loads(file.read_text())
    confirmed = {table["table_key"]: table["confirmed_version"] for table in written["tables"]}
    assert None not in confirmed.values()
    assert contents(root, shape.target) == shape.before

    with omnigraph.open(root) as graph:
        pinned = graph.snapshot(shape.target).entries
        assert {key: pinned[key].version for key in confirmed} == confirmed
        for pointer in written["pointer_updates"]:
            entry = pinned[pointer["table_key"]]
            assert (entry.version, entry.owner) == (pointer["version"], pointer["table_branch"])
        head = graph.snapshot(shape.target).head
        source = graph.snapshot(None if shape.source == "main" else shape.source).head
        assert head.actor_id == "omnigraph:recovery"
        assert head.merged_parent_commit_id == source.graph_commit_id == written["merge_source_commit_id"]
        assert contents(root, shape.target) == shape.after
        assert drifted(root, shape.target) == {}
        assert graph.merge(shape.source, shape.into).outcome is MergeOutcome.ALREADY_UP_TO_DATE
        (record,) = graph.recoveries()
        assert record.recovery_kind.value == "RolledForward"
        assert record.recovery_for_actor == "writer"
        assert {found.table_key for found in record.outcomes} == confirmed.keys()
    assert bool(written["pointer_updates"]) == ("repointed" in name)
    assert_reopening_changes_nothing(root)


@pytest.mark.case("engine", 871)
@pytest.mark.parametrize("name", STAGED)
def test_a_merge_of_one_commit_in_each_table_goes_forward_by_its_transactions(
    name: str, root_for: NewRoot
) -> None:
    root, shape = root_for("branch_merge"), STAGED[name]
    cut(root, shape, CONFIRMED)
    (file,) = sidecars(root)
    tables = json.loads(file.read_text())["tables"]
    assert {table["confirmed_version"] for table in tables} == {None}
    assert None not in {table["transaction_uuid"] for table in tables}
    assert contents(root, shape.target) == shape.before

    with omnigraph.open(root) as graph:
        head = graph.snapshot(shape.target).head
        assert head.merged_parent_commit_id is not None
        assert contents(root, shape.target) == shape.after
        assert drifted(root, shape.target) == {}
        assert graph.merge(shape.source, shape.into).outcome is MergeOutcome.ALREADY_UP_TO_DATE
        (record,) = graph.recoveries()
        assert record.recovery_kind.value == "RolledForward"
    assert_reopening_changes_nothing(root)


@pytest.mark.case("engine", 871)
@pytest.mark.parametrize("point", ["branch_merge.post_sidecar_pre_commit", "branch_merge.post_table"])
def test_a_merge_of_one_commit_in_each_table_goes_back_before_the_last_of_them(
    point: str, root_for: NewRoot
) -> None:
    root, shape = root_for("branch_merge"), STAGED["a branch into main"]
    cut(root, shape, point)
    assert contents(root, shape.target) == shape.before

    with omnigraph.open(root) as graph:
        assert contents(root, shape.target) == shape.before
        assert drifted(root, shape.target) == {}
        assert graph.merge(shape.source, shape.into).commit is not None

    assert contents(root, shape.target) == shape.after
    assert_reopening_changes_nothing(root)


@pytest.mark.case("engine", 871)
@pytest.mark.parametrize("name", STAGED)
def test_a_merge_of_one_commit_in_each_table_confirms_nothing(name: str, root_for: NewRoot) -> None:
    root, shape = root_for("branch_merge"), STAGED[name]

    with omnigraph.open(root) as graph, failpoint("recovery.sidecar_confirm", "raise"):
        shape.prepare(graph)
        assert graph.merge(shape.source, shape.into).commit is not None

    assert contents(root, shape.target) == shape.after
    assert not sidecars(root)


@pytest.mark.case("engine", 180)
def test_a_published_merge_is_finished_and_a_second_one_is_up_to_date(root_for: NewRoot) -> None:
    root, shape = root_for("branch_merge"), SHAPES["three-way"]
    cut(root, shape, PUBLISHED)
    assert contents(root, None) == shape.after

    with omnigraph.open(root) as graph:
        assert graph.merge("june").outcome is MergeOutcome.ALREADY_UP_TO_DATE

    found = assert_settled(root, shape.after, recoveries=1)
    assert found.recoveries[0].kind == "RolledForward"


@pytest.mark.case("engine", 188)
def test_a_confirmation_that_cannot_be_written_fails_the_merge(root_for: NewRoot) -> None:
    root = root_for("branch_merge")
    with omnigraph.open(root) as graph:
        with failpoint("recovery.sidecar_confirm", "raise"), pytest.raises(RecoveryRequired):
            graph.merge("june")
        (file,) = sidecars(root)
        assert {table["confirmed_version"] for table in json.loads(file.read_text())["tables"]} == {None}

        write_everywhere(graph)  # heals in place: nothing needs a restore

    found = assert_settled(root, with_extra(BEFORE), recoveries=1)
    assert found.recoveries[0].kind == "RolledBack"


@pytest.mark.case("engine", 179)
def test_a_net_zero_table_is_in_no_sidecar(root_for: NewRoot) -> None:
    root = root_for("branch_merge")

    def undo_on_june(graph: Graph) -> None:
        for city in ("Wien", "Bonn"):
            change = f'query move() {{ update Company set {{ city: "{city}" }} where name = "acme" }}'
            graph.mutate(change, branch="june")

    shape = Shape(undo_on_june, BEFORE, AFTER)
    cut(root, shape, CONFIRMED)
    (file,) = sidecars(root)
    assert [table["table_key"] for table in json.loads(file.read_text())["tables"]] == [
        "edge:Knows",
        "node:Person",
    ]

    omnigraph.open(root).close()

    assert_settled(root, AFTER, recoveries=1)


@pytest.mark.case("engine", 178)
@pytest.mark.parametrize("point", ["branch_merge.between_chunks", CONFIRMED])
def test_an_insert_of_several_chunks(point: str, root_for: NewRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    patched(monkeypatch, "omnigraph.merge.rows.MERGE_CHUNK_ROWS", 2)
    patched(monkeypatch, "omnigraph.commit.multi_step.MAX_FRAGMENT_ROWS", 2)
    added = frozenset((f"p{number}", number) for number in range(5))
    root = root_for("branch_merge")

    def add(graph: Graph) -> None:
        graph.load(records({"Person": added}), "append", index=False, branch="june")

    after = {**AFTER, "Person": AFTER["Person"] | added}
    # Of people: two further pieces of the new rows, behind those of the edges.
    cut(root, Shape(add, BEFORE, after), point, "skip:1,raise" if point != CONFIRMED else "raise")

    with omnigraph.open(root) as graph:
        if point == CONFIRMED:
            assert contents(root, None) == after
        else:
            assert contents(root, None) == BEFORE
            assert graph.merge("june").commit is not None

    assert_settled(root, after, recoveries=1)


@pytest.mark.case("engine", 185)
def test_sidecars_on_main_and_on_a_branch_are_judged_each_against_its_own(root_for: NewRoot) -> None:
    root = root_for("branch_merge")
    with omnigraph.open(root) as graph:
        graph.create_branch("july")
        graph.create_branch("august")
        shielded = root / "aside"
        for into, point in (("july", CONFIRMED), ("august", "branch_merge.post_table"), ("main", CONFIRMED)):
            with failpoint(point, "raise"), pytest.raises(RecoveryRequired):
                graph.merge("june", into)
            shielded.mkdir(exist_ok=True)
            for path in sidecars(root):  # out of the way of the next merge's healing
                path.rename(shielded / path.name)
    for path in shielded.iterdir():
        path.rename(root / RECOVERY_DIR / path.name)
    shielded.rmdir()
    assert len(sidecars(root)) == 3

    with omnigraph.open(root) as graph:
        kinds = {record.operation_id: record.recovery_kind.value for record in graph.recoveries()}

    assert sorted(kinds.values()) == ["RolledBack", "RolledForward", "RolledForward"]
    assert contents(root, None) == AFTER
    assert contents(root, "july") == AFTER
    assert contents(root, "august") == BEFORE
    for branch in (None, "july", "august"):
        assert drifted(root, branch) == {}
