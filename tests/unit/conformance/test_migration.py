"""Languages specification, 7.4: plans from one schema to the next.

Cases 71, 81 and 92 to 94 speak of stored rows and of applying; they are shown where those are tested.
"""

from typing import Any

import pytest

from omnigraph.core.source_errors import CatalogError
from tests.support.library import LIB, compile_text, plan, plan_steps, pointed_at

ACCEPTED = "node T { slug: String @key  st: enum(a, b)  n: I32? }"
STRING_TYPE = {"scalar": "String", "nullable": True, "list": False, "enum_values": None}


def replaced(old: str, new: str) -> str:
    """Return the accepted schema with a part rewritten."""
    assert old in ACCEPTED
    return ACCEPTED.replace(old, new)


def added(item: str) -> str:
    return replaced(" }", f"  {item} }}")


def from_accepted(desired: str) -> list[dict[str, Any]]:
    return plan_steps(ACCEPTED, desired)


def assert_unsupported(accepted: str, desired: str, entity: str, code: str | None = None) -> str:
    """Check that one change blocks the plan, and return its reason."""
    planned = plan(accepted, desired)
    (step,) = plan_steps(accepted, desired)
    assert not planned.is_supported
    assert step["kind"] == "unsupported_change"
    assert step["entity"] == entity
    assert step.get("code") == code
    assert ("code" in step) == (code is not None)
    reason: str = step["reason"]
    return reason


@pytest.mark.case("languages", 73)
@pytest.mark.parametrize(
    ("accepted", "desired"),
    [
        (ACCEPTED, "/* c */ node T { n: I32? // c\n st: enum(b, a)  slug: String @key }"),
        (LIB, "// c\n" + "\nedge ".join(["", *reversed(LIB.split("\nedge ")[1:])]) + LIB.split("\nedge ")[0]),
    ],
)
def test_order_and_comments_are_no_change(accepted: str, desired: str) -> None:
    planned = plan(accepted, desired)

    assert planned.steps == ()
    assert planned.is_supported
    assert compile_text(desired).shape_hash == compile_text(accepted).shape_hash


@pytest.mark.case("languages", 74)
def test_a_nullable_property_is_added() -> None:
    assert from_accepted(added("x: String?")) == [
        {
            "kind": "add_property",
            "type_kind": "node",
            "type_name": "T",
            "property_name": "x",
            "property_type": STRING_TYPE,
            "work": "schema",
        }
    ]
    assert plan(ACCEPTED, added("x: String?")).is_supported


@pytest.mark.case("languages", 75)
def test_a_required_property_is_not_added() -> None:
    reason = assert_unsupported(ACCEPTED, added("x: String"), "node:T.x", "OG-MF-103")

    assert "'T.x'" in reason


@pytest.mark.case("languages", 76)
@pytest.mark.parametrize(
    ("allow_data_loss", "mode", "work"), [(False, "soft", "schema"), (True, "hard", "rewrite")]
)
def test_a_dropped_property_is_purged_only_when_data_loss_is_allowed(
    allow_data_loss: bool, mode: str, work: str
) -> None:
    steps = plan_steps(ACCEPTED, replaced("  n: I32?", ""), allow_data_loss=allow_data_loss)

    assert steps == [
        {
            "kind": "drop_property",
            "type_kind": "node",
            "type_name": "T",
            "property_name": "n",
            "mode": mode,
            "work": work,
        }
    ]


@pytest.mark.case("languages", 77)
def test_an_enum_gains_values() -> None:
    assert from_accepted(replaced("enum(a, b)", "enum(b, a, c)")) == [
        {
            "kind": "extend_enum",
            "type_kind": "node",
            "type_name": "T",
            "property_name": "st",
            "added_values": ["c"],
            "work": "none",
        }
    ]


@pytest.mark.case("languages", 78)
def test_the_order_of_enum_values_is_no_change() -> None:
    assert from_accepted(replaced("enum(a, b)", "enum(b, a)")) == []


