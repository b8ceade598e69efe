"""Clauses of a match block: bindings, the orientation of traversals, edge variables and negation."""

import pytest

from omnigraph.catalog.bound import (
    BoundBinding,
    BoundFilter,
    BoundNegation,
    BoundTraversal,
    Comparison,
    Direction,
    LiteralValue,
    Operator,
    ParameterValue,
    PropertyValue,
)
from omnigraph.core.values import Scalar, ValueType
from tests.support.library import pointed_at
from tests.support.queries import bind_read, bind_text, books, bound_clauses, read, type_code, type_error


def traversal(match: str) -> BoundTraversal:
    """Return the last traversal of a match block, looking inside its not blocks."""
    clauses = bound_clauses(match)
    while isinstance(clauses[-1], BoundNegation):
        clauses = clauses[-1].clauses
    found = [clause for clause in clauses if isinstance(clause, BoundTraversal)]
    return found[-1]


# Bindings


def test_a_match_on_a_scalar_is_equality_and_on_a_list_membership() -> None:
    (binding,) = bound_clauses('$b: Book { format: "ebook", tags: $t }', "$t: String")

    assert isinstance(binding, BoundBinding)
    assert (binding.variable, binding.type_name) == ("b", "Book")
    format_, tags = binding.matches
    values = ("audio", "ebook", "paper")
    format_type = ValueType(Scalar.STRING, enum_values=values)
    assert format_ == Comparison(
        PropertyValue("b", "format", format_type),
        Operator.EQ,
        LiteralValue("ebook", ValueType(Scalar.STRING)),
    )
    tags_type = ValueType(Scalar.STRING, nullable=True, is_list=True)
    assert tags == Comparison(
        PropertyValue("b", "tags", tags_type),
        Operator.CONTAINS,
        ParameterValue("t", ValueType(Scalar.STRING)),
    )


@pytest.mark.parametrize(
    "match",
    [
        "pages: 120.5",
        "price: 8",
        "added: now()",
        'published: date("2020-05-01")',
        'tags: "a"',
        "code: $nullable",
        "pages: $number",
        "format: $nullable",
    ],
)
def test_a_match_takes_compatible_values(match: str) -> None:
    params = "$nullable: String?, $number: F64"

    assert bind_text(read(f"$b: Book {{ {match} }}", params=params)).name == "q"


@pytest.mark.parametrize(
    ("match", "code"),
    [
        ("Nope", "T1"),
        ("Catalogued", "T1"),
        ("Wrote", "T1"),
        ('Book { isbn: "x" }', "T2"),
        ('Book { id: "x" }', "T2"),
        ("Book { code: 5 }", "T3"),
        ("Book { pages: true }", "T3"),
        ('Book { published: "2020-05-01" }', "T3"),
        ('Book { published: datetime("2020-05-01") }', "T3"),
        ('Book { tags: ["a"] }', "T3"),
        ("Book { tags: [] }", "T3"),
        ("Book { tags: 3 }", "T3"),
        ('Book { code: ["a"] }', "T3"),
        ("Book { code: [] }", "T3"),
        ('Book { format: "vinyl" }', "T3"),
        ('Book { format: "Paper" }', "T3"),
        ("Book { embedding: [1, 2] }", "T3"),
        ('Book { embedding: ["a", "b", "c", "d"] }', "T3"),
        ('Book { embedding: "x" }', "T3"),
        ('Book { cover: "x" }', "T3"),
        ("Book { cover: $blob }", "T3"),
        ("Book { published: now() }", "T7"),
        ("Book { code: now() }", "T7"),
        ("Book { tags: $texts }", "T7"),
        ("Book { code: $number }", "T7"),
        ("Book { tags: $number }", "T7"),
        ("Book { embedding: $vector }", "T7"),
        ("Book { embedding: [1, 0, 0, 0] }", "T7"),
        ("Book { code: $nope }", "T14"),
    ],
)
def test_a_binding_is_refused_with_the_code_of_its_fault(match: str, code: str) -> None:
    params = "$texts: [String], $number: I32, $vector: Vector(4), $blob: Blob"

    assert type_code(read(f"$b: {match}", "return { 1 }", params)) == code


def test_a_wrong_name_is_shown_with_the_one_that_was_meant() -> None:
    error = type_error(read('$b: Book { tilte: "x" }'))

    assert pointed_at(error) == "tilte"
    assert error.diagnostics[0].help is not None
    assert "'title'" in error.diagnostics[0].help


def test_binding_a_variable_twice_conjoins_the_matches() -> None:
    first, second = bound_clauses('$b: Book { format: "paper" } $b: Book { pages: 3 }')

    assert isinstance(first, BoundBinding)
    assert isinstance(second, BoundBinding)
    assert (first.variable, first.type_name) == (second.variable, second.type_name)


