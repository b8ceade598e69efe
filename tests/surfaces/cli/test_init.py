"""`omnigraph init`: an empty graph, or nothing at all."""

from pathlib import Path

import pytest

from tests.support.atlas import ATLAS, GRAPH, commits, digest, place_atlas, row_counts
from tests.support.commands import Outcome, omnigraph, write
from tests.support.in_process import invoke


def init(folder: Path, *arguments: str, graph: str = GRAPH) -> Outcome:
    """Run init with the schema that a folder has."""
    return invoke("init", "--schema", "atlas.pg", graph, *arguments, cwd=folder)


@pytest.mark.case("surfaces", 4)
def test_init_makes_a_folder_with_a_manifest_and_the_schema(tmp_path: Path) -> None:
    write(tmp_path, "atlas.pg", ATLAS)

    outcome = omnigraph("init", "--schema", "atlas.pg", "./g.omni", cwd=tmp_path)

    assert (outcome.code, outcome.stdout, outcome.stderr) == (0, "initialized ./g.omni\n", "")
    assert (tmp_path / GRAPH / "__manifest").is_dir()
    assert (tmp_path / GRAPH / "_schema.pg").read_text() == ATLAS


def test_a_new_graph_has_every_table_and_one_commit_by_nobody(tmp_path: Path) -> None:
    write(tmp_path, "atlas.pg", ATLAS)

    init(tmp_path)

    assert row_counts(tmp_path) == {"node:Craft": 0, "node:Mission": 0, "edge:Flew": 0}
    (genesis,) = commits(tmp_path)
    assert (genesis["parent_commit_id"], genesis["actor_id"]) == (None, None)


@pytest.mark.case("surfaces", 5)
def test_a_second_init_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    graph = place_atlas(tmp_path)
    before = digest(graph)

    outcome = init(tmp_path)

    assert (outcome.code, outcome.stdout) == (1, "")
    assert "already holds a graph" in outcome.stderr
    assert digest(graph) == before


@pytest.mark.case("surfaces", 6)
def test_force_does_not_touch_a_graph(tmp_path: Path) -> None:
    graph = place_atlas(tmp_path)
    before = digest(graph)

    outcome = init(tmp_path, "--force")

    assert (outcome.code, outcome.stdout) == (1, "")
    assert "already holds a graph" in outcome.stderr
    assert digest(graph) == before


def test_force_replaces_schema_files_that_were_left_behind(tmp_path: Path) -> None:
    write(tmp_path, "atlas.pg", ATLAS)
    write(tmp_path, "g.omni/_schema.pg", "node Old { code: String @key }\n")

    refused = init(tmp_path)
    forced = init(tmp_path, "--force")

    assert refused.code == 1
    assert "_schema.pg" in refused.stderr
    assert (forced.code, forced.stdout) == (0, "initialized g.omni\n")
    assert (tmp_path / GRAPH / "_schema.pg").read_text() == ATLAS


@pytest.mark.case("surfaces", 7)
def test_a_missing_schema_file_is_named_and_leaves_no_folder(tmp_path: Path) -> None:
    outcome = init(tmp_path)

    assert (outcome.code, outcome.stdout) == (1, "")
    assert "atlas.pg" in outcome.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.case("surfaces", 8)
def test_a_schema_with_another_kind_of_comment_is_refused_at_its_line_and_column(tmp_path: Path) -> None:
    write(tmp_path, "atlas.pg", "node Craft {\n    code: String @key\n    # the registration\n}\n")

    outcome = init(tmp_path)

    assert (outcome.code, outcome.stdout) == (1, "")
    assert outcome.stderr.startswith("parse error: ")
    assert "atlas.pg:3:5" in outcome.stderr
    assert not (tmp_path / GRAPH).exists()


def test_the_schema_may_come_from_standard_input(tmp_path: Path) -> None:
    outcome = invoke("init", "--schema", "-", GRAPH, cwd=tmp_path, stdin=ATLAS)

    assert outcome.code == 0
    assert (tmp_path / GRAPH / "_schema.pg").read_text() == ATLAS


@pytest.mark.case("surfaces", 9)
@pytest.mark.parametrize("arguments", [["init", "--json"], ["--json", "init"]], ids=" ".join)
def test_init_prints_no_document(arguments: list[str], tmp_path: Path) -> None:
    write(tmp_path, "atlas.pg", ATLAS)

    outcome = invoke(*arguments, "--schema", "atlas.pg", GRAPH, cwd=tmp_path)

    assert (outcome.code, outcome.stdout) == (2, "")
    assert "--json" in outcome.stderr
    assert not (tmp_path / GRAPH).exists()


@pytest.mark.case("surfaces", 10)
def test_a_place_inside_of_a_cluster_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "atlas.pg", ATLAS)
    write(tmp_path, "fleet/__cluster/state.json", "{}")

    outcome = init(tmp_path, graph="fleet/graphs/x.omni")

    assert (outcome.code, outcome.stdout) == (1, "")
    assert "cluster apply" in outcome.stderr
    assert not (tmp_path / "fleet" / "graphs").exists()


@pytest.mark.parametrize("graph", ["fleet/graphs/x", "fleet/graphs/deep/x.omni", "fleet/x.omni"])
def test_other_places_beside_a_cluster_are_free(graph: str, tmp_path: Path) -> None:
    write(tmp_path, "atlas.pg", ATLAS)
    write(tmp_path, "fleet/__cluster/state.json", "{}")

    assert init(tmp_path, graph=graph).code == 0


def test_a_folder_called_graphs_without_a_cluster_is_free(tmp_path: Path) -> None:
    write(tmp_path, "atlas.pg", ATLAS)

    assert init(tmp_path, graph="graphs/x.omni").code == 0


@pytest.mark.parametrize(
    ("flag", "reason"),
    [
        ("--as", "applies to writes of data"),
        ("--server", "does not apply"),
        ("--policy", "applies to commands on the data of a graph"),
    ],
)
def test_init_says_why_it_refuses_a_flag(flag: str, reason: str, tmp_path: Path) -> None:
    write(tmp_path, "atlas.pg", ATLAS)

    outcome = init(tmp_path, flag, "x")

    assert (outcome.code, outcome.stdout) == (2, "")
    assert f"{flag} {reason}" in outcome.stderr
