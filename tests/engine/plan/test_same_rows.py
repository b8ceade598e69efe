"""A physical plan gives the rows that its query denotes (P1), on random matches, graphs and statistics."""

from collections import Counter
from collections.abc import Iterable, Iterator

from hypothesis import given
from hypothesis import strategies as st

from omnigraph.plan.optimize import plan_read
from omnigraph.plan.pattern import Pattern, is_anonymous, pattern_of
from omnigraph.plan.physical import AntiJoin, Close, Expand, FilterRows, Join, PlanOperator, Scan
from omnigraph.plan.written import written
from tests.engine.plan.matching import Data, Edge, clause_rows, counted, physical_rows
from tests.engine.plan.planning import ROWS, Counts
from tests.support.library import catalog
from tests.support.queries import bind_read, read

ENDS = {
    "wrote": ("a", "b"),
    "cites": ("b", "b"),
    "mentors": ("a", "a"),
    "storedOn": ("b", "s"),
}
TYPES = {"a": "Author", "b": "Book", "s": "Shelf"}
NUMBERS = {"a": [], "b": ["pages", "stock"], "s": ["slot"]}
TEXTS = {"a": ["name"], "b": ["title"], "s": ["room"]}
HOPS = ["", "", "{1,2}", "{2,2}", "{2,3}"]


@st.composite
def matches(draw: st.DrawFn) -> tuple[str, list[str], list[str]]:
    """Return a match block with the node variables and the edge variables that it binds."""
    clauses, nodes, edges = draw(blocks(st.just([]), "n", depth=2))
    return " ".join(clauses), nodes, edges


@st.composite
def blocks(
    draw: st.DrawFn, outer: st.SearchStrategy[list[str]], prefix: str, depth: int
) -> tuple[list[str], list[str], list[str]]:
    outside = draw(outer)
    pool = [f"{letter}{prefix}{number}" for letter in "aabbbs" for number in (1, 2)]
    bound = dict.fromkeys(name for name in draw(st.lists(st.sampled_from(pool), min_size=1, max_size=2)))
    clauses = [f"${name}: {TYPES[name[0]]}" for name in bound]
    edges: list[str] = []
    for number in range(draw(st.integers(0, 4))):
        word = draw(st.sampled_from(sorted(ENDS)))
        left, right = (
            draw(st.sampled_from([n for n in (*pool, *outside) if n[0] == letter] + ["_"] * 2))
            for letter in ENDS[word]
        )
        bound.update(dict.fromkeys(n for n in (left, right) if n != "_"))
        is_same = ENDS[word][0] == ENDS[word][1]
        spelled = f"<{word}>" if is_same and draw(st.booleans()) else word
        if draw(st.integers(0, 3)) == 0 and word == "cites":
            edges.append(f"w{prefix}{number}")
            clauses.append(f"${left} ${edges[-1]}:{spelled} ${right}")
        else:
            clauses.append(f"${left} {spelled}{draw(st.sampled_from(HOPS)) if is_same else ''} ${right}")
    known = sorted({*bound, *outside})
    clauses = draw(st.permutations(clauses))
    clauses += [draw(conditions(known, edges)) for _ in range(draw(st.integers(0, 3)))]
    if depth and draw(st.booleans()):
        inside, _, _ = draw(blocks(st.just(known), f"{prefix}x", depth - 1))
        inside.append(draw(conditions([draw(st.sampled_from(known))], [])))  # mentions the outside (T9)
        clauses.append(f"not {{ {' '.join(inside)} }}")
    return clauses, known, edges


@st.composite
def conditions(draw: st.DrawFn, nodes: list[str], edges: list[str]) -> str:
    numbers = [f"${n}.{p}" for n in nodes for p in NUMBERS[n[0]]] + [f"${e}.page" for e in edges]
    texts = [f"${n}.{p}" for n in nodes for p in TEXTS[n[0]]]
    is_text = not numbers or draw(st.booleans())
    values = [*texts, '"x"', '"y"'] if is_text else [*numbers, "1", "2"]
    left = draw(st.sampled_from(texts if is_text else numbers))
    return f"{left} {draw(st.sampled_from(['=', '=', '!=', '<']))} {draw(st.sampled_from(values))}"


