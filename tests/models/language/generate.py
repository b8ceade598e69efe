"""Random texts of the two languages: files that are valid, and files that almost are.

A text is a function of its language and its seed. Valid files are sentences of the grammar, so they say
`node node {` wherever position and not the word decides; near misses are such sentences with a few tokens or
characters changed, and happen to be valid now and then.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Literal, TypeAlias

Language: TypeAlias = Literal["schema", "query"]
Sentence: TypeAlias = Callable[[], list[str]]
LANGUAGES: tuple[Language, ...] = ("schema", "query")


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


SCALARS = _words("String Blob Bool I32 I64 U32 U64 F32 F64 DateTime Date")
CONSTRAINTS = _words("key unique index range check")
COMPARISONS = _words(">= <= != > < =")
WORD_OPERATORS = _words("starts_with contains")
AGGREGATES = _words("count sum avg min max")
WORDS = {
    "schema": _words(
        "interface node edge implements enum card true false key unique index range check default external"
    ),
    "query": _words("""
        query match not return as order asc desc limit now nearest search fuzzy match_text bm25 rrf datetime
        date true false insert update set delete where description instruction null count sum avg min max
        starts_with contains
    """),
}
SYMBOLS = {
    "schema": _words("{ } ( ) [ ] : , -> .. ? @ = - . @card / *"),
    "query": _words("{ } ( ) [ ] : , . ? $ @ - @description @instruction / >= <= != > < ="),
}
NAMES = _words("a b title _ _x __t x1 aB_9 nodes not_ as1 type cardinal keyed")
TYPE_NAMES = _words("A Book Shelf2 X_y Node Stringy Vector String Date True")
ENUM_VALUES = _words("paper soft-back 2nd x_1 - -- 0 1e3 A _ true enum a-")
ODD_TOKENS = _words(r"""
    9223372036854775808 18446744073709551615 18446744073709551616 1e3 3abc 1. .5 -1 -1.5
    " "\q" "\ /* */ // # $ $__x $A == <> ... &&
""")
SPACES = (" ", " ", " ", "\n", "\t", "\r\n", "\r", "   ")
COMMENTS = (*_words('/**/ /*c*/ /***/ /*"*/ /*//*/ /*é*/'), "/*\n*/", "// c\n", '// "\n', "// /*\n", "//\n")
STRING_PARTS = (*_words(r"""a é // /* */ { } @ $x \" \\ \n \r \t 😀 '"""), " ", "\n")
CHARACTERS = "abZ09_$@#\"\\'/*-+.:,;?!<>=()[]{}|&%~`^ \t\r\n\f\v\0é٣\u00a0\u2028\ufeff😀"


def valid_text(language: Language, seed: int) -> str:
    """Return a file that the language takes."""
    rng = Random(f"valid {language} {seed}")
    return spell(rng, tokens_of(language, rng))


def near_miss(language: Language, seed: int) -> str:
    """Return a file that differs from a valid one in a few places."""
    rng = Random(f"near miss {language} {seed}")
    tokens = tokens_of(language, rng)
    glue = rng.random() < 0.25
    if not glue or rng.random() < 0.5:
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            rng.choice(TOKEN_EDITS)(rng, tokens, language)
    text = spell(rng, tokens, forgetful=0.2 if glue else 0.0)
    if rng.random() < 0.25:
        text = _edit_character(rng, text)
    return text


def tokens_of(language: Language, rng: Random) -> list[str]:
    """Return the tokens of a valid file."""
    return SchemaWriter(rng).file() if language == "schema" else QueryWriter(rng).file()


