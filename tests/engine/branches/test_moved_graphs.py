"""A graph with branches that was copied or moved reads and writes its own files, and those of nobody else."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import lance
import pytest

from omnigraph.core.errors import CommitConflict, InvariantViolation
from omnigraph.graph.graph import Graph
from omnigraph.storage.tables.handle import TableAddress
from omnigraph.storage.tables.rows import row_ids_of
from omnigraph.storage.tables.stage import TableStager
from omnigraph.storage.tables.table import TableStore
from omnigraph.storage.versions.difference import VersionDelta, layout_of
from tests.support.engine import assert_settled, contents, copy_of, edge, files, new_graph, node, reopen
from tests.support.seam import internals, patched

SCHEMA = """\
node Person { name: String @key  age: I32?  bio: String? @index  photo: Blob? }
edge Knows: Person -> Person
"""
PERSONS = [node("Person", name=f"p{n}", age=n, bio=f"number {n}", photo="base64:YWJj") for n in range(12)]
EDGES = [edge("Knows", f"p{n}", f"p{n + 1}", id=f"k{n}") for n in range(11)]
BRANCHES = ("main", "review", "nested")

INSERT = "query q($n: String) { insert Person { name: $n, age: 1 } }"
UPDATE = "query q($n: String, $a: I32) { update Person set { age: $a } where name = $n }"
DELETE = "query q($n: String) { delete Person where name = $n }"
FRIENDS = 'query q() { match { $a: Person { name: "p3" } $a knows{1,3} $b } return { $b.name } }'
EVERYBODY = "query q() { match { $a: Person } return { $a.name, $a.age } }"
FOUND = 'query q() { match { $a: Person } return { $a.name } order { bm25($a.bio, "number") } limit 30 }'


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph whose branches share data, deletion and index files with main and with each other."""
    root = tmp_path_factory.mktemp("moved") / "original"
    with new_graph(root, SCHEMA, *PERSONS, *EDGES) as graph:
        graph.mutate(DELETE, params={"n": "p0"})
        graph.ensure_indices()
        graph.create_branch("review")
        for number in (1, 2, 3):
            graph.mutate(UPDATE, params={"n": f"p{number}", "a": 90 + number}, branch="review")
        graph.mutate(DELETE, params={"n": "p11"}, branch="review")
        graph.create_branch("nested", from_="review")
        graph.mutate(INSERT, params={"n": "new"}, branch="nested")
        graph.mutate(DELETE, params={"n": "p1"}, branch="nested")
        graph.mutate(INSERT, params={"n": "late"})
    return Path(shutil.move(root, root.with_name("kept")))


@pytest.fixture
def original(kept: Path) -> Iterator[Path]:
    """The graph in the place where its branches were made, which is in their version files."""
    place = kept.with_name("original")
    yield copy_of(kept, place)
    shutil.rmtree(place, ignore_errors=True)


def persons(graph: Graph, branch: str) -> dict[str, Any]:
    """Return the persons of a branch by id."""
    return {row["id"]: row for row in graph.table("Person", branch=branch).to_pylist()}


def friends(graph: Graph, branch: str) -> list[str]:
    """Return whom a person of a branch knows, within three steps."""
    return sorted(str(row["b.name"]) for row in graph.query(FRIENDS, branch=branch))


def shown(graph: Graph) -> dict[str, Any]:
    """Return all that a graph shows: rows, searches and traversals of every branch, now and in the past."""
    found: dict[str, Any] = {}
    for branch in BRANCHES:
        texts = sorted(str(row["a.name"]) for row in graph.query(FOUND, branch=branch))
        commits = [commit.graph_commit_id for commit in graph.commits(branch=branch)]
        found[branch] = (persons(graph, branch), friends(graph, branch), texts, commits)
    for commit in graph.commits(branch="nested"):
        past = graph.query(EVERYBODY, snapshot=commit.graph_commit_id)
        found[commit.graph_commit_id] = sorted(str(row["a.name"]) for row in past)
    return found


def _gone(original: Path) -> None:
    shutil.rmtree(original)


def _scribbled(original: Path) -> None:
    """Leave every file of the original where it is, with another content of the same length."""
    for path in original.rglob("*"):
        if path.is_file():
            path.write_bytes(bytes(byte ^ 0x55 for byte in path.read_bytes()))


def _written_on(original: Path) -> None:
    """Let the original go on: other rows, folded fragments."""
    with reopen(original) as graph:
        for branch in BRANCHES:
            graph.mutate(UPDATE, params={"n": "p5", "a": 5_000}, branch=branch)
            graph.mutate(DELETE, params={"n": "p6"}, branch=branch)


FATES: dict[str, Callable[[Path], None]] = {"gone": _gone, "scribbled": _scribbled, "goes on": _written_on}


@pytest.mark.case("engine", 520)
@pytest.mark.parametrize("mode", ["ro", "rw"])
@pytest.mark.parametrize("fate", FATES)
def test_a_copy_shows_what_the_original_showed_whatever_became_of_that(
    original: Path, tmp_path: Path, fate: str, mode: Literal["ro", "rw"]
) -> None:
    copy = tmp_path / "else where#" / "copy"
    with reopen(original) as graph:
        expected = shown(graph)
    copy.parent.mkdir()
    shutil.copytree(original, copy)
    FATES[fate](original)

    with reopen(copy, mode=mode) as graph:
        assert shown(graph) == expected
        report = graph.verify()

    assert report.is_whole