@st.composite
def graphs(draw: st.DrawFn) -> Data:
    nodes = {type_name: [f"{type_name}{n}" for n in range(3)] for type_name in TYPES.values()}
    properties: dict[str, dict[str, str | int | None]] = {}
    number, text = st.sampled_from([None, 1, 2]), st.sampled_from(["x", "y"])
    for letter, type_name in TYPES.items():
        for node in nodes[type_name]:
            properties[node] = {name: draw(number) for name in NUMBERS[letter]}
            properties[node] |= {name: draw(text) for name in TEXTS[letter]}
    edges: dict[str, list[Edge]] = {}
    for word, ends in ENDS.items():
        edge_type = word[0].upper() + word[1:]
        sources, targets = (st.sampled_from(nodes[TYPES[letter]]) for letter in ends)
        ways = st.tuples(sources, targets)
        if ends[0] == ends[1]:
            ways |= sources.map(lambda node: (node, node))
        pairs = draw(st.lists(ways, max_size=6))
        edges[edge_type] = [Edge(f"{edge_type}{i}", *pair) for i, pair in enumerate(pairs)]
        properties |= {edge.id: {"page": draw(number)} for edge in edges[edge_type]}
    return Data(nodes, edges, properties)


STATISTICS = st.builds(
    Counts, st.fixed_dictionaries({key: st.sampled_from([0, 1, 10, 1_000, 100_000]) for key in ROWS})
)


def tails(nodes: list[str], edges: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield ends of a query, each with the variables whose values its aggregates read."""
    yield "return { 1 }", []
    for name in nodes:
        yield f"return {{ count(${name}) as n }}", []
        yield f"return {{ ${name}, count(${nodes[0]}) as n }}", [name]
        yield f"return {{ max(${name}.{TEXTS[name[0]][0]}) as n }}", [name]
    for name in edges:
        yield f"return {{ ${nodes[0]}, sum(${name}.page) as n }}", [nodes[0], name]
        yield f"return {{ max(${name}.page) as n, count(${name}) as m }}", [name]


@given(matches(), graphs(), STATISTICS, st.data())
def test_a_physical_plan_gives_the_rows_of_its_query(
    match: tuple[str, list[str], list[str]], data: Data, counts: Counts, draws: st.DataObject
) -> None:
    clauses, nodes, edges = match
    tail, compared = draws.draw(st.sampled_from(list(tails(nodes, edges))))
    bound = bind_read(read(clauses, tail))

    planned = plan_read(bound, catalog(), counts)

    assert conditions_of(planned.pipeline) == conditions_of_pattern(pattern_of(bound))
    assert all(estimate >= 0 for estimate in estimates(planned.pipeline))
    expected = [(row, 1) for row in clause_rows(data, bound.clauses)]
    got = physical_rows(data, planned.pipeline)
    if "count(" in tail or "sum(" in tail:
        assert counted(got, compared) == counted(expected, compared)
    elif "max(" in tail:
        assert counted(got, compared).keys() == counted(expected, compared).keys()
    else:
        names = [name for name in planned.variables if not is_anonymous(name)]
        assert counted(got, names) == counted(expected, names)


def conditions_of(operators: Iterable[PlanOperator]) -> Counter[frozenset[str]]:
    """Return every condition of a plan, keys included, as the set of its words: sides may be exchanged."""
    found: Counter[frozenset[str]] = Counter()
    for operator in operators:
        match operator:
            case Scan(conditions=own) | FilterRows(conditions=own) | Close(edge_conditions=own):
                found += _words(written(condition) for condition in own)
            case Join(scan, keys):
                found += _words(written(condition) for condition in scan.conditions)
                found += _words(f"{written(key.own)} = {written(key.other)}" for key in keys)
            case Expand():
                own = (*operator.dst_conditions, *operator.edge_conditions)
                found += _words(written(condition) for condition in own)
            case AntiJoin(inner=inner):
                found += conditions_of(inner)
    return found


def conditions_of_pattern(pattern: Pattern) -> Counter[frozenset[str]]:
    found = _words(written(condition) for condition in pattern.conditions)
    for negation in pattern.negations:
        found += conditions_of_pattern(negation.pattern)
    return found


def _words(texts: Iterable[str]) -> Counter[frozenset[str]]:
    return Counter(frozenset(text.split()) for text in texts)


def estimates(operators: Iterable[PlanOperator]) -> Iterator[float]:
    for operator in operators:
        yield operator.estimate
        if isinstance(operator, AntiJoin):
            yield from estimates(operator.inner)
