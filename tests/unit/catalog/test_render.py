"""The text of a schema from its shape: reading it gives the shape back."""

import pytest

from omnigraph.catalog.build import read_schema
from omnigraph.catalog.render import render_schema
from omnigraph.core.source_errors import CatalogError, ParseError
from omnigraph.core.span import Source
from tests.models.language.generate import valid_text
from tests.support.library import LIB

TEXTS = {
    "library": LIB,
    "notes": 'node A @description("a \\"b\\" c") @instruction("x") { k: String @key @description("y") }',
    "defaults": 'node A { k: String @key  n: I64 @default(-3)  t: String @default("x\\"y") }',
    "body rules": "node A { k: String  z: String  n: I32?  @key(k, z)  @unique(k, n)  @index(n) }",
    "interfaces": "interface I { name: String @index }\nnode A implements I { k: String @key  name: String }",
    "edges": "node A { k: String @key }\nedge E: A -> A @card(1..3) { w: F32? @index }\nedge F: A -> A",
    "embeds": 'node A { k: String @key  t: String?  v: Vector(4)? @embed("t", model="m") }',
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_reading_the_text_gives_the_shape_back(text: str) -> None:
    shape = read_schema(Source(text)).shape

    again = read_schema(Source(render_schema(shape))).shape

    assert (again, again.hash) == (shape, shape.hash)


def test_random_schemas_come_back() -> None:
    """Not every text that the grammar takes is a schema: those that are none are passed over."""
    read = 0
    for seed in range(600):
        try:
            shape = read_schema(Source(valid_text("schema", seed))).shape
        except (CatalogError, ParseError):
            continue
        read += 1
        assert read_schema(Source(render_schema(shape))).shape == shape, f"seed {seed}"

    assert read >= 20
