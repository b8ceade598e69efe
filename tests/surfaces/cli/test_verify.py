"""`omnigraph verify`: what it prints, and its exit code."""

import json
from pathlib import Path

import pytest

import omnigraph
from omnigraph.history.manifest_rows import head_row, rows_table
from tests.support.atlas import GRAPH, place_atlas
from tests.support.foreign import add_rows, foreign
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


@pytest.mark.case("surfaces", 261)
def test_broken_rows_are_named_with_their_meaning_and_the_way_out(tmp_path: Path) -> None:
    with omnigraph.open(place_atlas(tmp_path)) as graph:
        key = next(key for key in graph.snapshot().entries if key.startswith("edge:"))
        add_rows(foreign(graph, key), id=["e1", "e2"], src=["nobody", "nobody"], dst=["nobody", "nobody"])
        graph.repair(confirm=True, force=True)
        leftover = Path(graph.uri) / graph.snapshot().entry(key).location / "data" / "left.lance"
        leftover.write_bytes(b"123")

    plain = invoke("verify", GRAPH, cwd=tmp_path)
    deep = invoke("verify", GRAPH, "--deep", cwd=tmp_path)
    as_json = invoke("verify", GRAPH, "--deep", "--json", cwd=tmp_path)

    assert (plain.code, deep.code, as_json.code) == (0, 1, 1)
    assert f"{key} 'e1': src 'nobody' not found in" in deep.stdout
    assert deep.stdout.count("means: traversals pass over the edge") == 1
    assert deep.stdout.count("way out: delete the edge with omnigraph mutate") == 1
    assert "1 file that nothing needs, 3 bytes; no fault" in deep.stdout
    found = json.loads(as_json.stdout)
    assert set(found["findings"][0]) == {"kind", "where", "what", "meaning", "remedy"}
    assert {finding["kind"] for finding in found["findings"]} >= {"endpoint"}
    assert (found["is_whole"], found["is_deep"], found["untold"]) == (False, True, 0)
    (file,) = found["unreferenced"]
    assert (file["path"].endswith("/data/left.lance"), file["length"]) == (True, 3)


@pytest.mark.case("surfaces", 261)
def test_files_that_nothing_needs_do_not_make_it_fail(tmp_path: Path) -> None:
    graph = place_atlas(tmp_path)
    folder = next(graph.glob("nodes/*/data"))
    for number in range(25):
        (folder / f"left-{number:02}.lance").write_bytes(b"x")

    outcome = invoke("verify", GRAPH, "--deep", cwd=tmp_path)

    assert outcome.code == 0
    assert "25 files that nothing needs, 25 bytes" in outcome.stdout
    assert "and 5 more, which --json lists" in outcome.stdout
