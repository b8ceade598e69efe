"""Languages specification, 7.3: interfaces, names, ids and indexes of schemas."""

import math

import pytest

from omnigraph.catalog.index_kind import IndexKind, IndexSpec, index_specs
from omnigraph.catalog.model import KeyValue, derive_id
from omnigraph.core.errors import ExecutionError
from omnigraph.core.temporal import parse_date, parse_datetime
from tests.support.library import catalog, catalog_failure, compile_text, parse_failure, pointed_at

NODE = "node N { k: String @key } "


def id_of(key_type: str, value: KeyValue) -> str:
    return derive_id(compile_text(f"node M {{ a: {key_type} @key }}").nodes["M"], {"a": value})


@pytest.mark.case("languages", 57)
def test_an_interface_must_be_declared() -> None:
    error = parse_failure("node N implements Ghost {}")

    assert pointed_at(error) == "Ghost"
    assert "'Ghost'" in str(error)


@pytest.mark.case("languages", 58)
def test_a_property_has_the_type_that_its_interface_asks_for() -> None:
    error = parse_failure("interface I { x: I32 } node N implements I { x: I32? }")

    assert pointed_at(error) == "I32?"
    assert "'x'" in str(error)
    assert "'I'" in str(error)


@pytest.mark.case("languages", 59)
def test_the_key_of_an_interface_is_the_key_of_the_node() -> None:
    node = compile_text("interface I { code: String @key } node N implements I {}").nodes["N"]

    assert node.key == ("code",)


@pytest.mark.case("languages", 60)
def test_a_property_that_the_node_declares_itself_has_its_own_annotations_alone() -> None:
    text = "interface I { title: String @index } node N implements I { title: String }"

    node = compile_text(text).nodes["N"]

    assert node.indexes == ()
    assert index_specs(node) == (IndexSpec("id", IndexKind.BTREE),)


@pytest.mark.case("languages", 61)
def test_two_interfaces_must_not_disagree_on_an_injected_property() -> None:
    text = "interface A { x: String @index } interface B { x: String } node N implements A, B {}"

    error = catalog_failure(text)

    assert [name for name in ("A", "B", "x", "N") if f"'{name}'" not in str(error)] == []
    assert error.position == (1, text.index("N implements") + 1)


@pytest.mark.case("languages", 61)
def test_two_interfaces_may_agree_on_an_injected_property() -> None:
    text = "interface A { x: String @index } interface B { x: String @index } node N implements A, B {}"

    node = compile_text(text).nodes["N"]

    assert node.indexes == (("x",),)
    assert node.interfaces == ("A", "B")


@pytest.mark.case("languages", 62)
def test_a_column_of_the_storage_is_no_property() -> None:
    error = parse_failure("node N { _rowid: String }")

    assert pointed_at(error) == "_rowid"
    assert "'_rowid'" in str(error)


@pytest.mark.case("languages", 62)
def test_a_name_like_a_column_of_the_storage_is_a_property() -> None:
    node = compile_text("node N { _row_id: String  _ROWID: String }").nodes["N"]

    assert set(node.properties) == {"_row_id", "_ROWID"}


@pytest.mark.case("languages", 63)
@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("node N { id: String }", "id"),
        (NODE + "edge E: N -> N { src: String? }", "src"),
        (NODE + "edge E: N -> N { to: String? }", "to"),
    ],
)
def test_the_columns_of_every_table_are_no_properties(text: str, name: str) -> None:
    error = catalog_failure(text)

    assert pointed_at(error) == name
    assert f"'{name}'" in str(error)


@pytest.mark.case("languages", 64)
def test_edges_do_not_differ_in_case_alone() -> None:
    error = catalog_failure(NODE + "edge Cites: N -> N edge CITES: N -> N")

    assert pointed_at(error) == "CITES"
    assert "'Cites'" in str(error)
    assert "'CITES'" in str(error)


