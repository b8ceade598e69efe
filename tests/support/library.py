"""LIB, the example schema of the languages specification (section 0), and short ways to compile schemas."""

from functools import cache
from typing import Any

import pytest

from omnigraph.catalog.build import build_catalog, compile_schema, read_schema
from omnigraph.catalog.identity import AcceptedSchema, accept_first, inherit, resolve
from omnigraph.catalog.migrate import MigrationPlan, plan_migration
from omnigraph.catalog.migration_steps import step_json
from omnigraph.catalog.model import Catalog
from omnigraph.catalog.shape import DesiredSchema
from omnigraph.core.source_errors import CatalogError, ParseError, SourceError
from omnigraph.core.span import Source

LIB = """\
interface Catalogued {
    code:  String @key
    title: String @index
}
node Book implements Catalogued {
    pages:     I32?
    price:     F64
    weight:    F32?
    stock:     U32?
    format:    enum(paper, ebook, audio) @index
    tags:      [String]?
    published: Date? @index
    added:     DateTime
    blurb:     String? @index
    cover:     Blob?
    embedding: Vector(4)? @embed("blurb", model="lab/mini-4") @index
    @range(pages, 1..5000)
    @check(code, "^[A-Z]{2}-[0-9]+$")
}
node Author @description("Someone who writes") {
    handle: String @key
    name:   String @index
    born:   Date?
    email:  String? @unique
}
node Shelf { room: String  slot: I32  label: String?  @key(room, slot) }
node Note  { body: String  made: DateTime? }              // no key: generated ids
edge Wrote:    Author -> Book   { role: enum(main, editor, translator)?  share: F64? }
edge Cites:    Book -> Book     { page: I32?  remark: String? }
edge StoredOn: Book -> Shelf @card(0..1)
edge Mentors:  Author -> Author { since: Date?  @unique(src, dst) }
edge About:    Note -> Book @card(1..)
"""


@cache
def catalog() -> Catalog:
    """Return the catalog of LIB."""
    return compile_text(LIB)


def compile_text(text: str) -> Catalog:
    """Return the catalog of a schema."""
    return compile_schema(Source(text))


def read(text: str) -> DesiredSchema:
    """Return a checked schema, ready to be accepted or planned against."""
    return read_schema(Source(text))


def wrap(item: str) -> str:
    """Return a schema with a property or constraint, as the conformance list reads a bare fragment."""
    return f"node N {{ k: String @key  {item} }}"


def compile_item(item: str) -> Catalog:
    """Return the catalog of a wrapped property or constraint."""
    return compile_text(wrap(item))


def accept(text: str) -> AcceptedSchema:
    """Return a schema as the first of a graph."""
    return accept_first(read(text), make_domain=lambda: "01DOMAIN")


def evolve(accepted: AcceptedSchema, text: str) -> AcceptedSchema:
    """Return the next accepted schema, whether or not its data could follow."""
    desired = read(text)
    return inherit(accepted, desired, resolve(accepted, desired))


def evolved_catalog(*texts: str) -> Catalog:
    """Return the catalog of the last of several schemas that a graph went through."""
    accepted = accept(texts[0])
    for text in texts[1:]:
        accepted = evolve(accepted, text)
    return build_catalog(accepted)


def plan(accepted_text: str, desired_text: str, *, allow_data_loss: bool = False) -> MigrationPlan:
    """Return the plan from one schema to another."""
    return plan_migration(accept(accepted_text), read(desired_text), allow_data_loss=allow_data_loss)


def plan_steps(
    accepted_text: str, desired_text: str, *, allow_data_loss: bool = False
) -> list[dict[str, Any]]:
    """Return the steps of a plan as every surface prints them."""
    planned = plan(accepted_text, desired_text, allow_data_loss=allow_data_loss)
    return [step_json(step) for step in planned.steps]


def parse_failure(text: str) -> ParseError:
    """Return the parse error of a schema, which carries a span as every one does."""
    with pytest.raises(ParseError) as caught:
        compile_text(text)
    assert type(caught.value) is ParseError
    assert str(caught.value).startswith("parse error: ")
    assert caught.value.span is not None
    return caught.value


def catalog_failure(text: str) -> CatalogError:
    """Return the catalog error of a schema."""
    with pytest.raises(CatalogError) as caught:
        compile_text(text)
    assert str(caught.value).startswith("catalog error: ")
    return caught.value


def pointed_at(error: SourceError, diagnostic: int = 0) -> str:
    """Return the text that a diagnostic of an error is about."""
    span = error.diagnostics[diagnostic].span
    assert span is not None
    return error.source.text[span.start : span.end]
