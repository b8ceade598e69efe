"""What `verify` says of manifests, schema files, pins and HEADs that are not as they should be."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.commit.schema_lock import schema_lock
from omnigraph.graph.graph import Graph
from omnigraph.history.fold import TableEntry
from omnigraph.history.manifest_rows import (
    COMMIT,
    commit_row,
    head_row,
    pin_row,
    rows_table,
)
from omnigraph.operations.progress import TableProgress
from omnigraph.operations.verify.report import FindingKind, VerifyReport
from omnigraph.operations.verify.verify import verify_place
from omnigraph.storage.tables.handle import TableAddress
from omnigraph.storage.tables.table import TableStore
from tests.support.books import fingerprint
from tests.support.engine import copy_of, edge, ndjson, new_graph, node
from tests.support.foreign import add_rows, alter_column, foreign, remove_version
from tests.support.protocol import give_up, paused_at, stopped
from tests.support.protocol import new_graph as new_protocol_graph
from tests.support.seam import internals, patched
from tests.support.tables import put_rows

INSERT = "query m($n: String) { insert Person { name: $n } }"
PERSON = "node:Person"
PHASE_B = "write.post_finalize_pre_publisher="


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph with a branch of its own, some of which main has merged."""
    place = tmp_path_factory.mktemp("verify") / "graph"
    with new_graph(place) as graph:
        people = [node("Person", name=name) for name in ("ann", "bob", "cid")]
        graph.load(ndjson([*people, edge("Knows", "ann", "bob")]), "append")
        graph.create_branch("review")
        graph.mutate(INSERT, params={"n": "dan"}, branch="review")
        graph.merge("review")
        graph.mutate(INSERT, params={"n": "eve"}, branch="review")
        graph.mutate(INSERT, params={"n": "fay"})
    return place


@pytest.fixture
def graph(template: Path, tmp_path: Path) -> Iterator[Graph]:
    """A copy of it, for one test."""
    with omnigraph.open(copy_of(template, tmp_path / "graph")) as opened:
        yield opened


def told(report: VerifyReport) -> dict[str, list[str]]:
    """Return the places of all findings, by kind; each of them is explained."""
    assert report.is_whole == (not report.findings)
    found: dict[str, list[str]] = {}
    for finding in report.findings:
        assert finding.meaning
        assert finding.remedy
        assert finding.what
        found.setdefault(finding.kind.value, []).append(finding.where)
    return found


def put(graph: Graph, *rows: dict[str, object], branch: str = "main") -> None:
    """Write rows to a manifest, in place of those that have the same keys."""
    coordinator = internals(graph).parts.coordinator
    ref = internals(graph).parts.branches.resolve(branch).ref
    handle = coordinator.manifest.open_fresh(coordinator.address(ref))
    put_rows(coordinator.manifest, handle, rows_table(list(rows)))


def commit_rows(graph: Graph) -> list[dict[str, object]]:
    """Return the rows of main's commits, oldest first."""
    coordinator = internals(graph).parts.coordinator
    rows = coordinator.manifest.read(coordinator.manifest.open_fresh(coordinator.address())).to_pylist()
    found = [row | {"base_objects": None} for row in rows if row["object_type"] == COMMIT]
    return sorted(found, key=lambda row: int(row["table_version"]))


def repin(graph: Graph, entry: TableEntry, **changes: Any) -> None:  # noqa: ANN401 - members of a pin
    """Replace the newest pin of a table."""
    wrong = replace(entry.pin, **changes)
    put(graph, pin_row(entry.identity, entry.table_key, wrong, at=wrong.published_at))


def test_a_graph_as_it_should_be_has_no_finding(graph: Graph) -> None:
    before = fingerprint(Path(graph.uri))

    plain, deep = graph.verify(), graph.verify(deep=True)

    assert (told(plain), told(deep)) == ({}, {})
    assert plain.branches == deep.branches == ("main", "review")
    assert (plain.is_deep, deep.is_deep) == (False, True)
    assert fingerprint(Path(graph.uri)) == before


# Tables and pins


@pytest.mark.case("engine", 513)
def test_drift_is_named_with_the_command_that_mends_it(graph: Graph) -> None:
    add_rows(foreign(graph, PERSON), id=["x"], name=["x"])

    (finding,) = graph.verify().findings

    assert (finding.kind, finding.where) == (FindingKind.DRIFT, PERSON)
    entry = graph.snapshot().entry(PERSON)
    assert finding.what == f"is at version {entry.version + 1}, published at {entry.version}"
    assert "omnigraph repair" in finding.remedy


