"""A writer brings a graph of an earlier storage format up to this one, with its whole history."""

from pathlib import Path

import pyarrow as pa
import pytest

from omnigraph import INTERNAL_SCHEMA_VERSION
from omnigraph.core.errors import StorageError
from omnigraph.core.failpoint import InjectedFault, failpoint
from omnigraph.history.manifest_rows import TABLE_KINDS
from tests.support.engine import copy_of, reopen
from tests.support.migrated import (
    EVE,
    PRE_STAMP,
    assert_history,
    controls,
    manifest,
    manifest_rows,
    merge,
    of_kind,
    stamp_of,
)
from tests.support.older_graphs import (
    FEATURE_COMMITS,
    MAIN_COMMITS,
    RUN_DATASETS,
    Expected,
    annotation_of,
    write_older_graph,
)
from tests.support.queries import mutation


@pytest.mark.case("engine", 31)
@pytest.mark.case("engine", 43)
@pytest.mark.parametrize("stamp", [1, 2, 3])
def test_a_writer_migrates_a_graph_and_its_history_is_whole(
    stamp: int, templates: dict[int, Path], tmp_path: Path
) -> None:
    root = copy_of(templates[stamp], tmp_path / "graph")

    with reopen(root) as graph:
        assert_history(graph, MAIN_COMMITS)
        assert_history(graph, FEATURE_COMMITS, "feature")

    assert stamp_of(root) == INTERNAL_SCHEMA_VERSION
    assert len(of_kind(root, "graph_commit")) == len(MAIN_COMMITS)
    assert [row["object_id"] for row in of_kind(root, "graph_head")] == ["graph_head:main"]
    numbered = [row for row in manifest_rows(root) if row["object_type"] in TABLE_KINDS]
    assert numbered
    assert all(1 <= row["published_at"] <= MAIN_COMMITS[-1].version for row in numbered)


@pytest.mark.case("engine", 360)
def test_a_migrated_graph_has_one_schema_row_equal_to_its_file(third: Path) -> None:
    reopen(third).close()

    (row,) = of_kind(third, "schema")
    assert row["metadata"] == (third / "_schema.ir.json").read_text()
    assert row["published_at"] == MAIN_COMMITS[-1].version


@pytest.mark.case("engine", 32)
@pytest.mark.parametrize("stamp", [1, 2, 3])
def test_a_migrated_graph_is_not_migrated_again(
    stamp: int, templates: dict[int, Path], tmp_path: Path
) -> None:
    root = copy_of(templates[stamp], tmp_path / "graph")
    reopen(root).close()
    before = manifest(root).version, manifest_rows(root), controls(root)

    reopen(root).close()

    assert (manifest(root).version, manifest_rows(root), controls(root)) == before


@pytest.mark.case("engine", 29)
def test_the_first_step_annotates_the_key_before_it_stamps(
    templates: dict[int, Path], tmp_path: Path
) -> None:
    root = copy_of(templates[1], tmp_path / "graph")
    assert not annotation_of(root)
    with failpoint(PRE_STAMP[1], "raise"), pytest.raises(InjectedFault):
        reopen(root)
    assert (annotation_of(root), stamp_of(root)) == (True, 1)

    reopen(root).close()

    assert (annotation_of(root), stamp_of(root)) == (True, INTERNAL_SCHEMA_VERSION)
    version = manifest(root).version
    reopen(root).close()
    assert manifest(root).version == version
    one, other = manifest(root), manifest(root)
    row = one.to_table().slice(0, 1).set_column(0, one.schema.field(0), pa.array(["unknown:1"]))
    merge(one, row)
    with pytest.raises(OSError, match="concurrent writers"):
        merge(other, row)


