"""Random files of the two languages, as a person in a great hurry would type them.

A file is a list of words: pieces of text that nothing may cut. `scattered` puts white space and comments
between them.
"""

from collections.abc import Sequence

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

Words = list[str]

# Words


def word(*choices: str) -> SearchStrategy[Words]:
    return st.sampled_from([[choice] for choice in choices])


def row(*parts: str | SearchStrategy[Words]) -> SearchStrategy[Words]:
    """Return all parts, one behind the other."""
    strategies = [word(part) if isinstance(part, str) else part for part in parts]
    return st.tuples(*strategies).map(lambda found: [text for words in found for text in words])


def maybe(*parts: str | SearchStrategy[Words]) -> SearchStrategy[Words]:
    return st.one_of(st.just([]), row(*parts))


def several(
    part: SearchStrategy[Words], *, least: int = 0, most: int = 3, separator: Words | None = None
) -> SearchStrategy[Words]:
    def join(found: list[Words]) -> Words:
        joined: Words = []
        for index, words in enumerate(found):
            joined += (separator or []) if index else []
            joined += words
        return joined

    return st.lists(part, min_size=least, max_size=most).map(join)


def listed(part: SearchStrategy[Words], *, least: int = 1, most: int = 3) -> SearchStrategy[Words]:
    return several(part, least=least, most=most, separator=[","])


NAMES = word(
    "a", "code", "_x1", "as", "not", "node", "edge", "query", "order", "limit", "enum", "desc", "where", "set"
)
TYPES = word("Book", "A", "Vector", "String_2", "CamelCase")
STRINGS = word('""', '"a"', r'"\"\\\n\t"', '"two\n  lines \t\n"', '"// no comment"', '"/* nor this"', '"é😀"')
LONG_STRINGS = word('"' + "long " * 12 + '"', '"' + "longer " * 14 + '"')
INTEGERS = word("0", "7", "007", "4294967295")
DECIMALS = word("1.50", "0.0", "12.345")
LITERALS = st.one_of(STRINGS, INTEGERS, DECIMALS, word("true", "false"))
SCALARS = word("String", "Blob", "Bool", "I32", "I64", "U32", "U64", "F32", "F64", "Date", "DateTime")

# Schemas

ENUM_VALUES = word("soft-back", "2nd", "-", "a--1", "12", "b_", "-x", "Upper", "3-D4x", "true")
NUMBERS = word("0", "-1", "2.50", "-0.5")
BASE_TYPES = st.one_of(
    SCALARS,
    row("[", SCALARS, "]"),
    row("Vector", "(", INTEGERS, ")"),
    row("enum", "(", listed(ENUM_VALUES), ")"),
)
ANNOTATION_NAMES = word("key", "index", "description", "unit", "x")
ARGUMENTS = st.one_of(NAMES, LITERALS, LONG_STRINGS)
ANNOTATIONS = st.one_of(
    row("@", ANNOTATION_NAMES),
    row("@", word("embed", "unit"), "(", ARGUMENTS, several(row(",", NAMES, "=", LITERALS), most=2), ")"),
)
RANGES = st.one_of(row(NUMBERS, ".."), row("..", NUMBERS), row(NUMBERS, "..", NUMBERS))
CONSTRAINTS = row(
    "@", word("key", "unique", "index", "range", "check"), "(", listed(st.one_of(NAMES, STRINGS, RANGES)), ")"
)
PROPERTIES = row(NAMES, ":", BASE_TYPES, maybe("?"), several(ANNOTATIONS, most=2))
BODIES = row("{", several(st.one_of(PROPERTIES, CONSTRAINTS)), "}")
INTERFACES = row("interface", TYPES, "{", several(PROPERTIES), "}")
NODES = row("node", TYPES, several(ANNOTATIONS), maybe("implements", listed(TYPES)), BODIES)
CARDINALITIES = row("@card", "(", INTEGERS, "..", maybe(INTEGERS), ")")
EDGES = row(
    "edge", TYPES, ":", TYPES, "->", TYPES, maybe(CARDINALITIES), several(ANNOTATIONS, most=2), maybe(BODIES)
)
SCHEMAS = several(st.one_of(INTERFACES, NODES, EDGES))

# Queries

VARIABLES = word("$a", "$b", "$_", "$order")
MOMENTS = row(word("date", "datetime"), "(", STRINGS, ")")
QUERY_LITERALS = st.recursive(
    st.one_of(LITERALS, MOMENTS), lambda inner: row("[", listed(inner, least=0), "]"), max_leaves=4
)
VALUES = st.one_of(QUERY_LITERALS, VARIABLES, row("now", "(", ")"), LONG_STRINGS)
ACCESSES = row(VARIABLES, ".", NAMES)
SIMPLE = st.one_of(VALUES, ACCESSES, NAMES)
NEAREST = row("nearest", "(", ACCESSES, ",", SIMPLE, ")")
BM25 = row("bm25", "(", SIMPLE, ",", SIMPLE, ")")
RANKS = st.one_of(NEAREST, BM25)
TEXT_MATCHES = st.one_of(
    row(word("search", "fuzzy", "match_text"), "(", SIMPLE, ",", SIMPLE, ")"),
    row("fuzzy", "(", SIMPLE, ",", SIMPLE, ",", INTEGERS, ")"),
)
CALLS = st.one_of(
    row(word("count", "sum", "avg", "min", "max"), "(", SIMPLE, ")"),
    BM25,
    row("rrf", "(", RANKS, ",", RANKS, maybe(",", INTEGERS), ")"),
    TEXT_MATCHES,
)
EXPRESSIONS = st.one_of(SIMPLE, CALLS)

