"""The canonical form, construct by construct, and the promises F1 to F5 of `omnigraph.language.format`."""

from textwrap import dedent

import pytest
from hypothesis import given

from omnigraph.core.source_errors import MixedMutation, ParseError
from omnigraph.core.span import Source
from omnigraph.language.format import format_queries, format_schema
from tests.support.formatting import QUERY, SCHEMA, check_promises
from tests.support.source_texts import QUERY_TEXTS, SCHEMA_TEXTS


def schema(text: str) -> str:
    return check_promises(SCHEMA, text)


def queries(text: str) -> str:
    return check_promises(QUERY, text)


def body(declaration: str) -> str:
    """Return the formatted items of a node, one on each line."""
    return dedent("".join(schema(f"node N {{ {declaration} }}").splitlines(keepends=True)[1:-1])).rstrip("\n")


def clause(text: str) -> str:
    """Return one formatted clause."""
    lines = queries(f"query q() {{ match {{ {text} }} return {{ $a }} }}").splitlines(keepends=True)
    return dedent("".join(lines[2:-3])).rstrip("\n")


def part(text: str) -> str:
    """Return what the parts behind `match` become."""
    lines = queries(f"query q() {{ match {{ $a: A }} {text} }}").splitlines(keepends=True)
    return dedent("".join(lines[4:-1])).rstrip("\n")


def statement(text: str) -> str:
    lines = queries(f"query q() {{ {text} }}").splitlines(keepends=True)
    return dedent("".join(lines[1:-1])).rstrip("\n")


# Promises


@given(SCHEMA_TEXTS)
def test_the_promises_hold_for_any_schema(text: str) -> None:
    check_promises(SCHEMA, text)


@given(QUERY_TEXTS)
def test_the_promises_hold_for_any_query_file(text: str) -> None:
    check_promises(QUERY, text)


@pytest.mark.fuzz
@given(SCHEMA_TEXTS)
def test_the_promises_hold_for_many_schemas(text: str) -> None:
    check_promises(SCHEMA, text)


@pytest.mark.fuzz
@given(QUERY_TEXTS)
def test_the_promises_hold_for_many_query_files(text: str) -> None:
    check_promises(QUERY, text)


@pytest.mark.parametrize("text", ["", " ", "\n\n\t\r\n"])
def test_nothing_becomes_nothing(text: str) -> None:
    """F5."""
    assert schema(text) == ""
    assert queries(text) == ""


@pytest.mark.parametrize("text", ["node {}", "edge A: B", 'node N { a: String @x("\\q") }', "/* open"])
def test_a_bad_schema_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        format_schema(Source(text))


def test_a_bad_query_is_refused() -> None:
    with pytest.raises(ParseError):
        format_queries(Source("query q { }"))
    with pytest.raises(MixedMutation):
        format_queries(Source("query q() { insert A { a: 1 } delete A where a = 1 }"))


def test_literals_keep_their_spelling() -> None:
    """F4."""
    assert body('a:F64@unit(1.50,x=007)@range(a,-0.50 .. 10.00)@check(a,"\\t\\"")') == (
        'a: F64 @unit(1.50, x=007)\n@range(a, -0.50..10.00)\n@check(a, "\\t\\"")'
    )
    assert clause('$a.x=[1.50,[ 007 ],"\\n",date( "2020-01-01" )]') == (
        '$a.x = [1.50, [007], "\\n", date("2020-01-01")]'
    )


def test_a_string_keeps_its_line_breaks_tabs_and_white_space() -> None:
    """F4, F5."""
    text = '"one \t\n\ttwo\r\n\n\n  "'

    assert f"@description({text})" in schema(f"node N {{ a: String @description({text}) }}")
    assert f"$a.x = {text}" in queries(f"query q() {{ match {{ $a.x = {text} }} return {{ $a }} }}")


def test_enum_values_keep_their_order_and_are_not_cut() -> None:
    """F4."""
    assert body("a:enum( soft-back,2nd ,-,a--1,Z )?") == "a: enum(soft-back, 2nd, -, a--1, Z)?"


