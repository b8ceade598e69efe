"""Whatever the bytes, a parser answers: with a tree, or with an error that a person can act on.

Z1  Nothing but `ParseError` comes out of reading a text, and nothing but it and `CatalogError` out of
    compiling a schema.
Z2  Every parse error has a place inside the text, and its rendering is short.
Z3  Time and memory grow with the input and not faster. Time is counted in lines of Python that run, so that
    no machine is too slow for it; `make fuzz` looks at the clock as well.
"""

import sys
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from types import FrameType
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from omnigraph.catalog.build import compile_schema
from omnigraph.core.limits import DIAGNOSTICS_MAX, SOURCE_BYTES_MAX
from omnigraph.core.source_errors import CatalogError, ParseError, SourceError
from omnigraph.core.span import Source
from omnigraph.language.parser import decode_source
from omnigraph.language.query_parser import parse_queries
from tests.models.language.generate import (
    LANGUAGES,
    SYMBOLS,
    WORDS,
    Language,
    any_token,
    near_miss,
    valid_text,
)
from tests.support.pages import REPOSITORY

if TYPE_CHECKING:
    from _typeshed import TraceFunction

HERE = Path(__file__).parent
SEEDBANK = REPOSITORY / "examples" / "seedbank"

SMALL_MAX = 64 * 1024  # bytes of an input whose time is measured
SMALL_SECONDS_MAX = 2.0  # of processor time, which does not depend on what else the machine does
MEGABYTE = 1024 * 1024
MEGABYTE_SECONDS_MAX = 10.0  # a token a byte takes two; what is quadratic takes more than twenty
STEPS_SIZE = 3_000  # bytes
STEPS_FACTOR_MAX = 2.2  # for an input twice as large; four would be quadratic
STEPS_FLOOR = 2_000  # for what is done once
MEMORY_FACTOR_MAX = 256  # bytes kept for a byte of input: one token each, with its offsets
MEMORY_FLOOR = 32 * MEGABYTE  # what is imported on the way
RENDERED_MAX = DIAGNOSTICS_MAX * 1_000  # characters of all diagnostics together
HEADLINE_MAX = 1_000

MUTANTS = 2_500  # of each language, in every run
MUTANTS_FUZZ = 45_000
NOISES_FUZZ = 10_000
EXAMPLES_FUZZ = 2_000  # of each strategy and language; three strategies


# One input


def check_bytes(data: bytes, language: str) -> None:
    """Read the bytes of a file and fail unless the answer is a tree or a proper error (Z1, Z2)."""
    try:
        source = decode_source(data)
    except ParseError as error:
        check_error(error)
    else:
        check_text(source.text, language)


def check_soon(data: bytes, language: str) -> None:
    """Check bytes, and fail if that takes too long (Z3)."""
    started = time.process_time()
    check_bytes(data, language)
    elapsed_s = time.process_time() - started
    limit_s = SMALL_SECONDS_MAX if len(data) <= SMALL_MAX else MEGABYTE_SECONDS_MAX
    assert elapsed_s < limit_s, f"{elapsed_s:.1f} s for {len(data)} bytes: {data[:200]!r}"


def steps(data: bytes, language: str) -> int:
    """Return how many lines of Python an answer takes: what time is made of, and the same in every run."""
    taken = 0

    def count(_frame: FrameType, event: str, _argument: object, /) -> "TraceFunction":
        nonlocal taken
        taken += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        check_bytes(data, language)
    finally:
        sys.settrace(before)
    return taken


def check_text(text: str, language: str) -> None:
    """Parse a text and, if it is a schema, compile it."""
    source = Source(text)
    try:
        if language == "schema":
            compile_schema(source)
        else:
            parse_queries(source)
    except (ParseError, CatalogError) as error:
        check_error(error)


def check_error(error: SourceError) -> None:
    """Fail unless every diagnostic has a place in the text and all of them can be shown."""
    text = error.source.text
    assert 1 <= len(error.diagnostics) <= DIAGNOSTICS_MAX
    for diagnostic in error.diagnostics:
        assert diagnostic.message
        span = diagnostic.span
        if span is None:
            assert not isinstance(error, ParseError), f"no place: {diagnostic.message}"
            continue
        # An error at the end of the text points one behind it.
        assert 0 <= span.start <= len(text), f"{span} of {len(text)} characters"
        assert span.start <= span.end <= max(len(text), span.start + 1), f"{span} of {len(text)} characters"
        line, column = error.source.position(span.start)
        assert line >= 1
        assert column >= 1
    if error.span is not None:
        start, end = error.span
        size = len(text.encode(errors="surrogatepass"))
        assert 0 <= start < end <= size + 1
        assert error.position is not None
    assert 0 < len(str(error)) <= HEADLINE_MAX
    assert 0 < len(error.render()) <= RENDERED_MAX


