"""`optimize`: every table of main in its best layout, as one commit; no row changes and no version goes."""

import base64
import threading
from pathlib import Path

import lance
import pytest

from omnigraph.commit.changes import UpdateTable
from omnigraph.core.errors import (
    BadRequest,
    ExpectedVersionMismatch,
    PendingRecovery,
    RecoveryRequired,
    RowLevelCasContention,
)
from omnigraph.core.failpoint import InjectedFault, failpoint
from omnigraph.graph.graph import Graph
from omnigraph.history.commits import MAINTENANCE_ACTOR
from omnigraph.history.identity import MAIN
from omnigraph.history.manifest_rows import PublishedPin
from omnigraph.operations.optimize import OptimizedTable, OptimizeResult
from omnigraph.operations.progress import TableProgress
from tests.support.engine import (
    Publisher,
    assert_settled,
    contents,
    edge,
    head,
    manifest_path,
    ndjson,
    new_graph,
    node,
    people,
    pins,
    recovery_files,
    reopen,
    table_path,
)
from tests.support.queries import mutation
from tests.support.seam import internals, patched

SEARCHED = """\
node Doc {
    code:  String @key
    text:  String? @index
    rank:  I32? @index
    place: Vector(2)? @index
}
edge Cites: Doc -> Doc { page: I32? }
node Empty { code: String @key }
"""
SEARCH = 'query q() { match { $d: Doc search($d.text, "apple") } return { $d.code } order { $d.code } }'
NEAR = "query q() { match { $d: Doc } return { $d.code } order { nearest($d.place, [3.0, 1.0]) } limit 4 }"
HOPS = 'query q() { match { $d: Doc { code: "d01" } $d cites $e } return { $e.code } order { $e.code } }'
RANKED = "query q() { match { $d: Doc $d.rank = 7 } return { $d.code } order { $d.code } }"
WORDS = ("apple", "bridge", "castle")


def document(number: int, word: int, *, vector: bool = True) -> dict[str, object]:
    """Return the record of a document."""
    place = [number % 5, 1] if vector else None
    text = f"{WORDS[word]} {number}"
    return node("Doc", code=f"d{number:02d}", text=text, rank=number % 10, place=place)


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    """A graph that was loaded and indexed, and then written in small pieces."""
    graph = new_graph(tmp_path / "docs", SEARCHED)
    loaded = [document(number, number % 3) for number in range(20)]
    cited = [edge("Cites", f"d{number % 7:02d}", f"d{number:02d}", page=number) for number in range(20)]
    graph.load(ndjson([*loaded, *cited]), "append")
    for number in range(20, 32):
        link = edge("Cites", f"d{number % 4:02d}", f"d{number:02d}")
        graph.load(
            ndjson([document(number, number % 3, vector=number % 2 == 0), link]), "append", index=False
        )
    for number in range(3):
        graph.load(ndjson([document(number, (number + 1) % 3)]), "merge", index=False)
    graph.mutate(mutation('delete Doc where code = "d05"'))
    return graph


def answers(graph: Graph) -> list[object]:
    """Return all rows, and what searches and hops find."""
    return [contents(graph), *(graph.query(text).to_pylist() for text in (SEARCH, NEAR, HOPS, RANKED))]


def table_of(result: OptimizeResult, table_key: str) -> OptimizedTable:
    """Return what became of one table."""
    return next(table for table in result.tables if table.table_key == table_key)


def fragments(graph: Graph, table_key: str) -> list[int]:
    """Return the rows of each fragment of a table."""
    return [part.count_rows() for part in lance.dataset(str(table_path(graph, table_key))).get_fragments()]


