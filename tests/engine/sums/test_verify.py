"""What commits record of the files they add, and what `verify` says when a file is not what it was."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from omnigraph.graph.graph import Graph
from omnigraph.graph.opening import open as open_graph
from omnigraph.history.branches import Branch, Branches
from omnigraph.history.manifest_rows import rows_table
from omnigraph.operations.progress import TableProgress
from omnigraph.operations.verify.report import FileStatus, VerifyReport
from omnigraph.operations.verify.verify import verify_place
from omnigraph.storage.files.sums import FileSum, encode_sums
from omnigraph.storage.tables.manifest_table import ROW_ADDRESS
from omnigraph.storage.versions.newest import MARK, write_mark
from tests.support.engine import copy_of, edge, ndjson, new_graph, node
from tests.support.seam import internals, patched
from tests.support.tables import put_rows

RENAME = 'query m($n: String) { update Person set { nickName: $n } where name = "ann" }'
INSERT = "query m($n: String) { insert Person { name: $n } }"
REMOVE = 'query m() { delete Person where name = "cid" }'


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph with data, deletion and index files, and a branch with a fork of its own."""
    place = tmp_path_factory.mktemp("sums") / "graph"
    with new_graph(place) as graph:
        people = [node("Person", name=name) for name in ("ann", "bob", "cid")]
        graph.load(ndjson([*people, node("Company", name="acme"), edge("Knows", "ann", "bob")]), "append")
        graph.mutate(RENAME, params={"n": "annie"})
        graph.mutate(REMOVE)
        graph.create_branch("review")
        graph.mutate(INSERT, params={"n": "dan"}, branch="review")
        graph.mutate(INSERT, params={"n": "eve"}, branch="review")
        graph.mutate(INSERT, params={"n": "fay"})
    return place


@pytest.fixture
def graph(template: Path, tmp_path: Path) -> Iterator[Graph]:
    """A copy of it, for one test."""
    with open_graph(copy_of(template, tmp_path / "graph")) as opened:
        yield opened


def statuses(report: VerifyReport) -> dict[str, FileStatus]:
    """Return what a report says of each file."""
    return {file.path: file.status for file in report.files}


@pytest.mark.case("engine", 391)
def test_every_file_of_a_graph_is_recorded(graph: Graph) -> None:
    report = graph.verify()

    found = statuses(report)
    assert report.is_whole
    assert report.branches == ("main", "review")
    assert {path for path, status in found.items() if status is FileStatus.NOT_RECORDED} == set()
    on_disk = {str(path.relative_to(graph.uri)) for path in Path(graph.uri).rglob("*") if path.is_file()}
    tables = {path for path in on_disk if path.startswith(("nodes/", "edges/"))}
    others = {path for path in tables if path not in found and not path.endswith(".txn")}
    assert {path.rsplit("/", 1)[1] for path in others} == {"latest_version_hint.json"}
    kinds = {path.split("/")[2] for path in found if path.startswith("nodes/")}
    assert kinds == {"data", "_deletions", "_indices", "_versions", "_refs", "tree"}


@pytest.mark.case("engine", 391)
def test_a_new_graph_and_a_new_branch_are_recorded_before_their_first_commit(tmp_path: Path) -> None:
    with new_graph(tmp_path / "odd: name %20") as graph:
        assert set(statuses(graph.verify()).values()) == {FileStatus.OK}
        graph.create_branch("june")
        graph.create_branch("july", from_="june")
        assert set(statuses(graph.verify()).values()) == {FileStatus.OK}
        uri = graph.uri
    for file in Path(uri).glob("__manifest/tree/*/_versions/*.manifest"):
        content = file.read_bytes()
        file.write_bytes(_flipped(content))

        (found,) = verify_place(uri).damaged
        assert (found.path, found.status) == (str(file.relative_to(uri)), FileStatus.CHECKSUM)

        file.write_bytes(content)