@pytest.mark.case("languages", 79)
@pytest.mark.parametrize("type_", ["enum(a)", "enum(a, z)", "String"])
def test_an_enum_changes_in_no_other_way(type_: str) -> None:
    reason = assert_unsupported(ACCEPTED, replaced("enum(a, b)", type_), "node:T.st", "OG-MF-106")

    assert "'T.st'" in reason


@pytest.mark.case("languages", 79)
def test_an_enum_gains_values_and_nulls() -> None:
    steps = from_accepted(replaced("enum(a, b)", "enum(a, b, c)?"))

    assert [(step["kind"], step["property_name"]) for step in steps] == [
        ("extend_enum", "st"),
        ("relax_property", "st"),
    ]


@pytest.mark.case("languages", 80)
def test_a_number_becomes_wider() -> None:
    (step,) = from_accepted(replaced("I32?", "I64?"))

    assert (step["kind"], step["from"]["scalar"], step["to"]["scalar"]) == ("widen_property", "I32", "I64")


@pytest.mark.case("languages", 80)
@pytest.mark.parametrize("type_", ["F32?", "I32"])
def test_the_type_of_a_property_does_not_change(type_: str) -> None:
    reason = assert_unsupported(ACCEPTED, replaced("I32?", type_), "node:T.n", "OG-MF-106")

    assert "'T.n'" in reason


@pytest.mark.case("languages", 82)
def test_a_renamed_enum_gains_values_under_its_new_name() -> None:
    desired = replaced("st: enum(a, b)", 'state: enum(a, b, c) @rename_from("st")')

    assert from_accepted(desired) == [
        {
            "kind": "rename_property",
            "type_kind": "node",
            "type_name": "T",
            "from": "st",
            "to": "state",
            "work": "schema",
        },
        {
            "kind": "extend_enum",
            "type_kind": "node",
            "type_name": "T",
            "property_name": "state",
            "added_values": ["c"],
            "work": "none",
        },
    ]


@pytest.mark.case("languages", 83)
def test_a_type_under_another_name_without_a_hint_is_another_type() -> None:
    assert from_accepted(replaced("node T", "node U")) == [
        {"kind": "add_type", "type_kind": "node", "name": "U", "work": "schema"},
        {"kind": "drop_type", "type_kind": "node", "name": "T", "mode": "soft", "work": "none"},
    ]


@pytest.mark.case("languages", 84)
def test_a_hint_names_a_type_that_exists() -> None:
    with pytest.raises(CatalogError) as caught:
        plan(ACCEPTED, replaced("node T", 'node U @rename_from("Nope")'))

    assert "Nope" in str(caught.value)


@pytest.mark.case("languages", 85)
def test_a_property_does_not_move_to_another_type() -> None:
    accepted = ACCEPTED + " node Other { far: I32? }"

    with pytest.raises(CatalogError, match="moves across owners") as caught:
        plan(accepted, added('x: I32? @rename_from("far")') + " node Other { far: I32? }")

    assert "far" in str(caught.value)
    assert "'Other'" in str(caught.value)


@pytest.mark.case("languages", 85)
def test_a_new_type_has_no_property_to_rename() -> None:
    with pytest.raises(CatalogError) as caught:
        plan(ACCEPTED, ACCEPTED + ' node New { m: I32? @rename_from("n") }')

    assert "'New'" in str(caught.value)
    assert pointed_at(caught.value) in {"m", '@rename_from("n")'}


@pytest.mark.case("languages", 86)
def test_a_new_index_is_one_step() -> None:
    assert from_accepted(replaced("I32?", "I32? @index")) == [
        {
            "kind": "add_constraint",
            "type_kind": "node",
            "type_name": "T",
            "constraint": {"Index": ["n"]},
            "work": "none",
        }
    ]


