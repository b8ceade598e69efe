"""Surfaces specification, cases 731, 734 and 739: `@external` in schemas, their texts, hashes and plans."""

from itertools import permutations

import pytest

from omnigraph.catalog.annotations import property_annotations
from omnigraph.catalog.build import ir_text, read_ir
from omnigraph.catalog.generate.python import python_module
from omnigraph.catalog.generate.shapes import shapes_of
from omnigraph.catalog.generate.typescript import typescript_module
from omnigraph.catalog.render import render_schema
from omnigraph.cli.render.migration import render_plan
from omnigraph.wire.documents import schema_plan_document
from tests.support.formatting import SCHEMA, check_promises
from tests.support.library import accept, catalog_failure, compile_text, parse_failure, plan, plan_steps, read

BASES = ("https://cdn.example/", "s3://a/", "s3://b/x/")
TEXT = """\
interface Shown { face: Blob? @external("s3://a/") }

node Book implements Shown {
    cover: Blob? @external("s3://b/x/", "s3://a/", "https://cdn.example/", "s3://a/") @description("front")
    raw: Blob?
}

edge Cites: Book -> Book { scan: Blob @external("s3://a/") }
"""


def book(cover: str) -> str:
    return f"node Book {{ k: String @key  cover: {cover} }}"


@pytest.mark.case("surfaces", 731)
def test_the_catalog_has_the_bases_in_order() -> None:
    catalog = compile_text(TEXT)
    book, cites = catalog.nodes["Book"], catalog.edges["Cites"]

    assert book.properties["cover"].external == BASES
    assert book.properties["face"].external == cites.properties["scan"].external == ("s3://a/",)
    assert catalog.interfaces["Shown"].properties["face"].is_external
    assert (book.properties["raw"].external, book.properties["raw"].is_external) == ((), False)
    assert [note.name for note in book.properties["cover"].notes] == ["description"]
    assert property_annotations(book, book.properties["cover"]) == (
        '@external("https://cdn.example/", "s3://a/", "s3://b/x/")',
        '@description("front")',
    )


@pytest.mark.case("surfaces", 731)
def test_order_and_repetition_of_bases_mean_nothing() -> None:
    texts = [
        book(f"Blob @external({', '.join(f'{chr(34)}{base}{chr(34)}' for base in bases)})")
        for bases in permutations((*BASES, BASES[0]))
    ]

    assert len({compile_text(text).shape_hash for text in texts}) == 1
    assert compile_text(book('Blob @external("s3://a/")')).shape_hash not in {
        compile_text(texts[0]).shape_hash,
        compile_text(book("Blob")).shape_hash,
        compile_text(book('Blob @external("s3://b/")')).shape_hash,
    }


@pytest.mark.case("surfaces", 731)
def test_texts_and_documents_give_the_schema_back() -> None:
    accepted = accept(TEXT)

    assert read_ir(ir_text(accepted)) == accepted
    assert read(render_schema(accepted.shape)).shape == accepted.shape
    formatted = check_promises(SCHEMA, TEXT.replace('", "', '"  ,\n"').replace("@external(", "@ external ( "))
    assert '@external("s3://b/x/", "s3://a/", "https://cdn.example/", "s3://a/")' in formatted


@pytest.mark.case("surfaces", 731)
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (book('String @external("s3://a/")'), "only a Blob holds references, not String"),
        (book("Blob @external"), "needs a base"),
        (book('Blob @external("assets/")'), "not absolute"),
        (book('Blob @external("ftp://host/")'), "scheme is none of az, file, gs, http, https, s3"),
        (book('Blob @external("s3://a/b")'), "ends with '/'"),
        (book('Blob @external("https://u:p@host/")'), "user info"),
        (book('Blob @external("https://host/?a=b")'), "no query"),
        (book('Blob @external("s3://a/../b/")'), "another folder"),
        (
            book(f"Blob @external({', '.join(f'{chr(34)}s3://a/{n}/{chr(34)}' for n in range(65))})"),
            "at most 64",
        ),
        (book('Blob @external("s3://a/") @external("s3://b/")'), "given twice"),
        ('node Book @external("s3://a/") { k: String @key }', "not allowed on a type"),
        (book("Blob @external(covers)"), "a base of references in quotes"),
    ],
)
def test_what_is_no_allow_list_is_refused(text: str, words: str) -> None:
    assert words in str(parse_failure(text))


