"""The examples of the guide are right, laid out as `omnigraph fmt` would, and its links lead somewhere.

A `pg` block is a whole schema, a `gq` block a whole query file. Queries are checked against the last schema
above them on the page, or against the first one of the page about schemas; those of the page about querying
against the example that they run on.
"""

from pathlib import Path

import pytest

from omnigraph.catalog.build import compile_schema
from omnigraph.catalog.lint import lint
from omnigraph.core.span import Source
from omnigraph.language.format import format_queries, format_schema
from tests.support.pages import DOCS, REPOSITORY, Block, anchors, blocks, links, name_of

GUIDE = sorted((DOCS / "guide").glob("*.md"))
README = REPOSITORY / "README.md"
PAGES = [README, REPOSITORY / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
EXAMPLES = [block for page in [*GUIDE, README] for block in blocks(page)]
SCHEMAS = [block for block in EXAMPLES if block.language == "pg"]
QUERIES = [block for block in EXAMPLES if block.language == "gq"]
QUERYING = "docs/guide/querying.md"
SEEDBANK = REPOSITORY / "examples" / "seedbank" / "schema.pg"


def schema_for(query: Block) -> Block:
    """Return the schema that a block of queries is checked against."""
    if query.page == QUERYING:
        return Block(name_of(SEEDBANK), 1, "pg", SEEDBANK.read_text(encoding="utf-8"))
    above = [schema for schema in SCHEMAS if schema.page == query.page and schema.line < query.line]
    return above[-1] if above else next(s for s in SCHEMAS if s.page == "docs/guide/schemas.md")


def test_the_guide_has_examples_of_both_languages() -> None:
    assert len(SCHEMAS) >= 10
    assert len(QUERIES) >= 10
    assert {name_of(page) for page in GUIDE} >= {block.page for block in QUERIES} - {"README.md"}


def test_every_block_of_the_guide_says_what_it_holds() -> None:
    """One that forgot its language would not be checked."""
    assert [str(block) for page in GUIDE for block in blocks(page) if not block.language] == []


@pytest.mark.parametrize("block", SCHEMAS, ids=str)
def test_a_schema_of_the_guide_makes_a_catalog(block: Block) -> None:
    catalog = compile_schema(Source(block.text, str(block)))

    assert catalog.nodes or catalog.interfaces


@pytest.mark.parametrize("block", QUERIES, ids=str)
def test_the_queries_of_the_guide_fit_their_schema(block: Block) -> None:
    catalog = compile_schema(Source(schema_for(block).text))

    report = lint(catalog, Source(block.text, str(block)), query_path=str(block), schema_source={})

    assert report.results
    assert [str(result.error) for result in report.results if result.error] == []
    assert [finding.message for finding in report.findings if report.errors] == []


@pytest.mark.parametrize("block", SCHEMAS, ids=str)
def test_a_schema_of_the_guide_is_laid_out_canonically(block: Block) -> None:
    assert format_schema(Source(block.text)) == block.text


@pytest.mark.parametrize("block", QUERIES, ids=str)
def test_the_queries_of_the_guide_are_laid_out_canonically(block: Block) -> None:
    assert format_queries(Source(block.text)) == block.text


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_relative_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    broken = [target for target in links(page) if not leads_somewhere(page, target)]

    assert broken == []


def test_links_are_found_at_all() -> None:
    assert sum(len(links(page)) for page in PAGES) >= 20


def leads_somewhere(page: Path, target: str) -> bool:
    """Return whether a link is to a place outside, or to a file and heading that exist."""
    if "://" in target or target.startswith("mailto:"):
        return True
    name, _, anchor = target.partition("#")
    file = (page.parent / name).resolve() if name else page
    return file.exists() and (not anchor or anchor in anchors(file))
