"""Languages specification, 7.11: defaults of properties, wider types, and the work of a plan.

What rows get from their defaults (cases 238 to 243) is shown in `tests/engine/test_defaults.py`.
"""

import pytest

from omnigraph.catalog.build import ir_hash, ir_text, read_ir
from omnigraph.catalog.model import KeyValue, derive_id
from omnigraph.cli.render.migration import render_plan
from omnigraph.core.limits import I32_MAX, I32_MIN, U32_MAX
from omnigraph.language.schema_ast import DefaultValue
from omnigraph.wire.documents import schema_plan_document
from tests.support.formatting import SCHEMA, check_promises
from tests.support.library import (
    LIB,
    accept,
    catalog_failure,
    compile_item,
    compile_text,
    evolved_catalog,
    parse_failure,
    plan,
    plan_steps,
    pointed_at,
    wrap,
)

# Of LIB, when the schema language had no defaults.
SHAPE_HASH = "sha256:42df351e806b60ff141ace67cd9c7293412b85602fbdf25abd77916be9344191"
DOCUMENT_HASH = "sha256:0cac2ae6fbc27bb58af28c786e39b4c188aca388254b35a61028025679c6a139"
ANNOTATED = 'node N { a: String @z(1) @default("x") @a @description("d") }'
ANNOTATED_HASH = "sha256:9275aa0b743f2b053d33f7843a42b2c5de4f324c55b1608281f85b46455b6ae9"


# Text


@pytest.mark.case("languages", 225)
@pytest.mark.parametrize(
    ("item", "value"),
    [
        ("x: I32 @default(-3)", -3),
        ("x: F64? @default(1)", 1),
        ('x: String @default("")', ""),
        ("x: enum(a, b-c) @default(a)", "a"),
        ('x: enum(a, b-c) @default("b-c")', "b-c"),
        ("x: Bool @default(true)", True),
        ('x: Date @default("2020-05-01")', "2020-05-01"),
        ('x: DateTime @default("2021-01-01T01:00:00+01:00")', "2021-01-01T01:00:00+01:00"),
        ("x: [I32] @default([1, -2])", (1, -2)),
        ("x: [I32] @default([])", ()),
    ],
)
def test_a_property_has_the_default_that_is_written(item: str, value: DefaultValue) -> None:
    on_edge = compile_text(f"node N {{}} edge E: N -> N {{ {item} }}").edges["E"]

    for property_ in (compile_item(item).nodes["N"].properties["x"], on_edge.properties["x"]):
        assert (property_.default, type(property_.default)) == (value, type(value))


@pytest.mark.case("languages", 226)
@pytest.mark.parametrize(
    ("text", "culprit"),
    [
        (wrap('c: Blob? @default("x")'), '@default("x")'),
        (wrap("v: Vector(2)? @default([1, 2])"), "@default([1, 2])"),
        ('node N { k: String @key @default("a") }', '@default("a")'),
        ('node N { a: String @default("a")  b: String  @key(a, b) }', '@default("a")'),
    ],
)
def test_blobs_vectors_and_keys_have_no_default(text: str, culprit: str) -> None:
    assert pointed_at(parse_failure(text)) == culprit


@pytest.mark.case("languages", 227)
@pytest.mark.parametrize(
    ("item", "culprit"),
    [
        ('x: I32 @default("x")', '"x"'),
        ("x: I32 @default(1.5)", "1.5"),
        ("x: I32 @default(3000000000)", "3000000000"),
        ("x: I32 @default(true)", "true"),
        ("x: I32 @default(x)", "x"),
        ("x: I32 @default([1])", "[1]"),
        ("x: I32 @default", "@default"),
        ("x: U32 @default(-1)", "-1"),
        ("x: enum(a) @default(z)", "z"),
        ("x: String @default(word)", "word"),
        ('x: Date @default("2020-13-01")', '"2020-13-01"'),
        ("x: Date @default(3)", "3"),
        (f"x: F32 @default(1{'0' * 39})", f"1{'0' * 39}"),
        ("x: [I32] @default(1)", "1"),
        ('x: [I32] @default([1, "x"])', '[1, "x"]'),
    ],
)
def test_a_default_is_a_value_of_its_property(item: str, culprit: str) -> None:
    error = parse_failure(wrap(item))

    assert pointed_at(error) == culprit
    assert "'x'" in str(error)


