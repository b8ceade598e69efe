"""`omnigraph status`: one look at a graph, which changes nothing."""

from pathlib import Path

import pytest

import omnigraph
from omnigraph.core.errors import RecoveryRequired
from omnigraph.core.failpoint import failpoint
from tests.support.atlas import GRAPH, head, place_atlas
from tests.support.engine import files
from tests.support.foreign import add_rows, foreign
from tests.support.in_process import document, invoke

RENAME = 'query q() { update Craft set { name: "Voyager" } where code = "VGR-1" }'


@pytest.mark.case("surfaces", 430)
def test_a_look_at_a_graph_says_everything_and_changes_nothing(tmp_path: Path) -> None:
    root = place_atlas(tmp_path)
    with omnigraph.open(root, upkeep=False) as graph:
        graph.create_branch("june")
        graph.mutate(RENAME, actor="mira", message="a better name\nin full")
    before = files(root)

    text = invoke("status", GRAPH, cwd=tmp_path)
    found = document("status", GRAPH, cwd=tmp_path)

    assert (text.code, text.stderr) == (0, "")
    commit = found["commit"]
    assert (commit["graph_commit_id"], commit["actor_id"]) == (head(tmp_path), "mira")
    assert commit["message"] == "a better name\nin full"
    assert (found["branch"], found["branch_count"], found["internal_schema_version"]) == ("main", 2, 4)
    assert found["pending"] == []
    tables = {table["table_key"]: table for table in found["tables"]}
    assert {key: table["row_count"] for key, table in tables.items()} == {
        "edge:Flew": 3,
        "node:Craft": 3,
        "node:Mission": 2,
    }
    craft = tables["node:Craft"]
    location = next(path for path in before if path.startswith("nodes/")).split("/")[:2]
    assert location[0] == "nodes"
    stored = sum(len(data) for path, data in before.items() if path.startswith("nodes/"))
    assert craft["bytes"] + tables["node:Mission"]["bytes"] == stored
    assert found["bytes"] == sum(map(len, before.values()))
    assert (craft["versions"], craft["fragments"]) == (craft["table_version"], 2)
    assert found["manifest"]["versions"] >= found["manifest_version"]
    assert {index["property"]: index["coverage"] for index in craft["indexes"]}["name"] == "degraded"
    assert "1 of 3 rows not covered" in craft["indexes"][0]["reason"]
    (work,) = found["maintenance"]["optimize"]
    assert (work["table_key"], work["indexes_to_fold"]) == ("node:Craft", ["code", "id", "name"])
    assert found["maintenance"]["cleanup"] == {
        "keep_versions": 10,
        "old_versions": 0,
        "bytes": 0,
        "obstacle": None,
    }
    for said in (
        f"{GRAPH}, 2 branches",
        f"head      {head(tmp_path)} by mira, ",
        "a better name …",
        "recovery  nothing pending",
        "8 indexes, 5 of them covering every row",
        "1 of 3 rows not covered",
        "optimize  node:Craft: 1 fragment to fold; indexes to fold: code, id, name",
        "cleanup   nothing to remove, keeping 10 versions of each table",
    ):
        assert said in text.stdout, text.stdout
    assert files(root) == before


@pytest.mark.case("surfaces", 431)
def test_an_unfinished_write_is_shown_and_left_alone(tmp_path: Path) -> None:
    root = place_atlas(tmp_path)
    with (
        omnigraph.open(root) as graph,
        failpoint("write.post_finalize_pre_publisher", "raise"),
        pytest.raises(RecoveryRequired),
    ):
        graph.mutate(RENAME, actor="mira")
    before = files(root)

    text = invoke("status", GRAPH, cwd=tmp_path)
    found = document("status", GRAPH, cwd=tmp_path)

    (write,) = found["pending"]
    assert (write["writer_kind"], write["actor_id"], write["alive"]) == ("mutation", "mira", False)
    assert write["tables"] == ["node:Craft"]
    assert found["maintenance"]["cleanup"]["obstacle"] == "a write has begun and not ended"
    assert "recovery  1 write begun and not ended" in text.stdout
    assert "its writer died; the next write or open settles it" in text.stdout
    assert "cleanup   not known: a write has begun and not ended" in text.stdout
    assert files(root) == before


@pytest.mark.case("surfaces", 431)
def test_a_table_that_others_committed_to_is_named(tmp_path: Path) -> None:
    root = place_atlas(tmp_path)
    with omnigraph.open(root, mode="ro") as graph:
        add_rows(foreign(graph, "node:Mission"), id=["x"], title=["x"])

    text = invoke("status", GRAPH, cwd=tmp_path)
    found = document("status", GRAPH, cwd=tmp_path)["maintenance"]

    assert text.code == 0
    assert [(work["table_key"], work["skipped"]) for work in found["optimize"]] == [
        ("node:Mission", "drift_needs_repair")
    ]
    assert "node:Mission" in found["cleanup"]["obstacle"]
    assert "node:Mission: skipped, it is ahead of what is published; run omnigraph repair" in text.stdout


@pytest.mark.case("surfaces", 432)
def test_a_branch_is_looked_at_by_name(tmp_path: Path) -> None:
    root = place_atlas(tmp_path)
    with omnigraph.open(root) as graph:
        graph.create_branch("june")
        graph.mutate('query q() { insert Mission { title: "Saturn" } }', branch="june")

    june = document("status", GRAPH, "--branch", "june", cwd=tmp_path)
    main = document("status", GRAPH, cwd=tmp_path)

    def missions(found: dict[str, list[dict[str, object]]]) -> object:
        return next(table["row_count"] for table in found["tables"] if table["table_key"] == "node:Mission")

    assert (june["branch"], missions(june), missions(main)) == ("june", 3, 2)
    assert june["commit"]["manifest_branch"] == "june"
    assert invoke("status", GRAPH, "--branch", "jun", cwd=tmp_path).code == 1


@pytest.mark.case("surfaces", 432)
def test_a_fresh_graph_needs_nothing(tmp_path: Path) -> None:
    place_atlas(tmp_path)

    text = invoke("status", GRAPH, cwd=tmp_path).stdout

    assert "8 indexes, covering every row" in text
    assert "optimize  nothing to do" in text