@pytest.mark.case("engine", 513)
def test_drift_of_a_branch_is_told_of_the_branch(graph: Graph) -> None:
    add_rows(foreign(graph, PERSON, "review"), id=["x"], name=["x"])

    assert told(graph.verify()) == {"drift": ["node:Person on branch review"]}
    assert told(graph.verify(branch="main")) == {}
    assert told(graph.verify(branch="review")) == {"drift": ["node:Person on branch review"]}


@pytest.mark.case("engine", 513)
def test_a_table_whose_published_version_is_gone_is_behind(graph: Graph) -> None:
    entry = graph.snapshot().entry(PERSON)
    remove_version(graph, PERSON, entry.version)

    found = told(verify_place(graph.uri))

    assert found["behind"] == found["table"] == [PERSON]
    assert len(found["file"]) == 1


@pytest.mark.case("engine", 513)
@pytest.mark.parametrize(
    ("changes", "what"),
    [({"row_count": 77}, "77 were published"), ({"transaction_uuid": "other"}, "not other")],
)
def test_a_pin_that_names_something_else_is_told(graph: Graph, changes: dict[str, object], what: str) -> None:
    repin(graph, graph.snapshot().entry("node:Company"), **changes)

    (finding,) = verify_place(graph.uri).findings

    assert (finding.kind, finding.where) == (FindingKind.PIN, "node:Company")
    assert what in finding.what


@pytest.mark.case("engine", 513)
def test_columns_that_are_not_those_of_the_type_are_told(graph: Graph) -> None:
    entry = graph.snapshot().entry(PERSON)
    dataset = foreign(graph, PERSON)
    dataset.drop_columns(["nickName"])
    dataset.add_columns({"extra": "1"})
    alter_column(dataset, "age", data_type=pa.int64())
    version = foreign(graph, PERSON).version
    made = internals(graph).parts.store.transaction_info(internals(graph).parts.address(entry), version)
    repin(graph, entry, version=version, transaction_uuid=made.uuid)

    report = verify_place(graph.uri, deep=True)

    whats = {finding.what for finding in report.findings if finding.kind is FindingKind.COLUMNS}
    assert whats == {
        "column age is int64 instead of int32",
        "column nickName is missing",
        "column extra is not in the schema",
    }
    assert set(told(report)) == {"columns"}, "its rows are not checked"


# Lineage


@pytest.mark.case("engine", 513)
def test_a_commit_that_does_not_continue_the_one_before_it_is_told(graph: Graph) -> None:
    at = internals(graph).state().version + 1
    strange = commit_row("strange", "main", {"parent_commit_id": "nobody", "created_at": 1}, at=at)
    put(graph, head_row("main", "strange", "nobody"), strange)

    (finding,) = verify_place(graph.uri).findings

    head = graph.commits()[1].graph_commit_id
    assert (finding.kind, finding.where) == (FindingKind.LINEAGE, "branch main")
    assert finding.what == f"commit strange continues nobody, and stands behind {head}"


@pytest.mark.case("engine", 513)
def test_a_first_commit_with_a_parent_is_told(graph: Graph) -> None:
    first = commit_rows(graph)[0]
    metadata = {"parent_commit_id": "nobody", "created_at": 1}
    put(graph, commit_row(str(first["object_id"]), "main", metadata, at=1))

    (finding,) = verify_place(graph.uri, branch="main").findings

    assert finding.kind is FindingKind.LINEAGE
    assert finding.what == f"the first commit {first['object_id']} continues nobody"


@pytest.mark.case("engine", 513)
def test_two_commits_of_one_number_are_told(graph: Graph) -> None:
    last = commit_rows(graph)[-1]
    at = int(str(last["table_version"]))
    put(graph, commit_row("twin", "main", {"parent_commit_id": "nobody", "created_at": 0}, at=at))

    (finding,) = verify_place(graph.uri, branch="main").findings

    assert finding.kind is FindingKind.LINEAGE
    assert f"have the same number {at}" in finding.what


@pytest.mark.case("engine", 513)
def test_a_head_row_that_names_another_commit_is_told(graph: Graph) -> None:
    put(graph, head_row("main", "nobody", None))

    (finding,) = verify_place(graph.uri).findings

    head = graph.commits()[0].graph_commit_id
    assert (finding.kind, finding.where) == (FindingKind.LINEAGE, "branch main")
    assert finding.what == f"the head row names nobody, and the newest commit is {head}"