# Inputs that hypothesis makes


def soup(language: Language) -> st.SearchStrategy[str]:
    """Return a strategy for tokens in any order."""
    tokens = st.sampled_from(
        [*SYMBOLS[language], *WORDS[language], "A", "x", "$x", "1", "1.5", '"s"', '"', "//", "\n"]
    )
    return st.lists(st.tuples(tokens, st.sampled_from(["", " "])), max_size=60).map(
        lambda pairs: "".join(token + gap for token, gap in pairs)
    )


any_text = st.text(st.characters(exclude_categories=()), max_size=200)  # surrogates and controls, too


@pytest.mark.parametrize("language", LANGUAGES)
@given(data=st.binary(max_size=500))
@example(data=b"\xef\xbb\xbfnode N {}")
@example(data=b"\xff")
@example(data=b"query q\xe2\x82")
def test_any_bytes_are_answered(data: bytes, language: Language) -> None:
    check_bytes(data, language)


@pytest.mark.parametrize("language", LANGUAGES)
@given(text=any_text)
@example(text='node N { a: String @d("\ud800") }')
@example(text="\0")
def test_any_text_is_answered(text: str, language: Language) -> None:
    check_text(text, language)


@pytest.mark.parametrize("language", LANGUAGES)
@given(data=st.data())
def test_tokens_in_any_order_are_answered(data: st.DataObject, language: Language) -> None:
    check_text(data.draw(soup(language)), language)


@pytest.mark.fuzz
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("language", LANGUAGES)
@given(data=st.binary(max_size=2_000), text=any_text, tokens=st.data())
@settings(max_examples=EXAMPLES_FUZZ)
def test_many_inputs_of_hypothesis_are_answered(
    data: bytes, text: str, tokens: st.DataObject, language: Language
) -> None:
    check_soon(data, language)
    check_text(text, language)
    check_text(tokens.draw(soup(language)), language)


# Inputs that mutate files


@cache
def written(language: Language) -> tuple[bytes, ...]:
    """Return the files that people wrote."""
    suffix = "*.pg" if language == "schema" else "*.gq"
    paths = [path for folder in (HERE / "corpus", SEEDBANK) for path in sorted(folder.rglob(suffix))]
    assert paths
    return tuple(path.read_bytes() for path in paths)


def base(rng: Random, language: Language) -> bytes:
    """Return a valid file: written by people, or generated."""
    if rng.random() < 0.5:
        return rng.choice(written(language))
    return valid_text(language, rng.randrange(1_000)).encode() or b" "


def mutant(language: Language, seed: int) -> bytes:
    """Return a file with some damage; some are of the other language."""
    rng = Random(f"mutant {language} {seed}")
    if rng.random() < 0.1:
        return near_miss(language, 1_000_000 + seed).encode()
    data = base(rng, rng.choice(LANGUAGES) if rng.random() < 0.1 else language)
    if rng.random() < 0.4:  # most files are longer than an error needs
        start = rng.randrange(len(data))
        data = data[start : start + rng.randrange(20, 1_500)]
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        data = rng.choice(MUTATIONS)(rng, data, language)
    return data[:SMALL_MAX]


def _flip(rng: Random, data: bytes, language: Language) -> bytes:
    if not data:
        return data
    index = rng.randrange(len(data))
    return data[:index] + bytes([data[index] ^ (1 << rng.randrange(8))]) + data[index + 1 :]


def _splice(rng: Random, data: bytes, language: Language) -> bytes:
    other = base(rng, language)
    start = rng.randrange(len(other))
    index = rng.randrange(len(data) + 1)
    return data[:index] + other[start : start + rng.randrange(300)] + data[index + rng.randrange(50) :]


def _truncate(rng: Random, data: bytes, language: Language) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _cut(rng: Random, data: bytes, language: Language) -> bytes:
    start = rng.randrange(len(data) + 1)
    return data[:start] + data[start + rng.randrange(1, 40) :]


def _repeat(rng: Random, data: bytes, language: Language) -> bytes:
    start = rng.randrange(len(data) + 1)
    piece = data[start : start + rng.randrange(1, 60)]
    return data[:start] + piece * rng.choice((2, 3, 20, 200)) + data[start:]