def limit_fragments(patch: pytest.MonkeyPatch, rows: int) -> None:
    """Let fragments have fewer rows."""
    for name in (
        "omnigraph.storage.tables.shapes.MAX_FRAGMENT_ROWS",
        "omnigraph.storage.tables.layout.MAX_FRAGMENT_ROWS",
    ):
        patched(patch, name, rows)
    for name in (
        "omnigraph.operations.layout.COMPACTION_TARGET_ROWS",
        "omnigraph.storage.tables.layout.COMPACTION_TARGET_ROWS",
    ):
        patched(patch, name, rows // 2)


def uncovered(graph: Graph) -> set[str]:
    """Return what the indexes of all tables with rows say."""
    return {
        index.coverage
        for table in graph.index_status()
        for index in table.indexes
        if index.reason != "no row to index"
    }


# The work


@pytest.mark.case("engine", 261)
@pytest.mark.case("engine", 262)
@pytest.mark.case("surfaces", 100)
def test_tables_are_folded_and_covered_in_one_commit_and_a_second_run_does_nothing(graph: Graph) -> None:
    before, past, versions = answers(graph), graph.commits()[4].graph_commit_id, pins(graph)
    then = graph.at(past).query(SEARCH).to_pylist()
    parent = head(graph)
    assert len(fragments(graph, "node:Doc")) > 10
    assert uncovered(graph) == {"degraded"}

    result = graph.optimize()

    assert result.commit is not None
    assert (result.commit.parent_commit_id, result.commit.actor_id) == (
        parent.graph_commit_id,
        MAINTENANCE_ACTOR,
    )
    assert head(graph) == result.commit
    assert [len(fragments(graph, key)) for key in ("node:Doc", "edge:Cites")] == [1, 1]
    assert uncovered(graph) == {"indexed"}
    assert answers(graph) == before
    assert graph.at(past).query(SEARCH).to_pylist() == then
    assert all(
        lance.dataset(str(table_path(graph, key)), version=version).version == version
        for key, version in versions.items()
    )
    done = table_of(result, "node:Doc")
    assert (done.committed, done.skipped, done.fragments_added) == (True, None, 1)
    assert done.fragments_removed > 10
    assert done.manifest_version == done.lance_head_version == pins(graph)["node:Doc"]
    assert not table_of(result, "node:Empty").committed
    assert graph.verify().is_whole
    assert_settled(graph)

    sidecars: list[object] = []
    with failpoint("recovery.sidecar_write", call=lambda: sidecars.append(1)):
        again = graph.optimize()

    assert (again.commit, sidecars) == (None, [])
    assert [(table.committed, table.fragments_removed) for table in again.tables] == [(False, 0)] * 4
    assert head(graph) == result.commit
    with reopen(graph) as other:
        assert answers(other) == before


@pytest.mark.case("engine", 262)
def test_the_manifest_is_folded(graph: Graph) -> None:
    assert len(lance.dataset(str(manifest_path(graph))).get_fragments()) > 10
    commits = [commit.graph_commit_id for commit in graph.commits()]

    result = graph.optimize()

    assert len(lance.dataset(str(manifest_path(graph))).get_fragments()) == 1
    folded = result.tables[-1]
    assert (folded.table_key, folded.skipped) == ("__manifest", None)
    assert [commit.graph_commit_id for commit in graph.commits()][1:] == commits


@pytest.mark.case("engine", 262)
@pytest.mark.case("engine", 348)
def test_no_fragment_is_larger_than_allowed(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    before = answers(graph)
    limit_fragments(monkeypatch, 8)

    graph.optimize()

    for table_key in ("node:Doc", "edge:Cites"):
        sizes = fragments(graph, table_key)
        assert max(sizes) <= 8
        assert len(sizes) <= sum(sizes) // 4
    assert answers(graph) == before
    assert graph.optimize().commit is None


@pytest.mark.case("engine", 490)
def test_diffs_feeds_and_merges_do_not_notice(graph: Graph) -> None:
    graph.create_branch("review")
    graph.mutate(mutation('update Doc set { rank: 99 } where code = "d02"'), branch="review")
    cursor = graph.changes(start="now")
    assert list(cursor) == []
    base = head(graph).graph_commit_id

    result = graph.optimize()

    assert list(graph.diff("main", base)) == []
    assert result.commit is not None
    assert list(graph.commit_changes(result.commit.graph_commit_id)) == []
    assert [list(block.changes) for block in graph.changes(cursor=cursor.cursor)] == [[]]
    assert graph.merge("review").outcome.value == "fast_forward"
    assert contents(graph)["Doc"]["d02"]["rank"] == 99


def test_missing_indexes_are_built_and_what_cannot_be_is_told(tmp_path: Path) -> None:
    records = [document(number, 0, vector=False) for number in range(3)]
    with new_graph(tmp_path / "docs", SEARCHED, *records) as graph:
        result = graph.optimize()

        assert result.commit is not None
        pending = table_of(result, "node:Doc").pending_indexes
        assert [(index.property, index.reason) for index in pending] == [("place", "no vector to train on")]
        assert uncovered(graph) == {"indexed", "pending"}
        assert graph.optimize().commit is None

        graph.load(ndjson([document(1, 0)]), "merge", index=False)
        graph.load(ndjson([document(9, 0, vector=False)]), "append", index=False)
        graph.optimize()
        assert uncovered(graph) == {"indexed"}
        graph.load(ndjson([document(8, 0, vector=False)]), "append", index=False)
        assert graph.optimize().commit is not None
        assert graph.optimize().commit is None, "rows without a vector count as covered"


@pytest.mark.case("engine", 263)
def test_the_library_no_longer_removes_versions_by_itself(graph: Graph) -> None:
    """A table of an earlier build: its configuration is published, and the library acts on it at a commit."""
    place, entry = table_path(graph, "node:Doc"), graph.snapshot().entry("node:Doc")
    settings: dict[str, str | None] = {
        "lance.auto_cleanup.interval": "1000",
        "lance.auto_cleanup.older_than": "1s",
    }
    for path in (place, manifest_path(graph)):
        lance.dataset(str(path)).update_config(settings)
    parts = internals(graph).parts
    moved = parts.store.open_head(parts.address(entry))
    pin = PublishedPin(moved.version, None, entry.row_count, moved.transaction_uuid, MAIN)
    Publisher(graph).publish(UpdateTable(entry.identity, "node:Doc", pin))
    kept = {path: versions_of(path) for path in (place, manifest_path(graph))}

    result = graph.optimize()

    assert table_of(result, "node:Doc").committed
    for path, versions in kept.items():
        assert lance.dataset(str(path)).config().keys().isdisjoint(settings)
        assert versions <= versions_of(path)
    assert_settled(graph)
    assert graph.optimize().commit is None


def versions_of(path: Path) -> set[str]:
    """Return the version files of a dataset."""
    return {file.name for file in (path / "_versions").glob("*.manifest")}


def test_a_handle_for_reading_refuses(graph: Graph) -> None:
    with reopen(graph, mode="ro") as reader, pytest.raises(BadRequest, match="read-only"):
        reader.optimize()


@pytest.mark.case("engine", 264)
def test_a_table_that_drifted_is_skipped_and_the_rest_is_done(graph: Graph) -> None:
    published = pins(graph)["node:Doc"]
    lance.dataset(str(table_path(graph, "node:Doc"))).delete("code = 'd01'")

    result = graph.optimize()

    skipped = table_of(result, "node:Doc")
    assert (skipped.skipped, skipped.committed) == ("drift_needs_repair", False)
    assert (skipped.manifest_version, skipped.lance_head_version) == (published, published + 1)
    assert table_of(result, "edge:Cites").committed
    assert fragments(graph, "edge:Cites") == [sum(fragments(graph, "edge:Cites"))]
    assert "d01" in contents(graph)["Doc"]
    assert pins(graph)["node:Doc"] == published


@pytest.mark.case("engine", 265)
def test_blobs_survive(tmp_path: Path) -> None:
    schema = """\
node Page { code: String @key  scan: Blob? }
edge Next: Page -> Page { note: Blob? }
"""
    values: list[bytes | None] = [None, b"", b"x", bytes(range(256)) * 4_096]
    with new_graph(tmp_path / "graph", schema) as graph:
        for number in range(8):
            value = values[number % len(values)]
            given = None if value is None else f"base64:{base64.b64encode(value).decode()}"
            records = [node("Page", code=f"p{number}", scan=given)]
            if number:
                records.append(edge("Next", f"p{number}", f"p{number - 1}", note=given))
            graph.load(ndjson(records), "append", index=False)
        before = contents(graph)

        assert graph.optimize().commit is not None

        assert [len(fragments(graph, key)) for key in ("node:Page", "edge:Next")] == [1, 1]
        assert contents(graph) == before
        assert graph.optimize().commit is None


# Beside others


@pytest.mark.case("engine", 218)
@pytest.mark.case("surfaces", 105)
def test_the_work_of_a_dead_writer_is_recovered_first(graph: Graph) -> None:
    with failpoint("write.post_finalize_pre_publisher", "raise"), pytest.raises(RecoveryRequired):
        graph.mutate(mutation('insert Doc { code: "new" }'))
    before = pins(graph)

    with pytest.raises(PendingRecovery, match="optimize needs a graph without pending recovery") as caught:
        graph.optimize()

    (sidecar,) = [name for name in recovery_files(graph) if name.endswith(".json")]
    assert caught.value.operation_ids == (Path(sidecar).stem,)
    assert pins(graph) == before
    with reopen(graph) as opened:
        assert opened.optimize().commit is not None
        assert "new" in contents(opened)["Doc"]


@pytest.mark.case("engine", 218)
def test_a_live_commit_is_awaited(graph: Graph) -> None:
    stopped, go_on, done = threading.Event(), threading.Event(), list[OptimizeResult]()

    def stop() -> None:
        stopped.set()
        assert go_on.wait(20)

    with (
        reopen(graph) as other,
        failpoint("write.post_sidecar_pre_commit", call=stop),
        failpoint("recovery.sidecar_list", call=lambda: go_on.set() if stopped.is_set() else None),
    ):
        writer = threading.Thread(target=lambda: other.mutate(mutation('insert Doc { code: "new" }')))
        writer.start()
        assert stopped.wait(20)
        done.append(graph.optimize())
        writer.join()

    assert done[0].commit is not None
    assert "new" in contents(graph)["Doc"]
    assert_settled(graph)


def test_a_sidecar_that_comes_before_the_gates_is_seen(graph: Graph) -> None:
    def arm() -> None:
        with failpoint("write.post_finalize_pre_publisher", "raise"), pytest.raises(RecoveryRequired):
            graph.mutate(mutation('insert Doc { code: "new" }'))

    with (
        failpoint("optimize.post_recovery_check_pre_gates", call=arm),
        pytest.raises(PendingRecovery),
    ):
        graph.optimize()


def test_a_conflict_behind_the_compaction_starts_over(graph: Graph) -> None:
    before, count, conflicts = answers(graph), len(graph.commits()), list[bool]()

    def contend_once() -> None:
        if not conflicts:
            conflicts.append(True)
            raise RowLevelCasContention("one retryable conflict")

    with failpoint("optimize.inject_reindex_conflict", call=contend_once):
        result = graph.optimize()

    assert conflicts
    assert result.commit is not None
    assert [table.skipped for table in result.tables] == [None] * 4
    assert len(graph.commits()) == count + 1
    assert answers(graph) == before
    assert_settled(graph)


def test_conflicts_without_end_leave_what_goes_forward_by_itself(graph: Graph) -> None:
    before = answers(graph)

    with (
        failpoint("optimize.inject_reindex_conflict", "contention"),
        pytest.raises(ExpectedVersionMismatch) as caught,
    ):
        graph.optimize()

    assert caught.value.recovery_operation_id is not None
    graph.mutate(mutation('update Doc set { rank: 1 } where code = "d01"'))
    graph.mutate(mutation('update Doc set { rank: 1 } where code = "d01"'))
    assert_settled(graph)
    graph.optimize()
    assert answers(graph)[1:3] == before[1:3]


def test_a_fault_before_the_manifest_is_folded_leaves_the_commit(graph: Graph) -> None:
    before = answers(graph)

    with failpoint("optimize.before_manifest_compaction", "raise"), pytest.raises(InjectedFault):
        graph.optimize()

    assert head(graph).actor_id == MAINTENANCE_ACTOR
    assert answers(graph) == before
    assert_settled(graph)
    assert graph.optimize().commit is None


# What is told meanwhile


def test_progress_names_the_table_at_hand_and_the_time_left(graph: Graph) -> None:
    told: list[TableProgress] = []

    graph.optimize(progress=told.append)

    assert [(item.table_key, item.is_done) for item in told] == [
        ("edge:Cites", False),
        ("edge:Cites", True),
        ("node:Doc", False),
        ("node:Doc", True),
    ]
    assert told[0].remaining_s is None
    assert told[1].remaining_s is not None
    assert (told[-1].remaining_s, told[-1].units_done) == (0.0, told[-1].units_total)
    assert {(item.operation, item.tables_total) for item in told} == {("optimize", 2)}


def test_many_rows_of_a_large_table_stay_where_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit_fragments(monkeypatch, 50)
    with new_graph(tmp_path / "graph") as graph:
        graph.load({"Person": people(*(f"p{number:03d}" for number in range(200)))}, "append")
        full = {
            part.fragment_id for part in lance.dataset(str(table_path(graph, "node:Person"))).get_fragments()
        }
        for number in range(5):
            graph.load({"Person": people(f"later{number}")}, "append", index=False)

        graph.optimize()

        parts = lance.dataset(str(table_path(graph, "node:Person"))).get_fragments()
        assert full < {part.fragment_id for part in parts}
        assert [part.count_rows() for part in parts] == [50, 50, 50, 50, 5]