@pytest.mark.case("languages", 65)
def test_an_edge_ends_at_a_node_type() -> None:
    error = catalog_failure(NODE + "edge E: N -> Ghost")

    assert pointed_at(error) == "Ghost"
    assert "'Ghost'" in str(error)
    assert "'E'" in str(error)


@pytest.mark.case("languages", 66)
@pytest.mark.parametrize(
    ("text", "name"), [(NODE + "node N { b: I32 }", "N"), ("node M { a: I32 a: I32 }", "a")]
)
def test_a_name_is_declared_once(text: str, name: str) -> None:
    error = catalog_failure(text)

    assert pointed_at(error) == name
    assert error.position == (1, text.rindex(f"{name}{' {' if name == 'N' else ':'}") + 1)
    assert f"'{name}'" in str(error)


@pytest.mark.case("languages", 67)
def test_a_node_and_an_edge_may_share_a_name() -> None:
    shared = compile_text("node Same { k: String @key } edge Same: Same -> Same")

    assert shared.nodes["Same"].table_key == "node:Same"
    assert shared.edges["Same"].table_key == "edge:Same"


@pytest.mark.case("languages", 68)
@pytest.mark.parametrize("key", ["@key(room, slot)", "@key(slot, room)"])
def test_the_members_of_a_composite_id_do_not_follow_the_order_written(key: str) -> None:
    shelf = compile_text(f"node Shelf {{ room: String  slot: I32  label: String?  {key} }}").nodes["Shelf"]

    assert derive_id(shelf, {"slot": 1, "room": "north"}) == '["north","1"]'
    assert derive_id(catalog().nodes["Shelf"], {"room": "north", "slot": 1}) == '["north","1"]'


@pytest.mark.case("languages", 69)
@pytest.mark.parametrize(
    ("key_type", "value", "text"),
    [
        ("I64", -7, "-7"),
        ("Bool", True, "true"),
        ("Date", parse_date("1970-01-03"), "2"),
        ("DateTime", parse_datetime("1970-01-01T00:00:01Z"), "1000"),
        ("F64", 1.0, "1"),
        ("F64", 0.5, "0.5"),
        ("F64", -0.0, "0"),
    ],
)
def test_the_id_of_a_keyed_node_is_the_canonical_text_of_its_key(
    key_type: str, value: KeyValue, text: str
) -> None:
    assert id_of(key_type, value) == text


@pytest.mark.case("languages", 69)
def test_a_key_is_a_number() -> None:
    with pytest.raises(ExecutionError, match=r"^execution error: .*M\.a"):
        id_of("F64", math.nan)


@pytest.mark.case("languages", 70)
def test_a_composite_id_is_json() -> None:
    node = compile_text("node M { a: String  b: String  @key(a, b) }").nodes["M"]

    assert derive_id(node, {"a": 'a"b', "b": "c"}) == '["a\\"b","c"]'


@pytest.mark.case("languages", 72)
def test_the_library_has_the_indexes_that_its_types_ask_for() -> None:
    library = catalog()
    node_indexes = {
        (name, spec.column, spec.kind) for name, node in library.nodes.items() for spec in index_specs(node)
    }

    assert node_indexes == {
        ("Author", "id", IndexKind.BTREE),
        ("Author", "email", IndexKind.BTREE),
        ("Author", "handle", IndexKind.FULLTEXT),
        ("Author", "name", IndexKind.FULLTEXT),
        ("Book", "id", IndexKind.BTREE),
        ("Book", "format", IndexKind.BTREE),
        ("Book", "published", IndexKind.BTREE),
        ("Book", "title", IndexKind.FULLTEXT),
        ("Book", "blurb", IndexKind.FULLTEXT),
        ("Book", "code", IndexKind.FULLTEXT),
        ("Book", "embedding", IndexKind.VECTOR),
        ("Note", "id", IndexKind.BTREE),
        ("Shelf", "id", IndexKind.BTREE),
    }
    physical = tuple(IndexSpec(column, IndexKind.BTREE) for column in ("id", "src", "dst"))
    assert {name: index_specs(edge) for name, edge in library.edges.items()} == dict.fromkeys(
        library.edges, physical
    )