def _insert_token(rng: Random, data: bytes, language: Language) -> bytes:
    index = rng.randrange(len(data) + 1)
    return data[:index] + any_token(rng, language).encode() + data[index:]


def _insert_hostile(rng: Random, data: bytes, language: Language) -> bytes:
    index = rng.randrange(len(data) + 1)
    return data[:index] + rng.choice(HOSTILE) + data[index:]


MUTATIONS: tuple[Callable[[Random, bytes, Language], bytes], ...]
MUTATIONS = (_flip, _splice, _truncate, _cut, _repeat, _insert_token, _insert_hostile)
HOSTILE = (
    *(
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b"\x80",
        b"\xc3",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\0",
        b"\r",
        b"\x0c",
    ),
    *(b"/*", b"*/", b"//", b'"', b"\\", b'"\\', b"#", b"\xe2\x80\xa8", b"{" * 100, b"}" * 100, b"[" * 100),
    *(
        b"(" * 100,
        b"not{" * 100,
        b"count(" * 100,
        b"@" * 100,
        b"9" * 500,
        b"1." + b"0" * 500,
        b"9" * 400 + b".5",
    ),
    *(b"$__x", b"-9223372036854775809", b"18446744073709551616", b"@card(4294967296..)", b"\xf0\x9f\x98\x80"),
)


def check_generated(
    generate: Callable[[Language, int], bytes],
    language: Language,
    seed: int,
    check: Callable[[bytes, str], None] = check_bytes,
) -> None:
    """Check one input, and name it if something is wrong."""
    data = generate(language, seed)
    try:
        check(data, language)
    except BaseException as error:
        error.add_note(f"{generate.__name__}({language!r}, {seed}) of {len(data)} bytes: {data[:2_000]!r}")
        raise


@pytest.mark.parametrize("language", LANGUAGES)
def test_damaged_files_are_answered(language: Language) -> None:
    for seed in range(MUTANTS):
        check_generated(mutant, language, seed)


@pytest.mark.fuzz
@pytest.mark.timeout(7200)
def test_a_hundred_thousand_inputs_are_answered(capsys: pytest.CaptureFixture[str]) -> None:
    """Damaged files, soup and noise; each is a function of its number, so that a failure can be repeated."""
    ran = 0
    for language in LANGUAGES:
        for seed in range(MUTANTS, MUTANTS + MUTANTS_FUZZ):
            check_generated(mutant, language, seed, check_soon)
            ran += 1
        for seed in range(NOISES_FUZZ):
            check_generated(noise, language, seed, check_soon)
            ran += 1

    with capsys.disabled():
        sys.stdout.write(f"\n{ran} inputs: every one answered with a tree or a proper error, none failed\n")
    assert ran >= 100_000


def noise(language: Language, seed: int) -> bytes:
    """Return tokens in any order, or bytes in any order."""
    rng = Random(f"noise {language} {seed}")
    if rng.random() < 0.3:
        return rng.randbytes(rng.randrange(300))
    gaps = rng.choice(("", " ", "\n"))
    return gaps.join(any_token(rng, language) for _ in range(rng.randrange(80))).encode()


# Inputs that are large


@dataclass(frozen=True, slots=True)
class Large:
    """A text as long as asked for: a unit again and again, between two others."""

    before: str
    unit: str
    after: str = ""
    closing: str = ""  # as often as the unit, behind all of them
    is_numbered: bool = False  # whether each unit has a number of its own, in place of its `#`

    def text(self, size: int) -> str:
        unit = self.unit.replace("#", "10000") if self.is_numbered else self.unit
        count = size // (len(unit) + len(self.closing))
        if self.is_numbered:
            units = "".join(self.unit.replace("#", str(number)) for number in range(count))
        else:
            units = self.unit * count
        return self.before + units + self.closing * count + self.after


def numbered(before: str, unit: str, after: str = "") -> Large:
    return Large(before, unit, after, is_numbered=True)


def filtered(before: str, unit: str, after: str = "", closing: str = "") -> Large:
    """Return a text that is the right side of a filter."""
    head, tail = "query q() { match { $b.x = ", " } return { $b.code } }"
    return Large(head + before, unit, after + tail, closing)


