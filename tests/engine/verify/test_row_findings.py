"""What a deep verification says of rows that break the rules of the schema, and of indexes that lose some."""

import re
import shlex
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

import omnigraph
from omnigraph.core.damage import GraphDamaged
from omnigraph.core.errors import ValidationError
from omnigraph.core.failpoint import InjectedFault, failpoint
from omnigraph.graph.graph import Graph
from omnigraph.operations.progress import TableProgress
from omnigraph.operations.settings import READER_GRACE
from omnigraph.operations.verify.report import (
    FINDINGS_MAX,
    FindingKind,
    VerifyFinding,
    VerifyReport,
)
from omnigraph.operations.verify.verify import verify_place
from tests.support.books import fingerprint
from tests.support.engine import edge, ndjson, new_graph, node
from tests.support.foreign import add_rows, alter_column, claim_everything, foreign
from tests.support.in_process import invoke
from tests.support.seam import patched

SCHEMA = """\
node Thing {
    code: String @key
    kind: enum(a, b)
    size: I32?
    price: F64?
    label: String? @unique
    room: String?
    slot: I32?
    note: String? @index
    place: Vector(4)? @index
    @range(size, 1..5)
    @check(code, "^[A-Z]+$")
    @unique(room, slot)
}
edge Has: Thing -> Thing @card(2..3)
edge One: Thing -> Thing @card(0..1) { @unique(src, dst) }
"""
THING = "node:Thing"


def things(*codes: str) -> list[dict[str, object]]:
    return [
        node("Thing", code=code, kind="a", note=f"note of {code}", place=[1, 0, 0, number])
        for number, code in enumerate(codes)
    ]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("rows") / "graph"
    with new_graph(place, SCHEMA) as graph:
        records = [*things("A", "B", "C", "D"), edge("Has", "A", "B"), edge("Has", "A", "C")]
        graph.load(ndjson([*records, edge("One", "A", "B", id="one")]), "append")
    return place


@pytest.fixture
def graph(template: Path, tmp_path: Path) -> Iterator[Graph]:
    with omnigraph.open(shutil.copytree(template, tmp_path / "graph")) as opened:
        yield opened


def plant(graph: Graph, table_key: str, branch: str = "main", **columns: list[object]) -> None:
    """Append rows past every check, and publish them."""
    add_rows(foreign(graph, table_key, branch), **columns)
    result = graph.repair(confirm=True, force=True, branch=branch)
    assert result.commit is not None


def told(report: VerifyReport) -> list[tuple[str, str, str]]:
    return [(finding.kind.value, finding.where, finding.what) for finding in report.findings]


