"""`explain`: a physical plan for people and for programs.

E1  The members of the JSON form are stable: new ones may be added, but none is renamed or changes meaning.
E2  No parameter value is in an explanation; a plan contains none.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph.catalog.bound import Condition, Direction
from omnigraph.catalog.model import Catalog
from omnigraph.plan.index_use import IndexUse, indexes_of, ranking_indexes
from omnigraph.plan.physical import (
    AntiJoin,
    Close,
    Expand,
    FilterRows,
    Join,
    Keep,
    PhysicalPlan,
    PlanOperator,
    Scan,
)
from omnigraph.plan.written import written, written_ordering, written_projection

_INDENT = "  "
_KEPT = {
    Keep.ROWS: "",
    Keep.COUNT: ", counted",
    Keep.EXISTS: ", if any",
}


@dataclass(frozen=True, slots=True)
class IndexNote:
    """What an index covers, and why not all rows."""

    coverage: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class PlanIndexes:
    """The indexes that a plan can use, as they are in the tables that it reads."""

    catalog: Catalog
    notes: Mapping[IndexUse, IndexNote]

    def of(self, operator: PlanOperator) -> tuple[IndexUse, ...]:
        """Return what one operator can use."""
        return indexes_of(operator, self.catalog)

    def lines(self, uses: Iterable[IndexUse]) -> Iterator[str]:
        """Yield one line for each."""
        for use in uses:
            reason = self.notes[use].reason
            yield f"index {use.column} ({use.kind})" + (f": {reason}" if reason is not None else "")

    def documents(self, uses: Iterable[IndexUse]) -> list[dict[str, Any]]:
        """Return each as a document."""
        return [self._document(use, self.notes[use]) for use in uses]

    def _document(self, use: IndexUse, note: IndexNote) -> dict[str, Any]:
        document = {
            "table_key": use.table_key,
            "property": use.column,
            "kind": str(use.kind),
            "coverage": note.coverage,
        }
        return document if note.reason is None else {**document, "reason": note.reason}


@dataclass(frozen=True, slots=True)
class Explanation:
    """A plan that can be shown, with the indexes that it can use where they were looked at."""

    plan: PhysicalPlan
    indexes: PlanIndexes | None = None

    def to_text(self) -> str:
        """Return the operators in the order they run, one per line, each with its estimate.

        What belongs to an operator is indented below it: conditions that it tests itself, and the
        operators inside an anti-join.
        """
        return "\n".join(_plan_lines(self.plan, self.indexes))

    def to_json(self) -> dict[str, Any]:
        """Return the plan as a document."""
        plan = self.plan
        return {
            "query_name": plan.name,
            "params": [{"name": name, "type": str(type_)} for name, type_ in plan.parameters.items()],
            "variables": [
                {"name": v.name, "kind": "edge" if v.is_edge else "node", "type": v.type_name}
                for v in plan.variables.values()
            ],
            "pipeline": [_document(operator, self.indexes) for operator in plan.pipeline],
            "return": [written_projection(projection) for projection in plan.projections],
            "order": [written_ordering(ordering) for ordering in plan.orderings],
            "limit": plan.limit,
            "estimated_rows": _number(plan.estimate),
            **_indexes(self.indexes, () if self.indexes is None else _ranking(plan, self.indexes)),
        }


def describe(plan: PhysicalPlan, indexes: PlanIndexes | None = None) -> Explanation:
    """Return the explanation of a plan."""
    return Explanation(plan, indexes)


def _ranking(plan: PhysicalPlan, indexes: PlanIndexes) -> tuple[IndexUse, ...]:
    return ranking_indexes(plan, indexes.catalog)


# Text


def _plan_lines(plan: PhysicalPlan, indexes: PlanIndexes | None) -> Iterator[str]:
    parameters = ", ".join(f"${name}: {type_}" for name, type_ in plan.parameters.items())
    yield f"query {plan.name}({parameters})  {_rows(plan.estimate)}"
    yield from _indented(_pipeline_lines(plan.pipeline, indexes))
    yield f"{_INDENT}return {', '.join(written_projection(item) for item in plan.projections)}"
    if plan.orderings:
        yield f"{_INDENT}order {', '.join(written_ordering(ordering) for ordering in plan.orderings)}"
        if indexes is not None:
            yield from _indented(_indented(indexes.lines(_ranking(plan, indexes))))
    if plan.limit is not None:
        yield f"{_INDENT}limit {plan.limit}"


def _pipeline_lines(operators: Iterable[PlanOperator], indexes: PlanIndexes | None) -> Iterator[str]:
    for operator in operators:
        yield f"{_head(operator)}  {_rows(operator.estimate)}{_kept(operator)}"
        if indexes is not None:
            yield from _indented(indexes.lines(indexes.of(operator)))
        yield from _indented(_details(operator, indexes))


def _head(operator: PlanOperator) -> str:
    match operator:
        case Scan():
            return f"scan ${operator.variable}: {operator.type_name}"
        case Join(scan, keys):
            kind = "join" if keys else "cross"
            return f"{kind} ${scan.variable}: {scan.type_name}"
        case Expand():
            return f"expand ${operator.src_var} {_arrow(operator)} ${operator.dst_var}: {operator.dst_type}"
        case Close():
            return f"close ${operator.left_var} {_arrow(operator)} ${operator.right_var}"
        case FilterRows():
            return "filter"
        case AntiJoin(on):
            return f"anti-join on {', '.join(f'${name}' for name in on)}"


def _arrow(operator: Expand | Close) -> str:
    hops = (operator.min_hops, operator.max_hops)
    bounds = "" if hops == (1, 1) else f"{{{hops[0]},{hops[1]}}}"
    binding = "" if operator.edge_binding is None else f"${operator.edge_binding}:"
    tail = "<-" if operator.direction is Direction.IN else "-"
    tip = "->" if operator.direction is Direction.OUT else "-"
    return f"{tail}[{binding}{operator.edge_type}{bounds}]{tip}"


def _details(operator: PlanOperator, indexes: PlanIndexes | None) -> Iterator[str]:
    match operator:
        case Scan(conditions=conditions) | FilterRows(conditions=conditions):
            yield from _where(conditions)
        case Join(scan, keys):
            for key in keys:
                yield f"on {written(key.own)} = {written(key.other)}"
            yield from _where(scan.conditions)
        case Expand():
            yield from _where(operator.edge_conditions)
            yield from _where(operator.dst_conditions)
        case Close():
            yield from _where(operator.edge_conditions)
        case AntiJoin(inner=inner):
            yield from _pipeline_lines(inner, indexes)


def _where(conditions: Iterable[Condition]) -> Iterator[str]:
    for condition in conditions:
        yield f"where {written(condition)}"


def _kept(operator: PlanOperator) -> str:
    return _KEPT[operator.keep] if isinstance(operator, Expand) else ""


def _rows(estimate: float) -> str:
    """Return an estimate with no false precision: at most two digits for a large or a small one."""
    if 0 < estimate < 0.05:
        return "<0.1 rows"
    if estimate >= 1e7:
        return f"~{estimate:.1e} rows".replace("e+0", "e").replace("e+", "e")
    shown = f"{estimate:.0f}" if estimate >= 10 else f"{estimate:.1f}".removesuffix(".0")
    return f"~{shown} {'row' if shown == '1' else 'rows'}"


def _indented(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield f"{_INDENT}{line}"


# JSON


def _indexes(indexes: PlanIndexes | None, uses: Iterable[IndexUse]) -> dict[str, Any]:
    """Return the member for indexes, where they were looked at."""
    return {} if indexes is None else {"indexes": indexes.documents(uses)}


def _document(operator: PlanOperator, indexes: PlanIndexes | None) -> dict[str, Any]:
    document: dict[str, Any]
    match operator:
        case Scan():
            document = {
                "operator": "scan",
                "variable": operator.variable,
                "type": operator.type_name,
                "conditions": _conditions(operator.conditions),
            }
        case Join(scan, keys):
            document = {
                "operator": "join",
                "variable": scan.variable,
                "type": scan.type_name,
                "conditions": _conditions(scan.conditions),
                "keys": [f"{written(key.own)} = {written(key.other)}" for key in keys],
                "estimated_scan_rows": _number(scan.estimate),
            }
        case Expand():
            document = {
                "operator": "expand",
                "from": operator.src_var,
                "to": operator.dst_var,
                "to_type": operator.dst_type,
                **_followed(operator),
                "conditions": _conditions(operator.dst_conditions),
                "keep": str(operator.keep),
            }
        case Close():
            document = {
                "operator": "close",
                "from": operator.left_var,
                "to": operator.right_var,
                **_followed(operator),
            }
        case FilterRows(conditions):
            document = {"operator": "filter", "conditions": _conditions(conditions)}
        case AntiJoin(on, inner):
            document = {
                "operator": "anti_join",
                "on": list(on),
                "inner": [_document(inside, indexes) for inside in inner],
            }
    used = () if indexes is None else indexes.of(operator)
    return {**document, "estimated_rows": _number(operator.estimate), **_indexes(indexes, used)}


def _followed(operator: Expand | Close) -> dict[str, Any]:
    return {
        "edge_type": operator.edge_type,
        "direction": str(operator.direction),
        "min_hops": operator.min_hops,
        "max_hops": operator.max_hops,
        "edge_variable": operator.edge_binding,
        "edge_conditions": _conditions(operator.edge_conditions),
    }


def _conditions(conditions: Iterable[Condition]) -> list[str]:
    return [written(condition) for condition in conditions]


def _number(estimate: float) -> float:
    """Return an estimate with as many digits as a reader could compare: six."""
    return float(f"{estimate:.6g}")