def spell(rng: Random, tokens: list[str], *, forgetful: float = 0.0) -> str:
    """Return the tokens as text, with white space and comments in between.

    Words and numbers are kept apart; `forgetful` is how often this is left out.
    """
    style = rng.choice((0.0, 0.1, 0.5))  # how often something stands where nothing has to
    parts = [_gap(rng)] if rng.random() < style else []
    for index, token in enumerate(tokens):
        parts.append(token)
        following = tokens[index + 1] if index + 1 < len(tokens) else ""
        must = following and _is_word(token[-1]) and _is_word(following[0])
        if (must and rng.random() >= forgetful) or rng.random() < style:
            parts.append(_gap(rng))
    if rng.random() < 0.1:
        parts.append("// the end")
    return "".join(parts)


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _gap(rng: Random) -> str:
    pieces = [
        rng.choice(COMMENTS if rng.random() < 0.15 else SPACES) for _ in range(rng.choice((1, 1, 1, 2, 3)))
    ]
    return "".join(pieces)


# Edits


def _delete(rng: Random, tokens: list[str], language: Language) -> None:
    if tokens:
        del tokens[rng.randrange(len(tokens))]


def _duplicate(rng: Random, tokens: list[str], language: Language) -> None:
    if tokens:
        index = rng.randrange(len(tokens))
        tokens.insert(index, tokens[index])


def _swap(rng: Random, tokens: list[str], language: Language) -> None:
    if len(tokens) > 1:
        index = rng.randrange(len(tokens) - 1)
        tokens[index], tokens[index + 1] = tokens[index + 1], tokens[index]


def _replace(rng: Random, tokens: list[str], language: Language) -> None:
    if tokens:
        tokens[rng.randrange(len(tokens))] = any_token(rng, language)


def _insert(rng: Random, tokens: list[str], language: Language) -> None:
    tokens.insert(rng.randrange(len(tokens) + 1), any_token(rng, language))


def _move(rng: Random, tokens: list[str], language: Language) -> None:
    if tokens:
        token = tokens.pop(rng.randrange(len(tokens)))
        tokens.insert(rng.randrange(len(tokens) + 1), token)


TOKEN_EDITS: tuple[Callable[[Random, list[str], Language], None], ...]
TOKEN_EDITS = (_delete, _duplicate, _swap, _replace, _insert, _move)


def any_token(rng: Random, language: Language) -> str:
    """Return a token of the language, or one that only looks like it."""
    writer = SchemaWriter(rng)
    families: tuple[Callable[[], str], ...] = (
        lambda: rng.choice(WORDS[language]),
        lambda: rng.choice(SYMBOLS[language]),
        lambda: rng.choice(SYMBOLS[language]),
        writer.name,
        writer.type_name,
        writer.string,
        writer.integer,
        writer.decimal,
        lambda: "$" + rng.choice(NAMES),
        lambda: rng.choice(SCALARS),
        lambda: rng.choice(ODD_TOKENS),
    )
    return rng.choice(families)()


def _edit_character(rng: Random, text: str) -> str:
    index = rng.randrange(len(text) + 1)
    kept_from = index + (rng.random() < 0.5)
    return text[:index] + (rng.choice(CHARACTERS) if rng.random() < 0.7 else "") + text[kept_from:]


# Sentences


class _Writer:
    """What sentences of both languages are made of."""

    words: tuple[str, ...] = ()

    def __init__(self, rng: Random) -> None:
        self.rng = rng

    def some(self, sentence: Sentence, low: int, high: int) -> list[str]:
        """Return several sentences, one behind the other."""
        return [token for _ in range(self.rng.randint(low, high)) for token in sentence()]

    def listed(self, sentence: Sentence, low: int, high: int) -> list[str]:
        """Return several sentences with commas in between."""
        return self.some(lambda: [",", *sentence()], low, high)[1:]

    def maybe(self, sentence: Sentence, share: float = 0.5) -> list[str]:
        return sentence() if self.rng.random() < share else []

    def any_of(self, sentences: Sequence[Sentence]) -> Sentence:
        """Return a sentence that is one of these, chosen anew each time."""

        def sentence() -> list[str]:
            return self.rng.choice(sentences)()

        return sentence

    def name(self, *, but: tuple[str, ...] = ()) -> str:
        pool = NAMES if self.rng.random() < 0.6 else self.words or NAMES
        return self.rng.choice([word for word in pool if word not in but])

    def type_name(self) -> str:
        return self.rng.choice(TYPE_NAMES)

    def string(self) -> str:
        return '"' + "".join(self.rng.choices(STRING_PARTS, k=self.rng.randint(0, 4))) + '"'

    def integer(self) -> str:
        return self.rng.choice(
            ("0", "1", "7", "007", "64", str(self.rng.randrange(2**63)), "9223372036854775807")
        )

    def decimal(self) -> str:
        return self.rng.choice(
            ("0.0", "1.5", "00.10", f"{self.rng.randrange(10**6)}.{self.rng.randrange(10**12)}")
        )


