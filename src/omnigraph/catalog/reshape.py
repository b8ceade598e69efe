"""What a change of schema does to tables: which come and go, and where the columns of the others come from.

T1  Types and properties are matched by their numbers, never by their names.
T2  A column is written anew only if its values are: a fill for rows that lack one, or a wider type.
T3  A node table whose type gets a new kind of edge moves although its columns stay: whoever is removing nodes
    under the old schema has not looked for such edges, and must not come in behind it.
T4  Where drops are final, the values of a dropped property stay in no file: what else is in its files is
    written anew.
"""

from dataclasses import dataclass

from omnigraph.catalog.arrow_schema import arrow_schema, arrow_type
from omnigraph.catalog.model import Catalog, EdgeType, NodeType, Property

EntityType = NodeType | EdgeType


@dataclass(frozen=True, slots=True)
class ColumnOrigin:
    """Where a column of the new table comes from.

    `column` is that of the old table, under its old name; None is a new one. `is_new` asks for a column of
    its own in storage. `property` is the property, None for the columns that every table has.
    """

    column: str | None
    is_new: bool
    property: Property | None = None


@dataclass(frozen=True, slots=True)
class Reshape:
    """A table that gets other columns, by name; `purged` are old ones of which no value may be left."""

    old: EntityType
    new: EntityType
    columns: dict[str, ColumnOrigin]
    purged: tuple[str, ...] = ()

    @property
    def writes_rows(self) -> bool:
        """Whether values of rows are written for it (T2, T4)."""
        new = (origin for origin in self.columns.values() if origin.is_new)
        return bool(self.purged) or any(
            origin.column is not None or (origin.property is not None and origin.property.fill is not None)
            for origin in new
        )


@dataclass(frozen=True, slots=True)
class TableChanges:
    """What becomes of the tables of a graph."""

    added: tuple[EntityType, ...]
    dropped: tuple[EntityType, ...]
    renamed: tuple[tuple[EntityType, EntityType], ...]
    reshaped: tuple[Reshape, ...]


def table_changes(before: Catalog, after: Catalog, *, purges: bool = False) -> TableChanges:
    """Return what a schema that follows another one does to tables (T1); `purges` makes drops final (T4)."""
    old = {(type_.id, type_.incarnation): type_ for type_ in before.types}
    new = {(type_.id, type_.incarnation): type_ for type_ in after.types}
    kept = [(old[key], type_) for key, type_ in new.items() if key in old]
    added = tuple(type_ for key, type_ in new.items() if key not in old)
    ends = {name for type_ in added if isinstance(type_, EdgeType) for name in (type_.source, type_.target)}
    reshaped = (
        _as_it_is(former, type_)
        if isinstance(type_, NodeType) and type_.name in ends and not has_other_columns(former, type_)
        else reshape(former, type_, purges=purges)
        for former, type_ in kept
    )
    return TableChanges(
        added=added,
        dropped=tuple(type_ for key, type_ in old.items() if key not in new),
        renamed=tuple(pair for pair in kept if pair[0].name != pair[1].name),
        reshaped=tuple(found for found in reshaped if found is not None),
    )


def has_other_columns(old: EntityType, new: EntityType) -> bool:
    """Return whether the columns of a table change, or what is stored about them."""
    return not arrow_schema(old).equals(arrow_schema(new), check_metadata=True)


def _as_it_is(old: EntityType, new: EntityType) -> Reshape:
    """Return a commit that changes nothing (T3)."""
    names = arrow_schema(new).names
    return Reshape(
        old,
        new,
        {name: ColumnOrigin(name, is_new=False, property=new.properties.get(name)) for name in names},
    )


def reshape(old: EntityType, new: EntityType, *, purges: bool = False) -> Reshape | None:
    """Return the new columns of a table; None if they are the same, also in what is stored about them."""
    if not has_other_columns(old, new):
        return None
    former = {item.id: item for item in old.properties.values()}
    pairs = [(former.get(item.id), item) for item in new.properties.values()]
    kept = {item.id for item in new.properties.values()}
    purged = tuple(item.name for item in old.properties.values() if purges and item.id not in kept)
    # A commit that writes columns cannot let another one take nulls, or the name of a third one that goes,
    # except by writing that one too.
    has_values = bool(purged) or any(_has_values(*pair) for pair in pairs)
    fixed = [name for name in arrow_schema(new).names if name not in new.properties]
    columns = {name: ColumnOrigin(name, is_new=False) for name in fixed}
    for source, item in pairs:
        columns[item.name] = ColumnOrigin(
            None if source is None else source.name,
            is_new=source is None
            or _has_values(source, item)
            or (has_values and _is_bound(source, item, old)),
            property=item,
        )
    return Reshape(old, new, columns, purged)


def _is_bound(source: Property, item: Property, old: EntityType) -> bool:
    """Return whether a column that stays cannot become what it shall be while others are written."""
    is_relaxed = item.type.nullable and not source.type.nullable
    return is_relaxed or (item.name != source.name and item.name in old.properties)


def _has_values(source: Property | None, item: Property) -> bool:
    """Return whether the values of a column have to be worked out (T2)."""
    if source is None:
        return item.fill is not None
    return arrow_type(source.type) != arrow_type(item.type)
