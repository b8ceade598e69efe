"""Stable numbers (languages 2.3), matching by name and hint (2.4), and the promises N1 and N2."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.catalog.identity import AcceptedSchema, accept_first, resolve
from omnigraph.catalog.shape import DeclarationKind
from omnigraph.core.diagnostics import Severity
from omnigraph.core.source_errors import CatalogError
from tests.support.library import accept, evolve, pointed_at, read

NODE, EDGE, INTERFACE = DeclarationKind.NODE, DeclarationKind.EDGE, DeclarationKind.INTERFACE
FIRST = """
    interface I { x: I32? }
    node B implements I { a: I32? }
    node A { z: I32?  b: I32? }
    edge E: A -> B { w: I32? }
"""
VERSIONS = (
    FIRST,
    "",
    "node A { z: I32? }",
    'node Z @rename_from("A") { z: I32?  y: I32? @rename_from("b") }',
    "interface I { x: I32? } node A { z: I32?  b: I32? } edge E: A -> A",
    "node B { a: I32?  c: I32? } edge F: B -> B",
)


def refusal(accepted: str, desired: str) -> CatalogError:
    with pytest.raises(CatalogError) as caught:
        resolve(accept(accepted), read(desired))
    return caught.value


def evolve_or_stay(schema: AcceptedSchema, text: str) -> AcceptedSchema:
    """Return the next schema, or the same where a hint has nothing to take over."""
    try:
        return evolve(schema, text)
    except CatalogError:
        return schema


def numbers(schema: AcceptedSchema) -> list[int]:
    return [*schema.type_ids.values(), *schema.property_ids.values(), *schema.incarnations.values()]


def test_the_first_schema_is_numbered_types_first_then_properties_then_tables() -> None:
    schema = accept(FIRST)

    assert schema.type_ids == {(INTERFACE, "I"): 1, (NODE, "A"): 2, (NODE, "B"): 3, (EDGE, "E"): 4}
    assert schema.property_ids == {
        (INTERFACE, "I", "x"): 5,
        (NODE, "A", "b"): 6,
        (NODE, "A", "z"): 7,
        (NODE, "B", "a"): 8,
        (NODE, "B", "x"): 9,
        (EDGE, "E", "w"): 10,
    }
    assert schema.incarnations == {(NODE, "A"): 11, (NODE, "B"): 12, (EDGE, "E"): 13}
    assert schema.next_id == 14


def test_a_graph_has_a_domain_that_later_schemas_keep() -> None:
    first, other = accept_first(read("")), accept_first(read(""))

    assert len(first.domain) == 26
    assert first.domain != other.domain
    assert evolve(first, FIRST).domain == first.domain


def test_new_declarations_are_numbered_in_the_same_order_behind_the_old() -> None:
    before = accept("node M { a: I32? }")

    after = evolve(
        before, "interface I { } node M { a: I32?  c: I32?  b: I32? } node L { q: I32? } edge E: M -> L"
    )

    assert before.next_id == 4
    assert after.type_ids == {(INTERFACE, "I"): 4, (NODE, "L"): 5, (NODE, "M"): 1, (EDGE, "E"): 6}
    assert after.property_ids == {
        (NODE, "M", "a"): 2,
        (NODE, "M", "b"): 7,
        (NODE, "M", "c"): 8,
        (NODE, "L", "q"): 9,
    }
    assert after.incarnations == {(NODE, "M"): 3, (NODE, "L"): 10, (EDGE, "E"): 11}
    assert after.next_id == 12


def test_a_rename_keeps_every_number() -> None:
    before = accept("node T { a: I32?  b: I32? } edge E: T -> T { w: I32? }")
    desired = """
        node U @rename_from("T") { z: I32? @rename_from("a")  b: I32? }
        edge F: U -> U @rename_from("E") { w: I32? }
    """

    after = evolve(before, desired)

    assert after.type_ids == {(NODE, "U"): 1, (EDGE, "F"): 2}
    assert after.property_ids == {(NODE, "U", "z"): 3, (NODE, "U", "b"): 4, (EDGE, "F", "w"): 5}
    assert after.incarnations == {(NODE, "U"): 6, (EDGE, "F"): 7}
    assert after.next_id == before.next_id


def test_a_name_that_was_dropped_and_added_again_has_new_numbers() -> None:
    first = accept("node T { a: I32? }")

    again = evolve(evolve(first, ""), "node T { a: I32? }")

    assert numbers(first) == [1, 2, 3]
    assert numbers(again) == [4, 5, 6]


def test_a_property_that_was_dropped_and_added_again_has_a_new_number() -> None:
    first = accept("node T { a: I32?  b: I32? }")

    again = evolve(evolve(first, "node T { b: I32? }"), "node T { a: I32?  b: I32? }")

    assert first.property_ids == {(NODE, "T", "a"): 2, (NODE, "T", "b"): 3}
    assert again.property_ids == {(NODE, "T", "a"): 5, (NODE, "T", "b"): 3}
    assert again.type_ids == first.type_ids
    assert again.incarnations == first.incarnations


@given(st.lists(st.sampled_from(VERSIONS), max_size=8))
def test_no_number_is_issued_twice_whatever_schemas_a_graph_goes_through(texts: list[str]) -> None:
    schema = accept(FIRST)
    for text in texts:
        before, schema = schema, evolve_or_stay(schema, text)

        assert len(set(numbers(schema))) == len(numbers(schema))
        assert schema.next_id >= before.next_id
        assert all(number < before.next_id for number in set(numbers(schema)) & set(numbers(before)))
        assert all(number >= before.next_id for number in set(numbers(schema)) - set(numbers(before)))


# Matching


def test_on_the_first_schema_hints_are_inert() -> None:
    text = 'node T @rename_from("Old") { a: I32? @rename_from("b") }'

    assert numbers(accept(text)) == [1, 2, 3]


def test_a_hint_on_a_name_that_exists_is_ignored_with_a_note() -> None:
    text = 'node T @rename_from("Old") { a: I32? @rename_from("zz") }'

    resolution = resolve(accept("node T { a: I32? } node Old { }"), read(text + " node Old { }"))

    assert resolution.types[NODE, "T"] == "T"
    assert resolution.properties[NODE, "T", "a"] == "a"
    assert [note.severity for note in resolution.diagnostics] == [Severity.INFO] * 2
    assert all("ignored exact match hint" in note.message for note in resolution.diagnostics)
    assert [
        name for name in ("Old", "zz") if not any(name in n.message for n in resolution.diagnostics)
    ] == []


@pytest.mark.parametrize(
    ("accepted", "desired", "names"),
    [
        ("node T {}", 'node U @rename_from("Nope") {}', ["Nope"]),
        ("node T {} edge E: T -> T", 'node T {} node U @rename_from("E") {}', ["'E'", "edge", "node"]),
        ("interface I {}", 'interface I {} node U @rename_from("I") {}', ["'I'", "interface", "node"]),
        ("node T {}", 'node T {} edge F: T -> T @rename_from("T")', ["'T'", "node", "edge"]),
        ("node T { a: I32? }", 'node T { b: I32? @rename_from("zz") }', ["zz", "'T'"]),
        (
            "node T {} node S { a: I32? }",
            'node S { a: I32? } node T { b: I32? @rename_from("a") }',
            ["'S'", "across"],
        ),
        ("node T { a: I32? }", 'node T { a: I32? } node U { b: I32? @rename_from("a") }', ["'U'"]),
        ("interface I {}", 'interface I {} interface J { b: I32? @rename_from("a") }', ["'J'"]),
        ("node T {}", 'node U @rename_from("T") {} node V @rename_from("T") {}', ["'V'", "'T'", "'U'"]),
        ("node T {}", 'node T {} node V @rename_from("T") {}', ["'V'", "'T'"]),
        (
            "node T { a: I32? }",
            'node T { b: I32? @rename_from("a")  c: I32? @rename_from("a") }',
            ["'c'", "'a'", "'b'"],
        ),
    ],
)
def test_a_hint_takes_over_one_declaration_of_its_kind_and_owner(
    accepted: str, desired: str, names: list[str]
) -> None:
    error = refusal(accepted, desired)

    assert len(error.diagnostics) == 1
    assert error.span is not None
    assert [name for name in names if name not in str(error)] == []


def test_faulty_hints_are_reported_together_in_the_order_of_the_text() -> None:
    desired = """\
