"""What a load in mode merge clears in existing rows."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClearedProperty:
    """A property that an upsert set to null in rows that had a value; `rows` says how many."""

    table_key: str
    property: str
    rows: int
