"""The oracle against the answers of the languages specification (section 7.7), before it meets the engine."""

from datetime import UTC, date, datetime

import pytest

from tests.models.query.answer import Answer, Approximate
from tests.models.query.library_graph import LIBRARY_DATA, LIBRARY_SCHEMA
from tests.models.query.oracle import Oracle, TooManyRows
from tests.models.query.shape import (
    Aggregate,
    Alias,
    Binding,
    Bm25,
    Cell,
    Clause,
    Filter,
    Literal,
    Nearest,
    Negation,
    Now,
    Operand,
    Ordering,
    Parameter,
    Projection,
    Property,
    Query,
    Rank,
    Rrf,
    TextPredicate,
    Traversal,
    Type,
    Variable,
)

BOOK, AUTHOR = Binding("b", "Book"), Binding("a", "Author")
CODE = Property("b", "code")


def ask(
    clauses: tuple[Clause, ...],
    *projections: Projection,
    order: tuple[Ordering, ...] = (),
    limit: int | None = None,
) -> Answer:
    return Oracle(LIBRARY_SCHEMA, LIBRARY_DATA).answer(Query((), clauses, projections, order, limit))


def column(
    clauses: tuple[Clause, ...], field: Property, *order: Ordering, limit: int | None = None
) -> list[Cell]:
    rows = [row[0] for row in ask(clauses, Projection(field), order=order, limit=limit).rows[:limit]]
    return rows if order else sorted(rows)


def books(*clauses: Clause) -> str:
    return " ".join(column((BOOK, *clauses), CODE))


def authors(*clauses: Clause) -> str:
    return " ".join(column((AUTHOR, *clauses), Property("a", "handle")))


def ranked(*order: Ordering, clauses: tuple[Clause, ...] = (BOOK,), limit: int | None = None) -> str:
    return " ".join(column(clauses, CODE, *order, limit=limit))


def is_(name: str, sign: str, value: Operand | Cell, variable: str = "b") -> Filter:
    operand = value if isinstance(value, Operand) else Literal(value)
    return Filter(Property(variable, name), sign, operand)


def reached(variable: str, type_name: str, key: str, traversal: Traversal, far_key: str) -> str:
    name = {"Author": "handle", "Book": "code"}[type_name]
    start = Binding(variable, type_name, ((name, Literal(key)),))
    return " ".join(column((start, traversal), Property(traversal.right, far_key)))


def test_bindings_and_inline_matches() -> None:
    assert ask(
        (Binding("b", "Book", (("code", Literal("AA-1")),)),), Projection(Property("b", "title"))
    ) == Answer(["b.title"], [["Glass Rivers"]])
    assert books(Binding("b", "Book", (("code", Literal("ZZ-9")),))) == ""
    assert books(Binding("b", "Book", (("format", Literal("paper")),))) == "AA-1 BB-2"
    assert books(Binding("b", "Book", (("tags", Literal("glass")),))) == "AA-1"
    assert books(Binding("b", "Book", (("pages", Literal(120.5)),))) == ""


def test_values_look_as_json_shows_them() -> None:
    only = Binding("b", "Book", (("code", Literal("AA-1")),))
    fields = [Projection(Property("b", name)) for name in ("published", "added", "embedding", "pages")]

    assert ask((only,), *fields).rows == [
        ["2020-05-01", "2021-01-01T00:00:00.000Z", [1.0, 0.0, 0.0, 0.0], 300]
    ]
    [[entity]] = ask((only,), Projection(Variable("b"))).rows
    assert list(entity) == ["id", *sorted(LIBRARY_SCHEMA.nodes["Book"].properties)]
    assert entity["stock"] is None


