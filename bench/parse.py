"""How long the two languages take: lexing, parsing, checking, formatting, linting.

Every round runs every measurement once, so that a machine that is busy for a while is busy for all of them;
the median counts. The peer is a parser that lark builds from a grammar of the same query, measured in the
same rounds. Numbers are reported and never fail: run it with `make bench`, or alone with a number of rounds.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter

from lark import Lark

from omnigraph.catalog.bind import bind
from omnigraph.catalog.build import compile_schema
from omnigraph.catalog.lint import lint
from omnigraph.core.span import Source
from omnigraph.language.format import format_queries, format_schema
from omnigraph.language.parser import tokenize
from omnigraph.language.query_parser import parse_queries

HERE = Path(__file__).parent
BANK = HERE.parent / "examples" / "seedbank"
ROUNDS, WARM_UP = 60, 5
NODE_TYPES, EDGE_TYPES = 27, 33
QUERY_BAR_MS, SCHEMA_BAR_MS = 1.0, 30.0


@dataclass(slots=True)
class Measurement:
    """Something to run, how large it is, and the milliseconds it took in each round."""

    name: str
    size: str
    run: Callable[[], object]
    bar_ms: float | None = None
    times_ms: list[float] = field(default_factory=list)

    @property
    def median_ms(self) -> float:
        """The median of the rounds."""
        return median(self.times_ms)

    def verdict(self) -> str:
        """Return `pass` or `FAIL`, or nothing where no bar is set."""
        if self.bar_ms is None:
            return ""
        return "pass" if self.median_ms <= self.bar_ms else "FAIL"


def main() -> None:
    """Measure, and print the table."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    measurements = list(_measurements())
    for number in range(WARM_UP + rounds):
        for measurement in measurements:
            began = perf_counter()
            measurement.run()
            spent = (perf_counter() - began) * 1000
            if number >= WARM_UP:
                measurement.times_ms.append(spent)
    print(f"{'median of ' + str(rounds) + ' rounds':<34}{'size':<30}{'ms':>9}{'bar':>8}")
    for measurement in measurements:
        bar = "" if measurement.bar_ms is None else f"{measurement.bar_ms:.1f}"
        print(
            f"{measurement.name:<34}{measurement.size:<30}{measurement.median_ms:>9.3f}{bar:>8}"
            f"  {measurement.verdict()}".rstrip()
        )
    ours, peer = (
        next(m for m in measurements if m.name == name) for name in ("parse", "parse with lark, LALR")
    )
    print(f"\nlark / ours, parsing the same query: {peer.median_ms / ours.median_ms:.2f}")


def _measurements() -> Iterator[Measurement]:
    query = _source(HERE / "accessions.gq")
    schema = Source(_large_schema())
    catalog = compile_schema(_source(BANK / "schema.pg"))
    files = [_source(path) for path in sorted((BANK / "queries").glob("*.gq"))]
    queries = sum(len(parse_queries(file).queries) for file in files)
    peer = Lark((HERE / "query.lark").read_text(encoding="utf-8"), parser="lalr", lexer="contextual")
    query_size, schema_size = _size(query), _size(schema)

    def check_query() -> None:
        for parsed in parse_queries(query).queries:
            bind(parsed, catalog, query)

    def lint_example() -> None:
        example = compile_schema(_source(BANK / "schema.pg"))
        for file in files:
            assert not lint(example, file, query_path="", schema_source={}).errors

    yield Measurement("lex", query_size, lambda: tokenize(query))
    yield Measurement("parse", query_size, lambda: parse_queries(query))
    yield Measurement("parse with lark, LALR", query_size, lambda: peer.parse(query.text))
    yield Measurement("parse and type-check", query_size, check_query, QUERY_BAR_MS)
    yield Measurement("format", query_size, lambda: format_queries(query))
    yield Measurement("compile a schema", schema_size, lambda: compile_schema(schema), SCHEMA_BAR_MS)
    yield Measurement("format a schema", schema_size, lambda: format_schema(schema))
    yield Measurement("lint the example", f"{queries} queries, {len(files)} files", lint_example)


def _source(path: Path) -> Source:
    return Source(path.read_text(encoding="utf-8"))


def _size(source: Source) -> str:
    return f"{len(source.text.splitlines())} lines, {len(tokenize(source).tokens) - 1} tokens"


def _large_schema() -> str:
    """Return a schema of 600 lines with all that a type may have."""
    nodes = [
        f"""\
node Type{number} @description("Kind {number} of thing") implements Labelled {{
    code: String @key
    state: enum(new, active, paused, done) @index
    weight: F64?
    amount: I32
    tags: [String]?
    seen_at: DateTime? @index
    born: Date?
    email: String? @unique
    notes: String? @index
    notes_vector: Vector(64)? @embed(notes, model="acme/mini-64") @index
    @check(code, "^[A-Z]{{2}}-[0-9]+$")
    @range(amount, 0..1000)
    @unique(born, amount)
}}
"""
        for number in range(NODE_TYPES)
    ]
    edges = [
        f"edge Leads{number}: Type{number % NODE_TYPES} -> Type{(number + 7) % NODE_TYPES} @card(0..4) {{\n"
        "    since: Date?\n    @unique(src, dst)\n}\n"
        for number in range(EDGE_TYPES)
    ]
    return "\n".join(["interface Labelled {\n    label: String @index\n}\n", *nodes, *edges])


if __name__ == "__main__":
    main()