# What is planted, and what is said of it: one finding each.
PLANTED: dict[str, tuple[str, dict[str, list[object]], tuple[str, str, str]]] = {
    "an id twice": (
        THING,
        {"id": ["A"], "code": ["A"], "kind": ["a"]},
        ("id", "node:Thing 'A'", "node:Thing gets id 'A' twice"),
    ),
    "an id that is not the key's": (
        THING,
        {"id": ["X"], "code": ["Y"], "kind": ["a"]},
        ("id", "node:Thing 'X'", "id 'X' is not that of its key, 'Y'"),
    ),
    "enum": (
        THING,
        {"id": ["X"], "code": ["X"], "kind": ["c"]},
        ("value", "node:Thing 'X'", "invalid enum value 'c' for Thing.kind: expected one of a, b"),
    ),
    "range": (
        THING,
        {"id": ["X"], "code": ["X"], "kind": ["a"], "size": [9]},
        ("value", "node:Thing 'X'", "@range violation on Thing.size: 9 is not in 1..5"),
    ),
    "check": (
        THING,
        {"id": ["x"], "code": ["x"], "kind": ["a"]},
        ("value", "node:Thing 'x'", "@check violation on Thing.code: 'x' does not match '^[A-Z]+$'"),
    ),
    "a type's own rule": (
        THING,
        {"id": ["X"], "code": ["X"], "kind": ["a"], "price": [float("inf")]},
        ("value", "node:Thing 'X'", "Thing.price must be finite, not inf"),
    ),
    "unique": (
        THING,
        {"id": ["X", "Y"], "code": ["X", "Y"], "kind": ["a", "b"], "label": ["l", "l"]},
        ("unique", "node:Thing 'Y'", "@unique violation on Thing.label: 'l' is held by 'X'"),
    ),
    "unique together": (
        THING,
        {"id": ["X", "Y"], "code": ["X", "Y"], "kind": ["a", "b"], "room": ["r", "r"], "slot": [1, 1]},
        ("unique", "node:Thing 'Y'", "@unique violation on Thing.(room, slot): 'r', '1' is held by 'X'"),
    ),
    "src": (
        "edge:Has",
        {"id": ["h"] * 1, "src": ["nobody"], "dst": ["A"]},
        ("endpoint", "edge:Has 'h'", "src 'nobody' not found in Thing"),
    ),
    "dst": (
        "edge:Has",
        {"id": ["h"], "src": ["A"], "dst": ["nobody"]},
        ("endpoint", "edge:Has 'h'", "dst 'nobody' not found in Thing"),
    ),
    "too many": (
        "edge:One",
        {"id": ["z"], "src": ["A"], "dst": ["C"]},
        ("cardinality", "edge:One 'z'", "@card violation on edge One: 'A' has 2 edges, at most 1 allowed"),
    ),
    "too few": (
        "edge:Has",
        {"id": ["h"], "src": ["B"], "dst": ["A"]},
        ("cardinality", "edge:Has 'B'", "@card violation on edge Has: 'B' has 1 edge, at least 2 required"),
    ),
    "unique ends": (
        "edge:One",
        {"id": ["z"], "src": ["A"], "dst": ["B"]},
        ("unique", "edge:One 'z'", "@unique violation on One.(dst, src): 'B', 'A' is held by 'one'"),
    ),
}
# What else such rows break.
ALSO = {
    "src": {("cardinality", "edge:Has 'nobody'")},
    "unique ends": {("cardinality", "edge:One 'z'")},
}


@pytest.mark.case("engine", 514)
@pytest.mark.parametrize("what", PLANTED)
@pytest.mark.parametrize("branch", ["main", "june"])
def test_a_row_that_breaks_a_rule_is_named_with_the_rule(graph: Graph, what: str, branch: str) -> None:
    table_key, columns, (kind, where, message) = PLANTED[what]
    if branch != "main":
        graph.create_branch(branch)
        touch = 'query m() { update Thing set { size: 2 } where code = "D" }'
        graph.mutate(touch, branch=branch)
        graph.load(ndjson([edge("Has", "D", "A"), edge("Has", "D", "B")]), "append", branch=branch)
        graph.load(ndjson([edge("One", "B", "D")]), "append", branch=branch)
        where = where.replace(table_key, f"{table_key} on branch {branch}")
    plant(graph, table_key, branch, **columns)
    before = fingerprint(Path(graph.uri))

    plain, deep = graph.verify(), graph.verify(deep=True)

    assert plain.is_whole
    assert (kind, where, message) in told(deep)
    others = {(k, w) for k, w, m in told(deep) if m != message}
    assert {(k, w.replace(f" on branch {branch}", "")) for k, w in others} == ALSO.get(what, set())
    assert fingerprint(Path(graph.uri)) == before


@pytest.mark.case("engine", 514)
def test_a_missing_value_is_named(graph: Graph) -> None:
    """The table itself refuses nulls there, so the rule comes after the row."""
    plant(graph, THING, id=["X"], code=["X"], kind=["a"])
    alter_column(foreign(graph, THING), "kind", nullable=True)
    foreign(graph, THING).update({"kind": "cast(null as string)"}, where="id = 'X'")
    graph.repair(confirm=True, force=True)

    assert told(graph.verify(deep=True)) == [
        ("value", "node:Thing 'X'", "missing required property Thing.kind")
    ]


