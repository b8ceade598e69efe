"""Records that a Python program has as dicts: as those of NDJSON, or the rows of one type.

They become NDJSON and are read as such, so that checks, errors and what is left out are those of any load.
The number of a record stands where the line of a file stands.
"""

import json
from collections.abc import Iterable, Iterator, Mapping

import orjson
import pyarrow as pa

from omnigraph.catalog.arrow_schema import arrow_schema
from omnigraph.catalog.model import Catalog, EdgeType, NodeType
from omnigraph.core.errors import BadRequest
from omnigraph.core.values import ValueType, named, shown
from omnigraph.operations.load.model import RecordInput, TableInput
from omnigraph.operations.load.plain_values import Unstorable, plain_value

Record = Mapping[str, object]
_ENDS = ("from", "to")


def records_input(catalog: Catalog, records: Iterable[Record]) -> RecordInput:
    """Return dicts such as `{"type": "Person", "data": {…}}` as an input.

    Raises:
        BadRequest: one is not a record, or has a value that cannot be stored.
    """
    name = "records"
    return RecordInput(
        record_lines(_plain(catalog, record, f"{name}:{place}") for place, record in enumerate(records, 1)),
        name,
    )


def rows_input(type_: NodeType | EdgeType, rows: Iterable[object], name: str) -> RecordInput | TableInput:
    """Return dicts of properties as an input for a type; those of an edge have `from` and `to` besides.

    Raises:
        BadRequest: one is not a dict, or has a value that cannot be stored.
    """
    lines = record_lines(_record(type_, row, f"{name}:{place}") for place, row in enumerate(rows, 1))
    # No rows are a table without any, which mode overwrite puts in place of what there is.
    return RecordInput(lines, name) if lines else TableInput(type_.table_key, _no_rows(type_), name)


def _no_rows(type_: NodeType | EdgeType) -> pa.Table:
    schema = arrow_schema(type_)
    fields = [pa.field(name, pa.utf8()) for name in _ENDS] if isinstance(type_, EdgeType) else []
    return pa.schema([*fields, *(schema.field(name) for name in type_.properties)]).empty_table()


def plain_record(
    type_: NodeType | EdgeType, properties: Record, ends: tuple[object, object] | None, where: str
) -> dict[str, object]:
    """Return the record of an entity of a type, with JSON values.

    Raises:
        BadRequest: a value cannot be stored.
    """
    data = _data(type_, properties, where)
    if not isinstance(type_, EdgeType):
        return {"type": type_.name, "data": data}
    given = {} if ends is None else dict(zip(_ENDS, (_end(end, where) for end in ends), strict=True))
    return {"edge": type_.name, **given, "data": data}


def _record(type_: NodeType | EdgeType, row: object, where: str) -> dict[str, object]:
    if not isinstance(row, Mapping):
        raise BadRequest(f"{where}: {named(row)} is not a row, which is a dict of properties")
    if not isinstance(type_, EdgeType):
        return plain_record(type_, row, None, where)
    data = {name: value for name, value in row.items() if name not in _ENDS}
    given = {name: _end(row[name], where) for name in _ENDS if name in row}
    return {"edge": type_.name, **given, "data": _data(type_, data, where)}


def _plain(catalog: Catalog, record: Record, where: str) -> dict[str, object]:
    """Return a record with JSON values; what is wrong with its shape is for the reader to say."""
    if "type" not in record and "edge" not in record:
        raise BadRequest(
            f"{where}: a dict without 'type' or 'edge' is not a record, such as "
            "{'type': 'Person', 'data': {…}}; rows of one type are given by its name, as in {'Person': [{…}]}"
        )
    name, data = record.get("type", record.get("edge")), record.get("data")
    types: Mapping[str, NodeType | EdgeType] = catalog.nodes if "type" in record else catalog.edges
    type_ = types.get(name) if isinstance(name, str) else None
    if not isinstance(data, Mapping):
        return dict(record)
    ends = {end: _end(record[end], where) for end in _ENDS if end in record}
    return {**record, **ends, "data": _data(type_, data, where)}


def _data(type_: NodeType | EdgeType | None, properties: Record, where: str) -> dict[str, object]:
    plain: dict[str, object] = {}
    for name, value in properties.items():
        try:
            plain[name] = plain_value(value, _type_of(type_, name))
        except Unstorable as refused:
            place = name if type_ is None else f"{type_.name}.{name}"
            raise BadRequest(f"{where}: {place}: {refused}") from None
    return plain


def _type_of(type_: NodeType | EdgeType | None, name: str) -> ValueType | None:
    item = None if type_ is None else type_.properties.get(name)
    return None if item is None else item.type


def _end(value: object, where: str) -> object:
    """Return the id of a node as a text; a number is the id that it is the key of."""
    try:
        plain = plain_value(value, None)
    except Unstorable:
        raise BadRequest(f"{where}: an edge has the ids of its nodes, not {named(value)}") from None
    return str(plain) if type(plain) is int else plain


def record_lines(records: Iterator[dict[str, object]]) -> bytes:
    """Return records as NDJSON.

    Raises:
        BadRequest: one has names that are not texts.
    """
    return b"".join(map(_line, records))


def _line(record: dict[str, object]) -> bytes:
    try:
        return orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)
    except (
        orjson.JSONEncodeError
    ):  # integers beyond 64 bits, and halves of surrogate pairs: the reader's to name
        pass
    try:
        return json.dumps(record).encode() + b"\n"
    except (TypeError, ValueError) as error:
        raise BadRequest(f"{shown(record)} is not a record: {error}") from error
