"""The canonical shape and its hash (languages 2.2), and the promises H1 and H2."""

import json
import random
import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.catalog.shape import DeclarationKind
from tests.support.library import LIB, read

GAPS = (" ", "\n", "\t", "  ", " // c\n", "/* c */", "\r\n/* a\n b */ ", '// "\n')


class Shuffled:
    """Writes one schema in any order of what has none, with any white space, comments and rename hints."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def shuffled(self, items: Sequence[str]) -> list[str]:
        return self.chance.sample(items, len(items))

    def schema(self) -> str:
        text = " ".join(
            self.shuffled([self.interface(), "interface J { }", self.book(), self.shelf(), self.edge()])
        )
        return re.sub(" ", lambda _: self.chance.choice(GAPS), text)

    def hinted(self, annotations: Sequence[str]) -> str:
        hint = self.chance.choice([[], ['@rename_from("old")'], ["@rename_from(older)"]])
        return " ".join(self.shuffled([*annotations, *hint]))

    def interface(self) -> str:
        items = [f"code : String {self.hinted(['@key', '@a'])}", f"title : String {self.hinted(['@index'])}"]
        return f"interface I {{ {' '.join(self.shuffled(items))} }}"

    def book(self) -> str:
        described = '@description("d")'
        values = " , ".join(self.shuffled(["soft-back", "ebook", "2nd", "audio"]))
        vendor = f'@vendor("z", {",".join(self.shuffled(["a=1", "b=true", "c=1.5"]))})'
        embed = self.chance.choice(['@embed(blurb,model="m")', '@embed("blurb",model="m")'])
        unique = ",".join([*self.shuffled(["pages", "blurb"]), *self.chance.choice([[], ["pages"]])])
        items = [
            f"format : enum( {values} )? {self.hinted(['@index', '@unique'])}",
            f"blurb : String {self.hinted(['@flag', '@flag', vendor])}",
            f"v : Vector( 3 )? {self.hinted([embed, '@index'])}",
            f"pages : I32? {self.hinted([described])}",
            f"@unique( {unique} )",
            self.chance.choice(["@range(pages,1..9)", "@range(pages,1.0..9)"]),
            '@check(code,"^A")',
        ]
        implements = ", ".join([*self.shuffled(["I", "J"]), *self.chance.choice([[], ["I"]])])
        head = self.hinted(['@description("d")', '@instruction("i")', "@flag"])
        return f"node Book {head} implements {implements} {{ {' '.join(self.shuffled(items))} }}"

    def shelf(self) -> str:
        key = ",".join(self.shuffled(["room", "slot"]))
        items = ["room : String", "slot : I32", f"@key( {key} )"]
        return f"node Shelf {self.hinted([])} {{ {' '.join(self.shuffled(items))} }}"

    def edge(self) -> str:
        unique = ",".join(self.shuffled(["src", "dst"]))
        items = self.shuffled(["w : F64?", "note : String? @index", f"@unique( {unique} )"])
        return f"edge On : Book -> Shelf @card(0..2) {self.hinted(['@a(1)'])} {{ {' '.join(items)} }}"


REFERENCE = read(Shuffled(random.Random(0)).schema()).shape


@given(st.randoms(use_true_random=False))
def test_order_comments_white_space_and_hints_do_not_change_the_shape(chance: random.Random) -> None:
    shape = read(Shuffled(chance).schema()).shape

    assert shape == REFERENCE
    assert shape.hash == REFERENCE.hash


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("node N { f: F64  @range(f, 0..1) }", "node N { f: F64  @range(f, 0.0..1.0) }"),
        ("node N { f: F64  @range(f, 0..) }", "node N { f: F64  @range(f, -0.0..) }"),
        ("node N { a: I32  @unique(a, a) }", "node N { a: I32  @unique(a) }"),
        ("node N @v @v {}", "node N @v {}"),
        ('node N @v("z", a=1, b=2) @v("z", b=2, a=1) {}', 'node N @v("z", a=1, b=2) {}'),
        ('node N @v("z", b=1, a=2) @v("z", a=3, b=0) {}', 'node N @v("z", a=2, b=1) @v("z", a=3, b=0) {}'),
        ("node N { a: I32 @rename_from(b) }", "node N { a: I32 }"),
        ("node N { a: enum(x, y) @default(x) }", 'node N { a: enum(y, x) @default("x") }'),
        ("", "// nothing"),
    ],
)
def test_two_spellings_of_one_meaning_have_one_hash(one: str, other: str) -> None:
    assert read(one).shape == read(other).shape
    assert read(one).shape.hash == read(other).shape.hash


BASE = (
    "interface I { x: I32? } node N implements I { a: String  b: I32? } node M {} edge E: N -> M { w: I32? }"
)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a: String", "a: String?"),
        ("a: String", "a: [String]"),
        ("a: String", "a: enum(p)"),
        ("a: String", "c: String"),
        ("a: String", "a: String @index"),
        ("a: String", "a: String @index(a)"),
        ("a: String", "a: String @unique"),
        ("a: String", "a: String @key"),
        ("a: String", "a: String @v"),
        ("a: String", 'a: String @v("")'),
        ("a: String", 'a: String @description("d")'),
        ("a: String", 'a: String  @check(a, "x")'),
        ("a: String", "a: String  v: Vector(2) @embed(a)"),
        ("a: String", 'a: String  v: Vector(2) @embed(a, model="m")'),
        ("a: String", "a: String  v: Vector(3) @embed(a)"),
        ("b: I32?", "b: I32? @default(0)"),
        ("x: I32?", "x: I32? @default(0)"),
        ("w: I32?", "w: I32? @default(0)"),
        ("b: I32?", "b: I32?  @range(b, 0..1)"),
        ("b: I32?", "b: I32?  @range(b, 0..)"),
        ("b: I32?", "b: I32?  @range(b, ..1)"),
        ("b: I32?", "b: I32?  x: I32?"),
        ("implements I ", ""),
        ("x: I32?", "x: I32? @index"),
        ("node N", "node Q {} node N"),
        ("node M", "node M @flag"),
        ("N -> M", "N -> N"),
        ("N -> M", "M -> M"),
        ("N -> M", "N -> M @card(0..1)"),
        ("N -> M", "N -> M @card(1..)"),
        ("w: I32?", "w: I32?  @unique(src)"),
    ],
)
def test_every_difference_in_meaning_changes_the_hash(old: str, new: str) -> None:
    changed = BASE.replace(old, new, 1)
    assert changed != BASE

    assert read(changed).shape.hash != read(BASE).shape.hash


@pytest.mark.parametrize(("one", "other"), [("1", "true"), ("0", "false"), ("1", "1.0"), ('"1"', "1")])
def test_literals_of_different_kinds_are_different_shapes(one: str, other: str) -> None:
    first, second = read(f"node N @v({one}) {{}}").shape, read(f"node N @v({other}) {{}}").shape

    assert first.hash != second.hash
    assert first != second


def test_two_spellings_of_a_number_are_two_defaults() -> None:
    whole, decimal = (read(f"node N {{ a: F64 @default({value}) }}").shape for value in ("1", "1.0"))

    assert whole.hash != decimal.hash
    assert whole != decimal


@pytest.mark.parametrize(
    "annotation", ['@v("z", a=1, a="x")', "@v(1) @v(true)", '@v("z") @v(1) @v', '@v("a", k=1) @v("a", k="1")']
)
def test_any_mixture_of_literals_has_a_shape(annotation: str) -> None:
    assert read(f"node N {annotation} {{}}").shape.hash.startswith("sha256:")


def test_a_hash_is_a_sha256_of_the_shape() -> None:
    assert re.fullmatch("sha256:[0-9a-f]{64}", read(LIB).shape.hash)
    assert read(LIB).shape.hash != read("").shape.hash


def test_a_shape_survives_json() -> None:
    document = read(LIB).shape.to_json()

    assert json.loads(json.dumps(document)) == document


def test_declarations_are_listed_by_kind_and_name() -> None:
    shape = read(LIB).shape

    assert [(item.kind, item.name) for item in shape.types] == [
        (DeclarationKind.INTERFACE, "Catalogued"),
        *((DeclarationKind.NODE, name) for name in ("Author", "Book", "Note", "Shelf")),
        *((DeclarationKind.EDGE, name) for name in ("About", "Cites", "Mentors", "StoredOn", "Wrote")),
    ]
    assert all(list(item.property_names) == sorted(item.property_names) for item in shape.types)


def test_a_property_records_where_it_comes_from_and_what_is_written_on_it() -> None:
    text = "interface I { x: I32 @index  y: I32 } node N implements I { y: I32 @unique  z: I32 @index(z) }"

    (node,) = read(text).shape.of_kind(DeclarationKind.NODE)

    recorded = {item.name: (item.is_declared, item.satisfies, item.written) for item in node.properties}
    assert recorded == {
        "x": (False, ("I",), ("index",)),
        "y": (True, ("I",), ("unique",)),
        "z": (True, (), ()),
    }
