"""The order of a pattern's operators: where to start, what to follow next, and where conditions belong.

O1  Every variable is introduced once, before anything mentions it. Every traversal, condition and negation of
    the pattern is in the pipeline once.
O2  A traversal that is not reversible is followed from its left end, or closed.
O3  The order is a function of pattern, catalog and statistics: ties go to what comes first in the query.
"""

from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass, replace
from itertools import chain
from math import prod

from omnigraph.catalog.bound import Comparison, Condition, Operator, PropertyValue
from omnigraph.catalog.model import EdgeType, NodeType
from omnigraph.core.clock import look_at_deadline
from omnigraph.core.values import FLOATS
from omnigraph.plan.estimate import Estimator
from omnigraph.plan.pattern import Pattern, PatternTraversal, is_anonymous, reach, variables_of
from omnigraph.plan.physical import (
    AntiJoin,
    Close,
    Expand,
    FilterRows,
    Join,
    JoinKey,
    Keep,
    PlanOperator,
    Scan,
)

ROOTS_TRIED_MAX = 3  # the smallest scans and the first one in the query: more are rarely better
REROOTING_COST_MAX = (
    0.8  # estimates are rough: a root other than the query's first must promise to save a fifth
)
ESTIMATE_MAX = 1e300  # products of products stay numbers


@dataclass(frozen=True, slots=True)
class Placed:
    """Conditions by what they need: nothing, one variable of the pattern, or rows with several."""

    constant: tuple[Condition, ...]
    own: Mapping[str, tuple[Condition, ...]]
    shared: tuple[tuple[frozenset[str], Condition], ...]


def place(conditions: Iterable[Condition], introduced: Set[str]) -> Placed:
    """Return conditions sorted by where they can be tested first, each in the order given.

    A condition on one variable that is already bound is shared: no operator of this pattern introduces it.
    """
    constant: list[Condition] = []
    own: dict[str, list[Condition]] = {}
    shared: list[tuple[frozenset[str], Condition]] = []
    for condition in conditions:
        names = variables_of(condition)
        if not names:
            constant.append(condition)
        elif len(names) == 1 and names <= introduced:
            (name,) = names
            own.setdefault(name, []).append(condition)
        else:
            shared.append((names, condition))
    return Placed(tuple(constant), {name: tuple(own[name]) for name in own}, tuple(shared))


def join_key(condition: Condition, variable: str, bound: Collection[str]) -> JoinKey | None:
    """Return a condition as the key that joins a variable to bound ones, or `None` if it must stay a filter.

    Two numbers of different types are equal by value, and two floats may be equal with different bits (`0.0`
    and `-0.0`): keys, which are compared by their bits, have the same type, which is not a float.
    """
    if not isinstance(condition, Comparison) or condition.operator is not Operator.EQ:
        return None
    left, right = condition.left, condition.right
    if not isinstance(left, PropertyValue) or not isinstance(right, PropertyValue):
        return None
    if right.variable == variable:
        left, right = right, left
    is_between = left.variable == variable and right.variable in bound
    is_one_type = left.type.scalar is right.type.scalar and left.type.scalar not in FLOATS
    return JoinKey(left, right) if is_between and is_one_type else None


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


@dataclass(frozen=True, slots=True)
class _Way:
    """A traversal in one direction, and the rows it gives per input row."""

    start: str
    end: str
    is_forward: bool
    factor: float
    work: float  # what it reads to give them, per row
    keep: Keep


@dataclass(frozen=True, slots=True)
class _Without:
    """A negation with its inside arranged, for one row."""

    on: tuple[str, ...]
    inner: tuple[PlanOperator, ...]
    factor: float
    starts_max: float  # the inside runs once per distinct value of `on`


@dataclass(frozen=True, slots=True)
class _Problem:
    """A pattern with its factors."""

    pattern: Pattern
    placed: Placed
    scans: Mapping[str, float]
    shared: tuple[tuple[frozenset[str], Condition, float], ...]
    ways: tuple[tuple[_Way, ...], ...]
    leads: Mapping[str, tuple[str, ...]]
    closings: tuple[tuple[float, float], ...]  # the factor and the work of each traversal between bound nodes
    negations: tuple[_Without, ...]


