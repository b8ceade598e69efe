"""The order of a pattern's operators: where to start, what to follow next, and where conditions belong.

O1  Every variable is introduced once, before anything mentions it. Every traversal, condition and negation of
    the pattern is in the pipeline once.
O2  A traversal that is not reversible is followed from its left end, or closed.
O3  The order is a function of pattern, catalog and statistics: ties go to what comes first in the query.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain
from math import prod

from omnigraph.catalog.bound import Condition
from omnigraph.catalog.model import EdgeType, NodeType
from omnigraph.core.clock import look_at_deadline
from omnigraph.plan.estimate import Estimator
from omnigraph.plan.frontier import Frontier
from omnigraph.plan.pattern import Pattern, PatternTraversal, is_anonymous
from omnigraph.plan.physical import AntiJoin, Close, Expand, FilterRows, Join, Keep, PlanOperator, Scan
from omnigraph.plan.problem import Placed, Problem, Way, Without, place

ROOTS_TRIED_MAX = 3  # the smallest scans and the first one in the query: more are rarely better
REROOTING_COST_MAX = (
    0.8  # estimates are rough: a root other than the query's first must promise to save a fifth
)
ESTIMATE_MAX = 1e300  # products of products stay numbers


def pipeline_of(
    pattern: Pattern, estimator: Estimator, *, needed: frozenset[str], keep: Keep
) -> tuple[PlanOperator, ...]:
    """Return the operators of a whole match, from the root estimated to make the fewest rows."""
    problem = _problem(pattern, estimator, {}, needed, keep)
    if not pattern.nodes:
        return tuple(_Arrangement(problem, ()).run().operators)
    first, *others = (_Arrangement(problem, ()).run(root) for root in _roots(problem))
    best = min(others, key=lambda attempt: attempt.cost, default=first)
    return tuple((best if best.cost < first.cost * REROOTING_COST_MAX else first).operators)


def scaled(operators: Iterable[PlanOperator], factor: float) -> tuple[PlanOperator, ...]:
    """Return operators estimated for one row with estimates for more rows."""
    return tuple(_scaled(operator, factor) for operator in operators)


def _scaled(operator: PlanOperator, factor: float) -> PlanOperator:
    estimate = _bounded(operator.estimate * factor)
    if isinstance(operator, AntiJoin):
        return replace(operator, inner=scaled(operator.inner, factor), estimate=estimate)
    return replace(operator, estimate=estimate)


def _bounded(estimate: float) -> float:
    return min(estimate, ESTIMATE_MAX)


# What is known before an order is chosen


def _problem(
    pattern: Pattern,
    estimator: Estimator,
    outer_types: Mapping[str, NodeType | EdgeType],
    needed: frozenset[str],
    keep: Keep,
) -> Problem:
    catalog = estimator.catalog
    types = {name: outer_types[name] for name in pattern.mentioned if name in outer_types}
    types.update((name, catalog.nodes[type_name]) for name, type_name in pattern.nodes.items())
    types.update((name, catalog.edges[type_name]) for name, type_name in pattern.edges.items())
    placed = place(pattern.conditions, pattern.nodes.keys() | pattern.edges.keys())
    shares = {name: estimator.share(types[name], conditions) for name, conditions in placed.own.items()}
    uses = _uses(pattern, placed, needed)

    def edge_share(traversal: PatternTraversal) -> float:
        return 1.0 if traversal.edge_binding is None else shares.get(traversal.edge_binding, 1.0)

    def way(traversal: PatternTraversal, is_forward: bool) -> Way:
        left, right = traversal.left, traversal.right
        start, end = (left, right) if is_forward else (right, left)
        work = factor = estimator.fan_out(traversal, is_forward=is_forward)
        factor *= shares.get(end, 1.0) * edge_share(traversal)
        is_leaf = uses[end] == 1 and (traversal.edge_binding is None or uses[traversal.edge_binding] == 0)
        is_question = is_anonymous(end) and traversal.edge_binding is None
        kept = Keep.EXISTS if is_question else keep
        if not is_leaf or kept is Keep.ROWS:
            return Way(start, end, is_forward, factor, work, Keep.ROWS)
        is_degree = traversal.max_hops == 1 and factor == work
        return Way(start, end, is_forward, min(1.0, factor), 1.0 if is_degree else work, kept)

    def closing(traversal: PatternTraversal) -> tuple[float, float]:
        work = 1.0 if traversal.max_hops == 1 else estimator.fan_out(traversal, is_forward=True)
        return estimator.closed_share(traversal) * edge_share(traversal), work

    def without(on: tuple[str, ...], inside: Pattern) -> Without:
        inner = _Arrangement(_problem(inside, estimator, types, frozenset(), Keep.EXISTS), on).run()
        starts_max = prod(estimator.rows(types[name].table_key) for name in on)
        return Without(on, tuple(inner.operators), 1 / (1 + inner.rows), starts_max)

    def scan(name: str) -> float:
        rows = estimator.rows(types[name].table_key)
        return max(min(1.0, rows), rows * shares.get(name, 1.0))

    ways = tuple(
        tuple(way(item, is_forward) for is_forward in ((True, False) if item.is_reversible else (True,)))
        for item in pattern.traversals
    )
    leads: dict[str, list[str]] = {}
    for one in chain.from_iterable(ways):
        leads.setdefault(one.start, []).append(one.end)
    return Problem(
        pattern,
        placed,
        {name: scan(name) for name in pattern.nodes},
        tuple((names, item, estimator.shared_share(item, types)) for names, item in placed.shared),
        ways,
        {start: tuple(ends) for start, ends in leads.items()},
        tuple(closing(item) for item in pattern.traversals),
        tuple(without(negation.on, negation.pattern) for negation in pattern.negations),
    )


def _uses(pattern: Pattern, placed: Placed, needed: frozenset[str]) -> dict[str, int]:
    """Return how many traversals, shared conditions, negations and results mention each variable."""
    uses = dict.fromkeys((*pattern.outer, *pattern.nodes, *pattern.edges), 0)
    for traversal in pattern.traversals:
        uses[traversal.left] += 1
        uses[traversal.right] += 1
    others = [names for names, _ in placed.shared] + [frozenset(n.on) for n in pattern.negations] + [needed]
    for names in others:
        for name in names:
            uses[name] = uses.get(name, 0) + 1
    return uses


def _roots(problem: Problem) -> list[str]:
    """Return the variables to try as the first scan, in the order of the query."""
    only_reached = problem.pattern.only_reached
    names = [name for name in problem.scans if name not in only_reached]
    smallest = sorted(names, key=lambda name: problem.scans[name])[:ROOTS_TRIED_MAX]
    return [name for name in names if name in smallest or name == names[0]]


# One order


class _Arrangement:
    """Operators under construction: greedy, the least growth first."""

    def __init__(self, problem: Problem, bound: Iterable[str]) -> None:
        self.problem = problem
        self.frontier = Frontier(problem, bound)
        self.rows = 1.0
        self.cost = 0.0
        self.operators: list[PlanOperator] = []

    def run(self, root: str | None = None) -> "_Arrangement":
        """Arrange everything, starting with the scan of a root where nothing is bound."""
        if self.problem.placed.constant:
            self.operators.append(FilterRows(self.problem.placed.constant, 1.0))
        if root is not None:
            self.multiply(self.problem.scans[root])
            self.operators.append(self.scan(root, self.rows))
            self.frontier.bind(root)
        self.settle()
        while self.frontier.unbound or self.frontier.open_negations:
            self.step()
            self.settle()
        assert not self.frontier.open_traversals, "every end of a traversal is a variable of the pattern"
        assert not self.frontier.open_tests, "every condition mentions only variables of the pattern"
        return self

    def multiply(self, factor: float, work: float = 0.0) -> float:
        """Continue with more or fewer rows; `work` is what each input row reads."""
        self.cost += self.rows * work
        self.rows = _bounded(self.rows * factor)
        self.cost += self.rows
        return self.rows

    # What adds no rows

    def settle(self) -> None:
        """Test and close everything that the bound variables allow."""
        while self.test() or self.close():
            pass

    def test(self) -> bool:
        ready = self.frontier.take_tests()
        if not ready:
            return False
        for _, factor in ready:
            self.rows *= factor
        self.operators.append(FilterRows(tuple(condition for condition, _ in ready), self.multiply(1.0)))
        return True

    def close(self) -> bool:
        chosen = self.frontier.take_closing()
        if chosen is None:
            return False
        traversal = self.problem.pattern.traversals[chosen]
        estimate = self.multiply(*self.problem.closings[chosen])
        self.operators.append(
            Close(
                traversal.left,
                traversal.left_type,
                traversal.right,
                traversal.right_type,
                traversal.edge_type,
                traversal.direction,
                traversal.min_hops,
                traversal.max_hops,
                traversal.edge_binding,
                self.own(traversal.edge_binding),
                estimate,
            )
        )
        self.frontier.bind(traversal.edge_binding)
        return True

    # What may add rows

    def step(self) -> None:
        """Take the traversal or join that grows the rows least; negations go before what grows them."""
        look_at_deadline()
        followed = self.frontier.best_way()
        joined = self.frontier.best_join()
        growth = min((option.growth for option in (followed, joined) if option is not None), default=1.0)
        if self.frontier.has_negation and growth >= 1.0:
            self.exclude(self.frontier.take_negation())
        elif followed is not None and (joined is None or followed.growth <= joined.growth):
            self.follow(followed.index, self.frontier.way(followed))
        else:
            assert joined is not None, "what is not bound can be joined or reached"
            self.join(joined.variable)

    def follow(self, index: int, way: Way) -> None:
        self.frontier.open_traversals.remove(index)
        traversal = self.problem.pattern.traversals[index]
        is_forward = way.is_forward
        self.operators.append(
            Expand(
                way.start,
                way.end,
                traversal.right_type if is_forward else traversal.left_type,
                traversal.edge_type,
                traversal.direction if is_forward else traversal.direction.reversed,
                traversal.min_hops,
                traversal.max_hops,
                traversal.edge_binding,
                self.own(way.end),
                self.own(traversal.edge_binding),
                way.keep,
                self.multiply(way.factor, way.work),
            )
        )
        self.frontier.bind(way.end)
        self.frontier.bind(traversal.edge_binding)

    def join(self, variable: str) -> None:
        found = self.frontier.take_keys(variable)
        factor = self.problem.scans[variable]
        for _, share in found:
            factor *= share
        scan = self.scan(variable, self.problem.scans[variable])
        self.cost += scan.estimate
        self.operators.append(Join(scan, tuple(key for key, _ in found), self.multiply(factor)))
        self.frontier.bind(variable)

    def exclude(self, negation: Without) -> None:
        inner = scaled(negation.inner, min(self.rows, negation.starts_max))
        self.operators.append(AntiJoin(negation.on, inner, self.multiply(negation.factor)))

    def scan(self, variable: str, estimate: float) -> Scan:
        return Scan(variable, self.problem.pattern.nodes[variable], self.own(variable), estimate)

    def own(self, variable: str | None) -> tuple[Condition, ...]:
        return () if variable is None else self.problem.placed.own.get(variable, ())
