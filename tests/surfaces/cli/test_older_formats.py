"""Graphs of other storage formats on the command line."""

from pathlib import Path

import lance
import pytest

from omnigraph.history.manifest_rows import MANIFEST_DIR, STAMP_KEY
from tests.support.engine import files
from tests.support.in_process import document, invoke
from tests.support.older_graphs import MAIN_COMMITS, write_older_graph

INSERT = 'query q() { insert Person { name: "eve" } }'


@pytest.mark.case("surfaces", 107)
def test_a_graph_of_format_3_is_read_unchanged_and_migrated_by_a_write(tmp_path: Path) -> None:
    root = write_older_graph(tmp_path / "graph", 3).root
    before = files(root)

    shown = document("snapshot", "graph", cwd=tmp_path)
    listed = document("commit", "list", "graph", cwd=tmp_path)["commits"]
    branches = invoke("branch", "list", "graph", cwd=tmp_path)

    assert shown["internal_schema_version"] == 3
    assert [commit["graph_commit_id"] for commit in listed] == [
        item.commit_id for item in reversed(MAIN_COMMITS)
    ]
    assert "feature" in branches.stdout
    assert "internal-schema 3" in invoke("snapshot", "graph", cwd=tmp_path).stdout
    assert files(root) == before

    (tmp_path / "insert.gq").write_text(INSERT)
    document("mutate", "q", "--query", "insert.gq", "--store", "graph", cwd=tmp_path)

    assert document("snapshot", "graph", cwd=tmp_path)["internal_schema_version"] == 4
    listed = document("commit", "list", "graph", cwd=tmp_path)["commits"]
    assert listed[0]["parent_commit_id"] == MAIN_COMMITS[-1].commit_id


@pytest.mark.case("surfaces", 107)
@pytest.mark.parametrize(("stamp", "way_out"), [("5", "upgrade omnigraph"), ("0", "export")])
def test_a_graph_of_a_format_out_of_range_is_refused(tmp_path: Path, stamp: str, way_out: str) -> None:
    root = write_older_graph(tmp_path / "graph", 3).root
    lance.dataset(str(root / MANIFEST_DIR)).update_schema_metadata({STAMP_KEY: stamp})
    (tmp_path / "insert.gq").write_text(INSERT)

    for command in (
        ("snapshot", "graph"),
        ("mutate", "q", "--query", "insert.gq", "--store", "graph"),
    ):
        refused = invoke(*command, cwd=tmp_path)
        assert refused.code == 1
        assert f"graph format {stamp}" in refused.stderr
        assert way_out in refused.stderr
