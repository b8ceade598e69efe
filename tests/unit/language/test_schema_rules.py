"""Every rule of table 1.11 of the languages specification: its class, its names and its place.

A row shows a source in which the culprit stands between `«` and `»`.
"""

from cProfile import Profile
from itertools import groupby

import pytest

from omnigraph.core.source_errors import CatalogError, ParseError, SourceError
from omnigraph.core.span import Source
from omnigraph.language.schema_parser import parse_schema
from omnigraph.language.schema_rules import check_schema
from tests.support.library import compile_text, parse_failure

N = "node N { k: String @key }\n"
T = "node N { title: String  pages: I32  tags: [String]  cover: Blob  v: Vector(3)  code: String\n"

# Label, source, and what the message spells.
PARSE_ROWS = [
    ("S01", "node «{» }", "'{'"),
    ("S01", "node «book» {}", "'book'"),
    ("S01", "«Node» Book {}", "'Node'"),
    ("S01", "«enum» Fmt(a)", "'enum'"),
    ("S01", "node N { a: String «;» }", ""),
    ("S01", N + "edge E: N «N»", "'->'"),
    ("S01", "node N implements «{»}", "'{'"),
    ("S01", "node N { x: enum(a, «)» }", ""),
    ("S01", "interface I {} node N implements I, «{» }", ""),
    ("S01", "node N { a: String  @unique(a, «)» }", ""),
    ("S01", "node N { a: I32  @range(a, - «1»..2) }", ""),
    ("S01", "interface I «implements» J { }", ""),
    ("S02", 'node N { x: String @description("a«\\q»") }', "\\q"),
    ("S02", 'node N { x: String @description("é\n\\n«\\u»0041") }', "\\u"),
    *(
        ("S03", f"node N {{ «{name}»: String }}", f"'{name}'")
        for name in (
            "_rowid",
            "_rowaddr",
            "_rowoffset",
            "_row_created_at_version",
            "_row_last_updated_at_version",
        )
    ),
    ("S03", "interface I { «_rowid»: String }", "'_rowid'"),
    ("S03", N + "edge E: N -> N { «_rowaddr»: String }", "'_rowaddr'"),
    ("S05", "node N { v: «Vector(0)» }", "'v'"),
    ("S05", "interface I { v: «Vector(2147483648)?» }", "'v'"),
    ("S06", "node N { xs: «[Blob]» }", "'xs'"),
    ("S07", "node N { x: enum(a, b, «a») }", "'a'"),
    ("S08", N + "edge E: N -> N «@card(2..1)»", "'E'"),
    ("S08", N + "edge E: N -> N «@card(0..4294967296)»", "'E'"),
    ("S08", N + "edge E: N -> N «@card(4294967296..)»", "'E'"),
    ("S09", "interface I {} node N implements I, «Ghost» {}", "'Ghost'"),
    ("S10", "interface I { x: I32 } node N implements I { x: «String» }", "'x'"),
    ("S10", "interface I { x: enum(a) } node N implements I { x: «enum(a, b)» }", "'I'"),
    ("S10", "interface I { x: [I32] } node N implements I { x: «I32» }", "'x'"),
    ("S12", "node N { a: String @key  b: String «@key» }", "'N'"),
    ("S12", "node N { a: String @key  «@key(a)» }", "'N'"),
    ("S12", "node N { a: String  @key(a)  «@key(a)» }", "'N'"),
    ("S12", "interface I { a: String @key } node N implements I { b: String «@key» }", "'N'"),
    (
        "S12",
        "interface I { a: String @key } interface J { b: String @key } node «N» implements I, J { }",
        "'N'",
    ),
    *(("S13", T + f"@{name}(«nope») }}", "'nope'") for name in ("key", "unique", "index")),
    ("S13", T + "@range(«nope», 0..1) }", "'nope'"),
    ("S13", T + '@check(«nope», "x") }', "'nope'"),
    ("S13", N + "edge E: N -> N { @index(«nope») }", "'nope'"),
    ("S14", "node N { slug: String? «@key» }", "'slug'"),
    ("S14", "node N { a: String  b: I32?  @key(a, «b») }", "'b'"),
    *(("S15", f"node N {{ tags: [String] «@{name}» }}", "'tags'") for name in ("key", "unique", "index")),
    *(("S15", T + f"@{name}(«tags») }}", "'tags'") for name in ("key", "unique", "index")),
    ("S15", "node N { t: String  xs: [F32] «@embed(t)» }", "'xs'"),
    ("S15", N + "edge E: N -> N { xs: [I32] «@index» }", "'xs'"),
    *(("S16", f"node N {{ v: Vector(3) «@{name}» }}", "'v'") for name in ("key", "unique")),
    *(("S16", T + f"@{name}(«v») }}", "'v'") for name in ("key", "unique")),
    *(("S17", f"node N {{ cover: Blob «@{name}» }}", "'cover'") for name in ("key", "unique", "index")),
    *(("S17", T + f"@{name}(title, «cover») }}", "'cover'") for name in ("key", "unique", "index")),
    ("S17", "node N { t: String  cover: Blob «@embed(t)» }", "'cover'"),
    ("S18", N + "edge E: N -> N { k: String «@key» }", "@key"),
    ("S18", N + "edge E: N -> N { t: String  v: Vector(3) «@embed(t)» }", "@embed"),
    ("S18", N + "edge E: N -> N { a: String  «@key(a)» }", "@key"),
    ("S19", N + "edge E: N -> N { w: I32 «@range(w, 0..1)» }", "@range"),
    ("S19", N + 'edge E: N -> N { s: String «@check(s, "x")» }', "@check"),
    ("S20", T + "@range(«title», 0..9) }", "'title'"),
    ("S20", "node N { xs: [I32]  @range(«xs», 0..9) }", "'xs'"),
    ("S20", "node N { d: Date  @range(«d», 0..9) }", "'d'"),
    ("S21", T + '@check(«pages», "x") }', "'pages'"),
    ("S21", T + '@check(«tags», "x") }', "'tags'"),
    ("S22", T + "@range(pages, 5«)» }", ""),
    ("S22", T + '@range(pages, «"5"») }', "@range"),
    ("S22", T + "@range(pages, «pages») }", "@range"),
    ("S22", T + "@range(pages, «9..1») }", "'pages'"),
    ("S22", T + "@range(pages, «-1.5..-2.5») }", "'pages'"),
    ("S22", T + "«@range(pages)» }", "@range"),
    ("S22", T + "«@range(pages, 0..1, 2..3)» }", "@range"),
    ("S23", T + "«@check(code)» }", "@check"),
    ("S23", T + "@check(code, «title») }", "@check"),
    ("S23", T + '«@check(code, "a", "b")» }', "@check"),
    ("S23", T + '@check(code, «"("») }', "'code'"),
    ("S23", T + '@check(code, «"(?=A)"») }', "'code'"),
    ("S23", T + r'@check(code, «"(a)\\1"») }', "'code'"),
    ("S24", 'node N { email: String @unique(«"x"») }', "@unique"),
    ("S24", "node N { a: I32  @key(a, «0..1») }", "@key"),
    ("S24", 'node N { a: I32  @range(«"a"», 0..1) }', "@range"),
    *(("S25", f"node N «@{name}» {{ }}", f"@{name}") for name in ("key", "unique", "index", "embed")),
    *(("S25", f"{N}edge E: N -> N «@{name}»", f"@{name}") for name in ("key", "unique", "index", "embed")),
    ("S25", "node N «@default(1)» { }", "@default"),
    ("S25", N + 'edge E: N -> N «@default("a")»', "@default"),
    ("S25", "node N «@»unique(a) { a: String }", ""),
    *(
        ("S26", f"node N {{ a: String @{name} «@{name}» }}", f"@{name}")
        for name in ("key", "unique", "index")
    ),
    ("S26", "node N { t: String  v: Vector(3) @embed(t) «@embed(t)» }", "@embed"),
    ("S26", "node N { a: I32 @default(1) «@default(2)» }", "@default"),
    ("S26", 'node N { a: String @description("a") «@description("b")» }', "@description"),
    ("S26", 'node N @instruction("a") «@instruction("a")» { }', "@instruction"),
    ("S26", N + 'edge E: N -> N @rename_from("A") «@rename_from("A")»', "@rename_from"),
    ("S26", 'interface I { a: String @rename_from("b") «@rename_from("c")» }', "@rename_from"),
    ("S27", 'node N «@description("  ")» { }', "@description"),
    ("S27", 'node N «@instruction("\t\n")» { }', "@instruction"),
    ("S27", "node N «@description(text)» { }", "@description"),
    ("S27", "node N «@description(1)» { }", "@description"),
    ("S27", "node N «@rename_from» { }", "@rename_from"),
    ("S27", "interface I { a: String «@rename_from» }", "@rename_from"),
    ("S28", 'node N { x: String «@instruction("y")» }', "'x'"),
    ("S28", N + 'edge E: N -> N { x: String «@instruction("y")» }', "'x'"),
    ("S29", 'node N «@rename_from("A", k="b")» { }', "@rename_from"),
    ("S29", 'node N @rename_from("A", «"B"») { }', ""),
    ("S30", "node N { title: String «@embed(title)» }", "'title'"),
    ("S31", "node N { v: Vector(3) «@embed» }", "'v'"),
    ("S31", "node N { v: Vector(3) «@embed(zz)» }", "'zz'"),
    ("S31", "node N { v: Vector(3)  pages: I32  w: Vector(3) «@embed(pages)» }", "'pages'"),
    ("S31", "node N { xs: [String]  v: Vector(3) «@embed(xs)» }", "'xs'"),
    ("S32", 'node N { t: String  v: Vector(3) «@embed("t", provider="x")» }', "'provider'"),
    ("S37", "«\N{ZERO WIDTH NO-BREAK SPACE}»node N { }", ""),
    ("S38", T + "@range(pages, 0..«1e3») }", "'1e3'"),
    ("S40", 'node N { c: Blob? «@default("x")» }', "'c'"),
    ("S40", "node N { v: Vector(2)? «@default([1, 2])» }", "'v'"),
    ("S40", 'node N { k: String @key «@default("a")» }', "'k'"),
    ("S40", 'node N { a: String «@default("a")»  b: I32  @key(a, b) }', "'a'"),
    ("S40", 'interface I { k: String @key @default("a") } node «N» implements I { }', "'k'"),
    ("S41", "node N { a: I32 «@default» }", "'a'"),
    ("S41", 'node N { a: I32 @default(«"x"») }', "'x'"),
    ("S41", "node N { a: [I32] @default(«[1, true]») }", "true"),
    ("S41", N + "edge E: N -> N { a: U32 @default(«-1») }", "-1"),
    ("S41", "interface I { a: I32 @default(0.5) } node «N» implements I { }", "'a'"),
    ("S42", "node N { a: I32 @default(«9»)  @range(a, 0..5) }", "@range"),
    ("S42", 'node N { a: String @default(«"b"»)  @check(a, "^a") }', "@check"),
    ("S43", 'node N { a: String «@external("s3://a/")» }', "String"),
    ("S43", N + 'edge E: N -> N { a: I32 «@external("s3://a/")» }', "I32"),
    ("S44", "node N { c: Blob «@external» }", "needs a base"),
    ("S44", 'node N { c: Blob @external(«"s3://a"») }', "no path"),
    ("S44", 'node N { c: Blob @external("s3://a/", «"s3://a/b"») }', "ends with '/'"),
    ("S44", 'node N { c: Blob @external(«"https://u:p@h/"») }', "user info"),
    ("S44", 'interface I { c: Blob @external("x") } node «N» implements I { }', "'c'"),
    ("S25", 'node N «@external("s3://a/")» { }', "@external"),
    ("S26", 'node N { c: Blob @external("s3://a/") «@external("s3://a/")» }', "@external"),
]
CATALOG_ROWS = [
    ("S04", "node N { «id»: String }", "'id'"),
    *(
        ("S04", N + f"edge E: N -> N {{ «{name}»: String? }}", f"'{name}'")
        for name in ("id", "src", "dst", "from", "to")
    ),
    ("S04", "interface I { id: String } node «N» implements I { }", "'id'"),
    ("S11", "interface A { x: String @index } interface B { x: String } node «N» implements B, A {}", "'x'"),
    ("S11", "interface A { x: String } interface B { x: I32 } node «N» implements A, B {}", "'x'"),
    ("S11", "interface A { x: I32 @a } interface B { x: I32 @b } node «N» implements A, B {}", "'x'"),
    (
        "S11",
        "interface A { v: Vector(2) @embed(s) } interface B { v: Vector(2) @embed(t) }\n"
        "node «N» implements A, B { s: String  t: String }",
        "'v'",
    ),
    ("S33", "node Book {}\nnode «Book» {}", "'Book'"),
    ("S33", "interface Book {}\ninterface «Book» {}", "'Book'"),
    ("S33", N + "edge E: N -> N edge «E»: N -> N", "'E'"),
    ("S34", "node N { a: I32  «a»: String }", "'a'"),
    ("S34", "interface I { a: I32  «a»: I32 }", "'a'"),
    ("S34", N + "edge E: N -> N { a: I32  «a»: I32 }", "'a'"),
    ("S35", N + "interface I {} edge E: N -> «I»", "'I'"),
    ("S35", N + "edge E: «Ghost» -> N", "'Ghost'"),
    ("S35", N + "edge E: «E» -> N", "'E'"),
    ("S36", N + "edge Cites: N -> N edge «CITES»: N -> N", "'CITES'"),
]


