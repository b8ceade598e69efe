"""What `diff`, `commit_changes`, the feed and the baseline share: filters, sides, and changes as values."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.bulk.export.values import python_records
from omnigraph.catalog.model import Catalog
from omnigraph.catalog.reshape import EntityType
from omnigraph.changes.model import (
    KINDS,
    ChangeFilter,
    Endpoints,
    EntityChange,
    Image,
    Op,
    type_id,
)
from omnigraph.changes.pairs import Boundary, Side, TablePair, differing_tables
from omnigraph.changes.position import Position
from omnigraph.changes.table_changes import ChangedRows, table_changes
from omnigraph.core.errors import BadRequest, ChangeCursorRejected
from omnigraph.core.nearest import hinting
from omnigraph.history.identity import identity_of
from omnigraph.history.state import Snapshot
from omnigraph.operations.context import OpenGraph


@dataclass(frozen=True, slots=True)
class WantedChanges:
    """Which changes a call wants, in its own words: types by their names on a branch now, or by table key.

    The words are looked up behind the gate: whoever may not read a graph does not learn its types.
    """

    kinds: Iterable[str] | None = None
    types: Iterable[str] | None = None
    ops: Iterable[str] | None = None
    branch: str | None = None

    def on(self, graph: OpenGraph) -> ChangeFilter:
        """Return the filter that the words mean.

        Raises:
            BadRequest: a kind, a type or an operation does not exist.
        """
        kinds, ops = frozenset(self.kinds or ()), frozenset(self.ops or ())
        _check(kinds, KINDS, "kind")
        _check(ops, [op.value for op in Op], "operation")
        type_ids = frozenset(
            type_id(graph.contract.accepted.domain, identity_of(type_))
            for name in self.types or ()
            for type_ in _named(graph.catalog_on(self.branch), name)
        )
        return ChangeFilter(kinds, type_ids, frozenset(Op(op) for op in ops))


def side_of(graph: OpenGraph, snapshot: Snapshot) -> Side:
    """Return a snapshot as one side of a comparison, with the schema that was accepted at its time."""
    return Side(snapshot, graph.catalog_of(snapshot))


def differing(
    graph: OpenGraph,
    before: Side,
    after: Side,
    wanted: ChangeFilter,
    *,
    refuse_drops: bool,
    way_out: Callable[[Boundary], str],
) -> tuple[TablePair, ...]:
    """Return the tables that differ between two sides, in order.

    Raises:
        ChangeSchemaBoundary: their rows cannot be compared.
    """
    return differing_tables(
        before,
        after,
        wanted,
        domain=graph.contract.accepted.domain,
        pinned=graph.parts.pinned,
        refuse_drops=refuse_drops,
        way_out=way_out,
    )


def changed_rows(
    graph: OpenGraph, pairs: Iterable[TablePair], wanted: ChangeFilter, beyond: Position | None = None
) -> Iterator[ChangedRows]:
    """Yield the changes of tables in order, starting after a position.

    Raises:
        ChangeCursorRejected: the position is not one of these tables.
        HistoricalVersionReclaimed: a pinned version was cleaned up.
    """
    graph.require_open()
    ordered = list(pairs)
    if beyond is not None:
        place = next((at for at, pair in enumerate(ordered) if pair.ref.id == beyond.type_id), None)
        if place is None:
            raise ChangeCursorRejected("it names a change that this commit does not have")
        ordered = ordered[place:]
    for pair in ordered:
        yield from table_changes(graph.parts.store, pair, wanted, beyond)
        beyond = None


def as_changes(rows: ChangedRows) -> Iterator[EntityChange]:
    """Yield changes with their images: JSON values, but for times."""
    pair = rows.pair
    before, after = _images(rows.before, pair.type), _images(rows.after, pair.type)
    for entity_id, op in zip(rows.ids.to_pylist(), rows.ops, strict=True):
        yield EntityChange(
            pair.kind,
            pair.ref,
            str(entity_id),
            op,
            None if op is Op.INSERT else next(before),
            None if op is Op.DELETE else next(after),
        )


def _images(rows: pa.Table, type_: EntityType) -> Iterator[Image]:
    for batch in rows.combine_chunks().to_batches():
        for record in python_records(batch, type_):
            data = record["data"]
            assert isinstance(data, dict), "a record has data"
            properties = {name: value for name, value in data.items() if name != "id"}
            ends = Endpoints(str(record["from"]), str(record["to"])) if "from" in record else None
            yield Image(properties, ends)


def _check(given: Iterable[str], known: Iterable[str], what: str) -> None:
    for word in given:
        if word not in known:
            raise BadRequest(f"unknown {what} '{word}': use one of {', '.join(known)}")


def _named(catalog: Catalog, name: str) -> list[EntityType]:
    """Return the types with a name or table key; a node and an edge may share a name."""
    found = [type_ for type_ in catalog.types if name in {type_.name, type_.table_key}]
    if not found:
        known = [type_.table_key if ":" in name else type_.name for type_ in catalog.types]
        raise BadRequest(f"unknown type '{name}'{hinting(name, known)}")
    return found
