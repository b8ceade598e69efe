"""Mutations on the library graph: what each statement does, and what it counts."""

from collections.abc import Mapping

import pytest

from omnigraph.core.errors import ExecutionError, ValidationError
from omnigraph.core.source_errors import MixedMutation, TypeCheckError
from omnigraph.graph.graph import Graph
from tests.support.engine import assert_settled, contents, head, ids, listed, pins, rows
from tests.support.queries import mutation

BOOK = 'code: "CC-1", title: "T", price: 1.0, format: "paper", added: now()'


def run(graph: Graph, statements: str, params: Mapping[str, object] | None = None, declared: str = "") -> str:
    """Run statements as one mutation and return its counts, nodes/edges."""
    result = graph.mutate(mutation(statements, declared), params=params)
    return f"{result.affected_nodes}/{result.affected_edges}"


def refused(
    graph: Graph, statements: str, *, declared: str = "", params: Mapping[str, object] | None = None
) -> str:
    """Return the text of the execution error, having checked that nothing moved."""
    before, commit = contents(graph), head(graph)
    with pytest.raises(ExecutionError) as caught:
        graph.mutate(mutation(statements, declared), params=params)
    assert contents(graph) == before
    assert head(graph) == commit
    assert_settled(graph)
    return str(caught.value)


def type_code(graph: Graph, statements: str) -> str | None:
    """Return the code of the type error."""
    with pytest.raises(TypeCheckError) as caught:
        graph.mutate(mutation(statements))
    return caught.value.type_code


# Insert


@pytest.mark.case("languages", 188)
def test_an_insert_leaves_what_it_does_not_name_null(library: Graph) -> None:
    assert run(library, 'insert Author { handle: "eve", name: "Eve" }') == "1/0"

    eve = {"id": "eve", "handle": "eve", "name": "Eve", "born": None, "email": None}
    assert rows(library, "Author")["eve"] == eve


@pytest.mark.case("languages", 189)
@pytest.mark.case("engine", 85)
def test_a_keyed_insert_of_an_existing_key_replaces_the_whole_row(library: Graph) -> None:
    assert run(library, 'insert Author { handle: "ada", name: "A" }') == "1/0"

    assert ids(library, "Author") == ["ada", "ben", "cy", "dot"]
    ada = {"id": "ada", "handle": "ada", "name": "A", "born": None, "email": None}
    assert rows(library, "Author")["ada"] == ada
    assert len(ids(library, "Wrote")) == 5


@pytest.mark.case("languages", 190)
def test_ids_come_from_keys_or_are_made(library: Graph) -> None:
    run(library, 'insert Shelf { room: "east", slot: 7 }')
    for _ in range(2):
        run(library, 'insert Note { body: "x" }')

    assert '["east","7"]' in ids(library, "Shelf")
    assert [row["body"] for row in rows(library, "Note").values()].count("x") == 2


@pytest.mark.case("languages", 71)
def test_made_ids_are_distinct_ulids(library: Graph) -> None:
    run(library, 'insert Note { body: "x" } insert Note { body: "x" }')
    run(library, 'insert Wrote { from: "dot", to: "BB-1" } insert Wrote { from: "dot", to: "BB-1" }')

    made = [key for key in ids(library, "Note") + ids(library, "Wrote") if len(key) > 2]
    assert len(made) == len(set(made)) == 4
    assert all(len(key) == 26 and key.isupper() for key in made)


@pytest.mark.case("languages", 191)
@pytest.mark.case("engine", 94)
def test_an_edge_needs_both_its_ends(library: Graph) -> None:
    assert run(library, 'insert Wrote { from: "dot", to: "BB-1" }') == "0/1"

    assert "src 'zed' not found in Author" in refused(library, 'insert Wrote { from: "zed", to: "BB-1" }')
    assert "dst 'zz' not found in Book" in refused(library, 'insert Wrote { from: "dot", to: "zz" }')


@pytest.mark.case("languages", 192)
def test_a_maximum_counts_committed_edges(library: Graph) -> None:
    north = r'"[\"north\",\"2\"]"'

    text = refused(library, f'insert StoredOn {{ from: "AA-1", to: {north} }}')
    assert "@card violation on edge StoredOn" in text
    assert run(library, f'insert StoredOn {{ from: "AA-2", to: {north} }}') == "0/1"


@pytest.mark.case("languages", 193)
def test_unique_values_are_looked_up_among_committed_rows(library: Graph) -> None:
    text = refused(library, 'insert Mentors { from: "ada", to: "ben" }')
    assert "@unique violation on Mentors" in text
    text = refused(library, 'insert Author { handle: "x", name: "x", email: "cy@x.org" }')
    assert "@unique violation on Author.email" in text