@pytest.mark.case("languages", 87)
@pytest.mark.parametrize(
    ("desired", "rule"),
    [(replaced("I32?", "I32? @unique"), "@unique(n)"), (added("@range(n, 0..9)"), "@range(n, 0..9)")],
)
def test_an_existing_type_gains_no_other_constraint(desired: str, rule: str) -> None:
    reason = assert_unsupported(ACCEPTED, desired, "node:T")

    assert rule in reason


@pytest.mark.case("languages", 88)
def test_an_index_is_not_removed() -> None:
    reason = assert_unsupported(replaced("I32?", "I32? @index"), ACCEPTED, "node:T")

    assert "@index(n)" in reason


@pytest.mark.case("languages", 88)
def test_dropping_an_indexed_property_removes_its_index_and_is_unsupported() -> None:
    accepted, desired = replaced("I32?", "I32? @index"), replaced("  n: I32?", "")

    dropped, blocking = plan_steps(accepted, desired)

    assert dropped == {
        "kind": "drop_property",
        "type_kind": "node",
        "type_name": "T",
        "property_name": "n",
        "mode": "soft",
        "work": "schema",
    }
    assert (blocking["kind"], blocking["entity"]) == ("unsupported_change", "node:T")
    assert not plan(accepted, desired).is_supported


@pytest.mark.case("languages", 89)
def test_a_description_may_be_added_to_a_type() -> None:
    assert from_accepted(replaced("node T", 'node T @description("d")')) == [
        {
            "kind": "update_type_metadata",
            "type_kind": "node",
            "name": "T",
            "annotations": [{"name": "description", "value": "d"}],
            "work": "none",
        }
    ]


@pytest.mark.case("languages", 89)
def test_an_annotation_of_unknown_meaning_is_not_added() -> None:
    reason = assert_unsupported(ACCEPTED, replaced("node T", 'node T @vendor("z")'), "node:T")

    assert "@vendor" in reason


@pytest.mark.case("languages", 90)
@pytest.mark.parametrize(
    ("accepted", "desired", "entity"),
    [
        ("edge E: T -> T", "edge E: T -> T @card(0..1)", "edge:E"),
        ("edge E: T -> T @card(0..1)", "edge E: T -> T @card(0..2)", "edge:E"),
        ("node V {} edge E: T -> T", "node V {} edge E: V -> T", "edge:E"),
        ("node V {} edge E: T -> T", "node V {} edge E: T -> V", "edge:E"),
        ("interface I { a: I32? }", "", "interface:I"),
        ("interface I {} node V {}", "interface I {} node V implements I {}", "node:V"),
        ("interface I {} node V implements I {}", "interface I {} node V {}", "node:V"),
    ],
)
def test_endpoints_cardinalities_and_interfaces_do_not_change(
    accepted: str, desired: str, entity: str
) -> None:
    reason = assert_unsupported(f"{ACCEPTED} {accepted}", f"{ACCEPTED} {desired}", entity)

    assert f"'{entity.split(':')[1]}'" in reason


@pytest.mark.case("languages", 91)
def test_the_model_of_an_embedding_does_not_change() -> None:
    node = 'node D { t: String  v: Vector(3)? @embed(t, model="MODEL") }'

    reason = assert_unsupported(node, node.replace("MODEL", "other"), "node:D.v")

    assert "@embed" in reason


@pytest.mark.case("languages", 91)
def test_the_source_of_an_embedding_may_be_renamed() -> None:
    accepted = 'node D { t: String  v: Vector(3)? @embed(t, model="m") }'
    desired = 'node D { text: String @rename_from("t")  v: Vector(3)? @embed(text, model="m") }'

    assert plan(accepted, desired).is_supported
    assert plan_steps(accepted, desired) == [
        {
            "kind": "rename_property",
            "type_kind": "node",
            "type_name": "D",
            "from": "t",
            "to": "text",
            "work": "schema",
        }
    ]
