"""The logical plan as a pattern: what has to hold, without an order.

G1  Variables, traversals and conditions of a pattern are those of the logical plan. A traversal whose
    destination is compared with a bound node leads to that node, and the variable of the plan is gone.
G2  The left end of a traversal is where the logical plan starts it; only a reversible one may start right.
G3  `$_` binds nothing: it asks whether there is something at that end, and makes no rows. A traversal between
    two of them asks whether there is an edge at all, which is what two negations around it say.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from omnigraph.catalog.bound import Comparison, Direction, IdValue, Operator
from omnigraph.core.deadline import look_at_deadline
from omnigraph.plan.logical import AntiJoin, Condition, Expand, Filter, NodeScan, Operation
from omnigraph.plan.mentions import variables_of


def is_anonymous(variable: str) -> bool:
    """Return whether no query can name a variable, so that nothing but its own clause speaks of it."""
    return variable.startswith("__")


@dataclass(frozen=True, slots=True)
class Traversal:
    """A traversal between two variables; `direction` is seen from the left one."""

    left: str
    right: str
    left_type: str
    right_type: str
    edge_type: str
    direction: Direction
    min_hops: int
    max_hops: int
    edge_binding: str | None

    @property
    def is_reversible(self) -> bool:
        """Whether both ends give the same pairs.

        Beyond the first hop a self-loop counts from the end where the search starts, so that a lower bound
        above one means something else from the other end. What has no name is never started from (G3).
        """
        return (self.min_hops == 1 or self.max_hops == 1) and not is_anonymous(self.right)


@dataclass(frozen=True, slots=True)
class Negation:
    """A pattern that must not match; `on` are the outer variables that it mentions, in name order."""

    on: tuple[str, ...]
    pattern: "Pattern"


@dataclass(frozen=True, slots=True)
class Pattern:
    """One clause list: node variables with their types, and everything that is asked of them.

    `nodes` and `edges` are the variables that the pattern introduces, `outer` the types of nodes around it.
    """

    nodes: Mapping[str, str]
    edges: Mapping[str, str]
    outer: Mapping[str, str]
    traversals: tuple[Traversal, ...]
    conditions: tuple[Condition, ...]
    negations: tuple[Negation, ...]

    @property
    def only_reached(self) -> frozenset[str]:
        """The ends that `$_` stands for: a scan of one would make rows of what is only a question (G3).

        Inside of a negation every variable is such a question, and may be scanned.
        """
        if self.outer:
            return frozenset()
        loose = (item for item in self.traversals if item.edge_binding is None)
        return frozenset(item.right for item in loose if is_anonymous(item.right))

    @property
    def mentioned(self) -> frozenset[str]:
        """Every variable that occurs, inside negations as well."""
        names = {*self.nodes, *self.edges}
        for traversal in self.traversals:
            names.update((traversal.left, traversal.right))
        for condition in self.conditions:
            names |= variables_of(condition)
        for negation in self.negations:
            names.update(negation.on)
        return frozenset(names)


def pattern_of(
    operations: Iterable[Operation],
    outer_nodes: Mapping[str, str] | None = None,
    outer_edges: frozenset[str] = frozenset(),
) -> Pattern:
    """Return the pattern of a pipeline that starts with the given variables bound."""
    builder = _Builder(outer_nodes or {}, outer_edges)
    waiting: Expand | None = None
    for operation in operations:
        look_at_deadline()
        if waiting is not None:
            end = _closed_with(waiting, operation)
            builder.traverse(waiting, end)
            waiting = None
            if end is not None:
                continue
        if isinstance(operation, Expand):
            waiting = operation
        else:
            builder.add(operation)
    if waiting is not None:
        builder.traverse(waiting, None)
    return builder.pattern()


def _closed_with(expand: Expand, following: Operation) -> str | None:
    """Return the bound node that the destination of a traversal is compared with by the next operator."""
    if isinstance(following, Filter):
        match following.condition:
            case Comparison(IdValue(arrival), Operator.EQ, IdValue(end)) if arrival == expand.dst_var:
                assert not expand.dst_filters, "the variable of the plan has no binding"
                return end
            case _:
                pass
    return None


class _Builder:
    """A pattern while its pipeline is read."""

    def __init__(self, outer_nodes: Mapping[str, str], outer_edges: frozenset[str]) -> None:
        self.outer_nodes = outer_nodes
        self.outer_edges = outer_edges
        self.nodes: dict[str, str] = {}
        self.edges: dict[str, str] = {}
        self.traversals: list[Traversal] = []
        self.conditions: list[Condition] = []
        self.negations: list[Negation] = []

    def add(self, operation: NodeScan | Filter | AntiJoin) -> None:
        match operation:
            case NodeScan(variable, type_name, filters):
                self.nodes[variable] = type_name
                self.conditions.extend(filters)
            case Filter(condition):
                self.conditions.append(condition)
            case AntiJoin(inner=inner):
                nodes = {**self.outer_nodes, **self.nodes}
                edges = self.outer_edges | self.edges.keys()
                pattern = pattern_of(inner, nodes, edges)
                on = pattern.mentioned & (nodes.keys() | edges)
                self.negations.append(Negation(tuple(sorted(on)), pattern))

    def traverse(self, expand: Expand, end: str | None) -> None:
        types = {**self.outer_nodes, **self.nodes}
        right = expand.dst_var if end is None else end
        if end is None:
            self.nodes[right] = expand.dst_type
        if expand.edge_binding is not None:
            self.edges[expand.edge_binding] = expand.edge_type
        self.conditions.extend(expand.dst_filters)
        self.traversals.append(
            Traversal(
                expand.src_var,
                right,
                types[expand.src_var],
                expand.dst_type,
                expand.edge_type,
                expand.direction,
                expand.min_hops,
                expand.max_hops,
                expand.edge_binding,
            )
        )

    def pattern(self) -> Pattern:
        if not self.outer_nodes:
            self.traversals = [kept for item in self.traversals for kept in self.named(item)]
        return Pattern(
            self.nodes,
            self.edges,
            self.outer_nodes,
            tuple(self.traversals),
            tuple(self.conditions),
            tuple(self.negations),
        )

    def named(self, traversal: Traversal) -> tuple[Traversal, ...]:
        """Return the traversal as it stays: one between two ends without a name becomes a question (G3)."""
        left, right = traversal.left, traversal.right
        if not (is_anonymous(left) and is_anonymous(right)):
            return (traversal,)
        if traversal.edge_binding is not None:  # each edge once, although it could be followed both ways
            forth = Direction.OUT if traversal.direction is Direction.BOTH else traversal.direction
            return (replace(traversal, direction=forth),)
        ends = {name: self.nodes.pop(name) for name in (left, right)}
        there_is = Pattern(ends, {}, {}, (traversal,), (), ())
        there_is_none = Pattern({}, {}, {}, (), (), (Negation((), there_is),))
        self.negations.append(Negation((), there_is_none))
        return ()
