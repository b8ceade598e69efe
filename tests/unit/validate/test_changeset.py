"""Validation of whole writes: uniqueness, endpoints, cardinality, and the folding of rows."""

import pytest

from omnigraph.core.errors import KeyConflict, ValidationError
from omnigraph.validate.columns import TableChange, WriteMode
from omnigraph.validate.set_checks import fold_by_id
from omnigraph.validate.sets import NO_IDS
from omnigraph.validate.violations import ViolationLog
from tests.unit.validate.memory_view import (
    Record,
    change,
    committed,
    messages,
    removal,
    rows_of,
    run,
    type_named,
    violations_of,
)

BOOK = {"title": "T", "price": 1.0, "format": "paper", "added": 0}


def author(handle: str, email: str | None = None, name: str = "N") -> Record:
    return {"handle": handle, "name": name, "email": email}


def book(code: str) -> dict[str, object]:
    return BOOK | {"code": code}


def edge(id_: str, src: str, dst: str) -> Record:
    return {"id": id_, "src": src, "dst": dst}


# --- values and folding


def test_a_row_that_fails_a_value_check_takes_no_part_in_the_set_checks() -> None:
    bad = rows_of("Author", author("ann", "x@y"), {"handle": "bob", "name": None, "email": "x@y"})
    mentors = rows_of("Mentors", edge("m", "ann", "bob"))

    found = violations_of(committed(), change(bad), change(mentors))

    assert messages(found) == [
        (2, "required", "missing required property Author.name"),
        (1, "endpoint", "dst 'bob' was refused"),
    ]


def test_folding_keeps_the_last_row_of_each_id_at_its_own_place() -> None:
    rows = rows_of("Cites", edge("1", "a", "b"), edge("2", "a", "c"), edge("1", "a", "d"))

    folded = fold_by_id(rows)

    assert folded.table.select(["id", "dst"]).to_pydict() == {"id": ["2", "1"], "dst": ["c", "d"]}
    assert folded.lines.tolist() == [2, 3]
    assert fold_by_id(folded) is folded


def test_the_folded_rows_are_returned_for_staging() -> None:
    rows = rows_of("Note", {"id": "n", "body": "a"}, {"id": "n", "body": "b"})
    log = ViolationLog()

    folded = run(committed(), [change(rows)], log)

    assert log.total == 0
    assert folded["node:Note"].table["body"].to_pylist() == ["b"]


def test_statements_are_coalesced_before_anything_is_checked() -> None:
    rows = rows_of(
        "Author", {"handle": "ann", "name": None, "email": "x"}, author("ann", "y"), author("bob", "x")
    )

    assert violations_of(committed(), change(rows, coalesce=True)) == []
    assert [found.kind for found in violations_of(committed(), change(rows))] == ["required"]


# --- strict inserts


@pytest.mark.parametrize("mode", ["append", "overwrite"])
@pytest.mark.parametrize(
    ("type_name", "records"),
    [
        ("Author", [author("ann"), author("bob"), author("ann")]),
        ("Note", [{"id": "ann", "body": "a"}, {"id": "bob", "body": "b"}, {"id": "ann", "body": "c"}]),
    ],
)
def test_a_strict_insert_refuses_an_id_that_stands_twice(
    mode: WriteMode, type_name: str, records: list[Record]
) -> None:
    log = ViolationLog()

    run(committed(), [change(rows_of(type_name, *records), mode)], log)

    assert [(found.line, found.row_id) for found in log.first_violations()] == [(3, "ann")]
    with pytest.raises(KeyConflict) as caught:
        log.raise_if_any()
    assert (caught.value.table_key, caught.value.row_id) == (f"node:{type_name}", "ann")


def test_an_append_refuses_an_existing_id_and_an_overwrite_does_not() -> None:
    view = committed(rows_of("Author", author("ann", "x@y")))
    rows = rows_of("Author", author("bob"), author("ann", "x@y"))

    appended = violations_of(view, change(rows, "append"))

    assert messages(appended) == [(2, "unique", "node:Author already has id 'ann'")]
    assert violations_of(view, change(rows, "overwrite")) == []
    assert violations_of(view, change(rows, "merge")) == []


def test_a_key_conflict_comes_before_the_other_unique_violations_of_its_row() -> None:
    view = committed(rows_of("Author", author("ann"), author("bob", "x@y")))
    log = ViolationLog()

    run(view, [change(rows_of("Author", author("ann", "x@y")), "append")], log)

    assert log.total == 2
    with pytest.raises(KeyConflict):
        log.raise_if_any()


