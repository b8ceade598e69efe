"""Every row of the migration table (languages 2.5), the order of steps and their JSON."""

from dataclasses import replace
from typing import Any

import pytest

from omnigraph.catalog.migrate import plan_migration
from omnigraph.catalog.migration_codes import CODES, step_code
from omnigraph.catalog.migration_steps import UnsupportedChange, step_json
from omnigraph.catalog.shape import SchemaShape
from omnigraph.core.diagnostics import Severity
from omnigraph.core.errors import SchemaError
from tests.support.library import LIB, accept, evolve, plan, plan_steps, read

Row = dict[str, Any]


def property_type(scalar: object, *, values: list[str] | None = None, is_list: bool = False) -> Row:
    return {"scalar": scalar, "nullable": True, "list": is_list, "enum_values": values}


def on(kind: str, type_name: str, step: str, **fields: object) -> Row:
    """Return a step about a property or constraint of a type."""
    return {"kind": step, "type_kind": kind, "type_name": type_name, **fields}


def brief(steps: list[Row]) -> list[str]:
    """Return each step as its kind and the thing it is about."""
    lines = []
    for step in steps:
        owner = step.get("type_name") or step.get("name") or step.get("from") or step["entity"]
        part = step.get("property_name") or step.get("from" if "type_name" in step else "-") or ""
        lines.append(f"{step['kind']} {owner}" + (f".{part}" if part else ""))
    return lines


# Steps and their JSON


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("String?", property_type("String")),
        ("[I64]?", property_type("I64", is_list=True)),
        ("Vector(4)?", property_type({"Vector": 4})),
        ("enum(b, a)?", property_type("String", values=["a", "b"])),
        ("Blob?", property_type("Blob")),
    ],
)
def test_a_new_property_prints_its_type(written: str, expected: Row) -> None:
    steps = plan_steps("node T {}", f"node T {{ x: {written} }}")

    assert steps == [
        on("node", "T", "add_property", property_name="x", property_type=expected, work="schema")
    ]
    assert list(steps[0]) == ["kind", "type_kind", "type_name", "property_name", "property_type", "work"]


@pytest.mark.parametrize(("allow_data_loss", "mode"), [(False, "soft"), (True, "hard")])
def test_types_are_added_and_dropped(allow_data_loss: bool, mode: str) -> None:
    accepted, desired = (
        "node T {} node U {} edge E: T -> U",
        "interface I {} node T {} node V {} edge F: T -> V",
    )

    steps = plan_steps(accepted, desired, allow_data_loss=allow_data_loss)

    assert steps == [
        {"kind": "add_type", "type_kind": "interface", "name": "I", "work": "none"},
        {"kind": "add_type", "type_kind": "node", "name": "V", "work": "schema"},
        {"kind": "drop_type", "type_kind": "node", "name": "U", "mode": mode, "work": "none"},
        {"kind": "add_type", "type_kind": "edge", "name": "F", "work": "schema"},
        {"kind": "drop_type", "type_kind": "edge", "name": "E", "mode": mode, "work": "none"},
    ]


def test_a_new_type_may_have_any_constraint() -> None:
    node = 'node V { a: String @key  n: I32 @unique @index  @range(n, 0..1)  @check(a, "x") }'

    assert brief(plan_steps("", f"{node} edge E: V -> V @card(1..)")) == ["add_type V", "add_type E"]


def test_types_and_properties_are_renamed() -> None:
    accepted = "node T { a: I32? } edge E: T -> T { w: I32? }"
    desired = (
        'node U @rename_from("T") { b: I32? @rename_from("a") }'
        'edge F: U -> U @rename_from("E") { v: I32? @rename_from("w") }'
    )

    assert plan_steps(accepted, desired) == [
        {"kind": "rename_type", "type_kind": "node", "from": "T", "to": "U", "work": "none"},
        on("node", "U", "rename_property", **{"from": "a", "to": "b"}, work="schema"),
        {"kind": "rename_type", "type_kind": "edge", "from": "E", "to": "F", "work": "none"},
        on("edge", "F", "rename_property", **{"from": "w", "to": "v"}, work="schema"),
    ]


