"""Statements of a mutation: targets, assignments, predicates."""

import pytest

from omnigraph.catalog.bound import (
    NOW_PARAMETER,
    BoundDelete,
    BoundInsert,
    BoundUpdate,
    LiteralValue,
    Operator,
    ParameterValue,
)
from omnigraph.catalog.model import NodeType
from omnigraph.core.values import Scalar, ValueType
from tests.support.library import compile_text
from tests.support.queries import (
    bind_statement,
    bind_text,
    execution_error,
    mutation,
    type_code,
    type_error,
)

BOOK = 'code: "CC-1", title: "T", price: 8, format: "paper", added: now()'
PARAMS = (
    "$s: String?, $n: I32, $f: F64, $flag: Bool, $d: Date, $dt: DateTime, $texts: [String], $numbers: [I32], "
    "$v: Vector(4), $v3: Vector(3), $blob: Blob"
)
COMPARISONS = {"=": "eq", "!=": "ne", ">": "gt", "<": "lt", ">=": "ge", "<=": "le"}


def book(assignment: str) -> str:
    """Return the text of an insert of a book with one more assignment."""
    return mutation(f"insert Book {{ {BOOK}, {assignment} }}", PARAMS)


def edge(assignment: str) -> str:
    """Return the text of an insert of an edge with one more assignment."""
    return mutation(f'insert Wrote {{ from: "ada", to: "AA-1", {assignment} }}', PARAMS)


def select(type_name: str, predicate: str) -> str:
    """Return the text of a delete."""
    return mutation(f"delete {type_name} where {predicate}", PARAMS)


# Targets


@pytest.mark.parametrize("name", ["Nope", "Catalogued", "WROTE"])
@pytest.mark.parametrize(
    "statement", ["insert {} {{ a: 1 }}", "update {} set {{ a: 1 }} where b = 2", "delete {} where b = 2"]
)
def test_a_statement_names_a_node_or_edge_type(statement: str, name: str) -> None:
    error = type_error(mutation(statement.format(name)))

    assert error.type_code == "T10"
    assert f"'{name}'" in str(error)


def test_an_edge_is_not_updated() -> None:
    error = type_error(mutation('update Wrote set { role: "main" } where from = "ada"'))

    assert error.type_code == "T16"
    assert "'Wrote'" in str(error)


def test_a_node_and_an_edge_of_one_name_mean_the_node() -> None:
    catalog = compile_text("node Same { text: String } edge Same: Same -> Same { text: String }")

    insert = bind_statement('insert Same { text: "x" }', against=catalog)
    update = bind_statement('update Same set { text: "x" } where text = "y"', against=catalog)
    delete = bind_statement('delete Same where text = "x"', against=catalog)

    assert isinstance(insert, BoundInsert)
    assert isinstance(update, BoundUpdate)
    assert isinstance(delete, BoundDelete)
    assert {type(insert.type), type(update.type), type(delete.type)} == {NodeType}


# Inserts


def test_an_insert_keeps_its_assignments_in_order() -> None:
    statement = bind_statement("insert Note { made: now() body: $t }", "$t: String")

    assert isinstance(statement, BoundInsert)
    assert [assignment.name for assignment in statement.assignments] == ["made", "body"]
    assert [assignment.value for assignment in statement.assignments] == [
        ParameterValue(NOW_PARAMETER, ValueType(Scalar.DATETIME)),
        ParameterValue("t", ValueType(Scalar.STRING)),
    ]


@pytest.mark.parametrize(
    "assignment",
    [
        "pages: 1.5",
        "pages: $f",
        "weight: 3",
        "blurb: $s",
        'tags: ["a", "b"]',
        "tags: []",
        "tags: $texts",
        "embedding: [1, 0.5, 0, 0]",
        "embedding: $v",
        'cover: "base64:AAAA"',
        "cover: $blob",
        "cover: $s",
        'published: date("2020-05-01")',
        "published: $d",
    ],
)
def test_a_property_takes_compatible_values(assignment: str) -> None:
    assert bind_text(book(assignment)).name == "m"


def test_an_enum_takes_a_text_parameter() -> None:
    assert bind_text(edge("role: $s, share: $n")).name == "m"