def marked(text: str) -> tuple[str, int, int]:
    """Return a source without its marks, and the start and end of what they enclose."""
    start, end = text.index("«"), text.index("»") - 1
    return text.replace("«", "").replace("»", ""), start, end


def assert_refused(error_class: type[SourceError], row: str, spelled: str) -> None:
    text, start, end = marked(row)
    with pytest.raises(error_class) as caught:
        compile_text(text)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.span is not None
    assert (diagnostic.span.start, diagnostic.span.end) == (start, end)
    assert caught.value.position == (text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start))
    assert caught.value.span == (len(text[:start].encode()), len(text[:end].encode()))
    assert spelled in diagnostic.message


@pytest.mark.parametrize(("label", "row", "spelled"), PARSE_ROWS)
def test_a_broken_rule_is_one_parse_error_at_the_culprit(label: str, row: str, spelled: str) -> None:
    assert_refused(ParseError, row, spelled)


@pytest.mark.parametrize(("label", "row", "spelled"), CATALOG_ROWS)
def test_declarations_that_do_not_fit_together_are_one_catalog_error_at_the_culprit(
    label: str, row: str, spelled: str
) -> None:
    assert_refused(CatalogError, row, spelled)


def test_every_rule_of_the_table_has_a_row() -> None:
    labels = sorted(row[0] for row in PARSE_ROWS + CATALOG_ROWS)

    assert [label for label, _ in groupby(labels)] == [
        f"S{n:02d}" for n in range(1, 45) if n != 39
    ]  # S39: test_lexer.py