def test_fresh_ids_are_not_looked_for() -> None:
    view = committed()
    rows = rows_of("Note", {"id": "1", "body": "a"}, {"id": "2", "body": "b"}, has_fresh_ids=True)

    assert violations_of(view, change(rows, "append")) == []
    assert view.calls == []


# --- unique


def test_two_records_of_one_input_with_one_key_are_refused_though_their_ids_are_equal() -> None:
    found = violations_of(committed(), change(rows_of("Author", author("ann"), author("ann"))))

    assert messages(found) == [
        (2, "unique", "@unique violation on Author.handle: 'ann' appears twice in this write")
    ]


def test_a_composite_tuple_is_named_in_parentheses() -> None:
    shelves = rows_of("Shelf", {"room": "r", "slot": 1}, {"room": "r", "slot": 2}, {"room": "r", "slot": 1})
    mentors = rows_of("Mentors", edge("1", "a", "b"), edge("2", "a", "b"))
    view = committed(rows_of("Author", author("a"), author("b")))

    assert messages(violations_of(view, change(shelves), change(mentors))) == [
        (2, "unique", "@unique violation on Mentors.(dst, src): 'b', 'a' appears twice in this write"),
        (3, "unique", "@unique violation on Shelf.(room, slot): 'r', '1' appears twice in this write"),
    ]


def test_a_value_of_a_committed_row_outside_is_refused_with_its_holder() -> None:
    view = committed(rows_of("Author", author("ann", "x@y"), author("cid", "z")))

    found = violations_of(view, change(rows_of("Author", author("bob", "x@y"), author("dan", "new"))))

    assert messages(found) == [(1, "unique", "@unique violation on Author.email: 'x@y' is held by 'ann'")]


def test_a_value_that_the_write_frees_may_be_used_again() -> None:
    view = committed(rows_of("Author", author("ann", "x@y"), author("cid", "z")))
    moved = rows_of("Author", author("ann", "new"), author("bob", "x@y"))
    taken_over = rows_of("Author", author("bob", "z"))

    assert violations_of(view, change(moved)) == []
    assert violations_of(view, change(moved, coalesce=True)) == []
    assert violations_of(view, change(taken_over, removed=["cid"])) == []


def test_null_is_never_a_duplicate() -> None:
    view = committed(rows_of("Author", author("ann")))

    assert violations_of(view, change(rows_of("Author", author("bob"), author("cid")))) == []


def test_a_repeated_value_that_is_also_committed_is_reported_once_for_each_row() -> None:
    view = committed(rows_of("Author", author("ann", "x")))

    found = violations_of(view, change(rows_of("Author", author("bob", "x"), author("cid", "x"))))

    assert messages(found) == [
        (1, "unique", "@unique violation on Author.email: 'x' is held by 'ann'"),
        (2, "unique", "@unique violation on Author.email: 'x' appears twice in this write"),
    ]


def test_different_ids_with_one_tuple_are_refused_across_statements() -> None:
    rows = rows_of("Author", author("ann", "x"), author("bob", "x"))

    found = violations_of(committed(), change(rows, coalesce=True))

    assert [(item.line, item.row_id) for item in found] == [(2, "bob")]


def test_rows_of_one_statement_are_charged_by_id() -> None:
    rows = rows_of("Author", author("bob", "x"), author("ann", "x"), lines=[1, 1])

    found = violations_of(committed(), change(rows, coalesce=True))

    assert [item.row_id for item in found] == ["bob"]


# --- endpoints


def test_an_end_is_a_committed_or_written_node() -> None:
    view = committed(rows_of("Author", author("ann")))
    edges = rows_of("Wrote", edge("1", "ann", "AB-1"), edge("2", "bob", "AB-1"), edge("3", "ann", "AB-2"))

    found = violations_of(view, change(edges, "append"), change(rows_of("Book", book("AB-1"))))

    assert messages(found) == [
        (2, "endpoint", "src 'bob' not found in Author"),
        (3, "endpoint", "dst 'AB-2' not found in Book"),
    ]


def test_an_edge_may_stand_before_its_ends() -> None:
    edges = rows_of("Mentors", edge("m", "ann", "bob"), lines=[1])
    authors = rows_of("Author", author("ann"), author("bob"), lines=[2, 3])

    assert violations_of(committed(), change(edges), change(authors)) == []