@pytest.mark.case("engine", 514)
def test_more_than_some_findings_of_one_kind_are_counted(graph: Graph) -> None:
    codes = [f"x{number:02}" for number in range(FINDINGS_MAX + 7)]
    plant(graph, THING, id=[*codes], code=[*codes], kind=["a"] * len(codes))

    report = graph.verify(deep=True)

    assert len(report.findings) == FINDINGS_MAX
    assert report.untold == 7


@pytest.mark.case("engine", 518)
def test_what_several_branches_show_is_read_once(graph: Graph) -> None:
    read: dict[str, int] = {}

    def count(progress: TableProgress) -> None:
        if progress.stage == "rows":
            read[progress.table_key] = read.get(progress.table_key, 0) + 1

    alone = graph.verify(deep=True, progress=count)
    once, read = read, {}
    for name in ("june", "july"):
        graph.create_branch(name)
    three = graph.verify(deep=True, progress=count)

    tables = {THING, "edge:Has", "edge:One"}
    assert {key: read[key] for key in tables} == {key: once[key] for key in tables}
    assert alone.rows_checked == three.rows_checked == 7
    assert three.branches == ("main", "july", "june")


def test_rows_that_a_write_would_refuse_are_refused_alike(graph: Graph) -> None:
    """The checks are those of writes: what a load refuses is what verify finds."""
    with pytest.raises(ValidationError, match=r"@range violation on Thing\.size: 9 is not in 1\.\.5"):
        graph.load(ndjson([node("Thing", code="X", kind="a", size=9)]), "append")


# Indexes


@pytest.mark.case("engine", 515)
def test_an_index_that_claims_rows_it_does_not_hold_is_named(graph: Graph) -> None:
    graph.mutate('query m() { insert Thing { code: "E", kind: "b", label: "e" } }')
    dataset = foreign(graph, THING)
    dataset.drop_index("label__btree")
    claim_everything(foreign(graph, THING), "label__btree")
    graph.repair(confirm=True, force=True)

    report = graph.verify(deep=True)

    assert told(report) == [
        ("index", "node:Thing, index label__btree", "does not find 'E' by its label"),
    ]
    assert report.findings[0].remedy


@pytest.mark.case("engine", 515)
def test_an_index_that_is_missing_or_covers_less_is_no_finding(graph: Graph) -> None:
    graph.mutate('query m() { insert Thing { code: "E", kind: "b", note: "more", place: [1, 2, 3, 4] } }')
    foreign(graph, THING).drop_index("note__fts")
    graph.repair(confirm=True, force=True)

    assert graph.verify(deep=True).is_whole


@pytest.mark.case("engine", 515)
@pytest.mark.parametrize("name", ["id__btree", "note__fts", "place__vector"])
def test_an_index_whose_files_are_gone_is_named(graph: Graph, name: str) -> None:
    location = Path(graph.uri) / graph.snapshot().entry(THING).location
    (index,) = (item for item in foreign(graph, THING).describe_indices() if item.name == name)
    shutil.rmtree(location / "_indices" / str(index.segments[0].uuid))

    report = verify_place(graph.uri, deep=True)

    kinds = {finding.kind for finding in report.findings}
    assert kinds >= {FindingKind.FILE, FindingKind.INDEX}
    (found,) = (finding for finding in report.findings if finding.kind is FindingKind.INDEX)
    assert found.where == f"node:Thing, index {name}"
    assert found.what.startswith("cannot be read")