def test_carriage_returns_go_outside_of_strings() -> None:
    """F5."""
    text = "// one\r\n\r\nnode N {\r\n    a: I32 /* two\r\n */\r\n}\r\n"

    assert schema(text) == "// one\n\nnode N {\n    a: I32 /* two\n */\n}\n"


# Schemas


@pytest.mark.parametrize(
    ("written", "formatted"),
    [
        ("interface I{}", "interface I {}"),
        ("node N{ }", "node N {}"),
        ("node N@x@y( a )implements A ,B{}", "node N @x @y(a) implements A, B {}"),
        ("edge E:A->B", "edge E: A -> B"),
        ("edge E :A->B@card( 0 .. )", "edge E: A -> B @card(0..)"),
        ("edge E:A->B@card(0..1)@x{}", "edge E: A -> B @card(0..1) @x {}"),
    ],
)
def test_a_declaration_without_items_is_one_line(written: str, formatted: str) -> None:
    assert schema(written) == f"{formatted}\n"


@pytest.mark.parametrize(
    ("written", "formatted"),
    [
        ("a:String", "a: String"),
        ("a :[ String ] ?", "a: [String]?"),
        ("a:Vector( 4 )?", "a: Vector(4)?"),
        ("a:String@key@index", "a: String @key @index"),
        ('a:Vector(4)@embed( b ,model = "m" )', 'a: Vector(4) @embed(b, model="m")'),
        ("@key( a,b )", "@key(a, b)"),
        ("@range(a,..-5)", "@range(a, ..-5)"),
        ("@range(a,1 .. )", "@range(a, 1..)"),
        ("a: String @index(a)", "a: String\n@index(a)"),
        ("a: String b: I32", "a: String\nb: I32"),
    ],
)
def test_an_item_of_a_body_has_a_line_of_its_own(written: str, formatted: str) -> None:
    assert body(written) == formatted


def test_one_blank_line_stands_between_declarations() -> None:
    assert schema("node A {} node B {}\n\n\n\nedge E: A -> B node C {}") == (
        "node A {}\n\nnode B {}\n\nedge E: A -> B\n\nnode C {}\n"
    )


def test_edges_without_a_body_stay_as_close_as_they_were_written() -> None:
    text = "edge A: N -> N\n// b\nedge B: N -> N\n\n\nedge C: N -> N edge D: N -> N {} edge E: N -> N"

    assert schema(text) == (
        "edge A: N -> N\n// b\nedge B: N -> N\n\nedge C: N -> N\n\nedge D: N -> N {}\n\nedge E: N -> N\n"
    )


def test_one_blank_line_between_items_is_kept_and_none_beside_a_brace() -> None:
    text = "node N {\n\n\n    a: I32\n\n\n    b: I32\n    c: I32\n\n}"

    assert schema(text) == "node N {\n    a: I32\n\n    b: I32\n    c: I32\n}\n"


def test_a_head_breaks_behind_a_hundred_columns() -> None:
    text = "a" * (100 - len('node N @description("") {'))

    assert schema(f'node N @description("{text}") {{ b: I32 }}') == (
        f'node N @description("{text}") {{\n    b: I32\n}}\n'
    )
    assert schema(f'node N @description("{text}a") implements A, B {{ b: I32 }}') == (
        f'node N\n    @description("{text}a")\n    implements A, B\n{{\n    b: I32\n}}\n'
    )


def test_a_long_edge_keeps_its_cardinality_on_the_first_line() -> None:
    text = "a" * 90

    assert schema(f'edge E: A -> B @card(0..1) @x @description("{text}")') == (
        f'edge E: A -> B @card(0..1)\n    @x\n    @description("{text}")\n'
    )
    assert schema(f'edge E: A -> B @card(0..1) @description("{text}") {{}}') == (
        f'edge E: A -> B @card(0..1)\n    @description("{text}")\n{{}}\n'
    )