def test_broken_rules_of_one_file_are_reported_together_in_the_order_of_the_text() -> None:
    text = """\
node N @unique {
    v: Vector(0) @instruction("i")
    xs: [Blob]
    @unique(nope)
    a: enum(x, x)
}
edge E: N -> N @card(2..1) { w: I32 @key }
node M implements Ghost { b: String? @key }
"""

    error = parse_failure(text)

    lines = [error.source.position(d.span.start)[0] for d in error.diagnostics if d.span]
    assert lines == [1, 2, 2, 3, 4, 5, 7, 7, 8, 8]
    assert len(error.diagnostics) == 10
    assert error.position == (1, 8)


def test_catalog_faults_of_one_file_are_reported_together_in_the_order_of_the_text() -> None:
    text = "edge E: N -> Ghost { to: I32 }\nnode N { id: I32 }\nnode N {}\nedge e2: N -> N".replace("e2", "E")

    with pytest.raises(CatalogError) as caught:
        compile_text(text)

    starts = [d.span.start for d in caught.value.diagnostics if d.span]
    assert [text[start:].split()[0] for start in starts] == ["Ghost", "to:", "id:", "N", "E:"]


ALLOWED = [
    "interface I { v: Vector(3) @embed  x: [String] @key @key @instruction(1) }",
    "interface I { t: String  v: Vector(3) @embed(t, model=3) }",
    "interface I { id: String }",
    "interface I { a: String @index } node N implements I, I { }",
    'interface I { t: String } node N implements I { v: Vector(3)? @embed("t") @index }',
    "node N { e: enum(a, b) @key @index @unique  v: Vector(2) @embed(e)  @check(e, \"a\") }",
    "node N { b: Bool  d: Date  t: DateTime  @key(b, d, t) }",
    'node N { a: String @unique(a) @index(a)  node: I32  edge: I32  type: I32  @check(a, "") }',
    "node N { n: U64  @range(n, 0..18446744073709551615)  @range(n, 5..5) }",
    N + "edge E: N -> N { w: I32 @index @unique  @index(src)  @unique(dst, w) }",
    N + 'edge E: N -> N @card(0..4294967295) @description("d") @instruction("i") { }',
    'node N @vendor(true, a=1.5, b="x") @vendor(false) @flag { x: String @vendor @vendor }',
    'node N @rename_from(old) { a: I32 @rename_from("b") }',
]  # fmt: skip