PAIRS = row(NAMES, ":", VALUES)
EDGE_WORDS = word("wrote", "storedOn", "as", "contains")
TRAVERSED = st.one_of(EDGE_WORDS, row("<", EDGE_WORDS, ">"))
HOPS = row("{", INTEGERS, ",", maybe(INTEGERS), "}")
COMPARISONS = word(">=", "<=", "!=", ">", "<", "=")
_SIMPLE_CLAUSES = st.one_of(
    row(VARIABLES, ":", TYPES, maybe("{", listed(PAIRS, most=4), maybe(","), "}")),
    row(VARIABLES, maybe(VARIABLES, ":"), TRAVERSED, maybe(HOPS), VARIABLES),
    row(EXPRESSIONS, COMPARISONS, EXPRESSIONS),
    row(st.one_of(ACCESSES, STRINGS, INTEGERS), word("contains", "starts_with"), EXPRESSIONS),
    TEXT_MATCHES,
)


@st.composite
def simple_clauses(draw: st.DrawFn) -> Words:
    """Draw a clause without others in it; has a name because hypothesis prints what recursion starts from."""
    return draw(_SIMPLE_CLAUSES)


CLAUSES = st.recursive(
    simple_clauses(), lambda inner: row("not", "{", several(inner, least=1, most=2), "}"), max_leaves=4
)


@st.composite
def projections(draw: st.DrawFn) -> Words:
    """Draw projections with a comma where `x, as` needs it, and elsewhere by chance."""
    words: Words = []
    needs_comma = False
    for _ in range(draw(st.integers(1, 4))):
        expression, alias = draw(EXPRESSIONS), draw(maybe("as", NAMES))
        has_comma = bool(words) and (draw(st.booleans()) or (needs_comma and expression[0] == "as"))
        words += [*([","] if has_comma else []), *expression, *alias]
        needs_comma = not alias
    return words + draw(maybe(","))


ORDERINGS = st.one_of(NEAREST, row(EXPRESSIONS, st.one_of(st.just([]), word("asc", "desc"))))
READS = row(
    *("match", "{", several(CLAUSES, least=1), "}"),
    *("return", "{", projections(), "}"),
    maybe("order", "{", listed(ORDERINGS), "}"),
    maybe("limit", INTEGERS),
)
ASSIGNMENTS = row("{", several(row(PAIRS, maybe(",")), least=1, most=5), "}")
PREDICATES = row("where", NAMES, COMPARISONS, VALUES)
BUILDING = st.one_of(row("insert", TYPES, ASSIGNMENTS), row("update", TYPES, "set", ASSIGNMENTS, PREDICATES))
MUTATIONS = st.one_of(several(BUILDING, least=1), several(row("delete", TYPES, PREDICATES), least=1))
PARAMETER_TYPES = row(
    st.one_of(SCALARS, row("[", SCALARS, "]"), row("Vector", "(", INTEGERS, ")")), maybe("?")
)
PARAMETERS = st.lists(PARAMETER_TYPES, max_size=5).map(
    lambda types: [
        text
        for index, words in enumerate(types)
        for text in ([","] if index else []) + [f"$parameter_{index}", ":", *words]
    ]
)
TEXTS = st.one_of(STRINGS, LONG_STRINGS)
HEAD_TEXTS = st.permutations(["@description", "@instruction"]).flatmap(
    lambda names: row(*(maybe(name, "(", TEXTS, ")") for name in names))
)
QUERIES = several(
    row("query", NAMES, "(", PARAMETERS, ")", HEAD_TEXTS, "{", st.one_of(READS, MUTATIONS), "}"), most=2
)

# White space and comments

_MARKS = frozenset("(){}[],:@")
COMMENTS = st.sampled_from(
    [
        "// one\n",
        "//\n",
        "// two  \n",
        "// \ttab\r\n",
        '// "quoted {\n',
        "/**/",
        "/* a */",
        "/* b\n * c \n\t*/",
        "/* // */",
    ]
)
GAPS = st.lists(
    st.one_of(st.sampled_from([" ", "\n", "\n\n", "\t", "\r\n", "\n \n\n"]), COMMENTS), max_size=4
)
QUIET_GAPS = st.sampled_from(["", " ", "\n"])


def scattered(words: SearchStrategy[Words]) -> SearchStrategy[str]:
    """Return the words with white space and comments between them; in most places nothing special."""
    gap = st.one_of(QUIET_GAPS, QUIET_GAPS, QUIET_GAPS, GAPS.map("".join))

    def scatter(found: Words) -> SearchStrategy[str]:
        gaps = st.lists(gap, min_size=len(found) + 1, max_size=len(found) + 1)
        return gaps.map(lambda between: _interleave(found, between))

    return words.flatmap(scatter)


def _interleave(words: Words, gaps: Sequence[str]) -> str:
    text = gaps[0]
    for index, following in enumerate(words):
        joins = index > 0 and not gaps[index]
        if joins and words[index - 1][-1] not in _MARKS and following[0] not in _MARKS:
            text += " "
        text += following + gaps[index + 1]
    return text


SCHEMA_TEXTS = scattered(SCHEMAS)
QUERY_TEXTS = scattered(QUERIES)