@pytest.mark.case("engine", 836)
@pytest.mark.parametrize("branch", ["main", "june/review"])
def test_the_command_that_a_finding_about_an_index_names_builds_it_anew(graph: Graph, branch: str) -> None:
    if branch != "main":
        graph.create_branch(branch)
    graph.mutate('query m() { insert Thing { code: "E", kind: "b", label: "e" } }', branch=branch)
    foreign(graph, THING, branch).drop_index("label__btree")
    claim_everything(foreign(graph, THING, branch), "label__btree")
    graph.repair(confirm=True, force=True, branch=branch)
    (found,) = graph.verify(deep=True).findings

    run_way_out(graph, found)

    assert graph.verify(deep=True).is_whole
    rows = graph.query('query q() { match { $t: Thing { label: "e" } } return { $t.code } }', branch=branch)
    assert rows.rows == [{"t.code": "E"}]


@pytest.mark.case("engine", 836)
@pytest.mark.parametrize("name", ["id__btree", "note__fts", "place__vector"])
@pytest.mark.parametrize("level", ["lengths", "checksums"])
def test_an_index_whose_files_are_gone_is_built_anew_by_the_command_that_is_named(
    graph: Graph, name: str, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commits from before still need the files, until a cleanup ends their retention."""
    monkeypatch.setenv(READER_GRACE, "0")
    monkeypatch.setenv("OMNIGRAPH_VERIFY", level)
    location = Path(graph.uri) / graph.snapshot().entry(THING).location
    (index,) = (item for item in foreign(graph, THING).describe_indices() if item.name == name)
    shutil.rmtree(location / "_indices" / str(index.segments[0].uuid))
    report = verify_place(graph.uri, deep=True)
    (found,) = (finding for finding in report.findings if finding.kind is FindingKind.INDEX)
    files = [finding for finding in report.findings if finding.kind is FindingKind.FILE]

    with pytest.raises(GraphDamaged, match="omnigraph verify --deep"):
        omnigraph.open(graph.uri)
    run_way_out(graph, found)
    after = verify_place(graph.uri, deep=True)

    assert files
    assert told(after) == [(file.kind.value, file.where, file.what) for file in files]
    assert {"omnigraph index rebuild" in file.remedy for file in files} == {True}
    with omnigraph.open(graph.uri) as other:
        assert other.cleanup(1, dry_run=False).failed == ()
    assert verify_place(graph.uri, deep=True).is_whole


def run_way_out(graph: Graph, finding: VerifyFinding) -> None:
    """Type the command that a finding names, with the place of the graph."""
    (named,) = re.findall(r"omnigraph (index rebuild [^,;]+)", finding.remedy)
    command, rebuild, *rest = shlex.split(named)
    outcome = invoke(command, rebuild, graph.uri, *rest, cwd=Path(graph.uri).parent)
    assert outcome.code == 0, outcome


# Files that nothing needs


@pytest.mark.case("engine", 516)
def test_files_that_nothing_needs_are_listed_with_their_bytes(graph: Graph) -> None:
    root = Path(graph.uri)
    graph.create_branch("june")
    graph.mutate('query m() { update Thing set { size: 2 } where code = "D" }', branch="june")
    graph.mutate('query m() { update Thing set { size: 3 } where code = "D" }')
    assert graph.verify(deep=True).unreferenced == ()
    before = set(root.rglob("*"))

    with failpoint("write.post_stage_pre_gate", "raise"), pytest.raises(InjectedFault):
        graph.mutate('query m() { insert Thing { code: "E", kind: "b" } }')
    left = {file for file in set(root.rglob("*")) - before if file.is_file()}
    report = graph.verify(deep=True)

    assert report.is_whole
    assert {(file.path, file.length) for file in report.unreferenced} == {
        (str(file.relative_to(root)), file.stat().st_size) for file in left
    }
    assert graph.verify().unreferenced == ()
    assert graph.verify(branch="main", deep=True).unreferenced == (), "other branches may need them"


@pytest.mark.case("engine", 516)
def test_files_of_versions_that_no_commit_shows_are_referenced(graph: Graph) -> None:
    add_rows(foreign(graph, THING), id=["X"], code=["X"], kind=["a"])

    assert graph.verify(deep=True).unreferenced == ()


@pytest.mark.case("engine", 516)
def test_what_a_branch_left_is_listed(graph: Graph) -> None:
    """Its fork is there, and no branch shows it."""
    entry = graph.snapshot().entry(THING)
    graph.create_branch("june")
    graph.mutate('query m() { update Thing set { size: 2 } where code = "D" }', branch="june")
    kept = shutil.copytree(Path(graph.uri) / entry.location / "tree", Path(graph.uri).parent / "tree")
    graph.delete_branch("june")
    shutil.copytree(kept, Path(graph.uri) / entry.location / "tree", dirs_exist_ok=True)

    report = graph.verify(deep=True)

    assert report.is_whole
    assert {Path(file.path).parts[2] for file in report.unreferenced} == {"tree"}
    assert {Path(file.path).parts[4] for file in report.unreferenced} == {"data", "_deletions"}


@pytest.mark.case("surfaces", 675)
def test_every_step_of_a_deep_verification_tells_its_progress(graph: Graph) -> None:
    told_: list[TableProgress] = []

    graph.verify(deep=True, progress=told_.append)

    files = [progress for progress in told_ if progress.stage == "files"]
    rows = [progress for progress in told_ if progress.stage == "rows"]
    assert [*files, *rows] == told_
    assert {(progress.operation, progress.unit) for progress in files} == {("verify", "files")}
    assert {(progress.operation, progress.unit) for progress in rows} == {("verify", "rows")}
    for stage in (files, rows):
        assert (stage[0].units_done, stage[0].remaining_s, stage[0].is_done) == (0, None, False)
        assert (stage[-1].units_done, stage[-1].remaining_s) == (stage[-1].units_total, 0.0)
        assert all(before.units_done <= after.units_done for before, after in pairwise(stage))
        done = [progress.table_key for progress in stage if progress.is_done]
        assert done == list(dict.fromkeys(progress.table_key for progress in stage))
    assert {progress.table_key for progress in rows} == {THING, "edge:Has", "edge:One"}
    assert {progress.table_key for progress in files} >= {THING, "edge:Has", "edge:One", "__manifest"}


@pytest.mark.case("surfaces", 675)
def test_one_large_table_is_told_in_parts(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    patched(monkeypatch, "omnigraph.operations.verify.rows.BATCH_ROWS", 1)
    told_: list[TableProgress] = []

    graph.verify(deep=True, progress=told_.append)

    of_table = [
        item for item in told_ if (item.stage, item.table_key) == ("rows", THING) and not item.is_done
    ]
    assert len(of_table) > 4
    assert all(item.remaining_s is not None for item in of_table[1:])


def test_keys_of_large_tables_are_compared_in_parts(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(graph, THING, id=["A", "x"], code=["A", "x"], kind=["a", "a"])
    whole = told(graph.verify(deep=True))
    patched(monkeypatch, "omnigraph.validate.table_questions.KEYS_MAX", 2)

    assert told(graph.verify(deep=True)) == whole
    assert len(whole) == 2


@pytest.mark.case("engine", 515)
def test_of_a_large_table_rows_all_over_it_are_looked_up(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of seven batches every second one, and the index holds none of the last three."""
    graph.load(ndjson(things(*(f"Z{chr(65 + n)}" for n in range(3)))), "append", index=False)
    dataset = foreign(graph, THING)
    dataset.drop_index("id__btree")
    claim_everything(foreign(graph, THING), "id__btree")
    graph.repair(confirm=True, force=True)
    patched(monkeypatch, "omnigraph.operations.verify.indexes.FEW_VALUES", 1)
    patched(monkeypatch, "omnigraph.operations.verify.indexes.LOOKUPS_MAX", 4)

    found = told(graph.verify(deep=True))

    assert [what for _, where, what in found if "id__btree" in where] == [
        "does not find 'ZA' by its id",
        "does not find 'ZC' by its id",
    ]
