"""What LlamaIndex's metadata filters ask for, as conditions on properties."""

from collections.abc import Mapping

from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
)

from omnigraph.agents.conditions import AllOf, NoneOf, OneOf, PropertyTest, Test, WantedNodes
from omnigraph.core.errors import UnsupportedError

_TESTS: Mapping[FilterOperator, Test] = {
    FilterOperator.EQ: "=",
    FilterOperator.NE: "!=",
    FilterOperator.GT: ">",
    FilterOperator.GTE: ">=",
    FilterOperator.LT: "<",
    FilterOperator.LTE: "<=",
    FilterOperator.IN: "in",
    FilterOperator.NIN: "not in",
    FilterOperator.CONTAINS: "contains",
    FilterOperator.TEXT_MATCH: "contains",
}


def conditions_of(filters: MetadataFilters | None) -> WantedNodes:
    """Return what filters ask for; none of them holds for everything.

    Raises:
        UnsupportedError: an operator is asked for that the language has not.
    """
    if filters is None or not filters.filters:
        return AllOf(())
    parts = tuple(
        conditions_of(item) if isinstance(item, MetadataFilters) else _condition(item)
        for item in filters.filters
        if not isinstance(item, MetadataFilters) or item.filters
    )
    match filters.condition:
        case FilterCondition.OR:
            return OneOf(parts)
        case FilterCondition.NOT:
            return NoneOf(parts)
        case _:
            return AllOf(parts)


def _condition(item: MetadataFilter) -> WantedNodes:
    values = item.value if isinstance(item.value, list) else [item.value]
    match item.operator:
        case FilterOperator.ANY:
            return OneOf(tuple(PropertyTest(item.key, "contains", value) for value in values))
        case FilterOperator.ALL:
            return AllOf(tuple(PropertyTest(item.key, "contains", value) for value in values))
        case FilterOperator.IS_EMPTY:
            return NoneOf((PropertyTest(item.key, "is there", None),))
        case operator if operator in _TESTS:
            return PropertyTest(item.key, _TESTS[operator], item.value)
        case operator:
            raise UnsupportedError(
                f"a filter by '{operator.value}' is not offered: words are found by text_search"
            )