def test_a_head_that_cannot_be_broken_is_one_line() -> None:
    name = "N" * 120

    assert schema(f"node {name} {{ a: I32 }}") == f"node {name} {{\n    a: I32\n}}\n"


def test_a_string_with_a_line_break_breaks_a_head() -> None:
    assert schema('node N @x("a\nb") {}') == 'node N\n    @x("a\nb")\n{}\n'


# Clauses and expressions


@pytest.mark.parametrize(
    ("written", "formatted"),
    [
        ("$b:Book", "$b: Book"),
        ("$b:Book{code:$c ,x:1,}", "$b: Book { code: $c, x: 1 }"),
        ("$a wrote$b", "$a wrote $b"),
        ("$a$w : wrote { 1 , 3 }$b", "$a $w:wrote{1,3} $b"),
        ("$a wrote{1, }$b", "$a wrote{1,} $b"),
        ("$a<cites>$b", "$a <cites> $b"),
        ("$a $w:< cites >{0,2}$b", "$a $w:<cites>{0,2} $b"),
        ("$a . x>=100", "$a.x >= 100"),
        ("$a.x<y", "$a.x < y"),
        ("$a>$b", "$a > $b"),
        ('$a.x contains"y"', '$a.x contains "y"'),
        ("not=1", "not = 1"),
        ("5 contains $a", "5 contains $a"),
        ('search( $a.x,"y" )', 'search($a.x, "y")'),
        ("fuzzy($a.x,$q,2)=true", "fuzzy($a.x, $q, 2) = true"),
        ("$a.x=now( )", "$a.x = now()"),
        ("$a.x=[ ]", "$a.x = []"),
        ("not{$b storedOn$_}", "not { $b storedOn $_ }"),
        ("not{$b:Book{code:$c}}", "not { $b: Book { code: $c } }"),
        ("not{$a x$b $b y$c}", "not {\n    $a x $b\n    $b y $c\n}"),
        ("not{not{$a x$b}}", "not {\n    not { $a x $b }\n}"),
        ("$a:A $b:B", "$a: A\n$b: B"),
    ],
)
def test_clauses(written: str, formatted: str) -> None:
    assert clause(written) == formatted


def test_inline_matches_that_do_not_fit_have_a_line_each() -> None:
    text = "x" * 80

    assert (
        clause(f'$b: Book {{ code: "{text}", x: 1, }}') == f'$b: Book {{\n    code: "{text}",\n    x: 1\n}}'
    )
    assert clause(f'not {{ $b.code = "{text}xxx" }}') == f'not {{\n    $b.code = "{text}xxx"\n}}'


def test_inline_matches_break_behind_a_hundred_columns() -> None:
    text = "x" * (100 - len('        $b: Book { code: "" }'))

    assert clause(f'$b: Book {{ code: "{text}" }}').count("\n") == 0
    assert clause(f'$b: Book {{ code: "{text}x" }}').count("\n") == 2


# Reads


@pytest.mark.parametrize(
    ("written", "formatted"),
    [
        ("return{$b.code}", "return { $b.code }"),
        ("return{count($a)as n ,}", "return { count($a) as n }"),
        ("return{$a,$b as x $c}", "return {\n    $a\n    $b as x\n    $c\n}"),
        ("return{$a}order{n desc,$b.x asc,$c}", "return { $a }\norder { n desc, $b.x asc, $c }"),
        ("return{1 as n}", "return { 1 as n }"),
        ("return{$a}limit 10", "return { $a }\nlimit 10"),
        (
            "return{$a}order{rrf(nearest($a.v,$q),bm25($a.t,$q),60)}",
            "return { $a }\norder { rrf(nearest($a.v, $q), bm25($a.t, $q), 60) }",
        ),
    ],
)
def test_parts_of_a_read(written: str, formatted: str) -> None:
    assert part(written) == formatted


