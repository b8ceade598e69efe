"""What can be done next with a pattern, kept up to date while its variables are bound.

F1  Binding a variable looks at what mentions it and at nothing else: arranging a pattern costs
    in all what its parts are, times the logarithm of how many there are.
F2  What is offered is what has the least growth; ties go to what comes first in the query.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush

from omnigraph.catalog.bound import Condition
from omnigraph.plan.pattern import reach
from omnigraph.plan.physical import JoinKey
from omnigraph.plan.problem import Problem, Way, Without, join_key


@dataclass(frozen=True, slots=True, order=True)
class FollowOption:
    """A traversal from a bound variable to an unbound one, and by how much it grows the rows."""

    growth: float
    index: int
    place: int  # among the ways of the traversal
    end: str = field(compare=False)


@dataclass(frozen=True, slots=True, order=True)
class JoinOption:
    """The scan of an unbound variable; one with a key goes before all without."""

    is_cross: bool
    growth: float
    order: int
    variable: str = field(compare=False)


class Frontier:
    """The bound variables of a problem, and heaps of what they allow.

    An entry of a heap is never changed: what has a new growth is pushed again, and an entry that no longer
    says what is true is dropped when it comes up.
    """

    def __init__(self, problem: Problem, bound: Iterable[str]) -> None:
        self.problem = problem
        self.pattern = problem.pattern
        self.bound: set[str] = set()
        self.unbound = dict.fromkeys(self.pattern.nodes)
        self.open_traversals = set(range(len(self.pattern.traversals)))
        self.open_tests = set(range(len(problem.shared)))
        self.open_negations = set(range(len(problem.negations)))
        self._reached: set[str] = set()
        self._only_reached = self.pattern.only_reached
        self._order = {name: order for order, name in enumerate(self.pattern.nodes)}
        self._missing = [set(names) for names, _, _ in problem.shared]
        self._missing_of_negation = [set(negation.on) for negation in problem.negations]
        self._gains: dict[str, float] = {}
        self._gains_of_pairs: dict[frozenset[str], float] = {}
        self._keyed: set[str] = set()
        self._tests: list[int] = []
        self._closings: list[tuple[tuple[float, float], int]] = []
        self._negations: list[int] = []
        self._ways: list[FollowOption] = []
        self._ways_to: dict[str, list[tuple[float, int, int]]] = {}
        self._joins: list[JoinOption] = []
        self._mention()
        for index in range(len(problem.shared)):
            self._narrowed(index)
        for index, missing in enumerate(self._missing_of_negation):
            if not missing:
                heappush(self._negations, index)
        for name in self.unbound:
            self._offer_join(name)
        for name in bound:
            self.bind(name)

    def _mention(self) -> None:
        """Note what mentions each variable."""
        self._tests_of: dict[str, list[int]] = {}
        self._traversals_of: dict[str, list[int]] = {}
        self._negations_of: dict[str, list[int]] = {}
        self._traversal_of_edge: dict[str, int] = {}
        for index, missing in enumerate(self._missing):
            for name in missing:
                self._tests_of.setdefault(name, []).append(index)
        for index, traversal in enumerate(self.pattern.traversals):
            for name in {traversal.left, traversal.right}:
                self._traversals_of.setdefault(name, []).append(index)
            if traversal.edge_binding is not None:
                self._traversal_of_edge[traversal.edge_binding] = index
        for index, missing in enumerate(self._missing_of_negation):
            for name in missing:
                self._negations_of.setdefault(name, []).append(index)

    # What happens

    def bind(self, name: str | None) -> None:
        """Bind a variable, unless it is bound."""
        if name is None or name in self.bound:
            return
        self.bound.add(name)
        self.unbound.pop(name, None)
        reach(self._reached, (name,), self.problem.leads)
        for index in self._tests_of.get(name, ()):
            self._missing[index].discard(name)
            if index in self.open_tests:
                self._narrowed(index)
        for index in self._negations_of.get(name, ()):
            self._missing_of_negation[index].discard(name)
            if not self._missing_of_negation[index]:
                heappush(self._negations, index)
        for index in self._traversals_of.get(name, ()):
            traversal = self.pattern.traversals[index]
            if index in self.open_traversals and self.bound.issuperset((traversal.left, traversal.right)):
                heappush(self._closings, (self.problem.closings[index], index))
            else:
                self._offer_ways(index)

    def _narrowed(self, index: int) -> None:
        """Note that a condition waits for fewer variables, or for its first ones."""
        missing = self._missing[index]
        _, condition, share = self.problem.shared[index]
        if not missing:
            heappush(self._tests, index)
        elif len(missing) == 1:
            (name,) = missing
            self._gains[name] = self._gains.get(name, 1.0) * share
            if join_key(condition, name, self.bound) is not None:
                self._keyed.add(name)
            self._offer_join(name)
            self._offer_end(name)
            if name in self._traversal_of_edge:
                self._offer_ways(self._traversal_of_edge[name])
        else:
            pair = frozenset(missing)
            self._gains_of_pairs[pair] = self._gains_of_pairs.get(pair, 1.0) * share

    # What adds no rows

    def take_tests(self) -> list[tuple[Condition, float]]:
        """Take the conditions that can be tested, each with its share."""
        taken: list[tuple[Condition, float]] = []
        while self._tests:
            index = heappop(self._tests)
            self.open_tests.remove(index)
            taken.append(self.problem.shared[index][1:])
        return taken

    def take_closing(self) -> int | None:
        """Take the traversal between bound nodes that leaves the fewest rows."""
        while self._closings:
            _, index = heappop(self._closings)
            if index in self.open_traversals:
                self.open_traversals.remove(index)
                return index
        return None

    def take_negation(self) -> Without:
        """Take the first negation that can be tested."""
        index = heappop(self._negations)
        self.open_negations.remove(index)
        return self.problem.negations[index]

    @property
    def has_negation(self) -> bool:
        """Whether a negation can be tested."""
        return bool(self._negations)

    # What may add rows

    def best_way(self) -> FollowOption | None:
        """Return the traversal that grows the rows least."""
        while self._ways:
            option = self._ways[0]
            if option.end not in self.bound and option == self._option(option.index, option.place):
                return option
            heappop(self._ways)
        return None

    def best_join(self) -> JoinOption | None:
        """Return the cheapest scan of a variable that no traversal leads to, preferring one with a key."""
        while self._joins:
            option = self._joins[0]
            if self._is_joined(option.variable) and option == self._join(option.variable):
                return option
            heappop(self._joins)
        return None

    def way(self, option: FollowOption) -> Way:
        """Return the way that an option stands for."""
        return self.problem.ways[option.index][option.place]

    def take_keys(self, variable: str) -> list[tuple[JoinKey, float]]:
        """Take the conditions that join a variable to the bound ones, each with its share."""
        keys: list[tuple[JoinKey, float]] = []
        for index in self._tests_of.get(variable, ()):
            _, condition, share = self.problem.shared[index]
            key = join_key(condition, variable, self.bound) if index in self.open_tests else None
            if key is not None:
                self.open_tests.remove(index)
                keys.append((key, share))
        return keys

    def _is_joined(self, name: str) -> bool:
        return name in self.unbound and name not in self._reached and name not in self._only_reached

    def _join(self, name: str) -> JoinOption:
        growth = self.problem.scans[name] * self._gains.get(name, 1.0)
        return JoinOption(name not in self._keyed, growth, self._order[name], name)

    def _offer_join(self, name: str) -> None:
        if self._is_joined(name):
            heappush(self._joins, self._join(name))

    def _offer_ways(self, index: int) -> None:
        """Offer a traversal from each end that is bound to one that is not."""
        for place, way in enumerate(self.problem.ways[index]):
            if way.start in self.bound and way.end not in self.bound:
                entry = (self._local_growth(index, way), index, place)
                heappush(self._ways_to.setdefault(way.end, []), entry)
                self._offer_end(way.end)

    def _offer_end(self, end: str) -> None:
        """Offer the best of all ways to one variable: its conditions leave the same share of each."""
        ways = self._ways_to.get(end)
        while ways:
            growth, index, place = ways[0]
            if growth == self._local_growth(index, self.problem.ways[index][place]):
                heappush(self._ways, self._option(index, place))
                return
            heappop(ways)

    def _option(self, index: int, place: int) -> FollowOption:
        way = self.problem.ways[index][place]
        growth = self._local_growth(index, way) * self._gains.get(way.end, 1.0)
        return FollowOption(growth, index, place, way.end)

    def _local_growth(self, index: int, way: Way) -> float:
        """Return the growth by a way, without what the conditions on its end alone leave of it."""
        edge = self.pattern.traversals[index].edge_binding
        if edge is None:
            return way.factor
        pair = self._gains_of_pairs.get(frozenset((way.end, edge)), 1.0)
        return way.factor * self._gains.get(edge, 1.0) * pair