@pytest.mark.case("languages", 228)
@pytest.mark.parametrize(
    ("item", "rule"),
    [
        ("x: I32 @default(9)  @range(x, 0..5)", "@range"),
        ('x: String @default("b")  @check(x, "^a")', "@check"),
        ('x: enum(a, b) @default(b)  @check(x, "^a")', "@check"),
    ],
)
def test_a_default_keeps_the_rules_of_its_property(item: str, rule: str) -> None:
    error = parse_failure(wrap(item))

    assert rule in str(error)
    assert compile_item(item.replace("(9)", "(5)").replace('"b"', '"a"').replace("(b)", "(a)"))


@pytest.mark.case("languages", 229)
@pytest.mark.parametrize(
    ("text", "culprit"),
    [
        (wrap("x: I32 @default()"), ")"),
        (wrap("x: I32 @default(1, k=2)"), ","),
        (wrap("x: I32 @default(- 1)"), "1"),
        (wrap("x: [I32] @default([1,])"), "]"),
        (wrap("x: [I32] @default([[1]])"), "["),
        (wrap("x: I32 @other(-1)"), "-"),
        (wrap("x: [I32] @other([1])"), "["),
        ("node M @default(1) {}", "@default(1)"),
        (wrap("x: I32 @default(1) @default(2)"), "@default(2)"),
    ],
)
def test_only_a_property_has_a_default_and_only_one(text: str, culprit: str) -> None:
    assert pointed_at(parse_failure(text)) == culprit


@pytest.mark.case("languages", 230)
def test_an_interface_passes_its_default_on() -> None:
    interfaces = "interface A { x: I32 @default(1) } interface B { x: I32 @default(2) } "

    injected = compile_text(interfaces + "node N implements A {}")
    redeclared = compile_text(interfaces + "node N implements A { x: I32 }")
    disagreeing = catalog_failure(interfaces + "node N implements A, B {}")

    assert (
        injected.interfaces["A"].properties["x"].default,
        injected.nodes["N"].properties["x"].default,
    ) == (1, 1)
    assert redeclared.nodes["N"].properties["x"].default is None
    assert "'x'" in str(disagreeing)


@pytest.mark.case("languages", 231)
def test_schemas_without_defaults_keep_their_hashes() -> None:
    assert compile_text(LIB).shape_hash == SHAPE_HASH
    assert ir_hash(ir_text(accept(LIB))) == DOCUMENT_HASH
    assert compile_text(ANNOTATED).shape_hash == ANNOTATED_HASH


@pytest.mark.case("languages", 231)
def test_a_default_is_part_of_the_shape_and_of_the_document() -> None:
    text = "node N { b: I32  a: [F64] @default([1, -0.5]) @d(2) }"
    accepted = accept(text)

    assert (
        compile_text("/* c */ node N { a: [F64] @d(2) @default([1,-0.5]) b: I32 }").shape_hash
        == accepted.shape.hash
    )
    assert compile_text(text.replace("1,", "2,")).shape_hash != accepted.shape.hash
    assert read_ir(ir_text(accepted)) == accepted


@pytest.mark.case("languages", 244)
def test_a_default_is_formatted() -> None:
    formatted = check_promises(SCHEMA, "node N{x:[I32]@default([1,-2  , 3]) y:I32 @default( -3 )}")

    assert "x: [I32] @default([1, -2, 3])\n" in formatted
    assert "y: I32 @default(-3)\n" in formatted
    assert pointed_at(parse_failure("node N { y: I32 @default ( - 3 ) }")) == "3"


# Plans


