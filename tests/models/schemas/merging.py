"""Three states into one: schemas by the numbers of their parts, then rows, entity by entity.

The promises S4 to S9 of `model` are kept here.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import NamedTuple, TypeVar

from tests.models.schemas.shape import Property, Schema, Type, Value, broken_names

Row = dict[int | str, Value]  # by the number of a property; an edge has `src` and `dst` as well
Rows = Mapping[int, Mapping[str, Row]]  # by the number of a type, and the id

DOUBT: Row = {"in doubt": True}  # of a base: its ancestors do not agree
INSERTED_VALUES_COUNT = True  # an inserted row that has a value of a property that was dropped is a conflict


class Conflict(NamedTuple):
    """What stands in the way of a merge: where, and of which kind."""

    where: str
    row_id: str
    kind: str


@dataclass(frozen=True, slots=True)
class State:
    """A schema, and the rows of each of its types."""

    schema: Schema
    rows: Rows


Found = tuple[State, frozenset[Conflict]]
T = TypeVar("T", Property, Type)


def merge_states(base: State, theirs: State, ours: State) -> Found:
    """Return ours with what only they changed, and what cannot be brought together.

    With a conflict in the schema the state is ours. A row in conflict stays as we have it.
    """
    schema, conflicts = merge_schemas(base.schema, theirs.schema, ours.schema)
    if conflicts:
        return ours, frozenset(conflicts)
    conflicts |= {each for side in (theirs, ours) for each in _lost_rows(base, side, schema)}
    rows = {}
    for number, shape in schema.items():
        was, they, we = (_Side(state, number) for state in (base, theirs, ours))
        rows[number] = _merge_rows(was, they, we, shape, conflicts)
    merged = State(schema, rows)
    return merged, frozenset(conflicts | orphans(merged))


def orphans(state: State) -> set[Conflict]:
    """Return the edges that have lost an end."""
    return {
        Conflict(f"{shape.kind}:{shape.name}", each, "orphan_edge")
        for number, shape in state.schema.items()
        for each, row in state.rows[number].items()
        if shape.ends is not None and row != DOUBT
        if row["src"] not in state.rows[shape.ends[0]] or row["dst"] not in state.rows[shape.ends[1]]
    }


def fit(row: Row, shape: Type) -> Row:
    """Return a row with the properties that a type has: others go, missing ones show their fill."""
    if row == DOUBT:
        return row
    values: Row = {number: row.get(number, each.fill) for number, each in shape.properties.items()}
    return values | {end: row[end] for end in ("src", "dst") if end in row}


def fit_all(rows: Rows, schema: Schema) -> Rows:
    """Return rows with the types and properties that a schema has."""
    return {
        number: {each: fit(row, shape) for each, row in rows.get(number, {}).items()}
        for number, shape in schema.items()
    }


# Schemas


def merge_schemas(base: Schema, theirs: Schema, ours: Schema) -> tuple[Schema, set[Conflict]]:
    """Return the schema with the changes of both sides, and what they changed in different ways."""
    conflicts = set[Conflict]()
    merged = _merge_parts(base, theirs, ours, "schema", _merge_type, conflicts)
    if not conflicts:
        conflicts |= {Conflict("schema", reason, "name") for reason in broken_names(merged)}
    return merged, conflicts


Join = Callable[[T | None, T, T, str, set[Conflict]], T]


def _merge_parts(
    base: Mapping[int, T],
    theirs: Mapping[int, T],
    ours: Mapping[int, T],
    where: str,
    join: Join[T],
    conflicts: set[Conflict],
) -> dict[int, T]:
    """Merge the parts of a whole: what one side added or dropped, and what both have."""
    merged = {}
    for number in sorted(base.keys() | theirs.keys() | ours.keys()):
        was, they, we = base.get(number), theirs.get(number), ours.get(number)
        if they is not None and we is not None:
            merged[number] = join(was, they, we, f"{where} {number}", conflicts)
        elif they is None and we is None:
            continue
        else:
            kept = they if we is None else we
            assert kept is not None
            if was is None:
                merged[number] = kept
            elif kept != was:
                conflicts.add(Conflict(f"{where} {number}", "", "dropped_and_changed"))
    return merged


def _merge_type(was: Type | None, they: Type, we: Type, where: str, conflicts: set[Conflict]) -> Type:
    name = _pick(None if was is None else (was.name,), they.name, we.name, where, conflicts)
    known: Mapping[int, Property] = {} if was is None else was.properties
    properties = _merge_parts(
        known, they.properties, we.properties, f"{where} {we.name}", _merge_property, conflicts
    )
    return Type(we.kind, name, properties, we.ends)


def _merge_property(
    was: Property | None, they: Property, we: Property, where: str, conflicts: set[Conflict]
) -> Property:
    """Merge attribute by attribute."""
    values = {
        each.name: _pick(
            None if was is None else (getattr(was, each.name),),
            getattr(they, each.name),
            getattr(we, each.name),
            f"{where} {each.name}",
            conflicts,
        )
        for each in fields(Property)
        if each.name != "values" or was is None
    }
    if was is not None:
        values["values"] = they.values | we.values  # an enum only gains values, and keeps those of both sides
    return Property(**values)


V = TypeVar("V")


def _pick(was: tuple[V] | None, they: V, we: V, where: str, conflicts: set[Conflict]) -> V:
    """Return what one side changed, or both in the same way; what is new on both sides has no base."""
    if they == we or was == (they,):
        return we
    if was == (we,):
        return they
    conflicts.add(Conflict(where, "", "changed_differently"))
    return we


# Rows


class _Side:
    """The rows of one type in one state; both are empty where the state does not have the type."""

    def __init__(self, state: State, number: int) -> None:
        self.shape = state.schema.get(number)
        self.rows = state.rows.get(number, {})

    def image(self, row: Row | None) -> Row | None:
        """Return how a row of the base looks with the properties of this side."""
        return row if row is None or self.shape is None else fit(row, self.shape)


def _lost_rows(base: State, kept: State, merged: Schema) -> Iterator[Conflict]:
    """Name the rows that a side changed or inserted in types that the other one dropped."""
    for number in base.schema.keys() & kept.schema.keys() - merged.keys():
        side, old = _Side(kept, number), base.rows.get(number, {})
        for each, row in side.rows.items():
            if side.image(old.get(each)) != row:
                yield Conflict(f"type {number}", each, "dropped_type")


def _merge_rows(
    base: _Side, theirs: _Side, ours: _Side, shape: Type, conflicts: set[Conflict]
) -> dict[str, Row]:
    """Merge the rows of a type that stays, entity by entity (engine 9.3)."""
    where = f"{shape.kind}:{shape.name}"
    merged = {each: fit(row, shape) for each, row in ours.rows.items()}
    for each in base.rows.keys() | theirs.rows.keys() | ours.rows.keys():
        was, they, we = (side.rows.get(each) for side in (base, theirs, ours))
        if _loses_value(was, they, theirs, base, ours) or _loses_value(was, we, ours, base, theirs):
            conflicts.add(Conflict(where, each, "dropped_property"))
        taken = None if they is None else fit(they, shape)
        if taken == merged.get(each) or (was != DOUBT and they == theirs.image(was)):
            continue
        if was == DOUBT or we != ours.image(was):
            conflicts.add(Conflict(where, each, _kind(was, they, we)))
        elif taken is None:
            del merged[each]
        else:
            merged[each] = taken
    return merged


def _loses_value(was: Row | None, row: Row | None, side: _Side, base: _Side, other: _Side) -> bool:
    """Return whether a row has a value that its side wrote, of a property that the other side dropped."""
    if row is None or row == DOUBT or base.shape is None or side.shape is None or other.shape is None:
        return False
    dropped = base.shape.properties.keys() & side.shape.properties.keys() - other.shape.properties.keys()
    if was is None or was == DOUBT:
        return INSERTED_VALUES_COUNT and any(row[number] is not None for number in dropped)
    before = fit(was, base.shape)
    return any(row[number] != before[number] for number in dropped)


def _kind(was: Row | None, theirs: Row | None, ours: Row | None) -> str:
    if was is None:
        return "divergent_insert"
    return "delete_vs_update" if theirs is None or ours is None else "divergent_update"
