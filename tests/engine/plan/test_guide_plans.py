"""The plans that the guide shows are those that its queries have."""

from itertools import pairwise

import pytest

from omnigraph.catalog.bind import bind
from omnigraph.catalog.bound import BoundRead
from omnigraph.catalog.build import compile_schema
from omnigraph.core.span import Source
from omnigraph.language.query_parser import parse_queries
from omnigraph.plan.describe import describe
from omnigraph.plan.optimize import plan_read
from tests.engine.plan.planning import Counts
from tests.support.pages import DOCS, Block, blocks

PAGE = list(blocks(DOCS / "guide" / "reading-plans.md"))
SHOWN = [(query, plan) for query, plan in pairwise(PAGE) if query.language == "gq"]


def test_the_page_shows_plans() -> None:
    assert [plan.language for _, plan in SHOWN] == ["text"] * 2


@pytest.mark.parametrize(("query", "shown"), SHOWN, ids=[str(query) for query, _ in SHOWN])
def test_a_plan_of_the_guide_is_what_explain_prints(query: Block, shown: Block) -> None:
    schema = compile_schema(Source(next(block.text for block in PAGE if block.language == "pg")))
    source = Source(query.text)
    read = bind(parse_queries(source).queries[0], schema, source)
    assert isinstance(read, BoundRead)

    assert describe(plan_read(read, schema, Counts())).to_text() + "\n" == shown.text
