"""What makes a parsed schema no catalog, and what does not (S04, S11, S33 to S36)."""

import pytest

from omnigraph.core.limits import DIAGNOSTICS_MAX
from omnigraph.core.source_errors import CatalogError
from tests.support.library import catalog, catalog_failure, compile_text, parse_failure, pointed_at

N = "node N { k: String @key } "


def test_rules_of_one_source_come_before_those_of_the_catalog() -> None:
    error = parse_failure("node N { id: String  v: Vector(0) }")

    assert pointed_at(error) == "Vector(0)"


def test_three_interfaces_are_compared_with_each_other() -> None:
    text = "interface A { x: I32 } interface B { x: I32 } interface C { x: I64 } node N implements C, B, A {}"

    error = catalog_failure(text)

    assert len(error.diagnostics) == 1
    assert "'C'" in str(error)


def test_a_node_that_declares_the_property_settles_what_its_interfaces_disagree_on() -> None:
    text = "interface A { x: I32 @index } interface B { x: I32 } node N implements A, B { x: I32 @unique }"

    node = compile_text(text).nodes["N"]

    assert (node.unique, node.indexes) == ((("x",),), ())


def test_rename_hints_are_no_disagreement() -> None:
    text = 'interface A { x: I32 @rename_from("y") } interface B { x: I32 } node N implements A, B { }'

    assert list(compile_text(text).nodes["N"].properties) == ["x"]


@pytest.mark.parametrize("extra", ['@vendor("z", a=1, b=2)', '@vendor("z", b=2, a=1)'])
def test_the_order_of_keyword_arguments_is_no_disagreement(extra: str) -> None:
    text = f'interface A {{ x: I32 @vendor("z", a=1, b=2) }} interface B {{ x: I32 {extra} }} '

    assert list(compile_text(text + "node N implements A, B {}").nodes) == ["N"]


def test_one_name_may_be_an_interface_a_node_and_an_edge() -> None:
    shared = compile_text("interface X { } node X implements X { } edge X: X -> X")

    assert (list(shared.interfaces), list(shared.nodes), list(shared.edges)) == (["X"], ["X"], ["X"])


def test_an_edge_declared_twice_is_reported_once() -> None:
    error = catalog_failure(N + "edge E: N -> N edge E: N -> N")

    assert len(error.diagnostics) == 1


def test_both_endpoints_are_reported() -> None:
    error = catalog_failure(N + "edge E: Ghost -> Spook")

    assert [pointed_at(error, index) for index in range(2)] == ["Ghost", "Spook"]
    assert "N" in (error.diagnostics[0].help or "")


def test_endpoints_may_be_declared_behind_the_edge() -> None:
    assert compile_text("edge E: M -> M node M {}").edges["E"].source == "M"


def test_at_most_twenty_faults_are_reported() -> None:
    error = catalog_failure("node N {}\n" * 50)

    assert len(error.diagnostics) == DIAGNOSTICS_MAX
    assert error.position == (2, 6)


def test_names_reserved_in_edges_are_free_in_nodes() -> None:
    node = compile_text("node N { src: I32  dst: I32  from: I32  to: I32 }").nodes["N"]

    assert list(node.properties) == ["dst", "from", "src", "to"]


def test_an_edge_is_found_whatever_the_case() -> None:
    library = catalog()

    assert library.edge("storedOn") == library.edge("STOREDON") == library.edges["StoredOn"]
    assert library.edge("nope") is None


def test_a_catalog_error_says_so() -> None:
    with pytest.raises(CatalogError, match=r"^catalog error: .* at 1:10$"):
        compile_text("node N { id: I32 }")