@pytest.mark.case("engine", 513)
def test_a_branch_without_its_head_row_is_told(graph: Graph) -> None:
    coordinator = internals(graph).parts.coordinator
    handle = coordinator.manifest.open_fresh(coordinator.address())
    rows = coordinator.manifest.read(handle, columns=["object_id"], with_places=True).to_pylist()
    (place,) = (row["_rowaddr"] for row in rows if row["object_id"] == "graph_head:main")
    coordinator.manifest.publish(
        handle, rows_table([head_row("elsewhere", "x", None)]), commit_id="x", replaced=[place]
    )

    (finding,) = verify_place(graph.uri).findings

    assert finding.kind is FindingKind.LINEAGE
    assert "there is no head row" in finding.what


@pytest.mark.case("engine", 513)
def test_rows_that_belong_to_no_commit_are_told(graph: Graph) -> None:
    entry = graph.snapshot().entry("node:Company")
    at = internals(graph).state().version + 1
    put(graph, pin_row(entry.identity, entry.table_key, entry.pin, at=at))

    (finding,) = verify_place(graph.uri).findings

    assert finding.kind is FindingKind.LINEAGE
    assert finding.what == f"rows of publish {at} belong to no commit"


@pytest.mark.case("engine", 513)
def test_a_merge_of_another_commit_than_it_says_is_told(graph: Graph) -> None:
    (merge,) = [row for row in commit_rows(graph) if "merged_parent_commit_id" in str(row["metadata"])]
    metadata = json.loads(str(merge["metadata"])) | {"merged_parent_commit_id": "nobody"}
    at = int(str(merge["table_version"]))
    put(graph, commit_row(str(merge["object_id"]), "main", metadata, at=at))

    (finding,) = verify_place(graph.uri).findings

    assert finding.kind is FindingKind.LINEAGE
    assert finding.what == f"merge {merge['object_id']} names nobody at a place where another commit is"


# Schema files and sidecars


@pytest.mark.case("engine", 513)
@pytest.mark.parametrize("name", ["_schema.pg", "_schema.ir.json", "__schema_state.json"])
@pytest.mark.parametrize("how", ["removed", "emptied", "edited"])
def test_schema_files_that_do_not_fit_are_told(graph: Graph, name: str, how: str) -> None:
    file = Path(graph.uri) / name
    text = file.read_text()
    if how == "removed":
        file.unlink()
    else:
        file.write_text("" if how == "emptied" else text.replace("Company", "Firm").replace("shape", "shade"))

    found = verify_place(graph.uri).findings

    assert {finding.kind for finding in found} == {FindingKind.SCHEMA}
    assert {finding.where for finding in found} == {"the schema files"}
    assert "_schema.pg" in found[0].remedy


@pytest.mark.case("engine", 513)
def test_schema_files_of_another_graph_are_told(graph: Graph, tmp_path: Path) -> None:
    """They agree with each other, and not with the manifest."""
    text = (Path(graph.uri) / "_schema.pg").read_text()
    with new_graph(tmp_path / "other", text.replace("edge Knows:", "edge Knew:")) as other:
        for name in ("_schema.pg", "_schema.ir.json", "__schema_state.json"):
            (Path(graph.uri) / name).write_bytes((Path(other.uri) / name).read_bytes())

    found = verify_place(graph.uri)

    assert {finding.kind for finding in found.findings} == {FindingKind.SCHEMA}
    assert "the schema has edge:Knew, the manifest does not" in {finding.what for finding in found.findings}


@pytest.mark.case("engine", 513)
def test_schema_files_of_the_same_tables_are_told_by_what_was_accepted(graph: Graph, tmp_path: Path) -> None:
    text = (Path(graph.uri) / "_schema.pg").read_text()
    with new_graph(tmp_path / "other", text.replace("nickName", "alias")) as other:
        for name in ("_schema.pg", "_schema.ir.json", "__schema_state.json"):
            (Path(graph.uri) / name).write_bytes((Path(other.uri) / name).read_bytes())

    (finding,) = verify_place(graph.uri, deep=True).findings

    assert finding.kind is FindingKind.SCHEMA
    assert finding.what == "another schema than the manifest's was accepted"


@pytest.mark.case("engine", 513)
def test_a_sidecar_that_nobody_understands_is_told(graph: Graph) -> None:
    (Path(graph.uri) / "__recovery").mkdir(exist_ok=True)
    (Path(graph.uri) / "__recovery" / "01J00000000000000000000000.json").touch()

    assert told(graph.verify()) == {"sidecar": ["__recovery"]}


# Beside writers


