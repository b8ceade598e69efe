"""Rankings: the nodes of a variable by relevance, distance or both, over the rows of the match.

K1  All conditions apply first: only nodes that rows have are ranked, so a limit counts matching rows.
K2  Nodes are ranked. Rows of one node are adjacent and share its rank; ties went to the smaller id.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.catalog.bound import Bm25Value, NearestValue, RankValue, RrfValue
from omnigraph.core.arrays import SlotArray, Values
from omnigraph.core.errors import ExecutionError
from omnigraph.exec.context import QueryContext
from omnigraph.exec.operators.operand import constant
from omnigraph.exec.rows import BindingTable, distinct
from omnigraph.exec.search import FEW_ROWS, Ranked, bm25, fuse, nearest, nearest_in_memory

RRF_K_DEFAULT = 60
COMPARED_ROW_BYTES = 48  # of a row whose vector is compared in memory: squares, products, errors, copies

READ_NUMBER_BYTES = (
    28  # of a number of a vector that is read: twice single, its difference and its square double
)


@dataclass(frozen=True, slots=True)
class Ranking:
    """Place and score of the nodes of a table by slot; the place of an unranked node is -1."""

    variable: str
    place: npt.NDArray[np.int64]
    score: npt.NDArray[np.float64]

    def scores(self, rows: BindingTable) -> Values:
        """Return the score of each row's node, null where it has none."""
        slots = rows.slots[self.variable]
        return pa.array(self.score[slots], mask=self.place[slots] < 0)


def rank(context: QueryContext, value: RankValue, rows: BindingTable, limit: int | None) -> Ranking:
    """Return the ranking of the nodes that rows have; with a limit, at least the best `limit`.

    Raises:
        ExecutionError: the query yields no tokens or no vector, or a number is out of range.
        EmbeddingError: a text cannot be embedded.
    """
    variable = value.first.field.variable if isinstance(value, RrfValue) else value.field.variable
    table_key = rows.tables[variable]
    known = context.view.slots(table_key)
    nodes = distinct(rows.slots[variable], known.size)
    limit = len(nodes) if limit is None else min(limit, len(nodes))
    place = np.full(known.size, -1, np.int64)
    score = np.zeros(known.size, np.float64)
    if limit:
        ranked = _ranked(context, table_key, value, nodes, limit)
        slots = known.of_row_ids(ranked.row_ids)
        place[slots] = np.arange(len(slots))
        score[slots] = ranked.scores
    return Ranking(variable, place, score)


def _ranked(
    context: QueryContext,
    table_key: str,
    value: RankValue,
    nodes: SlotArray,
    limit: int,
) -> Ranked:
    if isinstance(value, RrfValue):
        arms = [_arm(context, table_key, arm, nodes, limit) for arm in (value.first, value.second)]
        return fuse(arms[0], arms[1], _rrf_k(context, value), limit)
    return _single(context, table_key, value, nodes, limit)


def _arm(
    context: QueryContext,
    table_key: str,
    value: NearestValue | Bm25Value,
    nodes: SlotArray,
    limit: int,
) -> Ranked:
    """Rank one side of a fusion: for texts every match counts, for vectors the nearest `limit`."""
    return _single(context, table_key, value, nodes, limit if isinstance(value, NearestValue) else None)


def _single(
    context: QueryContext,
    table_key: str,
    value: NearestValue | Bm25Value,
    nodes: SlotArray,
    limit: int | None,
) -> Ranked:
    view = context.view
    table, field = view.table(table_key), value.field.property
    given = constant(value.query, context.parameters)
    assert given is not None
    nothing = Ranked(np.empty(0, np.int64), np.empty(0, np.float64))
    if given.value is None:
        return nothing
    if isinstance(value, Bm25Value):
        within = _restriction(context, table_key, nodes)
        return bm25(view.store, table.handle, field, str(given.value), within, limit, budget=context.budget)
    vector = given.value
    if isinstance(vector, str):
        dimension = value.field.type.dimension
        assert dimension is not None
        vector = tuple(context.embed(vector, dimension, value.model, f"{table_key.split(':')[1]}.{field}"))
    assert isinstance(vector, tuple)
    numbers = [float(item) for item in vector]
    block = view.vectors(table_key, field, len(nodes), few=FEW_ROWS)
    if block is not None:
        context.budget.allow(len(nodes) * COMPARED_ROW_BYTES)
        return nearest_in_memory(table.handle, field, block, numbers, nodes, limit)
    read = len(nodes) if limit is None else min(limit, len(nodes))
    context.budget.allow(read * len(numbers) * READ_NUMBER_BYTES)
    within = _restriction(context, table_key, nodes)
    return nearest(view.store, table.handle, field, numbers, within, limit, exact=context.is_exact)


def _restriction(context: QueryContext, table_key: str, nodes: SlotArray) -> npt.NDArray[np.int64] | None:
    """Return the rows of nodes; `None` where they are all that the table has."""
    known = context.view.slots(table_key)
    return None if len(nodes) == known.live_count else known.row_ids(nodes)


def _rrf_k(context: QueryContext, value: RrfValue) -> int:
    if value.k is None:
        return RRF_K_DEFAULT
    given = constant(value.k, context.parameters)
    if given is None or not isinstance(given.value, int) or given.value <= 0:
        raise ExecutionError("the k of rrf must be an integer greater than zero")
    return given.value