def test_filters() -> None:
    assert books(is_("format", "=", "vinyl")) == ""
    assert books(is_("tags", "contains", "machine")) == "AA-2"
    assert books(is_("title", "contains", "Song")) == "BB-1 BB-2"
    assert books(is_("title", "contains", "song")) == ""
    assert books(is_("title", "starts_with", "River")) == "BB-1"
    assert books(Filter(Literal("see AA-1 and AA-2"), "contains", CODE)) == "AA-1 AA-2"
    assert books(is_("pages", "!=", 120)) == "AA-1"
    assert books(is_("pages", "=", 120.0)) == "AA-2 BB-2"
    assert books(is_("pages", "<", 3_000_000_000)) == "AA-1 AA-2 BB-2"
    assert books(is_("weight", "=", 0.1)) == "AA-1"
    assert books(is_("published", ">=", date(2020, 1, 1))) == "AA-1 BB-2"
    assert books(is_("added", "<", datetime(2021, 1, 2, tzinfo=UTC))) == "AA-1"
    assert books(is_("added", "<=", Now())) == "AA-1 AA-2 BB-1 BB-2"
    assert books(is_("published", "=", Parameter("d", Type("Date"), None))) == ""


def test_two_bindings_are_a_cross_product() -> None:
    same = (Binding("a", "Book"), BOOK, Filter(Property("a", "pages"), "=", Property("b", "pages")))
    earlier = Filter(Property("a", "code"), "<", CODE)

    assert ask((*same, earlier), Projection(Property("a", "code")), Projection(CODE)).rows == [
        ["AA-2", "BB-2"]
    ]
    count = Projection(Aggregate("count", Variable("a")), "n")
    assert ask((AUTHOR, Binding("s", "Shelf")), count).rows == [[8]]
    with pytest.raises(TooManyRows):
        Oracle(LIBRARY_SCHEMA, LIBRARY_DATA, rows_max=7).answer(
            Query((), (AUTHOR, Binding("s", "Shelf")), (count,))
        )


def test_traversals() -> None:
    wrote = Traversal("a", "Wrote", "b")
    assert reached("a", "Author", "ada", wrote, "code") == "AA-1 BB-1"
    assert reached("b", "Book", "AA-1", Traversal("b", "Wrote", "a"), "handle") == "ada"
    assert reached("a", "Author", "cy", wrote, "code") == "BB-2"
    named = (Binding("a", "Author", (("handle", Literal("cy")),)), Traversal("a", "Wrote", "b", "w"))
    assert column(named, Property("w", "role")) == ["main", "translator"]
    every = (AUTHOR, Traversal("a", "Wrote", "b", "w"))
    counts = [Projection(Aggregate("count", Property("w", "share")))]
    assert ask(every, *counts).rows == [[3]]
    assert ask(
        (*every, is_("role", "=", "main", "w")), Projection(Aggregate("count", Variable("b")))
    ).rows == [[3]]
    unbound = ask((wrote,), Projection(Property("a", "handle")), Projection(CODE)).rows
    assert sorted(unbound) == [["ada", "AA-1"], ["ada", "BB-1"], ["ben", "AA-2"], ["cy", "BB-2"]]


@pytest.mark.parametrize(
    ("start", "bounds", "is_undirected", "expected"),
    [
        ("AA-1", (1, 3), False, "AA-2 BB-2"),
        ("AA-1", (2, 3), False, "BB-2"),
        ("AA-1", (3, 3), False, ""),
        ("BB-1", None, False, "BB-1"),
        ("BB-1", (1, 5), False, "BB-1"),
        ("BB-1", (2, 2), False, ""),
        ("BB-1", None, True, "BB-1"),
        ("AA-1", None, True, "AA-2 BB-2"),
    ],
)
def test_hops_between_books(
    start: str, bounds: tuple[int, int] | None, is_undirected: bool, expected: str
) -> None:
    hop = Traversal("b", "Cites", "x", bounds=bounds, is_undirected=is_undirected)

    assert reached("b", "Book", start, hop, "code") == expected