def test_metadata_is_printed_as_it_becomes() -> None:
    accepted = 'node T @description("d") @flag { a: I32? @v("z", n=1, m=true) } edge E: T -> T'
    desired = (
        'node T @flag @instruction("i") { a: I32? @v("z", n=1, m=true) @description("x") }'
        'edge E: T -> T @description("e")'
    )

    assert plan_steps(accepted, desired) == [
        {
            "kind": "update_type_metadata",
            "type_kind": "node",
            "name": "T",
            "annotations": [{"name": "flag", "value": None}, {"name": "instruction", "value": "i"}],
            "work": "none",
        },
        on(
            "node",
            "T",
            "update_property_metadata",
            property_name="a",
            annotations=[
                {"name": "description", "value": "x"},
                {"name": "v", "value": "z", "kwargs": {"m": True, "n": 1}},
            ],
            work="none",
        ),
        {
            "kind": "update_type_metadata",
            "type_kind": "edge",
            "name": "E",
            "annotations": [{"name": "description", "value": "e"}],
            "work": "none",
        },
    ]


def test_an_index_of_several_columns_is_one_constraint() -> None:
    assert plan_steps("node T { b: I32  a: I32 }", "node T { b: I32  a: I32  @index(b, a) }") == [
        on("node", "T", "add_constraint", constraint={"Index": ["a", "b"]}, work="none")
    ]


def test_an_unsupported_change_prints_its_code_where_it_has_one() -> None:
    with_code, without = plan_steps("node T { n: I32? }", "node T { n: String?  @unique(n) }")

    assert list(with_code) == ["kind", "entity", "reason", "code"]
    assert (with_code["entity"], with_code["code"]) == ("node:T.n", "OG-MF-106")
    assert list(without) == ["kind", "entity", "reason"]
    assert without["entity"] == "node:T"


# Rows of the table

B = """
    interface I { x: I32? }
    node T implements I { a: String  n: I32?  st: enum(a, b) }
    node U {}
    edge E: T -> U
"""


@pytest.mark.parametrize(
    ("old", "new", "entity", "code"),
    [
        ("n: I32?", "n: I32?  z: I32", "node:T.z", "OG-MF-103"),
        ("n: I32?", "n: I32", "node:T.n", "OG-MF-106"),
        ("n: I32?", "n: F32?", "node:T.n", "OG-MF-106"),
        ("n: I32?", "n: U32?", "node:T.n", "OG-MF-106"),
        ("n: I32?", "n: U64?", "node:T.n", "OG-MF-106"),
        ("n: I32?", "n: I64", "node:T.n", "OG-MF-106"),
        ("n: I32?", "n: [I32]?", "node:T.n", "OG-MF-106"),
        ("a: String", "a: enum(q)", "node:T.a", "OG-MF-106"),
        ("enum(a, b)", "String", "node:T.st", "OG-MF-106"),
        ("enum(a, b)", "enum(a)", "node:T.st", "OG-MF-106"),
        ("enum(a, b)", "enum(a, c)", "node:T.st", "OG-MF-106"),
        ("enum(a, b)", "enum(a, c)?", "node:T.st", "OG-MF-106"),
        ("a: String", "a: String @key", "node:T", None),
        ("a: String", "a: String @unique", "node:T", None),
        ("a: String", 'a: String  @check(a, "x")', "node:T", None),
        ("n: I32?", "n: I32?  @range(n, 0..)", "node:T", None),
        ("T -> U", "T -> T", "edge:E", None),
        ("T -> U", "U -> U", "edge:E", None),
        ("T -> U", "T -> U @card(0..9)", "edge:E", None),
        ("T -> U", "T -> U @vendor", "edge:E", None),
        ("node U {}", "node U @vendor {}", "node:U", None),
        ("a: String", "a: String @vendor", "node:T.a", None),
        ("n: I32?", "n: I32?  x: I32?", "node:T.x", None),
    ],
)
def test_a_change_that_data_cannot_follow_is_one_unsupported_change(
    old: str, new: str, entity: str, code: str | None
) -> None:
    desired = B.replace(old, new, 1)

    (forth,) = plan(B, desired).steps
    back = plan(desired, B)

    assert isinstance(forth, UnsupportedChange)
    assert (forth.entity, forth.code) == (entity, code)
    assert entity[5:6] in forth.reason
    is_undone = code == "OG-MF-103" or (old, new) in {("enum(a, b)", "enum(a)"), ("n: I32?", "n: I32")}
    assert back.is_supported == is_undone


@pytest.mark.parametrize("change", ["", '@embed(a, model="m")', "@embed(b)", '@embed(a, model="o")'])
def test_an_embedding_does_not_change(change: str) -> None:
    text = "node T {{ a: String  b: String  v: Vector(2)? {} }}"

    (step,) = plan_steps(text.format("@embed(a)"), text.format(change))
    (back,) = plan_steps(text.format(change), text.format("@embed(a)"))

    assert step == back
    assert (step["kind"], step["entity"]) == ("unsupported_change", "node:T.v")
    assert "@embed" in step["reason"]


