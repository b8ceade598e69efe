"""Stored queries: what a registry is made from, what breaks it, and running its queries."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph import BadRequest, Graph, MutationResult, QueryNotFound, Result, UnsupportedError
from omnigraph.catalog.build import compile_schema
from omnigraph.catalog.stored_queries import StoredQueries
from omnigraph.core.span import Source
from omnigraph.graph.stored_files import GivenQueries, given_queries, read_stored
from omnigraph.wire.documents import stored_query_document
from tests.support.atlas import ATLAS, place_atlas
from tests.support.commands import write

CATALOG = compile_schema(Source(ATLAS))
READS = """\
query craft($code: String) @description("One craft") @instruction("By its code") {
    match { $c: Craft { code: $code } }
    return { $c.name }
}
query near($v: Vector(3), $codes: [String], $mass: F64?, $day: Date, $many: U64) {
    match { $c: Craft }
    return { $c.code }
}
"""
WRITES = "query add($code: String) { insert Craft { code: $code, name: $code } }\n"


def registry(given: GivenQueries) -> StoredQueries:
    return read_stored(given_queries(given))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of stored queries, with what does not belong to them."""
    write(tmp_path, "queries/b.gq", READS)
    write(tmp_path, "queries/a.gq", WRITES)
    write(tmp_path, "queries/deep/c.gq", "query deep() { match { $c: Craft } return { $c.code } }")
    write(tmp_path, "queries/notes.txt", "no query")
    return tmp_path


@pytest.mark.case("surfaces", 373)
def test_three_forms_give_the_same_registry(folder: Path) -> None:
    files = [folder / "queries/b.gq", folder / "queries/a.gq"]
    names = {"near": files[0], "craft": files[0], "add": files[1]}

    of_folder = registry(folder / "queries")
    of_files = registry(files)
    of_names = registry({name: {"file": str(file)} for name, file in names.items()})

    assert of_folder == of_files == of_names
    assert of_folder.breakages == ()
    assert list(of_folder.queries) == ["add", "craft", "near"]
    assert [query.kind for query in of_folder.listed] == ["mutation", "read", "read"]
    assert len({query.digest for query in of_folder.listed}) == 2


@pytest.mark.case("surfaces", 373)
def test_an_entry_has_typed_parameters_and_what_the_query_says_of_itself(folder: Path) -> None:
    found = registry({"craft": {"file": folder / "queries/b.gq", "tool_name": "find-craft", "expose": False}})
    others = registry(folder / "queries")

    assert found.listed == ()
    assert stored_query_document(found.find("craft")) == {
        "name": "craft",
        "tool_name": "find-craft",
        "description": "One craft",
        "instruction": "By its code",
        "mutation": False,
        "params": [{"name": "code", "kind": "string", "nullable": False}],
    }
    assert stored_query_document(others.find("near")) == {
        "name": "near",
        "tool_name": "near",
        "mutation": False,
        "params": [
            {"name": "v", "kind": "vector", "vector_dim": 3, "nullable": False},
            {"name": "codes", "kind": "list", "item_kind": "string", "nullable": False},
            {"name": "mass", "kind": "float", "nullable": True},
            {"name": "day", "kind": "date", "nullable": False},
            {"name": "many", "kind": "bigint", "nullable": False},
        ],
    }


@pytest.mark.case("surfaces", 374)
def test_every_breakage_is_told_and_the_other_queries_are_there(folder: Path) -> None:
    twice = write(folder, "twice.gq", WRITES)
    torn = write(folder, "torn.gq", "query torn( {")
    bytes_ = write(folder, "bytes.gq", b"\xff\xfe")
    unfit = write(folder, "unfit.gq", "query unfit() { match { $s: Ship } return { $s.code } }")
    good = folder / "queries/b.gq"

    of_files = registry([folder / "queries/a.gq", twice, torn, bytes_, folder / "gone.gq", unfit, good])
    of_names = registry(
        {
            "craft": {"file": good, "tool_name": "one"},
            "near": {"file": good, "tool_name": "one"},
            "ships": {"file": good},
            "add": {"file": twice, "tool_name": "9 lives"},
        }
    )
    check = of_files.check(CATALOG)

    broken = [breakage.query for breakage in check.breakages]
    assert broken == ["add", str(torn), str(bytes_), str(folder / "gone.gq"), "unfit"]
    assert check.breakages[0].message == f"both {folder / 'queries/a.gq'} and {twice} declare it"
    assert "Ship" in check.breakages[-1].message
    assert list(of_files.queries) == ["add", "craft", "near", "unfit"]
    assert sorted(breakage.query for breakage in of_names.breakages) == ["add", "near", "ships"]
    assert list(of_names.queries) == ["craft", "near"]


