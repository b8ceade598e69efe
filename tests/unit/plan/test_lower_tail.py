"""Lowering of what surrounds a match block, and of mutations."""

from omnigraph.catalog.bound import NOW_PARAMETER, LiteralValue, Operator, ParameterValue
from omnigraph.core.values import Scalar, ValueType
from omnigraph.plan.logical import ColumnPredicate, DeleteOp, InsertOp, MutationOp, MutationPlan, UpdateOp
from omnigraph.plan.lower import lower
from tests.support.library import compile_text
from tests.support.queries import bind_read, bind_text, books, lower_read, mutation

TEXT = ValueType(Scalar.STRING)


def operations(statements: str, params: str = "") -> tuple[MutationOp, ...]:
    """Return the operations of a mutation's plan."""
    plan = lower(bind_text(mutation(statements, params)))
    assert isinstance(plan, MutationPlan)
    return plan.operations


def test_a_plan_keeps_the_head_and_the_tail_of_its_query() -> None:
    text = books(tail="return { $b.pages as p, $b } order { p desc, $b.code } limit 3", params="$t: String?")
    bound = bind_read(text)

    plan = lower_read(text)

    assert (plan.name, plan.limit) == ("q", 3)
    assert plan.parameters == {"t": ValueType(Scalar.STRING, nullable=True)}
    assert plan.projections == bound.projections
    assert plan.orderings == bound.orderings


def test_a_plan_without_order_and_limit_has_neither() -> None:
    plan = lower_read(books())

    assert plan.orderings == ()
    assert plan.limit is None


def test_now_is_a_reserved_parameter() -> None:
    (projection,) = lower_read(books(tail="return { now() }")).projections

    assert projection.expression == ParameterValue(NOW_PARAMETER, ValueType(Scalar.DATETIME))
    assert NOW_PARAMETER == "__omnigraph_now"


def test_a_plan_is_a_function_of_text_and_schema() -> None:
    text = books("$_ cites $b $b cites $b not { $b storedOn $_ }")

    assert lower_read(text) == lower_read(text)


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
    insert = lower(bind_text(mutation('insert Trip { from: "a", to: "b" }'), trips))
    update = lower(bind_text(mutation('update Trip set { to: "c" } where from = "a"'), trips))

    assert isinstance(insert, MutationPlan)
    assert isinstance(update, MutationPlan)
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
    plan = lower(bind_text(mutation("insert Note { body: $t }", "$t: String", "note")))

    assert isinstance(plan, MutationPlan)
    assert plan.name == "note"
    assert plan.parameters == {"t": TEXT}
