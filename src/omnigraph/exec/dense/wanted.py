"""Which columns of changed rows the structures in memory will want, so that one read serves them all."""

from collections.abc import Iterable
from typing import assert_never

from omnigraph.catalog.bound import Direction
from omnigraph.exec.dense.adjacency_build import ends_of
from omnigraph.exec.dense.ids import ID
from omnigraph.exec.dense.pins import OpenTable, TablePin
from omnigraph.exec.dense.resident import ResidentKey
from omnigraph.storage.tables.rows import field_id


def columns_wanted(keys: Iterable[ResidentKey], table: OpenTable, generation: TablePin) -> list[str]:
    """Return the columns of a table that structures of a generation are made from, in the table's order."""
    wanted: set[str] = set()
    fields: set[str | int] = set()
    for key in keys:
        if not key.is_about(table.lineage, generation):
            continue
        match key.kind:
            case "ids":
                wanted.add(ID)
            case "column" | "vectors":
                fields.add(key.part)
            case "adjacency":
                wanted.update(ends_of(Direction.OUT))
            case "slots":
                pass
            case _:
                assert_never(key.kind)
    names = table.handle.schema.names
    if fields:
        wanted.update(name for name in names if field_id(table.handle, name) in fields)
    return [name for name in names if name in wanted]