def victims(root: Path) -> dict[str, Path]:
    """Return one file of each kind that a commit of a table adds."""
    patterns = {
        "data": "nodes/*/data/*.lance",
        "deletion": "nodes/*/_deletions/*",
        "index": "nodes/*/_indices/*/*",
        "version": "nodes/*/_versions/*.manifest",
        "fork": "nodes/*/tree/*/data/*.lance",
        "manifest data": "__manifest/data/*.lance",
        "manifest version": "__manifest/_versions/*.manifest",
    }
    newest = {
        "newest manifest data": "__manifest/data/*.lance",
        "newest manifest version": "__manifest/_versions/*.manifest",
        "newest deletion": "__manifest/_deletions/*",
        "newest version of a branch": "__manifest/tree/*/_versions/*.manifest",
    }
    return {kind: min(root.glob(pattern), key=_age) for kind, pattern in patterns.items()} | {
        kind: max(root.glob(pattern), key=_age) for kind, pattern in newest.items()
    }


def _age(path: Path) -> int:
    return path.stat().st_mtime_ns


KINDS = ["data", "deletion", "index", "version", "fork", "manifest data", "manifest version"]
NEWEST = [
    "newest manifest data",
    "newest manifest version",
    "newest deletion",
    "newest version of a branch",
]


@pytest.mark.case("engine", 391)
def test_what_another_handle_published_in_between_is_recorded_too(graph: Graph) -> None:
    with open_graph(graph.uri) as other:
        for number, handle in enumerate((graph, other, graph)):
            handle.mutate(INSERT, params={"n": f"in turn {number}"})

    versions = sorted((Path(graph.uri) / "__manifest" / "_versions").glob("*.manifest"))[1:]
    found = statuses(graph.verify(branch="main"))
    assert {found.get(str(path.relative_to(graph.uri))) for path in versions[:4]} == {FileStatus.OK}


def test_a_publish_knows_the_checksums_of_its_own_version_alone(graph: Graph) -> None:
    graph.mutate(INSERT, params={"n": "own"})

    opened, version = internals(graph), graph.snapshot().manifest_version
    address, own = opened.parts.coordinator.address(), opened.publisher._own_sums
    assert {item.path.split("/")[1] for item in own.of(address, version)} == {
        "data",
        "_deletions",
        "_versions",
    }
    assert own.of(address, version - 1) == own.of(address, version + 1) == ()


@pytest.mark.case("engine", 392)
def test_a_version_file_that_holds_another_version_is_named(graph: Graph) -> None:
    newest, before = sorted((Path(graph.uri) / "__manifest" / "_versions").glob("*.manifest"))[:2]
    newest.write_bytes(before.read_bytes())
    (Path(graph.uri) / "__manifest" / MARK).unlink()  # it has the checksum, and would tell as well

    report = verify_place(graph.uri)

    assert not report.is_whole
    assert statuses(report)[str(newest.relative_to(graph.uri))] is FileStatus.CHECKSUM


@pytest.mark.case("engine", 392)
@pytest.mark.parametrize("kind", KINDS + NEWEST)
def test_a_file_that_is_not_what_it_was_is_named(template: Path, tmp_path: Path, kind: str) -> None:
    root = copy_of(template, tmp_path / "graph")
    victim = victims(root)[kind]
    content = victim.read_bytes()
    damages = {
        FileStatus.CHECKSUM: _flipped(content),
        FileStatus.LENGTH: content + b"\0",
        FileStatus.MISSING: None,
    }

    for status, damage in damages.items():
        _replace(victim, damage)
        report = verify_place(str(root))
        damaged = {file.path: file.status for file in report.damaged}
        assert not report.is_whole
        assert damaged[str(victim.relative_to(root))] is status

    _replace(victim, content)
    assert verify_place(str(root)).is_whole


def _flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


def _replace(file: Path, content: bytes | None) -> None:
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content)


