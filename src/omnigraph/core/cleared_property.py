"""What a merge load takes away from rows that exist."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClearedProperty:
    """A property that a merge set to null in rows that had a value; `rows` says how many."""

    table_key: str
    property: str
    rows: int
