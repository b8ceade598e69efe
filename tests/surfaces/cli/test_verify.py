"""`omnigraph verify`: what it prints, and its exit code."""

import json
from pathlib import Path

import pytest

import omnigraph
from omnigraph.history.manifest_rows import head_row, rows_table
from tests.support.atlas import GRAPH, place_atlas
from tests.support.in_process import document, invoke
from tests.support.seam import internals


def cut_a_data_file(graph: Path) -> tuple[str, int]:
    """Cut one byte off a data file; return its path inside the graph, and its length before."""
    victim = next(graph.glob("nodes/*/data/*.lance"))
    content = victim.read_bytes()
    victim.write_bytes(content[:-1])
    return str(victim.relative_to(graph)), len(content)


@pytest.mark.case("surfaces", 237)
def test_a_whole_graph_is_counted(tmp_path: Path) -> None:
    place_atlas(tmp_path)

    outcome = invoke("verify", GRAPH, cwd=tmp_path)

    assert outcome.code == 0
    assert outcome.stdout.endswith(" ok\n")
    assert " files of 1 branch: " in outcome.stdout


@pytest.mark.case("surfaces", 237)
def test_a_damaged_file_is_named_with_both_lengths(tmp_path: Path) -> None:
    path, length = cut_a_data_file(place_atlas(tmp_path))

    outcome = invoke("verify", GRAPH, cwd=tmp_path)
    as_json = invoke("verify", GRAPH, "--json", cwd=tmp_path)

    assert (outcome.code, as_json.code) == (1, 1)
    words = next(line for line in outcome.stdout.splitlines() if path in line).split()
    assert words == [path, "wrong", "length", str(length), str(length - 1)]
    assert "put the files back" in outcome.stdout


@pytest.mark.case("surfaces", 237)
def test_the_document_says_of_every_file_what_became_of_it(tmp_path: Path) -> None:
    place_atlas(tmp_path)

    found = document("verify", GRAPH, cwd=tmp_path)

    assert found["is_whole"] is True
    assert found["branches"] == ["main"]
    assert sum(found["counts"].values()) == len(found["files"])
    assert set(found["files"][0]) == {"path", "status", "length", "found_length"}


@pytest.mark.case("engine", 434)
def test_a_key_that_is_there_twice_is_said(tmp_path: Path) -> None:
    with omnigraph.open(place_atlas(tmp_path)) as graph:
        coordinator = internals(graph).parts.coordinator
        handle = coordinator.manifest.open_fresh(coordinator.address())
        head = rows_table([head_row("main", "another", None)])
        coordinator.manifest.publish(handle, head, commit_id="another")

    outcome = invoke("verify", GRAPH, cwd=tmp_path)
    as_json = invoke("verify", GRAPH, "--json", cwd=tmp_path)

    assert (outcome.code, as_json.code) == (1, 1)
    assert "branch main: 'graph_head:main' is in the manifest 2 times" in outcome.stdout
    assert "two writers have published at once" in outcome.stdout
    assert "put the files back" not in outcome.stdout
    assert json.loads(as_json.stdout)["repeated"] == ["main: 'graph_head:main' is in the manifest 2 times"]


@pytest.mark.case("surfaces", 237)
def test_a_place_without_a_graph_is_said(tmp_path: Path) -> None:
    outcome = invoke("verify", str(tmp_path), cwd=tmp_path)

    assert outcome.code == 1
    assert "no graph at" in outcome.stderr