@pytest.mark.case("languages", 232)
@pytest.mark.parametrize(
    ("item", "default", "work"),
    [
        ('x: String @default("a")', "a", "column"),
        ('x: String? @default("a")', "a", "column"),
        ("x: String?", None, "schema"),
        ("x: I64 @default(9007199254740993)", "9007199254740993", "column"),
        ("x: [I32] @default([])", [], "column"),
        ("x: Bool @default(false)", False, "column"),
    ],
)
def test_a_property_is_added_with_its_default(item: str, default: object, work: str) -> None:
    planned = plan("node T {}", f"node T {{ {item} }}")
    (step,) = plan_steps("node T {}", f"node T {{ {item} }}")

    assert planned.is_supported
    assert (step["kind"], step["work"]) == ("add_property", work)
    assert step.get("default") == default
    assert ("default" in step) == (default is not None)


@pytest.mark.case("languages", 233)
@pytest.mark.parametrize(
    ("before", "after", "values"),
    [("", "@default(1)", (None, 1)), ("@default(1)", "@default(2)", (1, 2)), ("@default(2)", "", (2, None))],
)
def test_a_default_changes_without_any_work(before: str, after: str, values: tuple[object, object]) -> None:
    text = "node T {{ n: I32? {} }}"

    assert plan_steps(text.format(before), text.format(after)) == [
        {
            "kind": "change_default",
            "type_kind": "node",
            "type_name": "T",
            "property_name": "n",
            "from": values[0],
            "to": values[1],
            "work": "none",
        }
    ]


WIDER = [
    ("I32", "I64"),
    ("I32", "F64"),
    ("U32", "U64"),
    ("U32", "I64"),
    ("U32", "F64"),
    ("F32", "F64"),
    ("[I32]", "[I64]"),
]


@pytest.mark.case("languages", 234)
@pytest.mark.parametrize(("old", "new"), WIDER)
def test_a_number_becomes_wider_and_not_narrower(old: str, new: str) -> None:
    text = "node T {{ x: {} }} edge E: T -> T {{ x: {} }}"

    steps = plan_steps(text.format(old, old), text.format(new, new))
    back = plan_steps(text.format(new, new), text.format(old, old))

    assert [(step["kind"], step["type_kind"], step["work"]) for step in steps] == [
        ("widen_property", "node", "column"),
        ("widen_property", "edge", "column"),
    ]
    for end, written in (("from", old), ("to", new)):
        assert steps[0][end] == {
            "scalar": written.strip("[]"),
            "nullable": False,
            "list": "[" in written,
            "enum_values": None,
        }
    assert [step["code"] for step in back] == ["OG-MF-106"] * 2


@pytest.mark.case("languages", 234)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I64", "F64"),
        ("I32", "U64"),
        ("I32", "F32"),
        ("String", "I32"),
        ("I32", "[I64]"),
        ("Vector(2)", "Vector(3)"),
    ],
)
def test_a_type_that_does_not_hold_every_value_is_not_wider(old: str, new: str) -> None:
    (step,) = plan_steps(f"node T {{ x: {old} }}", f"node T {{ x: {new} }}")

    assert (step["kind"], step["code"]) == ("unsupported_change", "OG-MF-106")


@pytest.mark.case("languages", 235)
@pytest.mark.parametrize("type_", ["I32", "Vector(2)", "Blob", "enum(a)", "[String]"])
def test_a_property_becomes_nullable_and_not_required(type_: str) -> None:
    required, nullable = f"node T {{ x: {type_} }}", f"node T {{ x: {type_}? }}"

    (back,) = plan_steps(nullable, required)

    assert plan_steps(required, nullable) == [
        {
            "kind": "relax_property",
            "type_kind": "node",
            "type_name": "T",
            "property_name": "x",
            "work": "schema",
        }
    ]
    assert back["code"] == "OG-MF-106"


