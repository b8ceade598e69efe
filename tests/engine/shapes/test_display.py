"""What an interpreter and a notebook show of a graph and of what it gives."""

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph
from omnigraph import Graph, Result
from omnigraph.core.markup import CHARACTERS_MAX
from omnigraph.graph.display import without_secrets
from omnigraph.graph.result import HTML_ROWS_MAX
from omnigraph.history.lanes import COMMITS_MAX, CommitList
from omnigraph.operations.query import QueryAnswer, ReadTarget

EVIL = "<script>alert('x')</script>&\"'"
SCHEMA = """\
node Person { name: String @key  age: I64?  a: I32?  b: I32?  c: I32?  d: I32?  e: I32?  f: I32?  g: I32? }
node Club { name: String @key }
node Town { name: String @key }
edge Knows: Person -> Person { since: I32? }
edge In: Person -> Club
edge Leads: Person -> Club
edge Hosts: Club -> Person
"""


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    """A graph with two persons, a branch, a merge, and markup in names and messages."""
    made = omnigraph.init(tmp_path / "g.omni", SCHEMA, durability="process")
    made.load({"Person": [{"name": EVIL}], "Club": [{"name": "x" * 1_000}]}, "append", index=False)
    with made.branch("june", "main", merge_on_exit=True) as june:
        june.load({"Person": [{"name": "bo"}]}, "append", message=EVIL, actor="<b>act</b>", index=False)
        made.load({"Town": [{"name": "t"}]}, "append", index=False)
    return made


def shown(value: object) -> str:
    """Return what a notebook shows, which is well-formed and harmless."""
    html: str = value._repr_html_()  # type: ignore[attr-defined] # what notebooks call
    ElementTree.fromstring(f"<div>{html}</div>")
    assert not re.search(r"<script|<b>|javascript:|\son\w+=|href=|src=", html)
    return html


@pytest.mark.case("surfaces", 655)
def test_a_repr_says_what_it_is_and_nothing_more(graph: Graph, tmp_path: Path) -> None:
    commit, snapshot = graph.commits()[0], graph.snapshot()
    diff = graph.diff("main", graph.commits()[-1].graph_commit_id)
    id_ = commit.graph_commit_id

    assert repr(graph) == f"Graph('{tmp_path / 'g.omni'}', branch='main')"
    assert re.fullmatch(
        rf"GraphCommit\({id_}, 'main' at \d+, \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\dZ\)", repr(commit)
    )
    assert repr(snapshot).startswith("Snapshot('main' at ")
    assert repr(snapshot).endswith("7 tables, 4 rows)")
    assert repr(graph.at(snapshot)) == f"SnapshotView({snapshot!r})"
    assert re.fullmatch(
        r"Diff\(from 'main' at \d+ to 'main' at \d+: node:Club, node:Person, node:Town differ\)", repr(diff)
    )
    assert (
        repr(graph.query("query q() { match { $p: Person } return { $p.name } }"))
        == "Result(q: 2 rows of p.name)"
    )
    graph.close()
    assert repr(graph).endswith("branch='main', closed)")
    assert shown(graph) == f"<p>{repr(graph).replace(chr(39), '&#x27;')}</p>"


@pytest.mark.case("surfaces", 655)
def test_a_password_in_an_address_is_not_shown() -> None:
    assert without_secrets("s3://me:secret@host/b?token=secret") == "s3://…@host/b?…"
    assert without_secrets("s3://bucket/key") == "s3://bucket/key"
    assert without_secrets("/data/me@host/x?y") == "/data/me@host/x?y"


@pytest.mark.case("surfaces", 656)
def test_a_result_is_a_table_of_bounded_size_with_its_texts_escaped(graph: Graph) -> None:
    count = HTML_ROWS_MAX + 1
    table = pa.table({EVIL: [EVIL] * count, "long": ["y" * 1_000] * count, "none": pa.nulls(count)})
    html = shown(Result(QueryAnswer("q", table, ReadTarget("main", None), "c")))

    assert html.count("<tr>") == HTML_ROWS_MAX + 1
    assert html.count("&lt;script&gt;") == HTML_ROWS_MAX + 1
    assert "y" * CHARACTERS_MAX not in html
    assert f"{count} rows, the first {HTML_ROWS_MAX} shown" in html
    assert EVIL.replace("<", "&lt;")[:7] in shown(
        graph.query("query q() { match { $p: Person } return { $p } }")
    )


@pytest.mark.case("surfaces", 657)
def test_a_schema_is_a_picture_that_depends_on_it_alone(graph: Graph) -> None:
    html = shown(graph)

    assert html == shown(graph)
    assert str(graph.catalog._repr_html_()) in html
    assert html.count("<rect") == 3
    assert html.count("url(#omnigraph-arrow)") == 4
    assert [word in html for word in ("Person", "name: String @key", "and 2 more", "Leads")] == [True] * 4
    paths = re.findall(r' d="(M [^"]+)" fill', html)
    assert len(set(paths)) == 4, "no arrow hides another"


@pytest.mark.case("surfaces", 657)
def test_names_in_a_picture_are_escaped_and_a_large_schema_is_cut(graph: Graph) -> None:
    catalog = graph.catalog
    person, edge = catalog.nodes["Person"], catalog.edges["In"]
    nodes = {f"{EVIL}{n}": replace(person, name=f"{EVIL}{n}") for n in range(70)}
    edges = {EVIL: replace(edge, name=EVIL, source=f"{EVIL}0", target=f"{EVIL}1")}

    html = shown(replace(catalog, nodes=nodes, edges=edges))

    assert html.count("<rect") == 60
    assert "and 10 more node types" in html
    assert "&lt;script&gt;" in html
    assert shown(replace(catalog, nodes={}, edges={})).startswith("<svg")


@pytest.mark.case("surfaces", 658)
def test_commits_are_lanes_with_their_texts_escaped(graph: Graph) -> None:
    commits = graph.commits()
    evil = graph.commits(branch="june")[0]
    html = shown(commits)

    assert isinstance(commits, list)
    assert html.count("<circle") == len(commits) == 4
    assert html.count("<path") == 4, "a line to each parent, two from the merge"
    assert html.count("stroke-dasharray") == 1, "the merged one is not in the list"
    assert shown(CommitList([evil, *commits])).count("<path") == 5
    assert "&lt;script&gt;" in shown(CommitList([evil]))
    assert shown(evil).count("&lt;script&gt;") == 2
    many = shown(CommitList([commits[0]] * (COMMITS_MAX + 3)))
    assert many.count("<circle") == COMMITS_MAX
    assert "and 3 more commits" in many


@pytest.mark.case("surfaces", 658)
def test_snapshots_and_diffs_list_their_tables(graph: Graph) -> None:
    assert shown(graph.snapshot()) == shown(graph.at(graph.snapshot()))
    assert shown(graph.snapshot()).count("<tr>") == 8
    assert shown(graph.diff("main", graph.commits()[-1].graph_commit_id)).count("<tr>") == 4