def test_a_variable_is_not_bound_to_a_second_type() -> None:
    assert type_code(read("$b: Book $b: Author", "return { 1 }")) is None
    assert type_code(read("$a wrote $b $b: Author", "return { 1 }")) is None


@pytest.mark.parametrize("word", ["storedOn", "storedon", "sTOREDON"])
def test_an_edge_is_found_whatever_its_case(word: str) -> None:
    assert traversal(f"$b: Book $b {word} $s").edge_type == "StoredOn"


# Orientation: the edge Wrote leads from Author to Book, Mentors from Author to Author


@pytest.mark.parametrize(
    ("known", "clause", "direction", "left_type", "right_type"),
    [
        ("", "$l wrote $r", "out", "Author", "Book"),
        ("$l: Author", "$l wrote $r", "out", "Author", "Book"),
        ("$l: Book", "$l wrote $r", "in", "Book", "Author"),
        ("$r: Book", "$l wrote $r", "out", "Author", "Book"),
        ("$r: Author", "$l wrote $r", "in", "Book", "Author"),
        ("$l: Author $r: Book", "$l wrote $r", "out", "Author", "Book"),
        ("$l: Book $r: Author", "$l wrote $r", "in", "Book", "Author"),
        ("", "$_ wrote $_", "out", "Author", "Book"),
        ("$r: Author", "$_ wrote $r", "in", "Book", "Author"),
        ("$r: Book", "$_ wrote $r", "out", "Author", "Book"),
        ("$l: Book", "$l wrote $_", "in", "Book", "Author"),
        ("", "$l mentors $r", "out", "Author", "Author"),
        ("$l: Author", "$l mentors $r", "out", "Author", "Author"),
        ("$r: Author", "$l mentors $r", "out", "Author", "Author"),
        ("$l: Author $r: Author", "$l mentors $r", "out", "Author", "Author"),
        ("", "$l mentors $l", "out", "Author", "Author"),
        ("", "$l <mentors> $r", "both", "Author", "Author"),
        ("$r: Author", "$l <mentors> $r", "both", "Author", "Author"),
        ("$x wrote $l", "$l wrote $r", "in", "Book", "Author"),
    ],
)
@pytest.mark.parametrize("inside", [False, True])
def test_the_known_end_decides_how_an_edge_is_followed(
    known: str, clause: str, direction: str, left_type: str, right_type: str, inside: bool
) -> None:
    match = f"$o: Note {known} not {{ $o about $_ {clause} }}" if inside else f"{known} {clause}"

    found = traversal(match)

    assert found.direction is Direction(direction)
    assert (found.left_type, found.right_type) == (left_type, right_type)


@pytest.mark.parametrize(
    "match",
    [
        "$l: Shelf $l wrote $r",
        "$r: Shelf $l wrote $r",
        "$l: Author $r: Author $l wrote $r",
        "$l: Author $r: Shelf $l wrote $r",
        "$l: Book $r: Book $l wrote $r",
        "$l: Shelf $r: Book $l wrote $r",
        "$l: Book $l mentors $r",
        "$r: Book $l mentors $r",
        "$l: Author $r: Book $l <mentors> $r",
        "$l wrote $l",
        "$a wrote $b $b mentors $c",
    ],
)
@pytest.mark.parametrize("inside", [False, True])
def test_an_end_of_another_type_is_refused(match: str, inside: bool) -> None:
    text = read(f"$o: Note not {{ $o about $_ {match} }}" if inside else match, "return { 1 }")

    assert type_code(text) == "T5"


def test_a_later_binding_does_not_decide_the_orientation() -> None:
    """Types are known from earlier clauses: `$l` becomes an author before it is said to be a book."""
    assert type_code(read("$l wrote $r $l: Book", "return { 1 }")) is None


def test_a_traversal_introduces_its_variables_for_later_clauses() -> None:
    bound = bind_read(read('$a wrote $b $a.name = "x"', "return { $b.code, $a }"))

    assert [projection.column for projection in bound.projections] == ["b.code", "a"]


# Hops and edge variables


def test_a_traversal_has_one_hop_unless_it_says_more() -> None:
    assert (traversal("$a cites $b").hops_min, traversal("$a cites $b").hops_max) == (1, 1)
    assert (traversal("$a cites{2,5} $b").hops_min, traversal("$a cites{2,5} $b").hops_max) == (2, 5)


@pytest.mark.parametrize("hops", ["{0,0}", "{0,3}", "{2,1}", "{1,}", "{0,}"])
@pytest.mark.parametrize("edge", ["cites", "<cites>"])
def test_hop_bounds_that_say_nothing_are_refused(edge: str, hops: str) -> None:
    assert type_code(read(f"$a {edge}{hops} $b", "return { 1 }")) == "T15"


