"""The parsers against a second reading of the specification: same verdict and same tree for every text."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from omnigraph.core.source_errors import ParseError
from omnigraph.core.span import Source
from omnigraph.language.query_parser import parse_queries
from omnigraph.language.schema_parser import parse_schema
from tests.models.language.generate import LANGUAGES, Language, near_miss, valid_text
from tests.models.language.oracle import Neutral, OracleReject, oracle_queries, oracle_schema, tree_of
from tests.support.pages import REPOSITORY

HERE = Path(__file__).parent
SEEDBANK = REPOSITORY / "examples" / "seedbank"
SUFFIXES: dict[Language, str] = {"schema": ".pg", "query": ".gq"}

TEXTS = 400  # of each language and kind, in every run
TEXTS_FUZZ = 5_000
SHRINK_ATTEMPTS_MAX = 3_000

REJECTED = "rejected"


@pytest.mark.parametrize("language", LANGUAGES)
def test_both_take_what_the_grammar_generates(language: Language) -> None:
    for seed in range(TEXTS):
        assert_agreement(language, valid_text(language, seed), seed=seed, verdict=True)


@pytest.mark.parametrize("language", LANGUAGES)
def test_both_agree_on_near_misses(language: Language) -> None:
    refused = 0
    for seed in range(TEXTS):
        outcome = assert_agreement(language, near_miss(language, seed), seed=seed)
        refused += outcome == REJECTED
    assert TEXTS // 2 < refused < TEXTS, "near misses should be neither all wrong nor mostly right"


@pytest.mark.fuzz
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("generate", [valid_text, near_miss])
def test_both_agree_on_many_texts(language: Language, generate: Callable[[Language, int], str]) -> None:
    for seed in range(TEXTS, TEXTS + TEXTS_FUZZ):
        assert_agreement(language, generate(language, seed), seed=seed)


def corpus() -> Iterator[tuple[Language, Path]]:
    """Return the files written by people."""
    for language, suffix in SUFFIXES.items():
        for folder in (HERE / "corpus", SEEDBANK):
            yield from ((language, path) for path in sorted(folder.rglob(f"*{suffix}")))


@pytest.mark.parametrize(
    ("language", "path"), [pytest.param(language, path, id=path.name) for language, path in corpus()]
)
def test_both_read_files_written_by_people(language: Language, path: Path) -> None:
    assert_agreement(language, path.read_text(encoding="utf-8"), verdict=True)


# Verdicts of the specification, one text on a line; `{}` is where it stands in a file.

IN_BODY = "node N {{ k: String @key {} }}"
IN_MATCH = "query q() {{ match {{ {} }} return {{ $b.code }} }}"
IN_FILTER = "query q() {{ match {{ $b.x = {} }} return {{ $b.code }} }}"
IN_RETURN = "query q() {{ match {{ a = 1 }} return {{ {} }} }}"
IN_TAIL = "query q() {{ match {{ a = 1 }} return {{ a }} {} }}"
IN_QUERY = "query q() {{ {} }}"


def lines(text: str, frame: str = "{}") -> list[str]:
    return [frame.format(line) for line in text.strip("\n").split("\n")]


def nested(opening: str, inner: str, closing: str, depth: int) -> str:
    return opening * depth + inner + closing * depth


ACCEPTED_SCHEMAS = [
    "",
    " \t\r\n",
    *lines("""
// c
/* c */
node Empty {}
node/**/N{}
node Node{}
node N @ d ( 1 ) {}
node N @key {}
node N @description("d") implements I {}
interface I { a: String @key }
edge E:N->N
edge E: N -> N @card(0..1)
edge E: N -> N @card (1 .. )
edge E: N -> N @card(9223372036854775808..1)
edge E: N -> N @cards
"""),
    IN_BODY.format("title: String @index // (\n y: I32"),
    *lines(
        """
