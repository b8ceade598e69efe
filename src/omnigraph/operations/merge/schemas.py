"""The schemas of a merge: what the target's becomes, and how rows of three schemas are compared.

E1  Schemas are merged first, three ways like everything else; rows are then compared as the merged schema
    shows them, by the numbers of their properties.
E2  Nothing that somebody wrote is lost without a word: a row that one side changed in a type that the other
    dropped, and a value of a property that the other dropped, are conflicts.
E3  Where all schemas are the same, none of this costs anything.
E4  A branch that was upgraded has taken over the schema of a commit of main, and none of its rows: for the
    schema that commit is an ancestor. Otherwise what main drops after the upgrade would come back.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.build import build_catalog
from omnigraph.catalog.identity import AcceptedSchema
from omnigraph.catalog.merge_schemas import merge_schemas
from omnigraph.catalog.model import Catalog
from omnigraph.catalog.reshape import EntityType
from omnigraph.changes.changed_ids import changed_ids, images
from omnigraph.changes.row_equality import rows_equal
from omnigraph.core.merge_conflict import MergeConflict, MergeConflictKind
from omnigraph.history.ancestry import MergedBase
from omnigraph.history.contract import accepted_in, contract_of
from omnigraph.history.fold import TableEntry, greatest, where_null
from omnigraph.history.identity import TableIdentity, identity_of
from omnigraph.history.state import ManifestState, Snapshot
from omnigraph.merge.base import Base, base_rows, points_of, table_base
from omnigraph.merge.rows import RowReader, as_texts
from omnigraph.merge.shapes import NO_SHAPES, RowShape, Shapes, row_shape
from omnigraph.operations.context import OpenGraph
from omnigraph.operations.schema.change import AcceptedChange, accept_merged
from omnigraph.storage.tables.pinned import PinnedTable

_compute: Any = pc  # the stubs know too little of arrays of text


@dataclass(frozen=True, slots=True)
class SchemaMerge:
    """What a merge makes of the schema; `change` is None where the target keeps its own.

    `names` are the tables of the result by lifetime, `added` those that only the source has.
    """

    catalog: Catalog
    names: Mapping[TableIdentity, str]
    change: AcceptedChange | None = None
    shapes: Shapes = field(default_factory=lambda: NO_SHAPES)
    added: tuple[tuple[str, TableEntry], ...] = ()
    conflicts: tuple[MergeConflict, ...] = ()


def merge_schema(
    graph: OpenGraph,
    base: Base,
    source: ManifestState,
    target: ManifestState,
    *,
    with_rows: bool = True,
    dry_run: bool = False,
    purges: bool = False,
) -> SchemaMerge:
    """Merge the schemas of two branches, over that of what they have in common (E1).

    Without rows only the schema of the source is taken, and what it wrote since does not count. A dry run
    reserves nothing. `purges` makes what the target loses go for good.

    Raises:
        StorageError: the store failed.
    """
    texts = {source.schema.text, target.schema.text, *(each.schema_text for each in _snapshots(base))}
    own = graph.catalog_of(target)
    if len(texts) == 1:
        return SchemaMerge(own, _names(own))
    ours, theirs = accepted_in(target.schema.text), accepted_in(source.schema.text)
    merged = merge_schemas(_common_schema(graph, base, source, target), ours, theirs)
    if merged.accepted is None:
        conflicts = tuple(
            MergeConflict(
                found.table_key,
                None,
                MergeConflictKind.SCHEMA_CONFLICT,
                f"{found.message}: {found.property}" if found.property else found.message,
            )
            for found in merged.conflicts
        )
        return SchemaMerge(own, _names(own), conflicts=conflicts)
    catalog = build_catalog(merged.accepted)
    change = None
    if not _is_same(merged.accepted, ours):
        is_theirs = _is_same(merged.accepted, theirs)
        text = contract_of(graph.parts.coordinator, source).source if is_theirs else merged.text
        change = accept_merged(graph, target, merged.accepted, source=text, dry_run=dry_run, purges=purges)
        catalog = change.contract.catalog
    snapshots = [*_snapshots(base), target.snapshot(), *([source.snapshot()] if with_rows else [])]
    names = _names(catalog)
    return SchemaMerge(
        catalog,
        names,
        change,
        dict(_shapes(graph, catalog, snapshots)),
        tuple(_added(names, source.snapshot(), target.snapshot())),
        tuple(_lost(graph, base, catalog, source, target, with_rows=with_rows)),
    )


def _snapshots(base: Base) -> Iterator[Snapshot]:
    if isinstance(base, MergedBase):
        for part in (base.one, base.other, base.over):
            yield from _snapshots(part)
    else:
        yield base


def _common_schema(
    graph: OpenGraph, base: Base, source: ManifestState, target: ManifestState
) -> AcceptedSchema:
    """Return the schema that both sides come from: newer than their rows if a branch was upgraded (E4)."""
    found = _schema_of(base)
    main = graph.state()
    upgraded, with_rows = (
        min(known(graph, main, source), known(graph, main, target))
        for known in (_main_version_of_schema, _main_version_of_rows)
    )
    if upgraded <= with_rows:
        return found
    before, after = (accepted_in(main.schema_text_at(version)) for version in (with_rows, upgraded))
    return merge_schemas(before, found, after).accepted or found


def _main_version_of_schema(graph: OpenGraph, main: ManifestState, side: ManifestState) -> int:
    """Return the newest version of main whose schema a side has, by its own history or by an upgrade."""
    upgrades = (main.commits.find(commit_id) for commit_id in graph.parts.coordinator.schema_upgrades(side))
    versions = [commit.manifest_version for commit in upgrades if commit is not None]
    return max([_main_version_of_rows(graph, main, side), *versions])


def _main_version_of_rows(_graph: OpenGraph, main: ManifestState, side: ManifestState) -> int:
    """Return the newest version of main that is in the history of a side, with its rows."""
    if side.branch.is_main:
        return main.sequence
    merged = (main.commits.find(each) for each in _merged_parents(side))
    own = where_null(side.commits.rows(), "table_branch")
    versions = [greatest(own, "table_version")] if own.num_rows else []
    return max([0, *versions, *(commit.manifest_version for commit in merged if commit is not None)])


def _merged_parents(side: ManifestState) -> list[str]:
    commits = side.commits.newest_first()
    return [each.merged_parent_commit_id for each in commits if each.merged_parent_commit_id is not None]


def _schema_of(base: Base) -> AcceptedSchema:
    """Return the schema of what two sides have in common; where several disagree, of what those have."""
    if not isinstance(base, MergedBase):
        return accepted_in(base.schema_text)
    over, one, other = (_schema_of(part) for part in (base.over, base.one, base.other))
    return merge_schemas(over, one, other).accepted or over


def _is_same(one: AcceptedSchema, other: AcceptedSchema) -> bool:
    """Return whether two schemas say the same, whatever numbers were issued since.

    Fills are said by nobody: they differ only where an earlier build kept none.
    """
    numbered = replace(one, shape=other.shape, next_id=other.next_id, fills=other.fills)
    return one.shape.hash == other.shape.hash and numbered == other


def _names(catalog: Catalog) -> dict[TableIdentity, str]:
    return {identity_of(type_): type_.table_key for type_ in catalog.types}


def _types(catalog: Catalog) -> dict[TableIdentity, EntityType]:
    return {identity_of(type_): type_ for type_ in catalog.types}


def _shapes(
    graph: OpenGraph, catalog: Catalog, snapshots: list[Snapshot]
) -> Iterator[tuple[PinnedTable, RowShape]]:
    """Yield how rows of each table become rows of the result, where they are not yet."""
    types = _types(catalog)
    for snapshot in snapshots:
        there = _types(graph.catalog_of(snapshot))
        for entry in snapshot.entries.values():
            if entry.identity in types:
                shape = row_shape(there[entry.identity], types[entry.identity])
                if shape is not None:
                    yield graph.parts.pinned(entry), shape


def _added(
    names: Mapping[TableIdentity, str], source: Snapshot, target: Snapshot
) -> Iterator[tuple[str, TableEntry]]:
    known = {entry.identity for entry in target.entries.values()}
    for entry in source.entries.values():
        if entry.identity in names and entry.identity not in known:
            yield names[entry.identity], entry


def _lost(
    graph: OpenGraph,
    base: Base,
    merged: Catalog,
    source: ManifestState,
    target: ManifestState,
    *,
    with_rows: bool,
) -> Iterator[MergeConflict]:
    """Yield what a side wrote to something that the result does not have (E2)."""
    kept = _types(merged)
    for state in (source, target) if with_rows else (target,):
        snapshot = state.snapshot()
        types = _types(graph.catalog_of(snapshot))
        for entry in snapshot.entries.values():
            known = table_base(base, entry.identity, graph.parts.pinned)
            if known is None:
                continue
            type_, result = types[entry.identity], kept.get(entry.identity)
            lost = _lost_columns(type_, result)
            if result is None or lost:
                found = _Loss(graph, base, entry, type_)
                yield from found.of_type() if result is None else found.of_properties(lost)


def _lost_columns(type_: EntityType, result: EntityType | None) -> list[str]:
    left = set() if result is None else {item.id for item in result.properties.values()}
    return [item.name for item in type_.properties.values() if item.id not in left]


class _Loss:
    """What one side wrote to a table, in its own columns, that the result does not have."""

    def __init__(self, graph: OpenGraph, base: Base, entry: TableEntry, type_: EntityType) -> None:
        self._store = graph.parts.store
        self._entry, self._type = entry, type_
        self._point = graph.parts.pinned(entry)
        self._base = table_base(base, entry.identity, graph.parts.pinned)
        self._in_base: set[int] = set()
        shapes: dict[PinnedTable, RowShape] = {}
        for snapshot in _snapshots(base):
            there = _types(graph.catalog_of(snapshot)).get(entry.identity)
            if there is None:
                continue
            self._in_base |= {item.id for item in there.properties.values()}
            shape = row_shape(there, type_)
            if shape is not None:
                pinned = next(each for each in snapshot.entries.values() if each.identity == entry.identity)
                shapes[graph.parts.pinned(pinned)] = shape
        self._reader = RowReader(self._store, shapes)

    def of_type(self) -> Iterator[MergeConflict]:
        """Yield the rows that were changed or inserted."""
        for row_id in self._changed(self._type_columns()):
            message = "one side changed it, the other dropped its type"
            yield MergeConflict(self._entry.table_key, row_id, MergeConflictKind.DROPPED_TYPE, message)

    def of_properties(self, columns: list[str]) -> Iterator[MergeConflict]:
        """Yield the rows with values of dropped properties that were written since."""
        lost = [name for name in columns if self._type.properties[name].id in self._in_base]
        for row_id in self._changed(lost) if lost else ():
            message = f"one side wrote a value of a property that the other dropped: {', '.join(lost)}"
            yield MergeConflict(self._entry.table_key, row_id, MergeConflictKind.DROPPED_PROPERTY, message)

    def _type_columns(self) -> list[str]:
        ends = [] if not hasattr(self._type, "source") else ["src", "dst"]
        return [*ends, *self._type.properties]

    def _changed(self, columns: list[str]) -> list[str]:
        """Return the ids of rows that differ from the base in some columns, or are new and have a value.

        What the base is in doubt about is no row of it, and so as good as new.
        """
        ids: set[str] = set()
        for point in points_of(self._base):
            found = changed_ids(self._store, point, self._point)
            ids |= {*as_texts(found.inserted), *as_texts(found.updated)}
        wanted = pa.array(sorted(ids), pa.utf8())
        here = images(self._store, self._point, wanted).select(["id", *columns])
        known, _ = base_rows(self._reader, self._base, wanted)
        there = here.slice(0, 0) if known is None else known.select(["id", *columns])
        is_known = _compute.is_in(here["id"], value_set=there["id"].combine_chunks())
        both, new = here.filter(is_known), here.filter(_compute.invert(is_known))
        matching = there.filter(_compute.is_in(there["id"], value_set=both["id"].combine_chunks()))
        differing = both["id"].filter(_compute.invert(rows_equal(matching, both)))
        written = as_texts(new["id"])
        if set(columns) != set(self._type_columns()):
            written = [row["id"] for row in new.to_pylist() if any(row[name] is not None for name in columns)]
        return sorted({*as_texts(differing), *written})