LONG_TOKENS: dict[tuple[Language, str], Large] = {
    ("schema", "string"): Large('node N @d("', "x", '") {}'),
    ("schema", "string of escapes"): Large('node N @d("', "\\n", '") {}'),
    ("schema", "string of bad escapes"): Large('node N @d("', "\\q", '") {}'),
    ("schema", "unclosed string"): Large('node N @d("', "x"),
    ("schema", "comment"): Large("/*", "x", "*/ node N {}"),
    ("schema", "comment of stars"): Large("/*", "*", "*/ node N {}"),
    ("schema", "line comment"): Large("//", "x"),
    ("schema", "unclosed comment"): Large("/*", "x"),
    ("schema", "white space"): Large("", " \t\r\n", "node N {}"),
    ("schema", "carriage returns and an error"): Large("", "\r", "!"),
    ("schema", "lines and an error"): Large("", "\n", "!"),
    ("schema", "name"): Large("node N { ", "x", ": I32 }"),
    ("schema", "type name"): Large("node ", "X", " {}"),
    ("schema", "integer"): Large("node N @d(", "9", ") {}"),
    ("schema", "zeros"): Large("node N @d(", "0", ") {}"),
    ("schema", "decimal"): Large("node N @d(1.", "9", ") {}"),
    ("schema", "cardinality"): Large("edge E: N -> N @card(0..", "9", ")"),
    ("schema", "dimension"): Large("node N { v: Vector(", "9", ") }"),
    ("schema", "bad pattern"): Large('node N { a: String @check(a, "', "(", '") }'),
    ("query", "string"): filtered('"', "x", '"'),
    ("query", "unclosed string"): filtered('"', "x"),
    ("query", "comment"): Large("/*", "x", "*/"),
    ("query", "integer"): filtered("", "9"),
    ("query", "digits before the point"): filtered("", "9", ".5"),
    ("query", "digits behind the point"): filtered("1.", "9"),
    ("query", "limit"): Large("query q() { match { a = 1 } return { a } limit ", "9", "}"),
    ("query", "dimension"): Large("query q($v: Vector(", "9", ")) { delete A where a = 1 }"),
    ("query", "variable"): Large("query q($", "x", ": I32) {}"),
    ("query", "blanks and an error"): Large("", " ", "!"),
}
MANY_TOKENS: dict[tuple[Language, str], Large] = {
    ("schema", "quotes"): Large("", '"'),
    ("schema", "openings of comments"): Large("", "/*"),
    ("schema", "comments"): Large("", "/**/"),
    ("schema", "slashes"): Large("", "/ "),
    ("schema", "line ends without line feeds"): Large("", "node N { a: I32 }\r"),
    ("schema", "marks on one line"): Large("", "@"),
    ("schema", "marks on one line of a body"): Large("node N { ! ", "@"),
    ("schema", "marks on many lines of a body"): Large("node N { ! ", "@\n"),
    ("schema", "flags"): numbered("node N ", "@f# ", "{}"),
    ("schema", "flags behind an error"): Large("node N { ! ", "@f ", "}"),
    ("schema", "braces"): Large("", "{"),
    ("schema", "closing braces"): Large("", "}"),
    ("schema", "enum value"): Large("node N { a: enum(", "x-", ") }"),
    ("schema", "enum values"): numbered("node N { a: enum(", "v#,", "z) }"),
    ("schema", "properties"): numbered("node N {", "p#: I32 ", "}"),
    ("schema", "equal properties"): Large("node N {", "p: I32 ", "}"),
    ("schema", "defaults"): numbered("node N {", "p#: I32 @default(1) @range(p#, 0..) ", "}"),
    ("schema", "items of a default"): Large("node N { a: [I32] @default([", "1, ", "1]) }"),
    ("schema", "nodes"): numbered("", "node N# {} "),
    ("schema", "equal nodes"): Large("", "node N {} "),
    ("schema", "edges"): numbered("node N {} ", "edge E#: N -> N "),
    ("schema", "interfaces"): numbered("", "interface I# {} "),
    ("schema", "implements"): numbered("interface I {} node N implements ", "I#, ", "I {}"),
    ("schema", "constraints"): Large("node N { a: I32 ", "@unique(a) ", "}"),
    ("schema", "columns of a constraint"): Large("node N { a: I32 @unique(", "a, ", "a) }"),
    ("schema", "pattern"): Large('node N { a: String @check(a, "', "a|", '") }'),
    ("schema", "errors"): Large("", "node n {} "),
    ("schema", "letters of no token"): Large("", "é"),
    ("schema", "line separators"): Large("", "\u2028"),
    ("query", "openings of comments"): Large("", "/*"),
    ("query", "negations"): Large("query q() { match { ", "not { "),
    ("query", "lists"): filtered("", "["),
    ("query", "closed lists"): filtered("", "[", closing="]"),
    ("query", "calls"): filtered("", "count("),
    ("query", "closed calls"): filtered("", "count(", "a", closing=")"),
    ("query", "ranks"): filtered("", "rrf(nearest($a.b, "),
    ("query", "searches"): filtered("", "search(search("),
    ("query", "list of numbers"): filtered("[", "1,", "1]"),
    ("query", "clauses"): Large("query q() { match { ", "$a e $b ", "} return { $a } }"),
    ("query", "projections"): Large("query q() { match { a = 1 } return { ", "a ", "} }"),
    ("query", "parameters"): numbered("query q(", "$p#: I32,", "$x: I32) { delete A where a = 1 }"),
    ("query", "equal parameters"): Large("query q(", "$p: I32,", "$p: I32) { delete A where a = 1 }"),
    ("query", "assignments"): Large("query q() { insert A { ", "a: 1 ", "} }"),
    ("query", "statements"): Large("query q() { ", "delete A where a = 1 ", "}"),
    ("query", "mixed statements"): Large("query q() { ", "insert A { a: 1 } delete A where a = 1 ", "}"),
    ("query", "queries"): Large("", "query q() { delete A where a = 1 } "),
    ("query", "broken queries"): Large("", "query q() { "),
    ("query", "marks"): Large("query q() ", "@"),
    ("query", "dollars"): Large("", "$"),
    ("query", "line ends without line feeds"): Large("", "query q() { delete A where a = 1 }\r"),
}


