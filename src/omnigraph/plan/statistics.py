"""What the planner asks about the pinned versions that a plan is made for."""

from typing import Protocol


class Statistics(Protocol):
    """Counts of one snapshot. A table key is `node:<type>` or `edge:<type>`."""

    def rows(self, table_key: str) -> int:
        """Return how many rows the table has."""

    def distinct(self, table_key: str, column: str) -> float | None:
        """Return the approximate number of distinct values in the column, or `None` if it was not counted."""

    def is_indexed(self, table_key: str, column: str) -> bool:
        """Return whether a scalar index covers the column."""
