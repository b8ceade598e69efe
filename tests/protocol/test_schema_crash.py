"""Changes of schema that die: at every step, on main and on a branch, as an upgrade and within a merge.

The matrix of 16.9 shows new columns of two tables at the points that all writers have. Here are the other
shapes of a change, and the points that only changes of schema have.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import omnigraph
from omnigraph.core.failpoint import ENVIRONMENT, EXIT_STATUS
from omnigraph.graph.graph import Graph
from tests.protocol.conftest import NewRoot
from tests.support.books import assert_reopening_changes_nothing, recovery_files
from tests.support.forked import Forked
from tests.support.protocol import BEFORE, EVOLVED, SCHEMA, records, sidecars
from tests.support.seam import internals

pytestmark = pytest.mark.usefixtures("no_syncs")

TOWN = SCHEMA + "\nnode Town {\n    name: String @key\n}\n\nedge In: Company -> Town\n"
HUMAN = (
    SCHEMA.replace("node Person {", 'node Human @rename_from("Person") {\n    email: String?')
    .replace(": Person ->", ": Human ->")
    .replace("-> Person", "-> Human")
)
FEWER = SCHEMA.replace("    since: I32?\n", "").replace("edge WorksAt: Person -> Company\n", "")
GOOD = SCHEMA.replace("    age: I32?\n", "").replace("    city: String?\n", "")
DESCRIBED = SCHEMA.replace("node Company {", 'node Company @description("who pays") {')
VALUES = SCHEMA.replace("age: I32?", "age: I64?").replace(
    "city: String?", "city: String?\n    size: I32 @default(3)"
)
BEFORE_PUBLISH = (
    "schema_apply.post_lock_pre_plan",
    "schema_apply.post_stage_pre_gate",
    "schema_apply.post_sidecar_pre_commit",
    "schema_apply.post_table_commit",
)
FORWARD = (
    "schema_apply.before_manifest_commit",
    "schema_apply.after_manifest_commit",
)
OF_MAIN = ("schema_apply.mid_promote", "schema_apply.post_promote")
ENDING = ("recovery.sidecar_delete", "schema_apply.post_unlock_pre_index")


@dataclass(frozen=True, slots=True)
class Shape:
    """A schema, and whether tables move: without any there is no sidecar, and one publish does it."""

    schema: str
    moves_tables: bool = True
    single: bool = False  # whether the first table is the last one
    purges: bool = False


SHAPES = {
    "columns": Shape(EVOLVED),
    "values": Shape(VALUES),
    "types": Shape(TOWN),
    "rename": Shape(HUMAN, single=True),
    "drops": Shape(FEWER, single=True),
    "words": Shape(DESCRIBED, moves_tables=False),
    "purge": Shape(GOOD, purges=True),
}
CASES = {"types": 169, "rename": 171, "drops": 172, "words": 170, "purge": 747}


def points(shape: Shape, branch: str | None) -> list[str]:
    """Return the places that a change passes."""
    if not shape.moves_tables:
        found = [*BEFORE_PUBLISH[:2]]
    else:
        found = [*BEFORE_PUBLISH, *FORWARD, "recovery.sidecar_delete"]
    found += [*(OF_MAIN if branch is None else ()), *(["schema_apply.pre_purge"] if shape.purges else ())]
    return [*found, "schema_apply.post_unlock_pre_index"]


def how_often(name: str, branch: str | None) -> list[pytest.MarkDecorator]:
    """Return the marks that keep the quick and slow suites to the cells that differ most from each other."""
    if branch is None and name in {"types", "words"}:
        return []
    if branch is None and name in {"rename", "drops", "purge"}:
        return [pytest.mark.slow]
    return [pytest.mark.slow] if (name, branch) == ("columns", "june") else [pytest.mark.crash]


def cells() -> list[object]:
    found: list[object] = []
    for name, shape in SHAPES.items():
        for branch in (None, "june"):
            for point in points(shape, branch):
                marks = [pytest.mark.case("engine", 553)]
                if name in CASES:
                    marks.append(pytest.mark.case("engine", CASES[name]))
                marks += how_often(name, branch)
                found.append(
                    pytest.param(name, branch, point, id=f"{name}-{branch or 'main'}-{point}", marks=marks)
                )
    return found


_PROGRAM = """
import sys
import omnigraph
from tests.protocol.test_schema_crash import ACTS
root, act, branch = sys.argv[1:]
with omnigraph.open(root) as graph:
    ACTS[act](graph, branch or None)