@pytest.mark.parametrize(
    ("assignment", "code"),
    [
        ('pages: "x"', "T3"),
        ("pages: true", "T3"),
        ("pages: [1]", "T3"),
        ("blurb: 3", "T3"),
        ("blurb: []", "T3"),
        ('tags: "a"', "T3"),
        ("tags: [1]", "T3"),
        ('published: "2020-05-01"', "T3"),
        ('published: datetime("2020-05-01")', "T3"),
        ("embedding: [1, 2]", "T3"),
        ("embedding: []", "T3"),
        ('embedding: ["a", "b", "c", "d"]', "T3"),
        ('embedding: "rivers"', "T3"),
        ("cover: 5", "T3"),
        ("pages: $s", "T7"),
        ("pages: $numbers", "T7"),
        ("blurb: $n", "T7"),
        ("tags: $s", "T7"),
        ("tags: $numbers", "T7"),
        ("published: $dt", "T7"),
        ("published: now()", "T7"),
        ("blurb: now()", "T7"),
        ("tags: now()", "T7"),
        ("embedding: $v3", "T7"),
        ("embedding: $s", "T7"),
        ("cover: $n", "T7"),
        ("blurb: $blob", "T7"),
        ('isbn: "x"', "T11"),
        ('id: "x"', "T11"),
        ('from: "x"', "T11"),
        ('code: "x"', "T13"),
        ("blurb: $nope", "T14"),
        ("cover: $nope", "T14"),
        ("tags: [[1]]", None),
        ('tags: ["a", 1]', None),
        ("embedding: [1, true, 0, 0]", None),
    ],
)
def test_an_assignment_is_refused_with_the_code_of_its_fault(assignment: str, code: str | None) -> None:
    assert type_code(book(assignment)) == code


def test_a_value_outside_an_enum_is_refused() -> None:
    error = type_error(edge('role: "typist"'))

    assert error.type_code == "T3"
    assert "'typist'" in str(error)


@pytest.mark.parametrize(
    ("assignments", "code"),
    [
        ('from: 5, to: "x"', "T3"),
        ('from: ["x"], to: "x"', "T3"),
        ('from: now(), to: "x"', "T7"),
        ('from: "x", to: $n', "T7"),
        ('from: "x", to: $texts', "T7"),
        ('from: "x", to: $nope', "T14"),
        ('from: "x", to: "y", from: "z"', "T13"),
        ('from: "x", to: "y", src: "z"', "T11"),
        ('from: "x"', "T12"),
        ('to: "x"', "T12"),
        ('role: "main"', "T12"),
    ],
)
def test_an_edge_has_two_texts_for_ends(assignments: str, code: str) -> None:
    assert type_code(mutation(f"insert Wrote {{ {assignments} }}", PARAMS)) == code


def test_the_ends_of_an_edge_may_be_parameters() -> None:
    assert bind_text(mutation("insert Wrote { from: $s, to: $s }", PARAMS)).name == "m"


@pytest.mark.parametrize("missing", ["code", "title", "price", "format", "added"])
def test_an_insert_assigns_every_required_property(missing: str) -> None:
    assignments = ", ".join(part for part in BOOK.split(", ") if not part.startswith(f"{missing}:"))

    error = type_error(mutation(f"insert Book {{ {assignments} }}"))

    assert error.type_code == "T12"
    assert f"'{missing}'" in str(error)


def test_a_required_property_of_an_edge_is_assigned_too() -> None:
    catalog = compile_text("node N { k: String @key } edge Knows: N -> N { since: I32 }")

    error = type_error(mutation('insert Knows { from: "a", to: "b" }'), catalog)

    assert error.type_code == "T12"
    assert "'since'" in str(error)


def test_the_source_of_an_embedding_satisfies_a_required_vector() -> None:
    catalog = compile_text("node Doc { name: String  text: String?  place: Vector(2) @embed(text) }")

    error = type_error(mutation('insert Doc { name: "x" }'), catalog)

    assert error.type_code == "T12"
    assert "'place'" in str(error)
    assert "'text'" in str(error)
    assert bind_text(mutation('insert Doc { name: "x", text: "y" }'), catalog).name == "m"
    assert bind_text(mutation('insert Doc { name: "x", place: [1, 2] }'), catalog).name == "m"


# Updates


def test_an_update_has_assignments_and_a_predicate() -> None:
    statement = bind_statement('update Book set { price: 9.5, pages: $n } where format = "paper"', "$n: I32?")

    assert isinstance(statement, BoundUpdate)
    assert [assignment.name for assignment in statement.assignments] == ["price", "pages"]
    assert (statement.predicate.name, statement.predicate.operator) == ("format", Operator.EQ)
    assert statement.predicate.value == LiteralValue("paper", ValueType(Scalar.STRING))


def test_an_update_does_not_need_the_required_properties() -> None:
    assert bind_text(mutation('update Book set { blurb: "x" } where code = "AA-1"')).name == "m"


