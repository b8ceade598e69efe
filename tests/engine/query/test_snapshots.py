"""Every query sees one commit, whichever it was asked for; the newest is looked for each time."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from omnigraph import (
    BadRequest,
    BranchNotFound,
    CommitNotFound,
    Graph,
    HandleForked,
    ParameterError,
    PolicyDenied,
    QueryNotFound,
    TypeCheckError,
    VersionNotFound,
)
from tests.support.engine import head, reopen, together
from tests.support.gates import note
from tests.support.people_graph import people_graph
from tests.support.queries import mutation, read
from tests.support.reading import values
from tests.support.seam import internals

NAMES = read("$p: Person", "return { $p.name } order { $p.name }")
COUNT = read("$p: Person", "return { count($p) as n }")


@pytest.fixture
def people(tmp_path: Path) -> Iterator[Graph]:
    with people_graph(tmp_path / "people") as graph:
        yield graph


def add(graph: Graph, name: str) -> None:
    graph.mutate(mutation("insert Person { name: $n }", "$n: String"), params={"n": name})


def test_a_query_sees_what_was_written_before_it(people: Graph) -> None:
    other = reopen(people)

    before = values(people.query(NAMES))
    add(other, "new")

    assert values(people.query(NAMES)) == [*before, "new"]
    assert people.query(NAMES).commit_id == head(people).graph_commit_id


def test_a_past_commit_is_read_by_id_by_version_and_by_snapshot(people: Graph) -> None:
    then = people.snapshot()
    add(people, "new")

    for past in (then, then.head.graph_commit_id, then.manifest_version):
        result = people.query(COUNT, snapshot=past)
        assert values(result) == [5]
        assert result.commit_id == then.head.graph_commit_id
        assert result.target == {"branch": None, "snapshot": then.head.graph_commit_id}
    assert values(people.query(COUNT)) == [6]
    assert people.query(COUNT).target == {"branch": "main", "snapshot": None}


def test_a_view_stays_where_it_is(people: Graph) -> None:
    view = people.at(people.snapshot())
    add(people, "new")

    assert values(view.query(COUNT)) == [5]
    assert view.snapshot.manifest_version == 2
    assert "scan" in view.explain(COUNT).to_text()
    assert values(people.at(head(people).graph_commit_id).query(COUNT)) == [6]


def test_what_is_not_there_has_its_name_in_the_error(people: Graph) -> None:
    with pytest.raises(CommitNotFound, match="nope"):
        people.query(COUNT, snapshot="nope")
    with pytest.raises(VersionNotFound, match="99"):
        people.query(COUNT, snapshot=99)
    with pytest.raises(CommitNotFound):
        people.at("nope")
    with pytest.raises(BranchNotFound, match="review"):
        people.query(COUNT, branch="review")
    with pytest.raises(BadRequest, match="cannot be combined"):
        people.query(COUNT, branch="main", snapshot=1)
    with pytest.raises(QueryNotFound, match="other"):
        people.query(COUNT, "other")


def test_texts_that_are_no_single_read(people: Graph, tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="mutate"):
        people.query(mutation('insert Person { name: "x" }'))
    with pytest.raises(BadRequest, match="a, b"):
        people.query(COUNT.replace("query q", "query a") + COUNT.replace("query q", "query b"))
    with pytest.raises(TypeCheckError, match="T1"):
        people.query(read("$p: Persson", "return { $p.name }"))
    file = tmp_path / "count.gq"
    file.write_text(COUNT)
    assert values(people.query(file)) == [5]
    with pytest.raises(BadRequest, match="missing"):
        people.query(tmp_path / "missing.gq")


def test_parameters_are_checked_before_anything_is_read(people: Graph) -> None:
    text = read("$p: Person $p.age = $n", "return { $p.name }", "$n: I64")

    for given in ({}, {"n": "x"}, {"n": 1, "m": 2}, {"n": None}):
        with pytest.raises(ParameterError):
            people.query(text, params=given)
    assert people.explain(text).to_text()
    with pytest.raises(ParameterError):
        people.explain(text, params={"n": "x"})


def test_reads_are_authorised(people: Graph) -> None:
    note(people, is_open=False)

    for call in (people.query, people.explain):
        with pytest.raises(PolicyDenied, match="read"):
            call(COUNT, actor="eve")


def test_a_handle_of_another_process_is_refused(people: Graph) -> None:
    internals(people).process += 1

    with pytest.raises(HandleForked):
        people.query(COUNT)


def test_threads_share_a_handle(people: Graph) -> None:
    texts = [
        NAMES,
        COUNT,
        read("$a knows{1,3} $b", "return { $a.name, $b.name }"),
        read("$a $k:knows $b", "return { $a.name, sum($k.since) as s }"),
    ]
    alone = [values(people.query(text)) for text in texts]

    with reopen(people) as fresh:
        answers = together(
            *(lambda text=text: [values(fresh.query(text)) for _ in range(5)] for text in texts * 2)
        )

    assert answers == [[expected] * 5 for expected in alone * 2]