@pytest.mark.parametrize("kind", ["key", "unique", "index"])
def test_a_constraint_that_moves_into_the_body_is_unsupported(kind: str) -> None:
    on_property, in_body = f"node T {{ a: I32 @{kind} }}", f"node T {{ a: I32  @{kind}(a) }}"

    there, back = plan_steps(on_property, in_body), plan_steps(in_body, on_property)

    assert [step["kind"] for step in there] == ["unsupported_change"]
    if kind == "index":
        assert back == [on("node", "T", "add_constraint", constraint={"Index": ["a"]}, work="none")]
    else:
        assert [step["kind"] for step in back] == ["unsupported_change"]


def test_a_range_with_other_bounds_is_one_constraint_less_and_one_more() -> None:
    steps = plan_steps("node T { n: I32  @range(n, 0..1) }", "node T { n: I32  @range(n, 0..2) }")

    assert [step["entity"] for step in steps] == ["node:T"] * 2
    assert {word for step in steps for word in step["reason"].split() if word in {"adding", "removing"}} == {
        "adding",
        "removing",
    }


def test_an_endpoint_under_its_new_name_is_the_same_endpoint() -> None:
    accepted, desired = "node T {} edge E: T -> T", 'node U @rename_from("T") {} edge E: U -> U'

    assert brief(plan_steps(accepted, desired)) == ["rename_type T"]


def test_a_constraint_over_a_renamed_property_is_the_same_constraint() -> None:
    accepted = 'node T { a: I32 @key  s: String @unique  @range(a, 0..1)  @check(s, "x")  @index(a, s) }'
    desired = """
        node T {
            z: I32 @key @rename_from("a")  r: String @unique @rename_from("s")
            @range(z, 0..1)  @check(r, "x")  @index(r, z)
        }
    """

    assert brief(plan_steps(accepted, desired)) == ["rename_property T.s", "rename_property T.a"]


def test_a_rename_an_enum_extension_and_an_index_go_together() -> None:
    accepted, desired = (
        "node T { st: enum(a, b) }",
        'node T { state: enum(a, b, c) @rename_from("st") @index }',
    )

    assert plan_steps(accepted, desired) == [
        on("node", "T", "rename_property", **{"from": "st", "to": "state"}, work="schema"),
        on("node", "T", "extend_enum", property_name="state", added_values=["c"], work="none"),
        on("node", "T", "add_constraint", constraint={"Index": ["state"]}, work="none"),
    ]


# Interfaces

WITH_INTERFACE = (
    "interface I {{ {} }} node N implements I {{}} node M implements I {{ own: I32? }} node L {{}}"
)


@pytest.mark.parametrize(
    ("accepted", "desired", "step"),
    [
        ("", "x: String?", "add_property"),
        ("x: String?", 'y: String? @rename_from("x")', "rename_property"),
        ("x: String?", "", "drop_property"),
        ("x: enum(a)?", "x: enum(a, b)?", "extend_enum"),
        ("x: I32?", 'x: I32? @description("d")', "update_property_metadata"),
        ("", "x: I32 @default(1)", "add_property"),
        ("x: I32?", "x: I32? @default(1)", "change_default"),
        ("x: I32?", "x: I64?", "widen_property"),
        ('x: Blob? @external("s3://a/")', 'x: Blob? @external("s3://b/")', "change_external"),
        ("x: I32", "x: I32?", "relax_property"),
    ],
)
def test_a_change_of_an_interface_property_is_one_step_for_it_and_for_each_implementing_node(
    accepted: str, desired: str, step: str
) -> None:
    planned = plan(WITH_INTERFACE.format(accepted), WITH_INTERFACE.format(desired))
    steps = [step_json(each) for each in planned.steps]

    assert planned.is_supported
    assert [(each["kind"], each["type_kind"], each["type_name"]) for each in steps] == [
        (step, "interface", "I"),
        (step, "node", "M"),
        (step, "node", "N"),
    ]
    assert steps[0]["work"] == "none"


def test_a_required_property_is_added_to_no_interface() -> None:
    steps = plan_steps(WITH_INTERFACE.format(""), WITH_INTERFACE.format("x: I32"))

    assert [step["entity"] for step in steps] == ["interface:I.x", "node:M.x", "node:N.x"]
    assert {step["code"] for step in steps} == {"OG-MF-103"}