"""
ACTS: dict[str, Callable[[Graph, str | None], object]] = {
    **{
        name: lambda graph, branch, shape=shape: graph.apply_schema(  # type: ignore[misc]
            shape.schema, branch=branch, allow_data_loss=shape.purges
        )
        for name, shape in SHAPES.items()
    },
    "upgrade": lambda graph, branch: graph.upgrade_branch(str(branch)),
    "merge": lambda graph, branch: graph.merge("main" if branch else "june", into=branch or "main"),
}


def killed_at(root: Path, act: str, branch: str | None, point: str) -> None:
    """Do something in a process that ends at a place."""
    with Forked(_PROGRAM, root, act, branch or "", **{ENVIRONMENT: f"{point}=exit"}) as script:
        assert script.wait() == EXIT_STATUS, f"{act} did not come to {point}"


def look(root: Path, branch: str | None) -> tuple[str, dict[str, list[str]], list[str]]:
    """Return the schema of a branch, all its rows, and the folders of tables."""
    with omnigraph.open(root, mode="ro") as graph:
        rows = {
            type_.table_key: sorted(
                str(sorted(row.items())) for row in graph.table(type_.table_key, branch=branch).to_pylist()
            )
            for type_ in graph.catalog_on(branch).types
        }
        return graph.schema(branch=branch), rows, table_folders(root)


def table_folders(root: Path) -> list[str]:
    return sorted(
        str(path.relative_to(root)) for kind in ("nodes", "edges") for path in (root / kind).iterdir()
    )


def assert_whole(root: Path) -> None:
    """Check that nothing is left over, and that every table of every branch stands at its pin."""
    assert recovery_files(root) == ()
    with omnigraph.open(root, mode="ro") as graph:
        parts = internals(graph).parts
        for branch in graph.branches():
            for entry in graph.snapshot(branch).entries.values():
                is_own = branch == "main" or entry.owner == branch
                head = parts.store.latest_version(parts.address(entry))
                assert head == entry.version or not is_own, f"{entry.table_key} of {branch}"
        known = {entry.location for b in graph.branches() for entry in graph.snapshot(b).entries.values()}
        past = {
            entry.location
            for commit in graph.commits()
            for entry in internals(graph).state().snapshot_at(commit.manifest_version).entries.values()
        }
    assert set(table_folders(root)) <= known | past
    assert_reopening_changes_nothing(root)


def is_new(shape: Shape, point: str) -> bool:
    """Whether the change stands after a recovery."""
    if point == "schema_apply.post_table_commit":
        return shape.single
    return point not in BEFORE_PUBLISH


@pytest.mark.parametrize(("name", "branch", "point"), cells())
def test_a_killed_change_is_all_there_or_not_at_all(
    name: str, branch: str | None, point: str, root_for: NewRoot, tmp_path: Path
) -> None:
    root, shape = root_for("branch_merge"), SHAPES[name]
    before = look(root, branch)
    other = look(root, "june" if branch is None else None)[:2]

    killed_at(root, name, branch, point)
    assert shape.moves_tables or sidecars(root) == ()
    seen = look(root, branch)[0]
    omnigraph.open(root).close()

    schema, rows, folders = look(root, branch)
    assert seen in {SCHEMA, shape.schema}
    assert schema == (shape.schema if is_new(shape, point) else SCHEMA)
    if schema == SCHEMA:
        assert (schema, rows, folders) == before
    assert look(root, "june" if branch is None else None)[:2] == other
    if branch is None:
        assert (root / "_schema.pg").read_text() == schema
    assert_whole(root)
    if shape.purges and schema == shape.schema:
        with omnigraph.open(root, mode="ro") as graph:
            assert_purged(graph, branch)
    with omnigraph.open(root) as graph:
        again = graph.apply_schema(shape.schema, branch=branch, allow_data_loss=shape.purges)
        assert again.applied == (schema == SCHEMA)
        if shape.purges:
            assert_purged(graph, branch)
        elif name not in {"rename", "drops"}:
            graph.load(records(BEFORE), "merge", branch=branch, index=False)
    assert look(root, branch)[0] == shape.schema
    assert_whole(root)


def assert_purged(graph: Graph, branch: str | None) -> None:
    """Check that every column in the files that a branch shows is one of its schema."""
    for table_key in ("node:Person", "node:Company"):
        dataset = internals(graph).parts.open(graph.snapshot(branch).entry(table_key))._dataset
        known = {field.id() for field in dataset.lance_schema.fields()}
        held = {
            number
            for part in dataset.get_fragments()
            for file in part.metadata.files
            for number in file.fields
        }
        assert {number for number in held if number >= 0} <= known


UPGRADE_POINTS = (*BEFORE_PUBLISH[1:], *FORWARD, *ENDING)


@pytest.mark.case("engine", 554)
@pytest.mark.parametrize(
    "schema",
    [
        pytest.param(EVOLVED, id="columns", marks=pytest.mark.crash),
        pytest.param(TOWN, id="types", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("point", UPGRADE_POINTS)
def test_a_killed_upgrade_is_all_there_or_not_at_all(point: str, schema: str, root_for: NewRoot) -> None:
    root = root_for("branch_merge")
    with omnigraph.open(root) as graph:
        graph.apply_schema(schema, index=False)
    before, main = look(root, "june"), look(root, None)[:2]

    killed_at(root, "upgrade", "june", point)
    omnigraph.open(root).close()

    after = look(root, "june")
    if point in BEFORE_PUBLISH:
        assert after == before
    else:
        assert after[0] == schema
    assert look(root, None)[:2] == main
    assert_whole(root)
    with omnigraph.open(root) as graph:
        assert graph.upgrade_branch("june").applied == (point in BEFORE_PUBLISH)
        graph.load(records(BEFORE), "merge", branch="june", index=False)
        graph.merge("june")
    assert look(root, "june")[0] == schema
    assert_whole(root)


MERGE_OLD = (
    "branch_merge.post_capture",
    "branch_merge.post_sidecar_pre_commit",
    "branch_merge.after_reshape_pre_append",
    "branch_merge.after_append_pre_upsert",
    "branch_merge.after_upsert_pre_delete",
    "branch_merge.after_delete_pre_confirm",
    "branch_merge.post_table",
    "branch_merge.post_phase_b_pre_confirm",
)
MERGE_NEW = (
    "branch_merge.post_phase_b_pre_manifest_commit",
    "branch_merge.post_publish_pre_sidecar_delete",
    "recovery.sidecar_delete",
)


@pytest.mark.case("engine", 555)
@pytest.mark.parametrize(
    ("point", "into"),
    [
        *(
            pytest.param(point, None, marks=pytest.mark.slow)
            for point in (*MERGE_OLD, *MERGE_NEW, OF_MAIN[0])
        ),
        *(pytest.param(point, "july", marks=pytest.mark.crash) for point in (*MERGE_OLD, *MERGE_NEW)),
    ],
)
def test_a_killed_merge_brings_schema_and_rows_or_neither(
    point: str, into: str | None, root_for: NewRoot
) -> None:
    root = root_for("branch_merge")
    schema = EVOLVED.replace("\nedge WorksAt", "\nnode Town {\n    name: String @key\n}\n\nedge WorksAt")
    with omnigraph.open(root) as graph:
        if into is not None:
            graph.create_branch(into)
        graph.apply_schema(schema, branch="june", index=False)
        graph.load(b'{"type": "Town", "data": {"name": "Bonn"}}\n', "append", branch="june", index=False)
        graph.mutate('query more() { update Person set { email: "a" } where name = "ann" }', branch="june")
        target = graph.mutate(
            'query city() { update Company set { city: "Graz" } where name = "ibex" }', branch=into
        )
        assert target.commit is not None
    before = look(root, into)

    with Forked(_MERGE, root, into or "main", **{ENVIRONMENT: f"{point}=exit"}) as script:
        assert script.wait() == EXIT_STATUS, f"the merge did not come to {point}"
    omnigraph.open(root).close()

    after = look(root, into)
    if point in MERGE_OLD:
        assert after[:2] == before[:2]
    else:
        assert "email" in after[0]
        assert after[1]["node:Town"]
    assert_whole(root)
    with omnigraph.open(root) as graph:
        graph.merge("june", into=into or "main")
        assert {row["name"] for row in graph.table("Town", branch=into).to_pylist()} == {"Bonn"}
        emails = {row["name"]: row["email"] for row in graph.table("Person", branch=into).to_pylist()}
    assert emails == {"ann": "a", "bob": None, "dan": None}
    assert_whole(root)


_MERGE = """
import sys
import omnigraph
with omnigraph.open(sys.argv[1]) as graph:
    graph.merge("june", into=sys.argv[2])
"""