def _problem(
    pattern: Pattern,
    estimator: Estimator,
    outer_types: Mapping[str, NodeType | EdgeType],
    needed: frozenset[str],
    keep: Keep,
) -> _Problem:
    catalog = estimator.catalog
    types: dict[str, NodeType | EdgeType] = dict(outer_types)
    types.update((name, catalog.nodes[type_name]) for name, type_name in pattern.nodes.items())
    types.update((name, catalog.edges[type_name]) for name, type_name in pattern.edges.items())
    placed = place(pattern.conditions, pattern.nodes.keys() | pattern.edges.keys())
    shares = {name: estimator.share(types[name], conditions) for name, conditions in placed.own.items()}
    uses = _uses(pattern, placed, needed)

    def edge_share(traversal: PatternTraversal) -> float:
        return 1.0 if traversal.edge_binding is None else shares.get(traversal.edge_binding, 1.0)

    def way(traversal: PatternTraversal, is_forward: bool) -> _Way:
        left, right = traversal.left, traversal.right
        start, end = (left, right) if is_forward else (right, left)
        work = factor = estimator.fan_out(traversal, is_forward=is_forward)
        factor *= shares.get(end, 1.0) * edge_share(traversal)
        is_leaf = uses[end] == 1 and (traversal.edge_binding is None or uses[traversal.edge_binding] == 0)
        is_question = is_anonymous(end) and traversal.edge_binding is None
        kept = Keep.EXISTS if is_question else keep
        if not is_leaf or kept is Keep.ROWS:
            return _Way(start, end, is_forward, factor, work, Keep.ROWS)
        is_degree = traversal.max_hops == 1 and factor == work
        return _Way(start, end, is_forward, min(1.0, factor), 1.0 if is_degree else work, kept)

    def closing(traversal: PatternTraversal) -> tuple[float, float]:
        work = 1.0 if traversal.max_hops == 1 else estimator.fan_out(traversal, is_forward=True)
        return estimator.closed_share(traversal) * edge_share(traversal), work

    def without(on: tuple[str, ...], inside: Pattern) -> _Without:
        inner = _Arrangement(_problem(inside, estimator, types, frozenset(), Keep.EXISTS), on).run()
        starts_max = prod(estimator.rows(types[name].table_key) for name in on)
        return _Without(on, tuple(inner.operators), 1 / (1 + inner.rows), starts_max)

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
    return _Problem(
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


def _roots(problem: _Problem) -> list[str]:
    """Return the variables to try as the first scan, in the order of the query."""
    only_reached = problem.pattern.only_reached
    names = [name for name in problem.scans if name not in only_reached]
    smallest = sorted(names, key=lambda name: problem.scans[name])[:ROOTS_TRIED_MAX]
    return [name for name in names if name in smallest or name == names[0]]


# One order


class _Arrangement:
    """Operators under construction: greedy, the least growth first."""

    def __init__(self, problem: _Problem, bound: Iterable[str]) -> None:
        self.problem = problem
        self.bound = set(bound)
        self.reached: set[str] = set()
        self.rows = 1.0
        self.cost = 0.0
        self.operators: list[PlanOperator] = []
        self.traversals = dict(enumerate(problem.pattern.traversals))
        self.shared = list(problem.shared)
        self.negations = list(problem.negations)
        self.unbound = dict.fromkeys(problem.pattern.nodes)
        reach(self.reached, self.bound, problem.leads)

    def run(self, root: str | None = None) -> "_Arrangement":
        """Arrange everything, starting with the scan of a root where nothing is bound."""
        if self.problem.placed.constant:
            self.operators.append(FilterRows(self.problem.placed.constant, 1.0))
        if root is not None:
            self.multiply(self.problem.scans[root])
            self.operators.append(self.scan(root, self.rows))
            self.bind(root)
            reach(self.reached, (root,), self.problem.leads)
        self.settle()
        while self.unbound or self.negations:
            self.step()
            self.settle()
        assert not self.traversals, "every end of a traversal is a variable of the pattern"
        assert not self.shared, "every condition mentions only variables of the pattern"
        return self

    def multiply(self, factor: float, work: float = 0.0) -> float:
        """Continue with more or fewer rows; `work` is what each input row reads."""
        self.cost += self.rows * work
        self.rows = _bounded(self.rows * factor)
        self.cost += self.rows
        return self.rows

    def bind(self, *names: str | None) -> None:
        for name in names:
            if name is not None:
                self.bound.add(name)
                self.unbound.pop(name, None)

    # What adds no rows

    def settle(self) -> None:
        """Test and close everything that the bound variables allow."""
        while self.test() or self.close():
            pass

    def test(self) -> bool:
        ready = [item for item in self.shared if item[0] <= self.bound]
        if not ready:
            return False
        self.shared = [item for item in self.shared if not item[0] <= self.bound]
        for _, _, factor in ready:
            self.rows *= factor
        self.operators.append(FilterRows(tuple(condition for _, condition, _ in ready), self.multiply(1.0)))
        return True

    def close(self) -> bool:
        ready = [
            i
            for i, traversal in self.traversals.items()
            if traversal.left in self.bound and traversal.right in self.bound
        ]
        if not ready:
            return False
        chosen = min(ready, key=lambda i: self.problem.closings[i])
        traversal = self.traversals.pop(chosen)
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
        self.bind(traversal.edge_binding)
        return True

    # What may add rows

    def step(self) -> None:
        """Take the traversal or join that grows the rows least; negations go before what grows them."""
        look_at_deadline()
        followed = self.best_way()
        joined = self.best_join()
        growth = min((option[0] for option in (followed, joined) if option is not None), default=1.0)
        ready = [item for item in self.negations if self.bound.issuperset(item.on)]
        if ready and growth >= 1.0:
            self.exclude(ready[0])
        elif followed is not None and (joined is None or followed[0] <= joined[0]):
            self.follow(followed[1], followed[2])
        else:
            assert joined is not None, "what is not bound can be joined or reached"
            self.join(joined[1])

    def best_way(self) -> tuple[float, int, _Way] | None:
        best: tuple[float, int, _Way] | None = None
        for index, traversal in self.traversals.items():
            for way in self.problem.ways[index]:
                if way.start in self.bound and way.end not in self.bound:
                    factor = way.factor * self.gained(way.end, traversal.edge_binding)
                    if best is None or factor < best[0]:
                        best = (factor, index, way)
        return best

    def best_join(self) -> tuple[float, str] | None:
        """Return the cheapest scan of a variable that no traversal leads to, preferring one with a key."""
        never = self.reached | self.problem.pattern.only_reached
        names = [name for name in self.unbound if name not in never]
        names = [name for name in names if self.has_key(name)] or names
        options = [(self.problem.scans[name] * self.gained(name), name) for name in names]
        return min(options, key=lambda option: option[0], default=None)

    def has_key(self, variable: str) -> bool:
        return any(join_key(condition, variable, self.bound) for _, condition, _ in self.shared)

    def gained(self, *names: str | None) -> float:
        """Return the factor of the conditions that these variables make testable."""
        factor = 1.0
        for needs, _, share in self.shared:
            if (needs - self.bound).issubset(names):
                factor *= share
        return factor

    def follow(self, index: int, way: _Way) -> None:
        traversal = self.traversals.pop(index)
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
        self.bind(way.end, traversal.edge_binding)

    def join(self, variable: str) -> None:
        keys: list[JoinKey] = []
        others: list[tuple[frozenset[str], Condition, float]] = []
        factor = self.problem.scans[variable]
        for item in self.shared:
            key = join_key(item[1], variable, self.bound)
            if key is None:
                others.append(item)
            else:
                keys.append(key)
                factor *= item[2]
        self.shared = others
        scan = self.scan(variable, self.problem.scans[variable])
        self.cost += scan.estimate
        self.operators.append(Join(scan, tuple(keys), self.multiply(factor)))
        self.bind(variable)
        reach(self.reached, (variable,), self.problem.leads)

    def exclude(self, negation: _Without) -> None:
        self.negations.remove(negation)
        inner = scaled(negation.inner, min(self.rows, negation.starts_max))
        self.operators.append(AntiJoin(negation.on, inner, self.multiply(negation.factor)))

    def scan(self, variable: str, estimate: float) -> Scan:
        return Scan(variable, self.problem.pattern.nodes[variable], self.own(variable), estimate)

    def own(self, variable: str | None) -> tuple[Condition, ...]:
        return () if variable is None else self.problem.placed.own.get(variable, ())