@pytest.mark.case("languages", 194)
@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ('insert Book { code: "CC-1", title: "T", format: "paper", added: now() }', "T12"),
        ('insert Wrote { from: "ada" }', "T12"),
        ("insert Nope { a: 1 }", "T10"),
        ('insert Author { handle: "e", name: "E", nope: 1 }', "T11"),
        ('insert Author { handle: "e", name: "E", name: "F" }', "T13"),
        ('insert Author { handle: $x, name: "E" }', "T14"),
        ('insert Book { code: "CC-1", title: "T", price: 1.0, format: "vinyl", added: now() }', "T3"),
        (f"insert Book {{ {BOOK}, embedding: [1, 2] }}", "T3"),
        (f"insert Book {{ {BOOK}, published: now() }}", "T7"),
    ],
)
def test_an_insert_is_checked_against_its_type(library: Graph, statement: str, code: str) -> None:
    assert type_code(library, statement) == code
    assert_settled(library)


@pytest.mark.case("languages", 195)
def test_values_are_converted_or_refused(library: Graph) -> None:
    book = 'code: "CC-1", title: "T", format: "paper", added: now()'
    run(library, f"insert Book {{ {book}, price: 8 }}")
    stored = rows(library, "Book")["CC-1"]["price"]
    assert (stored, type(stored)) == (8.0, float)

    full = f"{book}, price: 1.0"
    assert "pages" in refused(library, f"insert Book {{ {full}, pages: 1.5 }}")
    assert "pages" in refused(library, f"insert Book {{ {full}, pages: 3000000000 }}")
    assert "@range violation" in refused(library, f"insert Book {{ {full}, pages: 0 }}")
    bad_code = 'insert Book { code: "aa1", title: "T", price: 1.0, format: "paper", added: now() }'
    assert "@check violation" in refused(library, bad_code)
    vinyl = 'insert Book { code: "CC-2", title: "T", price: 1.0, format: $f, added: now() }'
    text = refused(library, vinyl, declared="$f: String", params={"f": "vinyl"})
    assert "invalid enum value 'vinyl'" in text
    unpriced = f"insert Book {{ {book}, price: $p }}"
    assert "price" in refused(library, unpriced, declared="$p: F64?", params={"p": None})


@pytest.mark.case("languages", 223)
def test_a_vector_is_stored_as_given(library: Graph) -> None:
    run(library, f"insert Book {{ {BOOK}, embedding: [3, 4, 0, 0] }}")
    run(library, f"insert Book {{ {BOOK.replace('CC-1', 'CC-2')}, embedding: [0, 0, 0, 0] }}")

    assert rows(library, "Book")["CC-1"]["embedding"] == [3.0, 4.0, 0.0, 0.0]
    assert rows(library, "Book")["CC-2"]["embedding"] == [0.0, 0.0, 0.0, 0.0]


# Update


@pytest.mark.case("languages", 196)
def test_an_update_changes_what_it_assigns(library: Graph) -> None:
    before = rows(library, "Book")

    assert run(library, 'update Book set { price: 9.5 } where format = "paper"') == "2/0"
    for code in ("AA-1", "BB-2"):
        assert rows(library, "Book")[code] == before[code] | {"price": 9.5}

    commit = head(library)
    declared = "$p: I32?"
    text = "update Book set { price: 1.0 } where pages = $p"
    assert run(library, text, {"p": None}, declared) == "0/0"
    assert head(library) == commit
    assert "delete" in refused(library, 'update Book set { code: "ZZ-1" } where code = "AA-1"')
    assert type_code(library, 'update Wrote set { share: 1.0 } where from = "ada"') == "T16"
    assert type_code(library, 'update Book set { price: 1.0 } where cover = "x"') == "T11"


@pytest.mark.case("engine", 86)
@pytest.mark.parametrize(
    "statement",
    [
        'update Book set { code: "ZZ-1" } where code = "AA-1"',
        'update Book set { code: "ZZ-1" } where code = "none"',
        'update Shelf set { slot: 9 } where room = "north"',
        'update Shelf set { label: "x", room: "south" } where slot = 1',
    ],
)
def test_a_key_part_cannot_be_assigned_whether_or_not_a_row_matches(library: Graph, statement: str) -> None:
    assert "key" in refused(library, statement)


@pytest.mark.case("engine", 87)
def test_edges_cannot_be_updated(library: Graph) -> None:
    assert type_code(library, 'update Wrote set { role: "main" } where from = "ada"') == "T16"
    assert_settled(library)


@pytest.mark.case("engine", 93)
def test_an_update_that_matches_nothing_leaves_no_trace(library: Graph) -> None:
    commit, before = head(library), pins(library)

    result = library.mutate(mutation('update Author set { name: "x" } where handle = "nobody"'))

    assert (result.affected_nodes, result.affected_edges, result.commit) == (0, 0, None)
    assert head(library) == commit
    assert pins(library) == before
    assert_settled(library)


