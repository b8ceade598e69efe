"""Steps of a history, and what each write must do to what a branch shows; nothing here looks at the engine.

Writes use names, not numbers: what they mean is decided by the schema of their branch.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tests.models.dag.model import Refused
from tests.models.dag.steps import Create, Delete
from tests.models.schemas.merging import Row, State, orphans
from tests.models.schemas.shape import I32_MAX, Kind, Property, Type, Value, Wanted, takes

NUMBERS = {"I32", "I64", "F32", "F64"}
ENDS = {"from": "src", "to": "dst"}

Data = Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Record:
    """One entity of a load; a node with a key has no id of its own, an edge has ends."""

    type_name: str
    data: Data
    id: str | None = None
    ends: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Load:
    """Load records, new ones or replacements, as one commit."""

    branch: str
    records: tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class Insert:
    """Insert a node with a key by a mutation; `types` are those of the parameters."""

    branch: str
    type_name: str
    data: Data
    types: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Update:
    """Give the node with a key another value of a property."""

    branch: str
    type_name: str
    key: tuple[str, str]
    assigned: tuple[str, Value]
    type: str


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete the entities whose property, or whose end, has a value."""

    branch: str
    kind: Kind
    type_name: str
    chosen: tuple[str, Value]
    type: str


@dataclass(frozen=True, slots=True)
class Merge:
    """Merge a branch into another."""

    source: str
    target: str
    is_dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Apply:
    """Give a branch another schema."""

    branch: str
    wanted: Wanted


@dataclass(frozen=True, slots=True)
class Upgrade:
    """Bring a branch up to the schema of main."""

    branch: str


Write = Load | Insert | Update | Remove
Step = Write | Create | Delete | Merge | Apply | Upgrade


def written(before: State, step: Write) -> State:
    """Return what a branch shows after a write.

    Raises:
        Refused: the write must fail, and change nothing.
    """
    match step:
        case Load(_, records):
            return _with_records(before, records)
        case Insert(_, type_name, data, types):
            _, shape = _type(before, "node", type_name)
            for name, value in data.items():
                _bind(shape.properties[_property(shape, name)], value, types[name])
            return _with_records(before, (Record(type_name, data),))
        case Update():
            return _updated(before, step)
        case Remove():
            return _without(before, step)


def _with_records(before: State, records: tuple[Record, ...]) -> State:
    rows = {number: dict(some) for number, some in before.rows.items()}
    for record in records:
        number, shape = _type(before, "node" if record.ends is None else "edge", record.type_name)
        row = _row(shape, record.data)
        if record.ends is not None:
            row |= dict(zip(("src", "dst"), record.ends, strict=True))
        rows[number][str(row[shape.key]) if shape.key is not None else str(record.id)] = row
    after = State(before.schema, rows)
    if orphans(after):
        raise Refused(sorted(orphans(after)))
    return after


def _updated(before: State, step: Update) -> State:
    number, shape = _type(before, "node", step.type_name)
    chosen, assigned = _property(shape, step.key[0]), _property(shape, step.assigned[0])
    if shape.properties[assigned].is_key:
        raise Refused("a key is not updated")
    property_, value = shape.properties[assigned], step.assigned[1]
    _bind(property_, value, step.type)
    matched = {each: row for each, row in before.rows[number].items() if row[chosen] == step.key[1]}
    rows = {**before.rows[number]}
    for each, row in matched.items():
        rows[each] = {**row, assigned: _value(property_, value)}
    return State(before.schema, {**before.rows, number: rows})


def _without(before: State, step: Remove) -> State:
    number, shape = _type(before, step.kind, step.type_name)
    name, value = step.chosen
    key: int | str = ENDS[name] if name in ENDS and shape.kind == "edge" else _property(shape, name)
    if isinstance(key, int):
        _bind(shape.properties[key], value, step.type)
    gone = {each for each, row in before.rows[number].items() if row[key] is not None and row[key] == value}
    rows = {
        **before.rows,
        number: {each: row for each, row in before.rows[number].items() if each not in gone},
    }
    for other, edge in before.schema.items() if shape.kind == "node" else ():
        if edge.ends is not None:
            ends = [end for end, of in zip(("src", "dst"), edge.ends, strict=True) if of == number]
            rows[other] = {
                each: row for each, row in rows[other].items() if not any(row[end] in gone for end in ends)
            }
    return State(before.schema, rows)


def _type(state: State, kind: Kind, name: str) -> tuple[int, Type]:
    for number, shape in state.schema.items():
        if (shape.kind, shape.name) == (kind, name):
            return number, shape
    raise Refused(f"there is no {kind} type {name}")


def _property(shape: Type, name: str) -> int:
    number = shape.number_of(name)
    if number is None:
        raise Refused(f"{shape.name} has no {name}")
    return number


def _row(shape: Type, data: Data) -> Row:
    """Return a whole row: what the data does not mention has its default, a null that it mentions is one."""
    for name in data:
        _property(shape, name)
    return {
        number: _value(each, data.get(each.name, each.default)) for number, each in shape.properties.items()
    }


def _value(shape: Property, value: Value) -> Value:
    if not takes(shape, value):
        raise Refused(f"{shape.name} does not take {value!r}")
    return value


def _bind(shape: Property, value: Value, type_text: str) -> None:
    """Refuse a parameter of a type that has nothing to do with a property, or a value that it cannot have."""
    scalar = "String" if shape.scalar == "enum" else shape.scalar
    of_parameter = type_text.removesuffix("?")
    is_alike = scalar == of_parameter or {scalar, of_parameter} <= NUMBERS
    is_too_big = of_parameter == "I32" and isinstance(value, int) and abs(value) > I32_MAX
    if not is_alike or is_too_big:
        raise Refused(f"{shape.name} does not take {value!r} as {type_text}")