class SchemaWriter(_Writer):
    """Sentences of the schema language."""

    words = WORDS["schema"]

    def file(self) -> list[str]:
        declarations = (self.interface, self.node, self.node, self.edge, self.edge)
        return self.some(self.any_of(declarations), 0, 5)

    def interface(self) -> list[str]:
        return ["interface", self.type_name(), "{", *self.some(self.property, 0, 3), "}"]

    def node(self) -> list[str]:
        implements = self.maybe(lambda: ["implements", *self.listed(lambda: [self.type_name()], 1, 3)])
        head = ["node", self.type_name(), *self.some(self.annotation, 0, 2), *implements]
        return [*head, *self.body()]

    def edge(self) -> list[str]:
        head = ["edge", self.type_name(), ":", self.type_name(), "->", self.type_name()]
        return [
            *head,
            *self.maybe(self.cardinality),
            *self.some(self.annotation, 0, 2),
            *self.maybe(self.body),
        ]

    def cardinality(self) -> list[str]:
        return ["@card", "(", self.integer(), "..", *self.maybe(lambda: [self.integer()]), ")"]

    def body(self) -> list[str]:
        items = (self.property, self.property, self.constraint)
        return ["{", *self.some(self.any_of(items), 0, 4), "}"]

    def property(self) -> list[str]:
        types = (self.list_type, self.enum, self.vector, self.scalar, self.scalar)
        nullable = self.maybe(lambda: ["?"], 0.3)
        return [self.name(), ":", *self.rng.choice(types)(), *nullable, *self.some(self.annotation, 0, 2)]

    def list_type(self) -> list[str]:
        return ["[", *self.scalar(), "]"]

    def enum(self) -> list[str]:
        return ["enum", "(", *self.listed(lambda: [self.rng.choice(ENUM_VALUES)], 1, 4), ")"]

    def vector(self) -> list[str]:
        return ["Vector", "(", self.integer(), ")"]

    def scalar(self) -> list[str]:
        return [self.rng.choice(SCALARS)]

    def constraint(self) -> list[str]:
        return ["@", self.rng.choice(CONSTRAINTS), "(", *self.listed(self.constraint_argument, 1, 3), ")"]

    def constraint_argument(self) -> list[str]:
        arguments = (self.range, lambda: [self.string()], lambda: [self.name()], lambda: [self.name()])
        return self.rng.choice(arguments)()

    def range(self) -> list[str]:
        if self.rng.random() < 0.3:
            return ["..", self.number()]
        return [self.number(), "..", *self.maybe(lambda: [self.number()])]

    def number(self) -> str:
        sign = "-" if self.rng.random() < 0.3 else ""
        return sign + self.rng.choice((self.integer, self.decimal))()

    def annotation(self) -> list[str]:
        if self.rng.random() < 0.4:
            return ["@", self.name(but=("card",))]
        if self.rng.random() < 0.3:
            return ["@", "default", "(", *self.rng.choice((self.default_list, self.default_value))(), ")"]
        if self.rng.random() < 0.1:
            return ["@", "external", "(", *self.listed(lambda: [self.string()], 1, 3), ")"]
        argument = [self.literal() if self.rng.random() < 0.6 else self.name()]
        keywords = self.some(lambda: [",", self.name(), "=", self.literal()], 0, 2)
        return [
            "@",
            self.name(but=("card", "default", "external", *CONSTRAINTS)),
            "(",
            *argument,
            *keywords,
            ")",
        ]

    def default_list(self) -> list[str]:
        return ["[", *self.listed(lambda: [self.signed()], 0, 3), "]"]

    def default_value(self) -> list[str]:
        return [self.signed() if self.rng.random() < 0.7 else self.name()]

    def signed(self) -> str:
        return self.rng.choice((self.number, self.literal))()

    def literal(self) -> str:
        return self.rng.choice((self.string(), self.integer(), self.decimal(), "true", "false"))