# Several statements


@pytest.mark.case("languages", 200)
@pytest.mark.case("engine", 80)
def test_an_edge_sees_a_node_of_the_same_query(library: Graph) -> None:
    node, edge = 'insert Author { handle: "eve", name: "Eve" }', 'insert Wrote { from: "eve", to: "BB-1" }'
    before = len(library.commits())

    assert run(library, f"{node} {edge}") == "1/1"
    assert len(library.commits()) == before + 1
    assert [row["dst"] for row in rows(library, "Wrote").values() if row["src"] == "eve"] == ["BB-1"]


@pytest.mark.case("languages", 200)
def test_an_edge_may_come_before_its_node(library: Graph) -> None:
    node, edge = 'insert Author { handle: "eve", name: "Eve" }', 'insert Wrote { from: "eve", to: "BB-1" }'

    assert run(library, f"{edge} {node}") == "1/1"


@pytest.mark.case("languages", 201)
@pytest.mark.case("engine", 82)
def test_an_update_sees_the_insert_before_it(library: Graph) -> None:
    before = pins(library)["node:Author"]
    insert = 'insert Author { handle: "eve", name: "Eve" }'
    update = 'update Author set { name: "Evelyn" } where handle = "eve"'

    assert run(library, f"{insert} {update}") == "2/0"

    assert rows(library, "Author")["eve"]["name"] == "Evelyn"
    assert pins(library)["node:Author"] == before + 1


@pytest.mark.case("languages", 202)
@pytest.mark.case("engine", 83)
def test_an_update_does_not_match_a_value_that_was_just_changed(library: Graph) -> None:
    first = 'update Book set { format: "audio" } where format = "paper"'
    second = 'update Book set { price: 1.0 } where format = "paper"'

    assert run(library, f"{first} {second}") == "2/0"

    assert {row["format"] for row in rows(library, "Book").values()} == {"audio", "ebook"}
    assert 1.0 not in {row["price"] for row in rows(library, "Book").values()}


@pytest.mark.case("engine", 84)
def test_of_two_updates_the_later_wins(library: Graph) -> None:
    before = pins(library)["node:Author"]
    updates = [f'update Author set {{ name: "{name}" }} where handle = "ada"' for name in ("One", "Two")]

    assert run(library, " ".join(updates)) == "2/0"

    assert rows(library, "Author")["ada"]["name"] == "Two"
    assert pins(library)["node:Author"] == before + 1


@pytest.mark.case("languages", 203)
def test_a_freed_value_may_be_taken_in_the_same_query(library: Graph) -> None:
    free = 'update Author set { email: "new@x.org" } where handle = "cy"'
    take = 'insert Author { handle: "eve", name: "Eve", email: "cy@x.org" }'

    assert run(library, f"{free} {take}") == "2/0"

    emails = {key: row["email"] for key, row in rows(library, "Author").items()}
    assert (emails["cy"], emails["eve"]) == ("new@x.org", "cy@x.org")


@pytest.mark.case("languages", 204)
@pytest.mark.case("engine", 81)
def test_a_failing_statement_takes_the_others_with_it(library: Graph) -> None:
    good = 'insert Author { handle: "eve", name: "Eve" }'
    bad = 'insert Wrote { from: "eve", to: "nowhere" }'

    refused(library, f"{good} {bad}")

    assert run(library, good) == "1/0"


@pytest.mark.case("languages", 205)
def test_of_two_inserts_of_one_key_the_later_wins(library: Graph) -> None:
    inserts = [f'insert Author {{ handle: "eve", name: "{name}" }}' for name in ("One", "Two")]

    assert run(library, " ".join(inserts)) == "2/0"

    assert rows(library, "Author")["eve"]["name"] == "Two"


@pytest.mark.case("languages", 206)
def test_now_is_one_moment(library: Graph) -> None:
    run(library, 'insert Note { body: "a", made: now() } insert Note { body: "b", made: now() }')

    made = [row["made"] for row in rows(library, "Note").values() if row["body"] in {"a", "b"}]
    assert len(made) == 2
    assert made[0] == made[1] is not None
    update, delete = (
        'update Author set { name: "x" } where handle = "ada"',
        'delete Note where body = "check"',
    )
    for statements in (f"{update} {delete}", f"{delete} {update}"):
        with pytest.raises(MixedMutation):
            library.mutate(mutation(statements))


def test_a_validation_error_lists_what_else_is_wrong(library: Graph) -> None:
    both = 'insert Wrote { from: "zed", to: "BB-1" } insert Wrote { from: "ada", to: "zz" }'

    with pytest.raises(ValidationError) as caught:
        library.mutate(mutation(both))

    assert caught.value.total == 2
    assert [found.line for found in listed(caught.value)] == [1, 2]