@pytest.mark.case("surfaces", 731)
def test_interfaces_that_disagree_on_bases_disagree() -> None:
    one, other = ('{ c: Blob? @external("s3://a/") }', '{ c: Blob? @external("s3://b/") }')

    assert "'c'" in str(catalog_failure(f"interface A {one} interface B {other} node N implements A, B {{}}"))
    compile_text(f"interface A {one} interface B {one} node N implements A, B {{}}")


@pytest.mark.case("surfaces", 731)
def test_an_annotation_of_an_earlier_build_stays_what_it_was() -> None:
    """Where it meant nothing, `@external` was kept, and so is the hash of a schema with it."""
    accepted = accept(book('Blob? @was("s3://a/")'))
    older = ir_text(accepted).replace('"was"', '"external"')

    meaning = read_ir(older)
    on_text = read_ir(older.replace('"scalar":"Blob"', '"scalar":"String"'))
    no_base = read_ir(older.replace("s3://a/", "yes"))

    (cover,) = (item for item in meaning.shape.types[0].properties if item.name == "cover")
    assert (cover.external, cover.notes) == (("s3://a/",), ())
    for document in (meaning, on_text, no_base):
        assert ir_text(document) in {
            older,
            older.replace('"scalar":"Blob"', '"scalar":"String"'),
            older.replace("s3://a/", "yes"),
        }
    for document in (on_text, no_base):
        (cover,) = (item for item in document.shape.types[0].properties if item.name == "cover")
        assert (cover.external, [note.name for note in cover.notes]) == ((), ["external"])


@pytest.mark.case("surfaces", 734)
def test_other_bases_are_a_step_that_writes_nothing() -> None:
    before = book('Blob? @external("s3://a/", "s3://b/")')
    after = book('Blob? @external("s3://b/", "s3://c/")')

    planned = plan(before, after)

    assert plan_steps(before, after) == [
        {
            "kind": "change_external",
            "type_kind": "node",
            "type_name": "Book",
            "property_name": "cover",
            "added_bases": ["s3://c/"],
            "removed_bases": ["s3://a/"],
            "work": "none",
        }
    ]
    assert [note.text for note in planned.diagnostics] == [
        "references of 'Book.cover' below s3://a/ stay where rows have them; later ones are refused"
    ]
    document = schema_plan_document(planned, (0,), "g")
    assert document["notes"] == [note.text for note in planned.diagnostics]
    assert render_plan(document).splitlines()[2] == (
        "  1. change bases of references of node property Book.cover: add s3://c/, remove s3://a/;"
        " no table is written"
    )
    assert plan(before, book('Blob? @external("s3://b/", "s3://a/", "s3://c/")')).diagnostics == ()
    assert plan_steps(before, book('Blob? @external("s3://b/", "s3://a/")')) == []


@pytest.mark.case("surfaces", 734)
@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("Blob?", 'Blob? @external("s3://a/")', "putting @external on 'Book.cover'"),
        ('Blob? @external("s3://a/")', "Blob?", "taking @external from 'Book.cover'"),
    ],
)
def test_bytes_never_turn_into_references_or_back(before: str, after: str, words: str) -> None:
    (step,) = plan_steps(book(before), book(after))

    assert (step["kind"], step["entity"]) == ("unsupported_change", "node:Book.cover")
    assert words in step["reason"]
    assert "add another property" in step["reason"]


@pytest.mark.case("surfaces", 734)
def test_a_new_property_tells_its_bases() -> None:
    (step,) = plan_steps(book("Blob?"), book('Blob?  scan: Blob? @external("s3://b/", "s3://a/")'))
    (plain,) = plan_steps(book("Blob?"), book("Blob?  scan: Blob?"))

    assert (step["kind"], step["external"], step["work"]) == (
        "add_property",
        ["s3://a/", "s3://b/"],
        "schema",
    )
    assert "external" not in plain


@pytest.mark.case("surfaces", 739)
def test_a_program_gives_a_reference_as_a_text() -> None:
    shapes = shapes_of(compile_text(TEXT))

    for text in (python_module(shapes), python_module(shapes, are_models=False)):
        assert "cover: str | None = None" in text
        assert "raw: bytes | None = None" in text
        assert "scan: str | None = None" in text
    assert "  cover?: string | null;" in typescript_module(shapes)
