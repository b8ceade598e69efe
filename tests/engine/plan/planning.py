"""Plans of reads over the library schema, with counts that a test chooses."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from omnigraph.plan.describe import describe
from omnigraph.plan.optimize import plan_read
from omnigraph.plan.physical import PhysicalPlan
from tests.support.library import catalog
from tests.support.queries import bind_read, read

ROWS = {
    "node:Author": 200,
    "node:Book": 1_000,
    "node:Note": 500,
    "node:Shelf": 20,
    "edge:About": 600,
    "edge:Cites": 4_000,
    "edge:Mentors": 150,
    "edge:StoredOn": 900,
    "edge:Wrote": 1_500,
}


@dataclass(frozen=True)
class Counts:
    """Statistics that are written down."""

    tables: Mapping[str, int] = field(default_factory=lambda: ROWS)
    values: Mapping[tuple[str, str], float] = field(default_factory=dict)
    indexes: frozenset[tuple[str, str]] = frozenset()

    def rows(self, table_key: str) -> int:
        return self.tables[table_key]

    def distinct(self, table_key: str, column: str) -> float | None:
        return self.values.get((table_key, column))

    def is_indexed(self, table_key: str, column: str) -> bool:
        return (table_key, column) in self.indexes


def planned(
    match: str, tail: str = "return { 1 }", params: str = "", counts: Counts | None = None
) -> PhysicalPlan:
    """Return the physical plan of a match block."""
    return plan_read(bind_read(read(match, tail, params)), catalog(), counts or Counts())


def explained(
    match: str, tail: str = "return { 1 }", params: str = "", counts: Counts | None = None
) -> list[str]:
    """Return the lines that explain the operators of a match block, without the query's own lines."""
    lines = describe(planned(match, tail, params, counts)).to_text().splitlines()
    return [line.removeprefix("  ") for line in lines[1:] if not line.startswith(("  return ", "  order "))]


def operators(
    match: str, tail: str = "return { 1 }", params: str = "", counts: Counts | None = None
) -> list[str]:
    """Return the operators of a match block, without estimates and conditions."""
    lines = explained(match, tail, params, counts)
    kept = [line for line in lines if not line.lstrip().startswith(("where ", "limit "))]
    return [re.sub(r"  [~<][0-9.e]+ rows?", "", line) for line in kept]
