"""What the operators of one running query share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from omnigraph.exec.operators.operand import Parameters
from omnigraph.exec.rows import Budget
from omnigraph.exec.view import GraphView

# The text, the dimension, the model recorded for the property if any, and the name of the property.
EmbedText: TypeAlias = Callable[[str, int, str | None, str], Sequence[float]]


@dataclass(frozen=True, slots=True)
class QueryContext:
    """One query on one snapshot: its parameters, its limits, and what embeds its texts.

    An exact query compares all vectors instead of asking an approximate index.
    """

    view: GraphView
    parameters: Parameters
    budget: Budget
    embed: EmbedText
    is_exact: bool = False