@pytest.mark.parametrize("match", ["$a likes $b", "$q contains $m", "$a book $b"])
def test_an_unknown_edge_is_refused(match: str) -> None:
    assert type_code(read(match, "return { 1 }")) == "T4"


@pytest.mark.parametrize(
    "match", ["$a <wrote> $b", "$a $w:<wrote> $b", "$a <wrote>{1,2} $b", "$_ <storedOn> $_"]
)
def test_an_edge_between_two_types_has_a_direction(match: str) -> None:
    assert type_code(read(match, "return { 1 }")) == "T22"


def test_an_edge_variable_has_the_properties_of_its_edge() -> None:
    bound = bind_read(read("$a $w:wrote $b $w.share > 0.5", "return { $w.role, $w }"))

    (link, condition) = bound.clauses
    assert isinstance(link, BoundTraversal)
    assert link.edge_variable == "w"
    assert isinstance(condition, BoundFilter)


def test_an_anonymous_edge_variable_binds_nothing() -> None:
    assert traversal("$a $_:wrote $b").edge_variable is None
    assert traversal("$a $_:wrote $b $b $_:wrote $c").edge_variable is None
    assert traversal("$_ $_:wrote $_").edge_variable is None


@pytest.mark.parametrize(
    "match",
    [
        "$a $w:wrote{1,1} $b",
        "$a $_:wrote{1,2} $b",
        "$a $a:wrote $b",
        "$a $b:wrote $b",
        "$x: Book $a $x:wrote $b",
        "$a $w:wrote $b $c $w:wrote $d",
        "$a $w:wrote $b $w wrote $c",
        "$a $w:wrote $b $c wrote $w",
        "$a $w:wrote $b $w: Author",
        "$a $w:wrote $b not { $a $w:wrote $b }",
        "$a $w:wrote $b not { $a wrote $w }",
        '$a $w:wrote $b search($w.role, "x")',
        '$a $w:wrote $b fuzzy($w.role, "x")',
        '$a $w:wrote $b match_text($w.role, "x")',
        '$a $w:wrote $b bm25($w.role, "x") > 1',
        "$a $w:wrote $b nearest($w.share, [1]) > 1",
    ],
)
def test_an_edge_variable_is_misused(match: str) -> None:
    assert type_code(read(match, "return { 1 }")) == "T23"


# Negation


@pytest.mark.parametrize(
    "block",
    [
        "$b storedOn $_",
        "$_ about $b",
        "$x cites $b",
        "$b: Book { pages: 3 }",
        "$x: Author $x.name = $a.name",
        "$x: Author $b.title = $x.name",
        'search($b.title, "x")',
        'search($a.name, "x") = true $b cites $_',
        '$w.role = "main"',
        "$x: Book $b cites $x $a wrote $x",
    ],
)
def test_a_not_block_sees_the_outer_variables_that_it_mentions(block: str) -> None:
    *_, negation = bound_clauses(f"$a $w:wrote $b not {{ {block} }}")

    assert isinstance(negation, BoundNegation)
    assert negation.visible == {name for name in "abw" if f"${name}" in block}


@pytest.mark.parametrize(
    "block",
    [
        "$x: Author",
        '$x: Author $x.name = "x"',
        "$x wrote $y",
        "$_ wrote $_",
        "$x: Book not { $x cites $b }",
        "$p = 5",
        "$x: Book { code: $t }",
    ],
)
def test_a_not_block_without_an_outer_variable_is_refused(block: str) -> None:
    assert type_code(books(f"not {{ {block} }}", params="$p: I32, $t: String")) == "T9"


def test_variables_of_a_not_block_stay_inside() -> None:
    assert type_code(books("not { $b cites $x } $x.pages = 3")) == "T6"
    assert type_code(books("not { $b cites $x }", tail="return { $x }")) is None


def test_a_name_from_a_not_block_can_be_used_again_behind_it() -> None:
    clauses = bound_clauses("$b: Book not { $b cites $x } $x: Author not { $x wrote $b }")

    assert [type(clause) for clause in clauses] == [BoundBinding, BoundNegation, BoundBinding, BoundNegation]


def test_an_inner_block_sees_the_variables_of_the_blocks_around_it() -> None:
    *_, outer = bound_clauses('$a: Author not { $a wrote $b not { $b.format = "paper" } }')

    assert isinstance(outer, BoundNegation)
    inner = outer.clauses[-1]
    assert isinstance(inner, BoundNegation)
    assert outer.visible == {"a"}
    assert inner.visible == {"b"}