x: enum(soft-back, 2nd, x_1, -)
x: Vector(0) y: Vector(2147483648) z: [Blob] e: enum(a, a)
title: String @index(title)
node: I32 enum: enum(enum) true: Bool @true(true, true=true)
v: Vector ( 4 ) ? @embed("blurb", model="m")
@range(p, -1.5..) @range(p, ..-2) @range(p, 1 .. 2) @range(p, 1.5..2.5)
@range(p, -9223372036854775808..9223372036854775807)
x: String @d(9223372036854775808)
x: I32 @default(-1) y: F64 @ default ( -1.5 ) z: [I32] @default([]) w: [I32] @default([ -1 , 2, "a", true])
x: enum(a) @default(a) @default @default(true) @default(trueish) @defaults(1, k=2)
x: Blob @external("a") y: Blob @ external ( "a" , "b\\"c" ) @external @externals(1, k=2)
@range(p, 9223372036854775808..)
@range(p, -9223372036854775809..)
""",
        IN_BODY,
    ),
]
REJECTED_SCHEMAS = [
    "\ufeffnode N {}",
    "node N\f{}",
    "node N\u00a0{}",
    *lines("""
node { }
node book {}
Node Book {}
nodeN {}
enum Fmt { a }
# c
/* open
node N implements I @d(1) {}
node N { @d }
node N @key(a) {}
node N @card {}
interface I @d(1) {}
interface I { a: String @key(a) }
interface I { @unique(a) }
edge E: N - > N
edge E: N -> N @card
edge E: N -> N @card(1)
edge E: N -> N @card(..1)
edge E: N -> N @card(0..*)
edge E: N -> N @flag @card(0..1)
edge E: N -> N @ card(0..1)
"""),
    *lines(
        """
a: String, b: String
x: enum()
x: enum(a,)
x: [Vector(3)]
x: [enum(a)]
x: [String?]
x: Int
x: Stringy
x: String @d("a\\q")
x: String @d("a", "b")
x: String @d(model="a")
x: String @d()
x: String @d(3abc)
x: String @d(-1)
x: String @d([1])
x: I32 @default()
x: I32 @default(1, k=2)
x: I32 @default(- 1)
x: I32 @default([1,])
x: I32 @default([[1]])
x: I32 @default([a])
x: I32 @default(--1)
x: I32 @default(1..2)
x: Blob @external()
x: Blob @external(a)
x: Blob @external("a",)
x: Blob @external("a", k="b")
x: Blob @external(["a"])
x: Blob @external(1)
x: String @d(1.)
@unique(a,)
@range(p, 5)
@range(p, - 5..)
@range(p, 0..1e3)
@range(p, ..)
""",
        IN_BODY,
    ),
]
ACCEPTED_QUERIES = [
    "",
    *lines("""
/**/
query query($query: Vector( 4 ) ?, $_: [Date]?) { delete Query where where = 1 }
query q() @instruction("") @description("") { delete A where a = 1 }
query q() { insert A { insert: true set: now() } update A set { a: $a, } where a != [1] }
"""),
    *lines(
        """
$b: Book
$b: Book { code: "x", }
$b cites{1,} $c
$a $w:<e>{1,2} $b
$a < e > $b
$a < e
$a <= e
$q contains $m
$q contains $m.x
$q starts_with $m . x
$q contains $m $b: Book
"a" contains $m
contains contains contains
search(a, b) contains = 3
search(a, b) contains contains
null = null
not = 1 x = not not { a = 1 }
""",
        IN_MATCH,
    ),
    *lines(
        """
[]
[[1], ["a", date("x")]]
datetime ( "" )
9223372036854775807
""",
        IN_FILTER,
    ),
    *lines(
        """
$b.code $b.title as t, count($b) as n
as
as as as
a, as
a as b as
5"a"$b[1]now()
$a contains
$a.b$c . d
""",
        IN_RETURN,
    ),
    *lines(
        """
order { asc asc, nearest desc, now() } limit 18446744073709551615
order { nearest($b.v, $q), rrf(bm25(a, b), nearest($b.v, c), 60) desc }
""",
        IN_TAIL,
    ),
    IN_FILTER.format(nested("[", "", "]", 64)),
    IN_FILTER.format(nested("count(", "a", ")", 64)),
    IN_MATCH.format(nested("not {", "a = 1", "}", 64)),
]
REJECTED_QUERIES = [
    *lines("""
query q {}
query q() {}
query q($x: String, $x: I32) { delete A where a = 1 }
query q($__t: String) { delete A where a = 1 }
query q($x: enum(a)) { delete A where a = 1 }
query q($v: Vector(9223372036854775808)) { delete A where a = 1 }
query q() @ description("") { delete A where a = 1 }
query q() @instruction("") @instruction("") { delete A where a = 1 }
"""),
    *lines(
        """
match { } return { a }
delete A where a contains 1
delete A where a = null
insert A { }
insert A { a: null }
insert A { a: $b.c }
update A set { a: 1 }
insert A { a: 1 } delete A where a = 1
""",
        IN_QUERY,
    ),
    *lines(
        """
$b: Book { }
$b : book
$ b: Book
$b cites{2} $c
$b cites{,2} $c
$a Wrote $b
$a not $b
$a > = $b
$q contains "x"
$q contains $m.
$q wrote $m.x
$q contains {1,2} $m.x
$q starts_with a
a = 1,
search(a, b) contains contains x
search(a, b), x = 1
bm25(a, b)
""",
        IN_MATCH,
    ),
    *lines(
        """
-1
1e3
1 .5
9223372036854775808
"a\\q"
[1,]
[$a]
rrf(search(a, b), bm25(a, b))
nearest(a, b)
count()
date($d)
now(1)
$b.x.y
$__x
""",
        IN_FILTER,
    ),
    *lines(
        """
a as
as as
a,, b
5as b
a as true.b
a as $b
""",
        IN_RETURN,
    ),
    IN_RETURN.format(""),
    *lines(
        """
limit 3 order { a }
limit 18446744073709551616
limit 1.0
limit $n
order { nearest($b.v, $q) desc }
order { a b }
order { a, }
""",
        IN_TAIL,
    ),
    IN_FILTER.format(nested("[", "", "]", 65)),
    IN_FILTER.format(nested("count(", "a", ")", 65)),
    IN_MATCH.format(nested("not {", "a = 1", "}", 65)),
]


@pytest.mark.parametrize("text", ACCEPTED_SCHEMAS)
def test_both_take_a_schema_that_the_specification_takes(text: str) -> None:
    assert_agreement("schema", text, verdict=True)


@pytest.mark.parametrize("text", REJECTED_SCHEMAS)
def test_both_refuse_a_schema_that_the_specification_refuses(text: str) -> None:
    assert_agreement("schema", text, verdict=False)


@pytest.mark.parametrize("text", ACCEPTED_QUERIES)
def test_both_take_a_query_that_the_specification_takes(text: str) -> None:
    assert_agreement("query", text, verdict=True)


@pytest.mark.parametrize("text", REJECTED_QUERIES)
def test_both_refuse_a_query_that_the_specification_refuses(text: str) -> None:
    assert_agreement("query", text, verdict=False)


# Comparing


def oracle_outcome(language: Language, text: str) -> Neutral:
    try:
        return oracle_schema(text) if language == "schema" else oracle_queries(text)
    except OracleReject:
        return REJECTED


def product_outcome(language: Language, text: str) -> Neutral:
    source = Source(text)
    try:
        return tree_of(parse_schema(source) if language == "schema" else parse_queries(source))
    except ParseError:
        return REJECTED


def assert_agreement(
    language: Language, text: str, *, seed: int | None = None, verdict: bool | None = None
) -> Neutral:
    """Return the outcome of both; fail, with a short text, if they differ or are not of the verdict."""
    oracle, product = oracle_outcome(language, text), product_outcome(language, text)
    if oracle != product:
        kind = kind_of(oracle, product)
        short = shrink(
            text, lambda t: kind_of(oracle_outcome(language, t), product_outcome(language, t)) == kind
        )
        pytest.fail(
            f"{kind} ({language}, seed {seed})\n"
            f"text:    {short!r}\n"
            f"oracle:  {oracle_outcome(language, short)}\n"
            f"product: {product_outcome(language, short)}"
        )
    if verdict is not None:
        assert (oracle != REJECTED) == verdict, f"both are wrong about {text!r} ({language}, seed {seed})"
    return oracle


def kind_of(oracle: Neutral, product: Neutral) -> str | None:
    """Return how two outcomes differ, or none if they are equal."""
    if oracle == product:
        return None
    if oracle == REJECTED:
        return "only the product takes this"
    if product == REJECTED:
        return "only the oracle takes this"
    return "two trees of one text"


def shrink(text: str, is_still_wrong: Callable[[str], bool]) -> str:
    """Return a part of the text that is still wrong, leaving out ever smaller pieces."""
    attempts = 0
    size = max(1, len(text) // 2)
    while size and attempts < SHRINK_ATTEMPTS_MAX:
        before = len(text)
        start = 0
        while start < len(text) and attempts < SHRINK_ATTEMPTS_MAX:
            attempts += 1
            shorter = text[:start] + text[start + size :]
            if is_still_wrong(shorter):
                text = shorter
            else:
                start += max(1, size // 4)
        if len(text) == before:
            size = size * 2 // 3
    return text