@pytest.mark.case("surfaces", 374)
def test_a_folder_that_is_none_is_a_breakage(tmp_path: Path) -> None:
    found = registry(tmp_path / "nowhere")

    assert [breakage.query for breakage in found.breakages] == [str(tmp_path / "nowhere")]
    with pytest.raises(BadRequest, match="nowhere"):
        found.check(CATALOG).require_whole("atlas")


def test_a_mutation_that_can_do_one_thing_only_is_a_warning(tmp_path: Path) -> None:
    path = write(tmp_path, "q.gq", 'query one() { insert Mission { title: "x" } }')

    check = registry(path).check(CATALOG)

    assert check.breakages == ()
    assert [warning.query for warning in check.warnings] == ["one"]
    check.require_whole("atlas")


@pytest.fixture
def graph(folder: Path) -> Iterator[Graph]:
    place = place_atlas(folder)
    names = {
        "craft": {"file": folder / "queries/b.gq"},
        "add": {"file": folder / "queries/a.gq", "expose": False},
    }
    with omnigraph.open(place, queries=names) as opened:
        yield opened


@pytest.mark.case("surfaces", 375)
def test_stored_queries_run_by_name(graph: Graph) -> None:
    read = graph.invoke("craft", {"code": "VGR-1"})
    head = graph.commits(limit=1)[0].graph_commit_id
    added = graph.invoke("add", {"code": "CAS-1"}, if_commit=head, message="new")
    with graph.branch("june", from_="main") as june:
        on_branch = june.invoke("add", {"code": "JUN-1"})

        assert [query.name for query in june.queries()] == ["craft"]

    assert isinstance(read, Result)
    assert read.to_pylist() == [{"c.name": "vgr-1"}]
    assert isinstance(added, MutationResult)
    assert added.commit is not None
    assert (added.affected_nodes, added.commit.message) == (1, "new")
    assert isinstance(on_branch, MutationResult)
    assert on_branch.branch == "june"
    assert [query.name for query in graph.queries()] == ["craft"]
    later = graph.invoke("craft", {"code": "CAS-1"}, snapshot=head)
    assert isinstance(later, Result)
    assert later.to_pylist() == []


@pytest.mark.case("surfaces", 375)
def test_what_cannot_be_invoked_is_refused(graph: Graph, folder: Path) -> None:
    with pytest.raises(QueryNotFound, match="'ships' not found; declared: 'craft'"):
        graph.invoke("ships")
    with pytest.raises(BadRequest, match="mutation"):
        graph.invoke("add", {"code": "X"}, snapshot="main")
    with pytest.raises(BadRequest, match="read"):
        graph.invoke("craft", {"code": "X"}, if_commit="01ARZ3NDEKTSV4RRFFQ69G5FAV")
    with pytest.raises(BadRequest, match="text"):
        graph.invoke({"code": "X"})  # type: ignore[arg-type]  # a slip of the hand
    with omnigraph.open(graph.uri, mode="ro") as bare:
        assert bare.queries() == []
        with pytest.raises(UnsupportedError, match="queries="):
            bare.invoke("craft")


@pytest.mark.case("surfaces", 375)
@pytest.mark.parametrize(
    "given",
    [
        5,
        [5],
        {"craft": "b.gq"},
        {"craft": {}},
        {5: {"file": "b.gq"}},
        {"craft": {"file": "b.gq", "x": 1}},
        {"craft": {"file": "b.gq", "expose": "no"}},
        {"craft": {"file": "b.gq", "tool_name": 1}},
    ],
    ids=str,
)
def test_queries_of_another_kind_are_refused(given: GivenQueries, folder: Path) -> None:
    with pytest.raises(BadRequest, match="queries"):
        omnigraph.open(folder, queries=given)


@pytest.mark.case("surfaces", 375)
def test_a_registry_that_is_broken_is_refused_before_the_graph_is_opened(folder: Path) -> None:
    write(folder, "queries/torn.gq", "query torn( {")

    with pytest.raises(BadRequest, match=r"torn\.gq"):
        omnigraph.open(folder / "no graph", queries=folder / "queries")