@pytest.mark.case("languages", 235)
def test_a_rename_goes_with_every_change_of_the_property() -> None:
    steps = plan_steps("node T { x: I32 }", 'node T { y: I64? @rename_from("x") @default(0) }')

    rename, widen, *others = steps
    assert (rename["kind"], rename["to"]) == ("rename_property", "y")
    assert (widen["kind"], widen["from"]["scalar"], widen["to"]["scalar"]) == ("widen_property", "I32", "I64")
    assert [widen["from"]["nullable"], widen["to"]["nullable"]] == [False, False]
    assert [step["kind"] for step in others] == ["relax_property", "change_default"]
    assert {step["property_name"] for step in (widen, *others)} == {"y"}


KEYS: dict[str, list[KeyValue]] = {
    "I32": [I32_MIN, -1, 0, 7, 100_000_000, I32_MAX],
    "U32": [0, 7, 4_000_000_000, U32_MAX],
}


@pytest.mark.case("languages", 236)
@pytest.mark.parametrize(("old", "new"), [pair for pair in WIDER if pair[0] in KEYS])
def test_a_wider_key_of_integers_has_the_same_ids(old: str, new: str) -> None:
    before, after = f"node T {{ k: {old} @key }}", f"node T {{ k: {new} @key }}"
    narrow, wide = compile_text(before).nodes["T"], evolved_catalog(before, after).nodes["T"]

    assert [step["kind"] for step in plan_steps(before, after)] == ["widen_property"]
    for value in KEYS[old]:
        stored = float(value) if new == "F64" else value
        assert derive_id(wide, {"k": stored}) == derive_id(narrow, {"k": value}) == str(value)


@pytest.mark.case("languages", 236)
def test_a_key_of_floats_does_not_become_wider() -> None:
    (step,) = plan_steps("node T { a: I32  k: F32  @key(a, k) }", "node T { a: I32  k: F64  @key(a, k) }")

    assert (step["kind"], step["entity"], step["code"]) == ("unsupported_change", "node:T.k", "OG-MF-106")
    assert "key" in step["reason"]


@pytest.mark.case("languages", 236)
@pytest.mark.parametrize("rule", ["@unique(x)", "@index(x)", "@range(x, 0..1)"])
def test_a_column_with_another_constraint_becomes_wider(rule: str) -> None:
    steps = plan_steps(f"node T {{ x: F32  {rule} }}", f"node T {{ x: F64  {rule} }}")

    assert [step["kind"] for step in steps] == ["widen_property"]


@pytest.mark.case("languages", 237)
def test_every_step_says_what_work_it_causes() -> None:
    accepted = """
        interface I { i: I32 }
        node T implements I { d: I32?  e: enum(a)  o: I32?  r: I32  s: I32  w: F32 }
        node U {}  node Z {}
    """
    desired = """
        interface I { i: I64 }
        node T @description("d") implements I {
            a: I32?  b: I32 @default(1)  e: enum(a, b) @description("d") @index  p: I32? @rename_from("o")
            r: I32?  s: I32 @default(1)  w: F64
        }
        node V @rename_from("U") {}  node Y {}
    """
    planned = plan(accepted, desired)
    steps = plan_steps(accepted, desired)
    (unsupported,) = plan_steps("node T {}", "node T { x: I32 }")

    assert [(step["kind"], step["work"]) for step in steps] == [
        ("widen_property", "none"),  # of the interface, which has no table
        ("update_type_metadata", "none"),
        ("add_property", "schema"),
        ("add_property", "column"),
        ("extend_enum", "none"),
        ("update_property_metadata", "none"),
        ("widen_property", "column"),
        ("rename_property", "schema"),
        ("relax_property", "schema"),
        ("change_default", "none"),
        ("widen_property", "column"),
        ("drop_property", "schema"),
        ("add_constraint", "none"),
        ("rename_type", "none"),
        ("add_type", "schema"),
        ("drop_type", "none"),
    ]
    assert "work" not in unsupported
    words = {"none": "no table is written", "schema": "no row is written", "column": "writes the column"}
    for line, step in zip(
        render_plan(schema_plan_document(planned, (), "a.pg")).splitlines()[2:], steps, strict=True
    ):
        assert f"; {words[step['work']]}" in line