@pytest.mark.parametrize(
    ("written", "formatted"),
    [
        ("x, as", "x,\n    as"),
        ("x, as as y", "x,\n    as as y"),
        ("x as y, as", "x as y\n    as"),
        ("as as as, as", "as as as\n    as"),
        ("as, as, $a", "as,\n    as\n    $a"),
        ('"x", as', '"x",\n    as'),
    ],
)
def test_a_projection_called_as_keeps_the_comma_before_it(written: str, formatted: str) -> None:
    """F1: without the comma, the name would be read as the word that introduces an alias."""
    assert part(f"return {{ {written} }}") == f"return {{\n    {formatted}\n}}"


def test_a_long_projection_leaves_the_line_of_its_braces() -> None:
    text = "x" * 90

    assert part(f'return {{ "{text}" }}') == f'return {{\n    "{text}"\n}}'


def test_an_order_that_does_not_fit_has_a_key_on_each_line() -> None:
    name = "x" * 60

    assert part(f"return {{ $a }} order {{ $a.{name}, $b.{name} desc }}") == (
        f"return {{ $a }}\norder {{\n    $a.{name},\n    $b.{name} desc\n}}"
    )


def test_blank_lines_between_the_parts_are_kept() -> None:
    text = "query q() {\n\n    match { $a: A }\n\n\n    return { $a }\n    limit 1\n\n}"

    assert queries(text) == (
        "query q() {\n    match {\n        $a: A\n    }\n\n    return { $a }\n    limit 1\n}\n"
    )


# Heads of queries


def test_a_head_that_fits_is_one_line() -> None:
    head = 'query q( $a:String,$v:Vector( 4 )?,$l:[ I32 ] )\n@instruction("i")\n@description("d")'

    assert queries(f"{head}{{delete A where a=1}}") == (
        'query q($a: String, $v: Vector(4)?, $l: [I32]) @instruction("i") @description("d") {\n'
        "    delete A where a = 1\n"
        "}\n"
    )


def test_a_long_head_has_an_annotation_on_each_line() -> None:
    text = "x" * 80

    assert queries(
        f'query q($a: I32) @instruction("{text}") @description("d") {{ delete A where a = 1 }}'
    ) == (
        f'query q($a: I32)\n    @instruction("{text}")\n    @description("d")\n'
        "{\n    delete A where a = 1\n}\n"
    )


def test_a_long_list_of_parameters_has_one_on_each_line() -> None:
    first, second = "$" + "a" * 50, "$" + "b" * 50

    assert queries(f"query q({first}: I32, {second}: I32) {{ delete A where a = 1 }}") == (
        f"query q(\n    {first}: I32,\n    {second}: I32\n) {{\n    delete A where a = 1\n}}\n"
    )
    assert queries(f'query q({first}: I32, {second}: I32) @description("d") {{ delete A where a = 1 }}') == (
        f"query q(\n    {first}: I32,\n    {second}: I32\n)\n"
        '    @description("d")\n{\n    delete A where a = 1\n}\n'
    )


# Mutations


@pytest.mark.parametrize(
    ("written", "formatted"),
    [
        ("insert A{a:1 b:$x,c:now(),}", "insert A { a: 1, b: $x, c: now() }"),
        ("update A set{a:1}where b>=$x", "update A set { a: 1 } where b >= $x"),
        ("delete A where from=$h", "delete A where from = $h"),
        ("delete A where a=1 delete B where b=2", "delete A where a = 1\ndelete B where b = 2"),
    ],
)
def test_statements(written: str, formatted: str) -> None:
    assert statement(written) == formatted


def test_assignments_that_do_not_fit_have_a_line_each() -> None:
    text = "x" * 90

    assert statement(f'insert A {{ a: "{text}" b: 1, }}') == f'insert A {{\n    a: "{text}",\n    b: 1\n}}'
    assert statement(f'update A set {{ a: "{text}" b: 1 }} where c = 1') == (
        f'update A set {{\n    a: "{text}",\n    b: 1\n}} where c = 1'
    )


# Comments, which F3 is about