@pytest.mark.case("engine", 30)
def test_the_second_step_removes_the_refs_of_runs_and_keeps_branches(
    templates: dict[int, Path], tmp_path: Path
) -> None:
    root = copy_of(templates[2], tmp_path / "graph")
    assert sorted(manifest(root).branches.list()) == ["__run__a", "__run__b", "feature"]

    with reopen(root) as graph:
        assert graph.branches() == ["feature", "main"]
        assert sorted(manifest(root).branches.list()) == ["feature"]
        assert [control["ref"] for control in controls(root).values()] == ["feature"]
        assert stamp_of(root) == INTERNAL_SCHEMA_VERSION
        graph.create_branch("__run__x")
        graph.mutate(EVE, branch="__run__x")

    with reopen(root) as graph:
        assert graph.branches() == ["__run__x", "feature", "main"]
        assert "eve" in graph.table("Person", branch="__run__x")["name"].to_pylist()
    assert all((root / name).exists() for name in RUN_DATASETS)  # inert, and left to cleanup


@pytest.mark.case("engine", 307)
@pytest.mark.parametrize("stamp", [2, 3])
def test_refs_inside_one_another_become_branches_of_their_own(stamp: int, tmp_path: Path) -> None:
    older = write_older_graph(tmp_path / "graph", stamp)
    for name in ("a", "a/b"):
        older.branch(name)
        older.fork("node:Person", name)
        older.append("node:Person", [(name, 1, name)], name)
        version = older.publish(("node:Person", name), branch=name)
        number = 7 + len(name)
        older.record(Expected(number, version, 6, name, (), branch=name))

    with reopen(older.root) as graph:
        assert graph.branches() == ["a", "a/b", "feature", "main"]
        assert graph.commits(branch="a/b")[0].actor_id == "a/b"
        graph.mutate(EVE, branch="a")
        graph.mutate(EVE, branch="a/b")
        graph.delete_branch("a")
    assert {"a", "a/b"} <= manifest(older.root).branches.list().keys()  # the inner one first

    with reopen(older.root) as graph:
        assert graph.branches() == ["a/b", "feature", "main"]
        assert {"a/b", "eve"} <= set(graph.table("Person", branch="a/b")["name"].to_pylist())
        assert "a" not in graph.table("Person", branch="a/b")["name"].to_pylist()
        graph.mutate(mutation('insert Person { name: "fay" }'), branch="a/b")
        graph.create_branch("a")
        assert "eve" not in graph.table("Person", branch="a")["name"].to_pylist()
        graph.delete_branch("a/b")
        assert graph.branches() == ["a", "feature", "main"]


def test_a_lost_control_object_of_a_branch_inside_another_is_noticed(tmp_path: Path) -> None:
    older = write_older_graph(tmp_path / "graph", 3)
    older.branch("a/b")
    with reopen(older.root) as graph:
        graph.mutate(EVE, branch="a/b")
        (older.root / "__branches" / "a%2Fb.json").unlink()

        with pytest.raises(StorageError, match=r"a%2Fb\.json"):
            graph.branches()


@pytest.mark.case("engine", 344)
@pytest.mark.parametrize("is_compacted", [False, True])
@pytest.mark.parametrize("has_column", [False, True])
def test_rows_are_numbered_by_the_version_they_came_with(
    *, is_compacted: bool, has_column: bool, tmp_path: Path
) -> None:
    root = write_older_graph(tmp_path / "graph", 3, has_column=has_column).root
    if is_compacted:
        manifest(root).optimize.compact_files()
        assert len(manifest(root).get_fragments()) == 1

    with reopen(root, mode="ro") as graph:
        assert_history(graph, MAIN_COMMITS)
    with reopen(root) as graph:
        assert_history(graph, MAIN_COMMITS)
        assert_history(graph, FEATURE_COMMITS, "feature")
        graph.mutate(EVE, branch="feature")
        graph.mutate(EVE)

    published = {row["object_id"]: row["published_at"] for row in of_kind(root, "table_version")}
    assert sorted(published.values()) == [1, 1, 1, 1, 2, 3, 3, 4, 5, manifest(root).version]