@pytest.mark.case("engine", 393)
def test_a_graph_without_sums_is_compared_by_the_lengths_that_versions_give(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_CHECKSUMS", "off")
    with new_graph(tmp_path / "old") as graph:
        graph.load(ndjson([node("Person", name="ann")]), "append")
    monkeypatch.delenv("OMNIGRAPH_CHECKSUMS")

    report = verify_place(str(tmp_path / "old"))

    assert report.is_whole
    assert {file.status for file in report.files} == {FileStatus.NOT_RECORDED}
    data = next((tmp_path / "old").glob("nodes/*/data/*.lance"))
    data.write_bytes(data.read_bytes()[:-1])
    (damaged,) = verify_place(str(tmp_path / "old")).damaged
    assert (damaged.path, damaged.status) == (
        str(data.relative_to(tmp_path / "old")),
        FileStatus.LENGTH,
    )


@pytest.mark.case("engine", 393)
def test_what_only_the_past_shows_is_needed_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_CHECKSUMS", "off")
    with new_graph(tmp_path / "old") as graph:
        graph.load(ndjson([node("Person", name="ann")]), "append", index=False)
        past = next((tmp_path / "old").glob("nodes/*/data/*.lance"))
        graph.load(ndjson([node("Person", name="bob")]), "overwrite", index=False)
    past.unlink()

    (damaged,) = verify_place(str(tmp_path / "old")).damaged

    assert (damaged.path, damaged.status) == (
        str(past.relative_to(tmp_path / "old")),
        FileStatus.MISSING,
    )


@pytest.mark.case("engine", 393)
def test_an_old_graph_records_what_is_added_from_then_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_CHECKSUMS", "off")
    with new_graph(tmp_path / "old") as graph:
        graph.load(ndjson([node("Person", name="ann")]), "append")
    monkeypatch.delenv("OMNIGRAPH_CHECKSUMS")

    with open_graph(tmp_path / "old") as graph:
        graph.mutate(INSERT, params={"n": "bob"})
        counts = graph.verify().counts

    assert counts["ok"] >= 3
    assert counts["not_recorded"] > 0


@pytest.mark.case("engine", 394)
def test_one_branch_can_be_verified_alone(graph: Graph) -> None:
    fork = next(Path(graph.uri).glob("nodes/*/tree/*/data/*.lance"))
    fork.unlink()

    assert graph.verify(branch="main").is_whole
    assert not graph.verify(branch="review").is_whole


@pytest.mark.case("engine", 394)
def test_a_manifest_that_cannot_be_followed_is_said_and_the_others_are_compared(graph: Graph) -> None:
    root = Path(graph.uri)
    newest = min(next((root / "__manifest" / "tree").iterdir()).glob("_versions/*.manifest"))
    newest.write_bytes(bytes(len(newest.read_bytes())))

    report = verify_place(str(root))

    (reason,) = report.unread
    assert reason.startswith("review: ")
    assert [file.path for file in report.damaged] == [str(newest.relative_to(root))]
    assert any(path.startswith("nodes/") for path in statuses(report))


@pytest.mark.case("engine", 394)
def test_rows_that_cannot_be_followed_are_said_where_every_file_is_whole(graph: Graph) -> None:
    coordinator = internals(graph).parts.coordinator
    handle = coordinator.manifest.open_fresh(coordinator.address())
    rows = coordinator.manifest.read(handle).to_pylist()
    pin = next(row for row in rows if row["object_type"] == "table_version")
    put_rows(coordinator.manifest, handle, rows_table([pin | {"table_branch": "../elsewhere"}]))

    report = verify_place(graph.uri)

    assert report.damaged == ()
    assert [reason.partition(":")[0] for reason in report.unread] == ["main"]
    assert not report.is_whole


@pytest.mark.case("engine", 434)
def test_a_key_that_is_there_twice_is_counted(graph: Graph) -> None:
    coordinator = internals(graph).parts.coordinator
    handle = coordinator.manifest.open_fresh(coordinator.address())
    pin = next(
        row for row in coordinator.manifest.read(handle).to_pylist() if row["object_type"] == "table_version"
    )
    coordinator.manifest.publish(handle, rows_table([pin, pin]), commit_id="twice")

    report = verify_place(graph.uri)

    assert (report.damaged, report.unread) == ((), ())
    assert report.repeated == (f"main: '{pin['object_id']}' is in the manifest 3 times",)
    assert not report.is_whole
    assert verify_place(graph.uri, branch="review").repeated == ()


def record(graph: Graph, item: FileSum) -> None:
    """Let a commit say that it wrote a file."""
    coordinator = internals(graph).parts.coordinator
    handle = coordinator.manifest.open_fresh(coordinator.address())
    rows = coordinator.manifest.read(handle, columns=None, with_places=True).to_pylist()
    commit = next(row for row in rows if row["object_type"] == "graph_commit")
    place = commit.pop(ROW_ADDRESS)
    recorded = rows_table([commit | {"base_objects": encode_sums([item])}])
    coordinator.manifest.publish(handle, recorded, commit_id="recorded", replaced=[place])


@pytest.mark.case("engine", 455)
def test_a_recorded_copy_of_a_transaction_may_be_gone(graph: Graph) -> None:
    copy = FileSum("nodes/1-2/_transactions/1-abc.txn", 10, "0123456789abcdef")
    record(graph, copy)

    report = graph.verify()

    assert report.is_whole
    assert copy.path not in statuses(report)


@pytest.mark.case("engine", 392)
def test_what_a_commit_recorded_is_missed_where_no_version_names_it(graph: Graph) -> None:
    lost = FileSum("nodes/1-2/data/lost.lance", 10, "0123456789abcdef")
    record(graph, lost)

    (found,) = graph.verify().damaged

    assert (found.path, found.status) == (lost.path, FileStatus.MISSING)


def test_what_a_branch_gave_to_main_stays_recorded_when_it_is_deleted(graph: Graph) -> None:
    graph.merge("review")
    graph.delete_branch("review")

    report = graph.verify()

    tables = {path: status for path, status in statuses(report).items() if not path.startswith("__manifest/")}
    assert report.is_whole
    assert set(tables.values()) == {FileStatus.OK}


@pytest.mark.case("engine", 394)
def test_verify_writes_nothing(graph: Graph) -> None:
    root = Path(graph.uri)
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}

    verify_place(str(root))

    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before


