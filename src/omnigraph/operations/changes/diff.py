"""`diff`: what differs between two targets, in order and some rows at a time."""

from collections.abc import Iterator
from dataclasses import dataclass

from omnigraph.changes.model import ChangeFilter, EntityChange, Op
from omnigraph.changes.pairs import Side, TablePair
from omnigraph.changes.table_changes import count_changes
from omnigraph.history.state import Snapshot
from omnigraph.operations.changes.sides import as_changes, changed_rows, differing, side_of
from omnigraph.operations.context import OpenGraph
from omnigraph.operations.pin import Target, read_target
from omnigraph.operations.reclaimed import reading_of


@dataclass(frozen=True, slots=True)
class TableCounts:
    """How many entities of one table were inserted, updated and deleted."""

    table_key: str
    inserted: int = 0
    updated: int = 0
    deleted: int = 0


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Diff:
    """The differences between two snapshots; iterating gives the changes from one to the other, in order."""

    graph: OpenGraph
    from_snapshot: Snapshot
    to_snapshot: Snapshot
    pairs: tuple[TablePair, ...]
    filter: ChangeFilter

    def __iter__(self) -> Iterator[EntityChange]:
        """Yield the changes: nodes before edges, then by type, then by id."""
        with reading_of(self.graph, self.from_snapshot, self.to_snapshot):
            for rows in changed_rows(self.graph, self.pairs, self.filter):
                yield from as_changes(rows)

    def stat(self) -> tuple[TableCounts, ...]:
        """Count the changes of each table that has any, without building their images."""
        self.graph.require_open()
        with reading_of(self.graph, self.from_snapshot, self.to_snapshot):
            counted = [
                (pair.type.table_key, count_changes(self.graph.parts.store, pair, self.filter))
                for pair in self.pairs
            ]
        return tuple(
            TableCounts(table_key, of[Op.INSERT], of[Op.UPDATE], of[Op.DELETE])
            for table_key, of in counted
            if any(of.values())
        )


def diff(
    graph: OpenGraph,
    from_target: Target,
    to_target: Target,
    wanted: ChangeFilter,
    *,
    actor: str | None = None,
) -> Diff:
    """Pin two targets and say which tables differ; rows are compared when the changes are asked for.

    Raises:
        NotFoundError: a target is neither a branch nor a commit.
        ChangeSchemaBoundary: a type has different properties on the two sides.
        PolicyDenied: the actor may not read one of them.
    """
    sides = [_side(graph, target, actor) for target in (from_target, to_target)]
    pairs = differing(graph, sides[0], sides[1], wanted, refuse_drops=False)
    made = Diff(graph, sides[0].snapshot, sides[1].snapshot, pairs, wanted)
    graph.parts.readers.keep(made, made.from_snapshot, made.to_snapshot)
    return made


def _side(graph: OpenGraph, target: Target, actor: str | None) -> Side:
    return side_of(graph, read_target(graph, target, actor))
