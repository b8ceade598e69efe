"""The rows of a result as instances of a class: pydantic models, dataclasses, TypedDicts, NamedTuples.

N1  A column goes to the field of its name or alias; one such as `p.name` to `p_name`, and `class` to
    `class_`. The members of a lone whole entity are columns.
N2  Nothing is dropped in silence: a projected column without a field is refused, as is a field that has
    neither a column nor a default. Of a whole entity, members without a field are left out.
N3  A value is given as it is, or as what the field says it stands for, such as the text of a UUID or an enum;
    it never becomes a value that a column of its own could have had, as a text a number.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import (
    TYPE_CHECKING,
    Any,
    NotRequired,
    Required,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from omnigraph.core.errors import BadRequest
from omnigraph.core.names import names_of
from omnigraph.core.values import named, shown

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Instance = TypeVar("Instance")
Entity = dict[str, object]

_TIMES: tuple[type, ...] = (date, datetime, time, timedelta)
# What a value of a column must not turn into (N3); subclasses, such as the members of an IntEnum, may be.
_NEVER: Mapping[type, frozenset[type]] = {
    str: frozenset({int, float, bool, bytes, *_TIMES}),
    bool: frozenset({int, float, str, Decimal, *_TIMES}),
    int: frozenset({bool, str, *_TIMES}),
    float: frozenset({int, bool, str, *_TIMES}),
    datetime: frozenset({date, time, timedelta, str, int, float}),
    date: frozenset({datetime, time, timedelta, str, int, float}),
}
# What a class of anybody's raises when it does not take its values, or is abstract.
_MAKING_FAILURES = (TypeError, ValueError, AssertionError)


@dataclasses.dataclass(frozen=True, slots=True)
class Field:
    """A field of a class: its name, what its column may be called, whether it must have one."""

    name: str
    columns: tuple[str, ...]
    is_required: bool
    type: object = object


def instances(
    model: type[Instance],
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    members: Sequence[str] | None = None,
) -> list[Instance]:
    """Return one instance for each row; `members` are those of the only column, if it has whole entities.

    Raises:
        BadRequest: this is no class that rows can become, a column has no field, a field has no column, or a
            value does not fit; the message names the column and the field.
    """
    fields = _fields(model)
    places = {name: place for place, name in enumerate(columns)}
    if len(places) < len(columns):
        twice = next(name for place, name in enumerate(columns) if places[name] != place)
        raise BadRequest(f"two columns are called '{twice}': give one an alias with 'as'")
    if members is not None and _field_of(fields, columns[0]) is None:
        return _of_entities(model, fields, columns[0], members, [row[0] for row in rows])
    taken: dict[str, str] = {}
    for name in columns:
        field = _field_of(fields, name)
        if field is None:
            known = ", ".join(field.name for field in fields) or "none"
            raise BadRequest(
                f"column '{name}' fits no field of {model.__name__}, whose fields are {known}: "
                f"give it an alias with 'as', or {model.__name__} a field {python_name(name)}"
            )
        if field.name in taken:
            raise BadRequest(
                f"columns '{taken[field.name]}' and '{name}' are both for {model.__name__}.{field.name}"
            )
        taken[field.name] = name
    given = {field: [row[places[name]] for row in rows] for field, name in taken.items()}
    return _made(model, fields, taken, given, len(rows))


def python_name(column: str) -> str:
    """Return the field that stands for a column: dots are not part of names in Python."""
    return column.replace(".", "_")


def _of_entities(
    model: type[Instance],
    fields: Sequence[Field],
    column: str,
    members: Sequence[str],
    entities: Sequence[object],
) -> list[Instance]:
    for row, entity in enumerate(entities, 1):
        if entity is None:
            raise BadRequest(f"row {row}: column '{column}' is null, and no {model.__name__}")
    found = cast("Sequence[Entity]", entities)
    taken = {field.name: name for name in members if (field := _field_of(fields, name)) is not None}
    given = {field: [entity[name] for entity in found] for field, name in taken.items()}
    columns = {field: f"{column}.{name}" for field, name in taken.items()}
    return _made(model, fields, columns, given, len(found))


def _made(
    model: type[Instance],
    fields: Sequence[Field],
    columns: Mapping[str, str],
    given: Mapping[str, list[object]],
    count: int,
) -> list[Instance]:
    missing = [field for field in fields if field.is_required and field.name not in given]
    if missing:
        name = missing[0].name
        raise BadRequest(
            f"{model.__name__}.{name} has no column and no default: project one, with 'as {name}'"
        )
    types = {field.name: field.type for field in fields}
    given = {name: _nested(types[name], columns[name], values) for name, values in given.items()}
    if _is_pydantic(model):
        return _validated(model, fields, columns, given, count)
    converted = [
        _converted(f"{model.__name__}.{field.name}", field.type, columns[field.name], given[field.name])
        for field in fields
        if field.name in given
    ]
    names = [field.name for field in fields if field.name in given]
    make = cast("Callable[..., Instance]", model)
    made = []
    for place in range(count):
        arguments = {name: values[place] for name, values in zip(names, converted, strict=True)}
        try:
            made.append(make(**arguments))
        except _MAKING_FAILURES as error:
            raise BadRequest(f"row {place + 1}: {model.__name__} cannot be made: {error}") from error
    return made


def _nested(type_: object, column: str, values: list[object]) -> list[object]:
    """Return values of which whole entities are instances, if the field is for those of a class (N1)."""
    inner = next((one for one in (type_, *get_args(type_)) if _is_model(one)), None)
    if inner is None or not any(isinstance(value, dict) for value in values):
        return values
    found, fields = cast("type[object]", inner), _fields(cast("type", inner))
    return [
        _of_entities(found, fields, column, list(value), [value])[0] if isinstance(value, dict) else value
        for value in values
    ]


def _validated(
    model: type[Any],
    fields: Sequence[Field],
    columns: Mapping[str, str],
    given: Mapping[str, list[object]],
    count: int,
) -> list[Any]:
    """Return instances of a pydantic model, which validates as its own configuration says."""
    from pydantic import ValidationError

    keys = {field.name: field.columns[0] for field in fields if field.name in given}
    made = []
    for place in range(count):
        row = {key: given[name][place] for name, key in keys.items()}
        try:
            made.append(model.model_validate(row, by_alias=True, by_name=True))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            at = str(first["loc"][0]) if first["loc"] else ""
            name = next((name for name, key in keys.items() if at in {name, key}), None)
            whose = (
                f"column '{columns[name]}' does not fit {model.__name__}.{name}" if name else model.__name__
            )
            value = f", not {shown(given[name][place])}" if name else ""
            raise BadRequest(f"row {place + 1}: {whose}: {first['msg']}{value}") from error
        except _MAKING_FAILURES as error:
            raise BadRequest(f"row {place + 1}: {model.__name__} cannot be made: {error}") from error
    return made


def _converted(field: str, type_: object, column: str, values: list[object]) -> list[object]:
    adapter = _adapter(field, type_)
    found = []
    for row, value in enumerate(values, 1):
        made = _one(adapter, value)
        if isinstance(made, _Misfit) or _is_other(value, made):
            reason = made.reason if isinstance(made, _Misfit) else f"the field takes {named(made)}"
            raise BadRequest(
                f"row {row}: column '{column}' does not fit {field}: {reason}, not {shown(value)}"
            )
        found.append(made)
    return found


@dataclasses.dataclass(frozen=True, slots=True)
class _Misfit:
    reason: str


def _one(adapter: "TypeAdapter[Any]", value: object) -> object:
    from pydantic import ValidationError

    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        return _Misfit(error.errors(include_url=False)[0]["msg"])


def _adapter(field: str, type_: object) -> "TypeAdapter[Any]":
    from pydantic import ConfigDict, TypeAdapter
    from pydantic.errors import PydanticUserError

    try:
        try:
            return TypeAdapter(cast("Any", type_), config=ConfigDict(arbitrary_types_allowed=True))
        except PydanticUserError as error:
            if error.code != "type-adapter-config-unused":  # a class that has its own configuration
                raise
            return TypeAdapter(cast("Any", type_))
    except PydanticUserError as error:
        reason = str(error).partition("\n")[0]
        raise BadRequest(f"{field} is of a type that no value can be checked against: {reason}") from error


def _is_other(given: object, made: object) -> bool:
    """Return whether a value became one that it does not stand for (N3), also inside of lists."""
    if isinstance(given, list) and isinstance(made, list | tuple):
        return any(map(_is_other, given, made))
    return type(made) in _NEVER.get(type(given), frozenset())


# Classes


def _fields(model: type) -> tuple[Field, ...]:
    """Return the fields of a class.

    Raises:
        BadRequest: rows cannot become instances of it.
    """
    if isinstance(model, type) and _is_pydantic(model):
        _complete(model)
        return tuple(_pydantic_fields(model))
    if not _is_model(model):
        found = model.__name__ if isinstance(model, type) else named(model)
        raise BadRequest(f"rows become pydantic models, dataclasses, TypedDicts or NamedTuples, not {found}")
    try:
        hints = get_type_hints(model, include_extras=True)
    except NameError as error:
        raise BadRequest(
            f"the annotations of {model.__name__} cannot be read: {error}; its module must define it"
        ) from error
    return tuple(
        Field(name, names_of(name), is_required, _bare(hints.get(name, object)))
        for name, is_required in _required(model).items()
    )


def _complete(model: type[Any]) -> None:
    """Have pydantic look up the names in annotations that were not defined yet when the class was.

    Raises:
        BadRequest: one still is not.
    """
    from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError

    try:
        model.model_rebuild()
    except (PydanticUndefinedAnnotation, PydanticUserError) as error:
        reason = str(error).partition("\n")[0]
        raise BadRequest(
            f"the annotations of {model.__name__} cannot be read: {reason}; its module must define it"
        ) from error


def _required(model: type[Any]) -> dict[str, bool]:
    """Return the names of the fields that an instance is made from, and whether each must be given."""
    if dataclasses.is_dataclass(model):
        absent = dataclasses.MISSING
        return {
            field.name: field.default is absent and field.default_factory is absent
            for field in dataclasses.fields(model)
            if field.init
        }
    if is_typeddict(model):
        required = model.__required_keys__
        return {name: name in required for name in model.__annotations__}
    return {name: name not in model._field_defaults for name in model._fields}


def _pydantic_fields(model: type[Any]) -> Iterator[Field]:
    for name, info in model.__pydantic_fields__.items():
        given = info.validation_alias if isinstance(info.validation_alias, str) else info.alias
        alias = (given,) if isinstance(given, str) else ()
        yield Field(
            name, tuple(dict.fromkeys([*alias, *names_of(name)])), info.is_required(), info.annotation
        )


def _bare(hint: object) -> object:
    """Return the type of a field of a TypedDict, without the word whether it must be there."""
    return get_args(hint)[0] if get_origin(hint) in {Required, NotRequired} else hint


def _field_of(fields: Sequence[Field], column: str) -> Field | None:
    """Return the field of a column (N1): by its name before all others, so that none is hidden."""
    for wanted in dict.fromkeys([column, python_name(column)]):
        found = [field for field in fields if wanted in field.columns]
        if found:
            return min(found, key=lambda field: field.columns.index(wanted))
    return None


def _is_model(kind: object) -> bool:
    return isinstance(kind, type) and (
        _is_pydantic(kind) or dataclasses.is_dataclass(kind) or is_typeddict(kind) or _is_named_tuple(kind)
    )


def _is_pydantic(model: type) -> bool:
    return hasattr(model, "__pydantic_fields__") and hasattr(model, "model_validate")


def _is_named_tuple(model: type) -> bool:
    return issubclass(model, tuple) and hasattr(model, "_fields")