@pytest.mark.parametrize(
    ("assignments", "code"),
    [
        ('isbn: "x"', "T11"),
        ("price: 1, price: 2", "T13"),
        ("price: $nope", "T14"),
        ('format: "vinyl"', "T3"),
        ("embedding: [1]", "T3"),
        ("published: now()", "T7"),
    ],
)
def test_the_assignments_of_an_update_are_checked_like_those_of_an_insert(
    assignments: str, code: str
) -> None:
    assert type_code(mutation(f'update Book set {{ {assignments} }} where code = "AA-1"')) == code


@pytest.mark.parametrize(
    ("type_name", "assignment", "key"),
    [("Book", 'code: "ZZ-1"', "code"), ("Shelf", "slot: 3", "slot"), ("Shelf", 'room: "east"', "room")],
)
def test_a_key_is_never_updated(type_name: str, assignment: str, key: str) -> None:
    predicate = 'code = "AA-1"' if type_name == "Book" else "slot = 1"

    error = execution_error(mutation(f"update {type_name} set {{ {assignment} }} where {predicate}"))

    assert key in str(error)
    assert "delete" in str(error)
    assert "insert" in str(error)


# Predicates


@pytest.mark.parametrize(("written", "operator"), list(COMPARISONS.items()))
def test_a_predicate_has_its_operator(written: str, operator: str) -> None:
    statement = bind_statement(f"delete Book where pages {written} $n", "$n: I32?")

    assert isinstance(statement, BoundDelete)
    assert statement.predicate.operator is Operator(operator)
    assert statement.predicate.value == ParameterValue("n", ValueType(Scalar.I32, nullable=True))


@pytest.mark.parametrize(
    ("type_name", "predicate"),
    [
        ("Book", "pages = 1.5"),
        ("Book", 'format = "vinyl"'),
        ("Book", "format = $s"),
        ("Book", "added < now()"),
        ("Book", "published = $d"),
        ("Wrote", 'from = "ada"'),
        ("Wrote", "to != $s"),
        ("Wrote", "share > $n"),
    ],
)
def test_a_predicate_takes_compatible_values(type_name: str, predicate: str) -> None:
    assert bind_text(select(type_name, predicate)).name == "m"


@pytest.mark.parametrize(
    ("type_name", "predicate", "code"),
    [
        ("Book", "isbn = 1", "T11"),
        ("Book", 'id = "x"', "T11"),
        ("Book", 'from = "x"', "T11"),
        ("Book", 'cover = "x"', "T11"),
        ("Book", "cover = $blob", "T11"),
        ("Wrote", 'src = "x"', "T11"),
        ("Wrote", 'id = "x"', "T11"),
        ("Book", "code = $nope", "T14"),
        ("Wrote", "from = $nope", "T14"),
        ("Book", 'pages = "x"', "T7"),
        ("Book", "pages = $s", "T7"),
        ("Book", "published = now()", "T7"),
        ("Book", 'published = "2020-05-01"', "T7"),
        ("Book", 'tags = "a"', "T7"),
        ("Book", 'tags = ["a"]', "T7"),
        ("Book", "tags = $texts", "T7"),
        ("Book", "embedding = $v", "T7"),
        ("Book", "embedding = [1, 0, 0, 0]", "T7"),
        ("Book", "code = $blob", "T7"),
        ("Wrote", "from = 5", "T7"),
        ("Wrote", "to = $n", "T7"),
    ],
)
def test_a_predicate_is_refused_with_the_code_of_its_fault(type_name: str, predicate: str, code: str) -> None:
    assert type_code(select(type_name, predicate)) == code


def test_a_date_that_does_not_exist_is_an_execution_error() -> None:
    error = execution_error(mutation('delete Author where born = date("2020-02-30")'))

    assert "invalid Date '2020-02-30'" in str(error)


# Which error is the first


@pytest.mark.parametrize(
    ("statements", "code"),
    [
        ("insert Nope { a: 1 } insert Book { isbn: 1 }", "T10"),
        ('insert Note { body: "x" } insert Book { isbn: 1 } insert Nope { a: 1 }', "T11"),
        ("insert Book { pages: true, isbn: 1 }", "T3"),
        ("insert Book { isbn: 1, pages: true }", "T11"),
        ("insert Book { pages: true }", "T3"),
        ("update Wrote set { nope: 1 } where nope = 1", "T16"),
        ("update Book set { isbn: 1 } where cover = 1", "T11"),
        ('update Book set { code: "x", code: "y" } where isbn = 1', "T13"),
        ('update Book set { code: "x" } where pages = "x"', "T7"),
    ],
)
def test_the_first_error_in_source_order_is_reported(statements: str, code: str) -> None:
    assert type_code(mutation(statements)) == code
