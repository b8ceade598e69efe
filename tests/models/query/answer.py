"""What the oracle answers, and how a value looks as JSON (languages 3.7)."""

from dataclasses import dataclass
from datetime import date, datetime

from tests.models.query import shape as q
from tests.models.query.shape import Cell, Edge, Expression, Node, Property

SAFE_INTEGER = 2**53 - 1


@dataclass(frozen=True, slots=True)
class Approximate:
    """A float that another order of additions may miss by `slack`."""

    value: float
    slack: float


@dataclass(frozen=True, slots=True)
class Answer:
    """Rows of JSON values, before the limit is applied."""

    columns: list[str]
    rows: list[list[Cell]]


def column_name(expression: Expression) -> str:
    match expression:
        case Property(variable, name):
            return f"{variable}.{name}"
        case q.Variable(name) | q.Parameter(name):
            return name
        case q.Aggregate(_, argument):
            return column_name(argument)
        case _:
            return type(expression).__name__.lower()


def plain(value: Cell) -> Cell:
    """Return a value as JSON shows it."""
    match value:
        case bool() | str() | float() | Approximate() | None:
            return value
        case int():
            return value if abs(value) <= SAFE_INTEGER else str(value)
        case datetime():
            return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        case date():
            return value.isoformat()
        case Node() | Edge():
            ends = {"src": value.source, "dst": value.target} if isinstance(value, Edge) else {}
            return {
                "id": value.id,
                **ends,
                **{name: plain(value.values[name]) for name in sorted(value.values)},
            }
        case _:
            return [plain(item) for item in value]