def test_the_note_of_a_manifest_tells_of_no_file_elsewhere(graph: Graph) -> None:
    folder, newest = Path(graph.uri) / "__manifest", graph.snapshot().manifest_version
    table = str(next(Path(graph.uri).glob("nodes/*/data/*.lance")).relative_to(graph.uri))
    others = [FileSum(path, 1, "0" * 16) for path in (table, "nodes/x", "__manifest_2/data/a.lance")]
    write_mark(folder, newest, is_synced=True, sums=others)

    assert verify_place(graph.uri).is_whole


@pytest.mark.case("engine", 422)
@pytest.mark.parametrize("is_damaged", [False, True])
def test_what_is_deleted_while_it_is_verified_is_no_damage(graph: Graph, is_damaged: bool) -> None:
    root = Path(graph.uri)
    needed = next(root.glob("edges/*/data/*.lance"))

    def meanwhile(progress: TableProgress) -> None:
        if progress.units_done == 1 and not progress.is_done:
            graph.merge("review", delete_branch=True)
            if is_damaged:
                needed.unlink()

    report = verify_place(str(root), progress=meanwhile)

    assert report.branches == ("main",)
    assert [file.path for file in report.damaged] == ([str(needed.relative_to(root))] if is_damaged else [])
    assert not report.unread


@pytest.mark.case("engine", 422)
def test_a_branch_that_is_deleted_before_it_is_followed_is_no_damage(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = Branches.all

    def deleted_behind_the_list(branches: Branches) -> tuple[Branch, ...]:
        found = listed(branches)
        if found:
            patched(monkeypatch, "omnigraph.history.branches.Branches.all", listed)
            graph.delete_branch("review")
        return found

    patched(monkeypatch, "omnigraph.history.branches.Branches.all", deleted_behind_the_list)

    report = verify_place(graph.uri)

    assert report.is_whole
    assert report.branches == ("main",)