@pytest.mark.parametrize(("language", "name"), list(LONG_TOKENS))
def test_a_token_of_a_megabyte_is_answered(language: Language, name: str) -> None:
    data = LONG_TOKENS[language, name].text(MEGABYTE).encode()

    assert_lean(data, language)


@pytest.mark.parametrize(("language", "name"), list(MANY_TOKENS))
def test_thousands_of_tokens_are_answered(language: Language, name: str) -> None:
    large = MANY_TOKENS[language, name]

    check_bytes(large.text(SMALL_MAX // 2).encode(), language)


@pytest.mark.parametrize(("language", "name"), list(MANY_TOKENS))
def test_twice_as_many_tokens_take_twice_as_many_steps(language: Language, name: str) -> None:
    large = MANY_TOKENS[language, name]
    once, twice = (steps(large.text(size).encode(), language) for size in (STEPS_SIZE, 2 * STEPS_SIZE))

    assert twice <= STEPS_FACTOR_MAX * once + STEPS_FLOOR


@pytest.mark.fuzz
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("language", "name"), list(MANY_TOKENS))
def test_a_megabyte_of_tokens_is_answered_soon(language: Language, name: str) -> None:
    data = MANY_TOKENS[language, name].text(MEGABYTE).encode()

    check_soon(data, language)
    assert_lean(data, language)


def assert_lean(data: bytes, language: Language) -> None:
    """Fail if memory is out of proportion to a large input (Z3)."""
    tracemalloc.start()
    try:
        check_bytes(data, language)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < MEMORY_FLOOR + MEMORY_FACTOR_MAX * len(data), f"{peak} bytes for {len(data)}"


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_file_above_the_limit_is_refused_unread(language: Language) -> None:
    data = b" " * (SOURCE_BYTES_MAX + 1)

    with pytest.raises(ParseError, match=str(SOURCE_BYTES_MAX)) as refused:
        decode_source(data)

    check_error(refused.value)
    check_bytes(data[:-1], language)


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+$",
        "(a|a)*b",
        "(a|aa)+$",
        "(.*a){25}",
        "^(([a-z])+.)+[A-Z]([a-z])+$",
        "(x+x+)+y",
        "(?:a?){40}a{40}",
    ],
)
def test_a_pattern_that_ruins_a_backtracking_engine_is_just_a_pattern(pattern: str) -> None:
    """A backtracking engine would not come back before the run's time limit, nor in a thousand years."""
    value = "a" * 50_000 + "!"
    source = Source(f'node N {{ a: String @check(a, "{pattern}") }}')

    compile_schema(source)
    pc.match_substring_regex(pa.array([value]), pattern=pattern)


@pytest.mark.parametrize(
    "pattern",
    ["((a{1000}){1000}){1000}", "a{1001}", "(?=a)b", r"(a)\\1", "(?<!a)b", "(?>a)", "[", "(", "*", r"\\"],
)
def test_a_pattern_that_cannot_be_linear_is_a_parse_error(pattern: str) -> None:
    source = Source(f'node N {{ a: String @check(a, "{pattern}") }}')

    with pytest.raises(ParseError) as refused:
        compile_schema(source)

    check_error(refused.value)
