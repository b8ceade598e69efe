"""Deletes on the library graph: what goes with a node, and what is counted."""

from datetime import date

import pytest

from omnigraph.core.errors import ValidationError
from omnigraph.graph.graph import Graph
from tests.support.engine import assert_settled, contents, head, ids, pins, rows
from tests.support.queries import mutation


def run(graph: Graph, statements: str) -> str:
    """Run statements as one mutation and return its counts, nodes/edges."""
    result = graph.mutate(mutation(statements))
    return f"{result.affected_nodes}/{result.affected_edges}"


@pytest.mark.case("languages", 197)
@pytest.mark.parametrize(
    ("statement", "counts"),
    [
        ('delete Book where code = "AA-2"', "1/3"),
        ('delete Author where handle = "cy"', "1/3"),
        ('delete Wrote where from = "ada"', "0/2"),
        ('delete Author where handle = "nobody"', "0/0"),
    ],
)
def test_a_delete_takes_the_edges_along(library: Graph, statement: str, counts: str) -> None:
    commit = head(library)

    assert run(library, statement) == counts

    assert (head(library) == commit) == (counts == "0/0")


@pytest.mark.case("engine", 88)
def test_a_deleted_node_takes_its_edges_of_every_type_and_both_directions(library: Graph) -> None:
    run(library, 'insert Cites { from: "BB-1", to: "AA-2" }')

    assert run(library, 'delete Book where code = "AA-2"') == "1/4"

    assert ids(library, "Cites") == ["c3", "c4"]
    assert ids(library, "Wrote") == ["w1", "w2", "w4", "w5"]
    assert run(library, 'delete Author where handle = "ben"') == "1/2"
    assert ids(library, "Mentors") == []


@pytest.mark.case("engine", 88)
def test_a_loop_and_an_edge_between_two_deleted_nodes_count_once(library: Graph) -> None:
    assert run(library, 'delete Book where code != "AA-1" delete Note where body = "check"') == "4/9"

    assert ids(library, "Cites") == []
    assert ids(library, "Wrote") == ["w1"]


@pytest.mark.case("languages", 198)
def test_a_cascade_below_a_minimum_removes_nothing(library: Graph) -> None:
    before, commit = contents(library), head(library)

    with pytest.raises(ValidationError, match="@card violation on edge About"):
        run(library, 'delete Book where code = "AA-1"')

    assert contents(library) == before
    assert head(library) == commit
    assert_settled(library)


@pytest.mark.case("languages", 199)
def test_two_deletes_of_one_row_count_once(library: Graph) -> None:
    both = 'delete Author where handle = "ada" delete Author where name = "Ada Quill"'

    assert run(library, both) == "1/3"


@pytest.mark.case("engine", 89)
def test_a_null_under_the_first_predicate_is_counted_by_the_second(library: Graph) -> None:
    # ben and dot have no `born`: a plain NOT of the first predicate would lose them.
    both = 'delete Author where born < date("1960-01-01") delete Author where name != "Cy Verse"'

    assert run(library, both) == "3/5"

    assert ids(library, "Author") == ["cy"]
    assert rows(library, "Author")["cy"]["born"] == date(1990, 12, 31)


@pytest.mark.case("engine", 90)
def test_a_delete_without_incident_edges_moves_no_edge_table(library: Graph) -> None:
    before = pins(library)

    assert run(library, 'delete Author where handle = "dot"') == "1/0"

    after = pins(library)
    assert {key for key in after if after[key] != before[key]} == {"node:Author"}
    assert_settled(library)


@pytest.mark.case("engine", 91)
def test_an_edge_taken_by_a_cascade_and_by_name_counts_once(library: Graph) -> None:
    cascade = 'delete Author where handle = "ada"'
    explicit = 'delete Wrote where from = "ada"'

    assert run(library, f"{cascade} {explicit}") == "1/3"


def test_an_edge_taken_by_name_and_then_by_a_cascade_counts_once(library: Graph) -> None:
    assert run(library, 'delete Wrote where from = "ada" delete Author where handle = "ada"') == "1/3"