def test_both_ends_may_be_missing() -> None:
    found = violations_of(committed(), change(rows_of("Cites", edge("c", "x", "y"))))

    assert [item.message for item in found] == ["src 'x' not found in Book", "dst 'y' not found in Book"]
    assert [(item.table_key, item.row_id) for item in found] == [("edge:Cites", "c")] * 2


def test_a_node_that_the_write_removes_is_no_end() -> None:
    view = committed(rows_of("Author", author("ann"), author("bob")))
    edges = rows_of("Mentors", edge("m", "ann", "bob"))

    found = violations_of(view, change(edges), removal("Author", "bob"))

    assert [item.message for item in found] == ["dst 'bob' not found in Author"]


def test_a_retained_edge_to_a_removed_node_is_refused_at_the_edge() -> None:
    view = committed(
        rows_of("Author", author("ann"), author("bob")),
        rows_of("Mentors", edge("m2", "ann", "bob"), edge("m1", "bob", "ann"), edge("m3", "ann", "ann")),
    )

    found = violations_of(view, removal("Author", "bob"))

    assert [(item.row_id, item.message) for item in found] == [
        ("m1", "src 'bob' not found in Author"),
        ("m2", "dst 'bob' not found in Author"),
    ]
    assert {(item.file, item.line, item.table_key) for item in found} == {(-1, -1, "edge:Mentors")}


def test_of_many_retained_edges_the_first_by_id_are_kept_and_all_are_counted() -> None:
    names = [f"m{number:03}" for number in range(20)]
    view = committed(
        rows_of("Author", author("ann"), author("bob")),
        rows_of("Mentors", *(edge(name, "ann", "bob") for name in reversed(names))),
    )
    log = ViolationLog(limit=3)

    run(view, [removal("Author", "bob")], log)

    assert [item.row_id for item in log.first_violations()] == names[:3]
    assert log.total == 20


def test_an_edge_that_goes_with_its_node_or_is_moved_away_is_none() -> None:
    view = committed(
        rows_of("Author", author("ann"), author("bob"), author("cid")),
        rows_of("Mentors", edge("m1", "ann", "bob"), edge("m2", "bob", "ann")),
    )
    moved = rows_of("Mentors", edge("m2", "ann", "cid"))

    assert violations_of(view, removal("Author", "bob"), removal("Mentors", "m1", "m2")) == []
    assert violations_of(view, removal("Author", "bob"), change(moved, removed=["m1"])) == []


def test_an_overwrite_that_drops_a_node_of_a_retained_edge_is_refused() -> None:
    view = committed(
        rows_of("Author", author("ann"), author("bob")), rows_of("Mentors", edge("m", "ann", "bob"))
    )
    rest = change(rows_of("Author", author("ann")), "overwrite", removed=["bob"])

    refused = violations_of(view, rest)
    both = violations_of(view, rest, change(rows_of("Mentors"), "overwrite", removed=["m"]))

    assert [item.message for item in refused] == ["dst 'bob' not found in Author"]
    assert both == []


def test_an_overwrite_of_edges_only_looks_for_committed_nodes() -> None:
    view = committed(rows_of("Author", author("ann")), rows_of("Mentors", edge("old", "ann", "ann")))
    edges = rows_of("Mentors", edge("m", "ann", "ann"), edge("n", "ann", "eve"))

    found = violations_of(view, change(edges, "overwrite", removed=["old"]))

    assert [item.message for item in found] == ["dst 'eve' not found in Author"]


# --- cardinality

LIBRARY = (
    rows_of("Book", book("AB-1"), book("AB-2")),
    rows_of("Shelf", {"room": "r", "slot": 1}, {"room": "r", "slot": 2}),
    rows_of("Note", {"id": "n1", "body": "x"}, {"id": "n2", "body": "x"}),
)
SHELF_1, SHELF_2 = '["r","1"]', '["r","2"]'


def test_a_maximum_is_charged_to_the_first_row_beyond_it() -> None:
    edges = rows_of(
        "StoredOn",
        edge("1", "AB-1", SHELF_1),
        edge("2", "AB-2", SHELF_1),
        edge("3", "AB-1", SHELF_2),
        edge("4", "AB-1", SHELF_1),
    )

    found = violations_of(committed(*LIBRARY), change(edges, "append"))

    assert messages(found) == [
        (3, "cardinality", "@card violation on edge StoredOn: 'AB-1' has 3 edges, at most 1 allowed")
    ]
    assert found[0].row_id == "3"