class QueryWriter(_Writer):
    """Sentences of the query language."""

    words = WORDS["query"]

    def file(self) -> list[str]:
        return self.some(self.query, 0, 3)

    def query(self) -> list[str]:
        names = self.rng.sample(
            [name for name in (*NAMES, *self.words) if name != "__t"], self.rng.randint(0, 3)
        )
        parameters = [token for name in names for token in (",", f"${name}", ":", *self.parameter_type())][1:]
        annotations = self.rng.sample(("@description", "@instruction"), self.rng.randint(0, 2))
        texts = [token for annotation in annotations for token in (annotation, "(", self.string(), ")")]
        body = self.rng.choice((self.read, self.read, self.mutation))
        return ["query", self.name(), "(", *parameters, ")", *texts, "{", *body(), "}"]

    def parameter_type(self) -> list[str]:
        scalar = self.rng.choice(SCALARS)
        types = (["[", scalar, "]"], [scalar], ["Vector", "(", self.integer(), ")"])
        return [*self.rng.choice(types), *self.maybe(lambda: ["?"], 0.3)]

    def read(self) -> list[str]:
        order = self.maybe(lambda: ["order", "{", *self.listed(self.ordering, 1, 3), "}"])
        limit = self.maybe(lambda: ["limit", self.rng.choice((self.integer(), "18446744073709551615"))])
        return ["match", *self.block(2), *self.returned(), *order, *limit]

    def block(self, depth: int) -> list[str]:
        clauses = [self.binding, self.traversal, self.traversal, self.filter, self.filter, self.text_match]
        if depth:
            clauses.append(lambda: ["not", *self.block(depth - 1)])
        return ["{", *self.some(self.any_of(clauses), 1, 3), "}"]

    def variable(self) -> str:
        return "$" + self.name(but=("__t",))

    def binding(self) -> list[str]:
        def match() -> list[str]:
            return [self.name(), ":", *self.value()]

        matches = self.maybe(lambda: ["{", *self.listed(match, 1, 3), *self.maybe(lambda: [","], 0.2), "}"])
        return [self.variable(), ":", self.type_name(), *matches]

    def traversal(self) -> list[str]:
        edge_variable = self.maybe(lambda: [self.variable(), ":"], 0.3)
        word = self.name(but=("not",))
        edge = ["<", word, ">"] if self.rng.random() < 0.3 else [word]
        hops = self.maybe(lambda: ["{", self.integer(), ",", *self.maybe(lambda: [self.integer()]), "}"], 0.3)
        return [self.variable(), *edge_variable, *edge, *hops, self.variable()]

    def filter(self) -> list[str]:
        left = self.expression()
        is_variable = len(left) == 1 and left[0].startswith("$")  # `$a contains` would be a traversal
        is_operator = left[0] in WORD_OPERATORS  # behind a search this word may be its operator
        words = () if is_variable or is_operator else WORD_OPERATORS
        if is_variable and self.rng.random() < 0.2:
            return [*left, self.rng.choice(WORD_OPERATORS), self.variable(), ".", self.name()]
        return [*left, self.rng.choice((*COMPARISONS, *words)), *self.expression()]

    def text_match(self, depth: int = 1) -> list[str]:
        function = self.rng.choice(("search", "fuzzy", "match_text"))
        edits = self.maybe(lambda: [",", *self.expression(depth)], 0.4) if function == "fuzzy" else []
        return [function, "(", *self.expression(depth), ",", *self.expression(depth), *edits, ")"]

    def returned(self) -> list[str]:
        tokens = ["return", "{"]
        ended = True  # whether `as` would begin a projection here
        for _ in range(self.rng.randint(1, 4)):
            expression = self.expression()
            while expression[0] == "as" and not ended:
                expression = self.expression()
            alias = self.maybe(lambda: ["as", self.name()], 0.4)
            comma = self.maybe(lambda: [","], 0.5)
            ended = bool(alias or comma)
            tokens += [*expression, *alias, *comma]
        return [*tokens, "}"]

    def ordering(self) -> list[str]:
        expression = self.expression()
        if expression[:2] == ["nearest", "("]:
            return expression
        return [*expression, *self.rng.choice(([], ["asc"], ["desc"]))]

    def expression(self, depth: int = 2) -> list[str]:
        leaves: tuple[Sentence, ...] = (
            lambda: [self.variable(), ".", self.name()],
            lambda: [self.variable(), ".", self.name()],
            lambda: [self.variable()],
            lambda: [self.name(but=("true", "false"))],
            self.literal,
            lambda: ["now", "(", ")"],
        )
        calls: tuple[Sentence, ...] = (
            lambda: self.nearest(depth - 1),
            lambda: self.text_match(depth - 1),
            lambda: self.bm25(depth - 1),
            lambda: self.rrf(depth - 1),
            lambda: [self.rng.choice(AGGREGATES), "(", *self.expression(depth - 1), ")"],
        )
        return self.rng.choice(calls if depth and self.rng.random() < 0.3 else leaves)()

    def nearest(self, depth: int) -> list[str]:
        return ["nearest", "(", self.variable(), ".", self.name(), ",", *self.expression(depth), ")"]

    def bm25(self, depth: int) -> list[str]:
        return ["bm25", "(", *self.expression(depth), ",", *self.expression(depth), ")"]

    def rrf(self, depth: int) -> list[str]:
        ranks = [self.rng.choice((self.nearest, self.bm25))(depth) for _ in range(2)]
        k = self.maybe(lambda: [",", *self.expression(depth)], 0.4)
        return ["rrf", "(", *ranks[0], ",", *ranks[1], *k, ")"]

    def value(self) -> list[str]:
        return self.rng.choice((self.literal, lambda: [self.variable()], lambda: ["now", "(", ")"]))()

    def literal(self, depth: int = 2) -> list[str]:
        if depth and self.rng.random() < 0.2:
            return ["[", *self.listed(lambda: self.literal(depth - 1), 0, 3), "]"]
        if self.rng.random() < 0.2:
            return [self.rng.choice(("date", "datetime")), "(", self.string(), ")"]
        return [self.rng.choice((self.string(), self.integer(), self.decimal(), "true", "false"))]

    def mutation(self) -> list[str]:
        if self.rng.random() < 0.4:
            return self.some(self.delete, 1, 3)
        return self.some(self.any_of((self.insert, self.update)), 1, 3)

    def insert(self) -> list[str]:
        return ["insert", self.type_name(), "{", *self.some(self.assignment, 1, 3), "}"]

    def update(self) -> list[str]:
        assignments = self.some(self.assignment, 1, 3)
        return ["update", self.type_name(), "set", "{", *assignments, "}", "where", *self.predicate()]

    def delete(self) -> list[str]:
        return ["delete", self.type_name(), "where", *self.predicate()]

    def assignment(self) -> list[str]:
        return [self.name(), ":", *self.value(), *self.maybe(lambda: [","])]

    def predicate(self) -> list[str]:
        return [self.name(), self.rng.choice(COMPARISONS), *self.value()]
