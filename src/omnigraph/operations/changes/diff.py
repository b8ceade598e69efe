"""`diff`: what differs between two targets, in order and some rows at a time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from omnigraph.changes.model import ChangeFilter, EntityChange, Op
from omnigraph.changes.pairs import Side, TablePair
from omnigraph.changes.table_changes import count_changes
from omnigraph.history.identity import branch_name
from omnigraph.history.state import Snapshot
from omnigraph.operations.changes.sides import WantedChanges, as_changes, changed_rows, differing, side_of
from omnigraph.operations.changes.ways_out import way_out_of_diff
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

    def __repr__(self) -> str:
        return diff_line("Diff", self.from_snapshot, self.to_snapshot, self._tables)

    def _repr_html_(self) -> str:
        return diff_shown(self.from_snapshot, self.to_snapshot, self._tables)

    @property
    def _tables(self) -> list[str]:
        return [pair.type.table_key for pair in self.pairs]

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


class ShownSide(Protocol):
    """What is shown of one side of a diff."""

    @property
    def branch(self) -> str | None:
        """Its branch; None is main."""
        ...

    @property
    def manifest_version(self) -> int:
        """Its version."""
        ...


def diff_line(kind: str, before: ShownSide, after: ShownSide, tables: Sequence[str]) -> str:
    """Return the two sides of a diff and which tables differ, in one line."""
    return (
        f"{kind}(from {_shown(before)} to {_shown(after)}: {', '.join(sorted(tables)) or 'no table'} differ)"
    )


def diff_shown(before: ShownSide, after: ShownSide, tables: Sequence[str]) -> str:
    """Return the tables that differ as a notebook shows them."""
    from omnigraph.core.markup import table  # late: for people who look at one

    return table(["tables that differ"], [(name,) for name in tables], f"{_shown(before)} → {_shown(after)}")


def _shown(side: ShownSide) -> str:
    return f"{branch_name(side.branch)!r} at {side.manifest_version}"


def diff(
    graph: OpenGraph,
    from_target: Target,
    to_target: Target,
    wanted: WantedChanges,
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
    filter_ = wanted.on(graph)
    pairs = differing(
        graph,
        sides[0],
        sides[1],
        filter_,
        refuse_drops=False,
        way_out=lambda boundary: way_out_of_diff(graph, boundary, from_target, to_target),
    )
    made = Diff(graph, sides[0].snapshot, sides[1].snapshot, pairs, filter_)
    graph.parts.readers.keep(made, made.from_snapshot, made.to_snapshot)
    return made


def _side(graph: OpenGraph, target: Target, actor: str | None) -> Side:
    return side_of(graph, read_target(graph, target, actor))