def test_committed_edges_count_towards_the_maximum_but_not_those_replaced_or_removed() -> None:
    view = committed(*LIBRARY, rows_of("StoredOn", edge("old", "AB-1", SHELF_1)))
    other = rows_of("StoredOn", edge("new", "AB-1", SHELF_2))
    same = rows_of("StoredOn", edge("old", "AB-1", SHELF_2))

    assert [item.line for item in violations_of(view, change(other))] == [1]
    assert violations_of(view, change(same)) == []
    assert violations_of(view, change(other, removed=["old"])) == []
    assert violations_of(view, change(other, "overwrite", removed=["old"])) == []


def test_a_repeated_edge_id_is_counted_once() -> None:
    edges = rows_of("StoredOn", edge("1", "AB-1", SHELF_1), edge("1", "AB-1", SHELF_2))

    assert violations_of(committed(*LIBRARY), change(edges)) == []


def test_a_minimum_is_no_longer_met_when_an_edge_is_removed() -> None:
    view = committed(*LIBRARY, rows_of("About", edge("1", "n1", "AB-1"), edge("2", "n2", "AB-1")))

    found = violations_of(view, removal("About", "1"))

    assert [item.message for item in found] == [
        "@card violation on edge About: 'n1' has 0 edges, at least 1 required"
    ]
    assert [(item.table_key, item.row_id, item.file) for item in found] == [("edge:About", "n1", -1)]


def test_a_moved_edge_is_missed_where_it_was() -> None:
    view = committed(*LIBRARY, rows_of("About", edge("1", "n1", "AB-1")))

    found = violations_of(view, change(rows_of("About", edge("1", "n2", "AB-1"))))

    assert [(item.row_id, item.kind) for item in found] == [("n1", "cardinality")]


def test_a_removed_source_needs_no_edges() -> None:
    view = committed(*LIBRARY, rows_of("About", edge("1", "n1", "AB-1")))

    assert violations_of(view, removal("About", "1"), removal("Note", "n1")) == []


def test_a_node_without_a_change_of_edges_is_not_counted() -> None:
    assert violations_of(committed(), change(rows_of("Note", {"id": "n", "body": "x"}))) == []


def test_the_open_cardinality_costs_nothing() -> None:
    view = committed(rows_of("Book", book("AB-1")), rows_of("Cites", edge("c", "AB-1", "AB-1")))

    violations_of(view, change(rows_of("Cites", edge("d", "AB-1", "AB-1"))))

    assert ("edges_by_endpoint", "edge:Cites") not in view.calls


# --- the cost, and the whole


def test_a_view_is_asked_once_for_each_question_whatever_the_number_of_rows() -> None:
    def calls(count: int) -> list[tuple[str, str]]:
        view = committed(rows_of("Author", author("ann")))
        authors = rows_of("Author", *(author(f"a{number}", f"m{number}") for number in range(count)))
        mentors = rows_of("Mentors", *(edge(f"e{number}", f"a{number}", "ann") for number in range(count)))
        assert violations_of(view, change(authors), change(mentors)) == []
        return view.calls

    assert calls(1) == calls(50)
    assert len(calls(50)) <= 4


def test_a_write_without_rows_is_fine() -> None:
    nothing = TableChange(type_named("Author"), None, NO_IDS, "delete")

    assert violations_of(committed(), nothing) == []
    assert violations_of(committed(), change(rows_of("Author"), "overwrite")) == []


def test_everything_is_checked_before_the_first_is_chosen() -> None:
    view = committed(*LIBRARY, rows_of("Author", author("ann", "x@y")))
    log = ViolationLog()
    log.open_file(0, "in.ndjson")
    changes = [
        change(rows_of("StoredOn", edge("1", "AB-1", SHELF_1), edge("2", "AB-1", SHELF_2), lines=[7, 2])),
        change(rows_of("Author", author("bob", "x@y"), lines=[5])),
        change(rows_of("Cites", edge("c", "AB-1", "ZZ-9"), lines=[3])),
        change(rows_of("Book", book("AB-3") | {"format": "vinyl"}, lines=[4])),
    ]

    run(view, changes, log)

    assert [(item.line, str(item.kind)) for item in log.first_violations()] == [
        (3, "endpoint"),
        (4, "enum"),
        (5, "unique"),
        (7, "cardinality"),
    ]
    with pytest.raises(ValidationError, match=r"in\.ndjson:3: dst 'ZZ-9' not found in Book") as caught:
        log.raise_if_any()
    assert caught.value.total == 4
