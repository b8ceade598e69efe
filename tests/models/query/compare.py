"""Ask the engine, and say where it differs from the oracle."""

import json
from dataclasses import dataclass

import numpy as np

import omnigraph
from tests.models.query.answer import Answer, Approximate
from tests.models.query.render import QUERY_NAME, parameters_json, query_text
from tests.models.query.shape import Cell, Query


@dataclass(frozen=True, slots=True)
class Told:
    """What the engine answered, with rows as JSON shows them."""

    columns: list[str]
    rows: list[dict[str, Cell]]

    @property
    def text(self) -> str:
        """The answer as text: equal for equal bytes."""
        return json.dumps([self.columns, self.rows], ensure_ascii=False)


def ask(graph: omnigraph.Graph, query: Query) -> Told:
    """Run a query."""
    document = graph.query(query_text(query), QUERY_NAME, parameters_json(query)).to_json()
    return Told(list(document["columns"]), list(document["rows"]))


def difference(query: Query, expected: Answer, told: Told) -> str | None:
    """Return what is wrong with a result, or None."""
    rows = told.rows
    if told.columns != expected.columns:
        return f"columns {told.columns} instead of {expected.columns}"
    wanted = [dict(zip(expected.columns, row, strict=True)) for row in expected.rows]
    count = len(wanted) if query.limit is None else min(query.limit, len(wanted))
    if len(rows) != count:
        return f"{len(rows)} rows instead of {count}"
    if query.order:
        for at, (found, want) in enumerate(zip(rows, wanted, strict=False)):
            if not same(found, want):
                return f"row {at} is {found} instead of {want}"
        return None
    left = sorted(wanted, key=_sort_key)
    for row in sorted(rows, key=_sort_key):
        place = next((at for at, want in enumerate(left) if same(row, want)), None)
        if place is None:
            return f"row {row} should not be there"
        left.pop(place)
    return None


def same(found: Cell, wanted: Cell) -> bool:
    """Are two JSON values equal, the order of an object's members included?"""
    if isinstance(wanted, Approximate):
        is_number = isinstance(found, int | float) and not isinstance(found, bool)
        return is_number and abs(found - wanted.value) <= wanted.slack + 1e-12 * abs(wanted.value)
    if isinstance(wanted, dict):
        is_like = isinstance(found, dict) and list(found) == list(wanted)
        return is_like and all(same(found[name], wanted[name]) for name in wanted)
    if isinstance(wanted, list):
        is_like = isinstance(found, list) and len(found) == len(wanted)
        return is_like and all(same(a, b) for a, b in zip(found, wanted, strict=True))
    return type(found) is type(wanted) and (bool(found == wanted) or _is_short(found, wanted))


def _is_short(found: Cell, wanted: Cell) -> bool:
    """Is a float the one with the fewest digits that mean the same of 32 bits, as documents show those?"""
    if not isinstance(found, float) or not isinstance(wanted, float):
        return False
    with np.errstate(over="ignore"):
        narrow = np.float32(wanted)
    return float(narrow) == wanted and found == float(str(narrow))


def _sort_key(row: Cell) -> str:
    return json.dumps(row, default=lambda _: "", sort_keys=True)