@pytest.mark.parametrize("text", ALLOWED)
def test_what_no_rule_forbids_is_allowed(text: str) -> None:
    compile_text(text)


@pytest.mark.parametrize("text", ALLOWED)
def test_the_rules_of_one_source_need_no_catalog(text: str) -> None:
    check_schema(parse_schema(Source(text)))


def test_an_annotation_that_an_interface_injects_is_refused_where_the_node_takes_it_in() -> None:
    text = "interface I { xs: [String] @key }\nnode N implements I { }"

    error = parse_failure(text)

    assert error.position == (2, 6)
    assert [name for name in ("'xs'", "I") if name not in str(error)] == []


def work_of(count: int) -> int:
    """Return how many calls it takes to check a type that implements so many interfaces."""
    declared = "\n".join(f"interface I{number} {{ p{number}: String? }}" for number in range(count))
    names = ", ".join(f"I{number}" for number in range(count))
    columns = "\n".join(f"p{number}: String?" for number in range(count))
    parsed = parse_schema(Source(f"{declared}\nnode N implements {names} {{ k: String @key\n{columns} }}"))
    profile = Profile()
    profile.runcall(check_schema, parsed)
    return sum(int(entry.callcount) for entry in profile.getstats())


@pytest.mark.case("surfaces", 928)
def test_the_work_grows_with_the_interfaces_and_not_with_their_square() -> None:
    assert work_of(400) < 3 * work_of(200)