edge F: Z -> Z @rename_from("Nope1")
node Z @rename_from("Nope2") { }
node A { y: I32? @rename_from("nope3")  b: I32? @rename_from("nope4") }
"""

    error = refusal("node A { }", desired)

    starts = [diagnostic.span.start for diagnostic in error.diagnostics if diagnostic.span]
    assert len(starts) == 4
    assert starts == sorted(starts)
    assert error.position is not None
    assert error.position[0] == 1
    assert pointed_at(error) in {"F", '@rename_from("Nope1")'}


def test_a_hint_on_an_interface_speaks_to_the_nodes_that_had_the_old_name() -> None:
    accepted = accept("interface I { old: I32? } node A implements I { } node B { own: I32? }")
    desired = read(
        'interface I { new: I32? @rename_from("old") } node A implements I { } node B { own: I32? }'
        " node C implements I { }"
    )

    resolution = resolve(accepted, desired)

    assert resolution.properties[INTERFACE, "I", "new"] == "old"
    assert resolution.properties[NODE, "A", "new"] == "old"
    assert resolution.properties[NODE, "C", "new"] is None
    assert resolution.types[NODE, "C"] is None
    assert resolution.diagnostics == ()


def test_a_renamed_type_does_not_disturb_one_that_keeps_its_name() -> None:
    before = accept("node A { } node B { }")

    after = evolve(before, 'node B { } node C @rename_from("A") { }')

    assert after.type_ids == {(NODE, "B"): 2, (NODE, "C"): 1}
