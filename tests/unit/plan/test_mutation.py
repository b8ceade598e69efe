"""The plan of a mutation: statements over physical columns."""

from omnigraph.catalog.bound import NOW_PARAMETER, LiteralValue, Operator, ParameterValue
from omnigraph.core.values import Scalar, ValueType
from omnigraph.exec.mutation import (
    ColumnPredicate,
    DeleteOp,
    InsertOp,
    MutationOp,
    UpdateOp,
    plan_mutation,
)
from tests.support.library import compile_text
from tests.support.queries import bind_writes, mutation

TEXT = ValueType(Scalar.STRING)


def operations(statements: str, params: str = "") -> tuple[MutationOp, ...]:
    """Return the operations of a mutation's plan."""
    return plan_mutation(bind_writes(mutation(statements, params))).operations


def test_an_insert_of_a_node_assigns_its_columns_in_order() -> None:
    (insert,) = operations("insert Author { name: $n, handle: $h }", "$n: String, $h: String")

    assert insert == InsertOp(
        "Author", False, (("name", ParameterValue("n", TEXT)), ("handle", ParameterValue("h", TEXT)))
    )


def test_the_ends_of_an_inserted_edge_are_columns() -> None:
    (insert,) = operations('insert Wrote { role: "main", to: "AA-1", from: "ada" }')

    assert isinstance(insert, InsertOp)
    assert insert.is_edge
    assert [column for column, _ in insert.assignments] == ["role", "dst", "src"]


def test_a_node_may_have_properties_of_the_names_of_ends() -> None:
    trips = compile_text("node Trip { from: String  to: String }")
    insert = plan_mutation(bind_writes(mutation('insert Trip { from: "a", to: "b" }'), trips))
    update = plan_mutation(bind_writes(mutation('update Trip set { to: "c" } where from = "a"'), trips))

    text = LiteralValue("a", TEXT), LiteralValue("b", TEXT), LiteralValue("c", TEXT)
    assert insert.operations == (InsertOp("Trip", False, (("from", text[0]), ("to", text[1]))),)
    assert update.operations == (
        UpdateOp("Trip", (("to", text[2]),), ColumnPredicate("from", Operator.EQ, text[0])),
    )


def test_an_update_has_assignments_and_a_predicate() -> None:
    (update,) = operations('update Book set { price: 9.5 } where format != "paper"')

    assert update == UpdateOp(
        "Book",
        (("price", LiteralValue(9.5, ValueType(Scalar.F64))),),
        ColumnPredicate("format", Operator.NE, LiteralValue("paper", TEXT)),
    )


def test_a_delete_of_an_edge_selects_by_a_column() -> None:
    by_source, by_target, by_role = operations(
        'delete Wrote where from = "ada" delete Wrote where to = "AA-1" delete Wrote where role = "main"'
    )

    assert by_source == DeleteOp(
        "Wrote", True, ColumnPredicate("src", Operator.EQ, LiteralValue("ada", TEXT))
    )
    assert by_target == DeleteOp(
        "Wrote", True, ColumnPredicate("dst", Operator.EQ, LiteralValue("AA-1", TEXT))
    )
    assert by_role == DeleteOp(
        "Wrote", True, ColumnPredicate("role", Operator.EQ, LiteralValue("main", TEXT))
    )


def test_a_delete_of_nodes_selects_by_a_property() -> None:
    (delete,) = operations("delete Note where made < now()")

    now = ParameterValue(NOW_PARAMETER, ValueType(Scalar.DATETIME))
    assert delete == DeleteOp("Note", False, ColumnPredicate("made", Operator.LT, now))


def test_operations_keep_the_order_of_their_statements() -> None:
    found = operations(
        'insert Note { body: "a" } update Note set { body: "b" } where body = "a" insert Note { body: "c" }'
    )

    assert [type(operation) for operation in found] == [InsertOp, UpdateOp, InsertOp]


def test_a_mutation_keeps_its_name_and_parameters() -> None:
    plan = plan_mutation(bind_writes(mutation("insert Note { body: $t }", "$t: String", "note")))

    assert plan.name == "note"
    assert plan.parameters == {"t": TEXT}