def test_what_an_interface_loses_is_not_passed_over_beside_other_changes() -> None:
    accepted = "interface I { x: I32? @index } node N implements I { x: I32? }"

    planned = plan(accepted, "interface I { x: I32? } node N implements I { x: I32?  y: I32? }")

    assert not planned.is_supported


def test_an_annotation_with_a_literal_of_another_kind_is_a_change() -> None:
    assert not plan("node T @v(1) {}", "node T @v(true) {}").is_supported


# Order and the plan as a whole


def test_steps_go_by_kind_then_name_then_part() -> None:
    accepted = """
        interface I { p: I32? }
        node D { }  node A { a: I32?  drop: I32?  e: enum(x) }  node C { }
        edge E: A -> C { w: I32? }  edge Z: A -> A
    """
    desired = """
        interface I { p: I32?  q: I32? }  interface H { }
        node A @description("d") {
            e: enum(x, y) @description("d")  b: I32? @rename_from("a")  c: I32?  @index(c)
        }
        node K @rename_from("C") { }  node B { }
        edge E: A -> K { w: I32? @index  v: I32? }
    """

    assert brief(plan_steps(accepted, desired)) == [
        "add_type H",
        "add_property I.q",
        "update_type_metadata A",
        "rename_property A.a",
        "add_property A.c",
        "extend_enum A.e",
        "update_property_metadata A.e",
        "drop_property A.drop",
        "add_constraint A",
        "add_type B",
        "rename_type C",
        "drop_type D",
        "add_property E.v",
        "add_constraint E",
        "drop_type Z",
    ]


def test_a_difference_that_no_row_knows_blocks_the_plan() -> None:
    accepted = accept("node T { a: I32? b: I32? }")
    (shape,) = accepted.shape.types
    strange = replace(accepted, shape=SchemaShape((replace(shape, properties=shape.properties[::-1]),)))

    (step,) = plan_migration(strange, read("node T { a: I32? b: I32? }")).steps

    assert isinstance(step, UnsupportedChange)
    assert step.entity == "schema"
    assert "unclassified" in step.reason


@pytest.mark.parametrize("text", [LIB, "", B])
def test_the_same_schema_needs_no_step(text: str) -> None:
    planned = plan(text, text)

    assert (planned.steps, planned.diagnostics, planned.is_supported) == ((), (), True)


def test_a_hint_that_was_followed_is_noted_and_changes_nothing() -> None:
    desired = 'node U @rename_from("T") { }'
    accepted = evolve(accept("node T { }"), desired)

    planned = plan_migration(accepted, read(desired))

    assert planned.steps == ()
    assert [note.severity for note in planned.diagnostics] == [Severity.INFO]
    assert "ignored exact match hint" in planned.diagnostics[0].message


def test_an_unsupported_plan_stops_with_its_first_reason_behind_its_code() -> None:
    planned = plan("node T { }", "node T { a: I32?  b: I32  c: I64 }")

    with pytest.raises(SchemaError, match=r"^\[OG-MF-103\] .*T\.b") as caught:
        planned.require_supported()

    assert caught.value.steps == planned.steps
    assert len(planned.steps) == 3


def test_a_supported_plan_is_let_through() -> None:
    plan("node T { }", "node T { a: I32? }").require_supported()


def test_drops_are_described_by_their_codes() -> None:
    dropped = plan("node T { } node U { a: I32? } edge E: T -> T", "node U { }").steps

    assert [step_code(step) for step in dropped] == ["OG-DS-104", "OG-DS-102", "OG-DS-103"]
    assert {step_code(step) for step in plan("", "node T { }").steps} == {None}
    assert len({code.code for code in CODES}) == len(CODES) == 8


@pytest.mark.case("languages", 262)
def test_a_schema_without_any_type_is_a_mistake_unless_data_may_be_lost() -> None:
    accepted = accept(LIB)

    refused = plan_migration(accepted, read("// nothing\n"))
    meant = plan_migration(accepted, read(""), allow_data_loss=True)

    assert [step.entity for step in refused.steps if isinstance(step, UnsupportedChange)] == ["schema"]
    with pytest.raises(SchemaError, match="--allow-data-loss"):
        refused.require_supported()
    assert {step_json(step)["kind"] for step in meant.steps} <= {"drop_type", "unsupported_change"}
    assert plan_migration(accept(""), read("")).steps == ()