@pytest.mark.case("engine", 520)
@pytest.mark.parametrize("fate", ["gone", "scribbled"])
def test_a_copy_is_written_and_nothing_of_the_original_is_touched(
    original: Path, tmp_path: Path, fate: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = copy_of(original, tmp_path / "copy")
    FATES[fate](original)
    before = files(original)
    patched(monkeypatch, "omnigraph.operations.upkeep.UPKEEP_INTERVAL", 4)

    with reopen(copy) as graph:
        for branch in BRANCHES:
            for number in (2, 3, 4, 5, 6, 7):
                graph.mutate(UPDATE, params={"n": f"p{number}", "a": 1_000 + number}, branch=branch)
            graph.mutate(DELETE, params={"n": "p8"}, branch=branch)
            friends(graph, branch)  # dense ids of this version
            graph.mutate(DELETE, params={"n": "p9"}, branch=branch)
            assert friends(graph, branch) == ["p4", "p5", "p6"]
            graph.ensure_indices(branch=branch)
        graph.create_branch("deeper", from_="nested")
        graph.mutate(INSERT, params={"n": "deepest"}, branch="deeper")
        graph.load(b'{"type": "Person", "data": {"name": "loaded"}}\n', "merge", branch="deeper")
        assert {"deepest", "loaded"} <= persons(graph, "deeper").keys()
        graph.merge("deeper", "nested")
        graph.merge("nested", "main")
        assert {"deepest", "loaded", "new", "late"} <= persons(graph, "main").keys()
        graph.delete_branch("deeper")
        graph.delete_branch("nested")
        assert_settled(graph)
        expected = contents(graph)

    with reopen(copy) as graph:
        assert contents(graph) == expected
        assert graph.verify().is_whole
    assert files(original) == before
    assert original.exists() == (fate != "gone")


@pytest.mark.case("engine", 520)
def test_a_copy_that_was_copied_again_reads_its_own_files(original: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    original.rename(first)
    with reopen(first) as graph:
        graph.mutate(UPDATE, params={"n": "p4", "a": 44}, branch="nested")
        expected = shown(graph)
    first.rename(second)

    with reopen(second) as graph:
        assert shown(graph) == expected


@pytest.mark.case("engine", 520)
def test_a_stale_write_to_a_fork_of_a_moved_graph_is_refused(original: Path, tmp_path: Path) -> None:
    moved = original.rename(tmp_path / "moved")
    with reopen(moved) as graph:
        entry = graph.snapshot("review").entry("node:Person")
        parts = internals(graph).parts
        address: TableAddress = parts.address(entry)
    store = TableStore()
    stager, handle = TableStager(store), store.open_head(address)
    rows = store.rows_by_id(handle, ["p5"])
    first, stale = stager.stage_upsert(handle, rows), stager.stage_upsert(handle, rows)

    stager.commit_staged(first, operation_id="one", writer_kind="test")
    with pytest.raises(CommitConflict):
        stager.commit_staged(stale, operation_id="two", writer_kind="test")

    assert store.open_head(address).row_count == handle.row_count


@pytest.mark.case("engine", 520)
def test_rows_deleted_on_a_fork_of_a_moved_graph_are_told_by_its_own_files(
    original: Path, tmp_path: Path
) -> None:
    """The deletion file of the earlier version is one that the fork shares."""
    with reopen(original) as graph:
        graph.create_branch("fresh")
        graph.mutate(DELETE, params={"n": "p7"}, branch="fresh")
    with reopen(original.rename(tmp_path / "moved")) as graph:
        address = internals(graph).parts.address(graph.snapshot("fresh").entry("node:Person"))
    store = TableStore()
    after = store.open_head(address)
    before = store.open_at(address, after.version - 1)
    gone = row_ids_of(store.rows_by_id(before, ["p7"], ["id"], with_row_id=True))

    store = TableStore()  # nothing of the versions is in memory
    delta = VersionDelta(
        since=before.version, before=layout_of(before), handle=store.open_at(address, after.version)
    )

    assert delta.deleted_row_ids(store).tolist() == gone.tolist()


@pytest.mark.case("engine", 520)
def test_a_version_that_the_library_brought_back_reads_the_files_of_the_moved_graph(
    original: Path, tmp_path: Path
) -> None:
    """A restore writes the paths of the version that it goes back to."""
    with reopen(original.rename(tmp_path / "moved")) as graph:
        address = internals(graph).parts.address(graph.snapshot("review").entry("node:Person"))
    restored = lance.dataset(address.open_uri)

    handle = TableStore().adopt(address, restored)

    assert len(TableStore().scan(handle, columns=["id"])) == handle.row_count


@pytest.mark.case("engine", 520)
def test_a_source_whose_name_leads_elsewhere_is_refused(original: Path, tmp_path: Path) -> None:
    with reopen(original.rename(tmp_path / "moved")) as graph:
        address = internals(graph).parts.address(graph.snapshot("nested").entry("node:Person"))
    folder = address.local_path
    assert folder is not None
    for path in folder.glob("_versions/*.manifest"):
        content = path.read_bytes()
        name = next(fork.name for fork in folder.parent.iterdir() if fork.name.startswith("review"))
        path.write_bytes(content.replace(b"\x12\x21" + name.encode(), b"\x12\x21" + b"../" * 11))

    with pytest.raises(InvariantViolation, match="leads elsewhere"):
        TableStore().open_head(address)