@pytest.mark.case("engine", 517)
@pytest.mark.parametrize("deep", [False, True])
def test_a_live_writer_and_a_dead_one_are_no_findings(tmp_path: Path, deep: bool) -> None:
    root = tmp_path / "graph"
    new_protocol_graph(root).close()
    give_up(root, "update", "P3")

    with omnigraph.open(root, mode="ro") as graph:
        dead = graph.verify(deep=deep)
    omnigraph.open(root).close()
    with stopped(root, "insert", PHASE_B):
        alive = verify_place(str(root), deep=deep)

    assert (told(dead), told(alive)) == ({}, {})
    assert (len(dead.pending), len(alive.pending)) == (1, 1)


@pytest.mark.case("engine", 517)
def test_a_writer_that_publishes_between_the_looks_is_no_drift(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whenever HEAD is looked at it has just moved, and the sidecar is gone when the sidecars are."""
    latest, written = TableStore.latest_version, list[str]()
    parts = internals(graph).parts
    place = parts.address(graph.snapshot().entry(PERSON))

    def written_before(store: TableStore, address: TableAddress) -> int:
        if store is not parts.store and address == place:
            written.append(f"gus{len(written)}")
            graph.mutate(INSERT, params={"n": written[-1]})
        return latest(store, address)

    patched(monkeypatch, "omnigraph.storage.tables.table.TableStore.latest_version", written_before)

    report = verify_place(graph.uri)

    assert written
    assert told(report) == {}


@pytest.mark.case("engine", 517)
def test_what_only_the_first_look_finds_is_no_finding(graph: Graph) -> None:
    file = Path(graph.uri) / "_schema.pg"
    text = file.read_text()
    file.unlink()

    def put_back() -> None:
        file.write_text(text)

    with paused_at("recovery.sidecar_list", "call", put_back):
        report = verify_place(graph.uri)

    assert told(report) == {}


@pytest.mark.case("engine", 517)
def test_while_a_schema_change_is_applied_its_files_are_not_compared(graph: Graph) -> None:
    (Path(graph.uri) / "_schema.pg").unlink()

    with schema_lock(internals(graph).parts, exclusive=False):
        assert told(verify_place(graph.uri)) == {}
    assert told(verify_place(graph.uri)) != {}


@pytest.mark.case("engine", 517)
@pytest.mark.parametrize("has_moved", [True, False])
def test_rows_that_are_gone_are_no_finding_where_the_branch_has_moved_on(
    graph: Graph, has_moved: bool
) -> None:
    """As after a cleanup: what was being read is gone, and no branch shows it."""
    read: list[str] = []
    old = data_files(graph)

    def meanwhile(progress: TableProgress) -> None:
        if progress.stage == "rows" and progress.table_key == PERSON and progress.units_done and not read:
            read.append(progress.table_key)
            if has_moved:
                people = [node("Person", name=name) for name in ("ann", "bob", "cid", "dan", "fay")]
                graph.load(ndjson(people), "overwrite")
            for file in old:
                file.unlink()

    report = verify_place(graph.uri, branch="main", deep=True, progress=meanwhile)

    assert read == [PERSON]
    if has_moved:
        assert told(report) == {}
    else:
        assert set(told(report)["table"]) == {PERSON, "edge:Knows", "edge:WorksAt"}


def data_files(graph: Graph) -> list[Path]:
    """Return the data files that main's persons have now."""
    location = Path(graph.uri) / graph.snapshot().entry(PERSON).location
    return [
        location / "data" / file.path
        for fragment in foreign(graph, PERSON).get_fragments()
        for file in fragment.metadata.files
    ]


@pytest.mark.case("engine", 628)
@pytest.mark.parametrize("text", ["", "{}", "[]", '{"next": 0}', '{"format": 1}'])
@pytest.mark.parametrize(
    "name",
    ["__retention.json", "__numbers.json", "__copied.json", "__branches/__schema_apply_lock__.json"],
)
def test_a_control_file_that_cannot_be_read_is_reported_beside_everything_else(
    graph: Graph, name: str, text: str
) -> None:
    root = Path(graph.uri)
    (root / name).write_text(text)
    (root / "_schema.pg").write_text("node Forged { name: String @key }")

    report = verify_place(str(root), deep=True)

    told = {(finding.kind, finding.where) for finding in report.findings}
    assert (FindingKind.CONTROL_FILE, name) in told
    assert FindingKind.SCHEMA in {kind for kind, _ in told}, "the rest is checked all the same"
    assert report.files
    assert report.rows_checked