def test_hops_between_authors() -> None:
    assert reached("a", "Author", "ada", Traversal("a", "Wrote", "b", bounds=(1, 2)), "code") == "AA-1 BB-1"
    assert reached("a", "Author", "ada", Traversal("a", "Wrote", "b", bounds=(2, 2)), "code") == ""
    mentors = Traversal("a", "Mentors", "x")
    assert reached("a", "Author", "ben", mentors, "handle") == "cy"
    both = Traversal("a", "Mentors", "x", is_undirected=True)
    assert reached("a", "Author", "ben", both, "handle") == "ada cy"
    far = Traversal("a", "Mentors", "x", bounds=(1, 2), is_undirected=True)
    assert reached("a", "Author", "ada", far, "handle") == "ben cy"


def test_a_cycle_closes() -> None:
    hops = (Traversal("a", "Cites", "b"), Traversal("b", "Cites", "c"), Traversal("c", "Cites", "a"))

    assert ask((Binding("a", "Book"), *hops), Projection(Aggregate("count", Variable("a")), "n")).rows == [
        [4]
    ]


def test_negation() -> None:
    cites = Traversal("b", "Cites", "x")
    assert books(Negation((Traversal("b", "StoredOn", "_"),))) == "AA-2 BB-1 BB-2"
    assert books(Negation((cites, is_("format", "=", "paper", "x")))) == "AA-1 BB-1"
    assert books(Negation((cites, is_("pages", ">", 100, "x")))) == "BB-1"
    wrote = Traversal("a", "Wrote", "b")
    assert authors(Negation((wrote, Negation((is_("format", "=", "paper"),))))) == "cy dot"
    named = Traversal("a", "Wrote", "b", "w")
    assert authors(Negation((named, is_("role", "=", "editor", "w")))) == "ben cy dot"
    assert authors(Negation((Traversal("a", "Mentors", "_", is_undirected=True),))) == "dot"
    assert authors(Negation((Traversal("a", "Mentors", "x", bounds=(2, 2)),))) == "ben cy dot"
    older = Filter(Property("x", "born"), "<", Property("a", "born"))
    assert authors(Negation((Binding("x", "Author"), older))) == "ada ben dot"


def test_an_anonymous_end_multiplies_nothing() -> None:
    assert authors(Traversal("a", "Wrote", "_")) == "ada ben cy"
    assert authors(Traversal("_", "Cites", "_")) == "ada ben cy dot"
    assert authors(Traversal("a", "Wrote", "_", "w")) == "ada ada ben cy cy"


AGGREGATES = (
    Projection(Aggregate("count", Variable("b")), "c"),
    Projection(Aggregate("count", Property("b", "pages")), "p"),
    Projection(Aggregate("sum", Property("b", "pages")), "s"),
    Projection(Aggregate("avg", Property("b", "pages")), "v"),
    Projection(Aggregate("min", Property("b", "pages")), "lo"),
    Projection(Aggregate("max", Property("b", "title")), "t"),
)


def test_aggregates() -> None:
    [[count, pages, total, average, low, title]] = ask((BOOK,), *AGGREGATES).rows
    assert (count, pages, low, title) == (4, 3, 120, "River Songs")
    assert isinstance(total, Approximate)
    assert isinstance(average, Approximate)
    assert (total.value, average.value) == (540.0, 180.0)
    none = (BOOK, is_("code", "=", "ZZ-9"))
    assert ask(none, *AGGREGATES).rows == [[0, 0, None, None, None, None]]
    assert ask(none, Projection(Property("b", "format")), *AGGREGATES).rows == []
    assert ask((BOOK,), AGGREGATES[0]).columns == ["c"]
    assert ask((BOOK,), Projection(Aggregate("count", Variable("b")))).columns == ["b"]


def test_groups_come_in_order() -> None:
    count = Projection(Aggregate("count", Variable("b")), "n")
    by_pages = ask((BOOK,), Projection(Property("b", "pages")), count, order=(Ordering(Alias("n"), True),))
    assert by_pages.rows == [[120, 2], [None, 1], [300, 1]]
    named = (AUTHOR, Traversal("a", "Wrote", "b", "w"))
    edges = Projection(Aggregate("count", Variable("w")), "n")
    by_author = ask(named, Projection(Variable("a")), edges, order=(Ordering(Alias("n"), True),)).rows
    assert [(row[0]["id"], row[1]) for row in by_author] == [("ada", 2), ("cy", 2), ("ben", 1)]