def test_comments_stay_before_and_behind_an_item() -> None:
    text = (
        "// one\n\n// two\nnode N { // three\n// four\na: I32 // five\n\n\n// six\n\n"
        "b: I32 /* seven */ // eight\n// nine\n} // ten\n// eleven"
    )

    assert schema(text) == dedent("""\
        // one

        // two
        node N { // three
            // four
            a: I32 // five

            // six

            b: I32 /* seven */ // eight
            // nine
        } // ten
        // eleven
        """)


def test_comments_inside_an_item_move_before_it() -> None:
    text = "node /* one */ N { a /* two */ : // three\n I32 // four\n @range(a, /* five */ 0..) // six\n }"

    assert schema(text) == dedent("""\
        /* one */
        node N {
            /* two */
            // three
            a: I32 // four
            /* five */
            @range(a, 0..) // six
        }
        """)


def test_a_comment_between_the_parts_of_a_head_breaks_it() -> None:
    text = "node N // one\n@x /* two */ // three\n// four\nimplements I { }"

    assert schema(text) == "node N // one\n    @x /* two */ // three\n    // four\n    implements I\n{}\n"


def test_no_blank_line_is_left_in_a_head() -> None:
    text = "node N\n\n@x\n\n// one\n\n@y\n\n// two\n\n{\n}"

    assert schema(text) == "node N\n    @x\n    // one\n    @y\n    // two\n{}\n"


def test_comments_on_one_line_stay_on_one_line() -> None:
    assert body("a: I32\n\n/* one */ // two\n b: I32") == "a: I32\n\n/* one */ // two\nb: I32"


def test_only_the_white_space_of_the_languages_is_taken_from_a_comment() -> None:
    """F3."""
    text = "// no-break space\N{NO-BREAK SPACE}"

    assert schema(f"{text} \t\r\n") == f"{text}\n"


def test_a_comment_in_an_empty_body_opens_it() -> None:
    assert schema("node N { /* one */ }") == "node N { /* one */\n}\n"
    assert schema("node N {\n// one\n}") == "node N {\n    // one\n}\n"


def test_a_comment_in_a_block_breaks_it() -> None:
    assert statement("insert A { a: 1, // one\n b: 2 // two\n }") == (
        "insert A {\n    a: 1, // one\n    b: 2 // two\n}"
    )
    assert clause("not { // one\n $a x $b }") == "not { // one\n    $a x $b\n}"
    assert clause("$b: Book { /* one */ code: 1 }") == "$b: Book { /* one */\n    code: 1\n}"
    assert part("return { $a // one\n }") == "return {\n    $a // one\n}"
    assert part("return { $a } order { // one\n x, y }") == "return { $a }\norder { // one\n    x,\n    y\n}"


def test_a_comment_among_parameters_stays_with_its_parameter() -> None:
    assert queries("query q($a: I32, // one\n// two\n$b: I32) { delete A where a = 1 }") == (
        "query q(\n    $a: I32, // one\n    // two\n    $b: I32\n) {\n    delete A where a = 1\n}\n"
    )


def test_a_comment_stays_with_its_item_when_the_comma_goes() -> None:
    assert part("return { $a, // one\n $b // two\n, $c }") == (
        "return {\n    $a // one\n    $b // two\n    $c\n}"
    )


def test_a_comment_around_where_stays_with_the_update() -> None:
    assert statement("update A set { a: 1 } /* one */ where b = 1") == (
        "/* one */\nupdate A set { a: 1 } where b = 1"
    )


def test_the_lines_of_a_block_comment_keep_their_indentation() -> None:
    text = "node N {\n  /* one\n   * two  \n   */\n  a: I32\n}"

    assert schema(text) == "node N {\n    /* one\n   * two\n   */\n    a: I32\n}\n"


def test_a_file_of_comments_keeps_them() -> None:
    assert schema("\n\n// one \n/* two */ // three\n\n\n// four") == "// one\n/* two */ // three\n\n// four\n"