def test_order_and_limit() -> None:
    assert ranked(Ordering(Property("b", "pages"))) == "BB-1 AA-2 BB-2 AA-1"
    assert ranked(Ordering(Property("b", "pages"), True)) == "AA-1 AA-2 BB-2 BB-1"
    price = Ordering(Property("b", "price"))
    assert ranked(Ordering(Property("b", "price"), True), Ordering(CODE, True)) == "BB-2 AA-1 BB-1 AA-2"
    assert ranked(price, limit=1) == "AA-2"
    assert ranked(price, limit=0) == ""
    named = (Binding("a", "Author", (("handle", Literal("cy")),)), Traversal("a", "Wrote", "b", "w"))
    assert column(named, Property("w", "role"), price) == ["main", "translator"]
    whole = ask((BOOK,), Projection(Variable("b"), "x"), order=(Ordering(Alias("x"), True),))
    assert [row[0]["id"] for row in whole.rows] == ["BB-2", "BB-1", "AA-2", "AA-1"]


def test_whole_edges() -> None:
    named = (Binding("a", "Author", (("handle", Literal("cy")),)), Traversal("a", "Wrote", "b", "w"))

    rows = sorted((row[0] for row in ask(named, Projection(Variable("w"))).rows), key=lambda edge: edge["id"])

    assert [list(edge) for edge in rows] == [["id", "src", "dst", "role", "share"]] * 2
    assert rows[0] == {"id": "w4", "src": "cy", "dst": "BB-2", "role": "main", "share": 0.6}


def text(function: str, field: str, query: str, edits: int | None = None) -> TextPredicate:
    return TextPredicate(function, Property("b", field), Literal(query), edits)


def test_text_predicates() -> None:
    assert books(text("search", "blurb", "MACHINE")) == "AA-2 BB-2"
    assert books(text("search", "blurb", "the and of")) == ""
    assert books(text("match_text", "blurb", "machines silent")) == "AA-2 BB-2"
    assert books(text("fuzzy", "title", "Qviet", 1)) == "AA-2"
    assert books(text("fuzzy", "title", "Qviet", 0)) == ""
    assert books(text("fuzzy", "blurb", "machines", 0)) == "AA-2 BB-2"


def nearest(*vector: float) -> Nearest:
    return Nearest(Property("b", "embedding"), Literal(list(vector)))


def test_rankings() -> None:
    near, words = nearest(1, 0, 0, 0), Bm25(Property("b", "blurb"), Literal("rivers"))
    assert ranked(Ordering(words)) == "BB-2 AA-1"
    assert ranked(Ordering(near), limit=10) == "AA-1 BB-2 AA-2"
    assert ranked(Ordering(near), limit=2) == "AA-1 BB-2"
    assert ranked(Ordering(near), clauses=(BOOK, is_("format", "!=", "paper")), limit=1) == "AA-2"
    by_ben = (Binding("a", "Author", (("handle", Literal("ben")),)), Traversal("a", "Wrote", "b"))
    assert ranked(Ordering(near), clauses=by_ben, limit=5) == "AA-2"
    assert ranked(Ordering(Rrf(near, words)), limit=3) == "AA-1 BB-2 AA-2"


def test_scores() -> None:
    rank: Rank = nearest(0, 0, 0, 0)

    rows = ask((BOOK,), Projection(CODE), Projection(rank, "d"), order=(Ordering(Alias("d")),), limit=3).rows

    assert [row[0] for row in rows] == ["BB-2", "AA-1", "AA-2"]
    assert [round(row[1].value, 4) for row in rows] == [0.9055, 1.0, 1.0]
