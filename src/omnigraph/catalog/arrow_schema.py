"""The Arrow schema of a type's table: physical columns, then the properties by name.

M1  Tables store milliseconds as Arrow's `date64`, which other libraries read as days: pandas, polars and
    Arrow's own `to_pylist` drop the time. Whatever leaves the engine as Arrow has `timestamp("ms", "UTC")`
    instead, also inside lists and whole entities.
M2  The bytes of a Blob are stored as they are, not compressed: a part of one is read without the rest, and
    what is worth storing as bytes mostly is compressed already.
M3  References to bytes elsewhere are stored like bytes, and leave the engine as the texts that they are.
"""

from typing import TYPE_CHECKING, TypeVar

from omnigraph.catalog.model import EdgeType, NodeType, Property
from omnigraph.core.values import Scalar, ValueType

if TYPE_CHECKING:
    import pyarrow as pa

    TableLike = TypeVar("TableLike", pa.Table, pa.RecordBatch)


PRIMARY_KEY_METADATA = {b"lance-schema:unenforced-primary-key": b"true"}  # set once, at creation, permanently
PROPERTY_ID_KEY = b"omnigraph.stable_property_id"
UNCOMPRESSED = {b"lance-encoding:compression": b"none"}  # what the library asks of a column (M2)


def arrow_schema(type_: NodeType | EdgeType) -> "pa.Schema":
    """Return the schema of a table, with the metadata that ties its columns to the catalog."""
    import pyarrow as pa  # late: reading a catalog must not cost the import of Arrow

    fields: list[pa.Field[pa.DataType]] = [
        pa.field("id", pa.utf8(), nullable=False, metadata=PRIMARY_KEY_METADATA)
    ]
    if isinstance(type_, EdgeType):
        fields += [pa.field("src", pa.utf8(), nullable=False), pa.field("dst", pa.utf8(), nullable=False)]
    fields += [_field(item) for item in type_.properties.values()]
    return pa.schema(fields)


def differing_columns(found: "pa.Schema", type_: NodeType | EdgeType) -> tuple[str, ...]:
    """Return what is wrong with the columns of a table: missing, of another type, not in the schema."""
    wanted = {item.name: item.type for item in arrow_schema(type_)}
    actual = {item.name: item.type for item in found}
    wrong = [f"column {name} is missing" for name in wanted if name not in actual]
    wrong += [
        f"column {name} is {actual[name]} instead of {expected}"
        for name, expected in wanted.items()
        if name in actual and actual[name] != expected
    ]
    return (*wrong, *(f"column {name} is not in the schema" for name in actual if name not in wanted))


def arrow_type(type_: ValueType) -> "pa.DataType":
    """Return the column type of a property."""
    import pyarrow as pa

    if type_.dimension is not None:
        return pa.list_(pa.field("item", pa.float32(), nullable=True), type_.dimension)
    scalars: dict[Scalar, pa.DataType] = {
        Scalar.STRING: pa.utf8(),
        Scalar.BLOB: pa.large_binary(),
        Scalar.BOOL: pa.bool_(),
        Scalar.I32: pa.int32(),
        Scalar.I64: pa.int64(),
        Scalar.U32: pa.uint32(),
        Scalar.U64: pa.uint64(),
        Scalar.F32: pa.float32(),
        Scalar.F64: pa.float64(),
        Scalar.DATE: pa.date32(),
        Scalar.DATETIME: pa.date64(),
    }
    item = scalars[type_.scalar]
    return pa.list_(pa.field("item", item, nullable=True)) if type_.is_list else item


def _field(item: Property) -> "pa.Field[pa.DataType]":
    import pyarrow as pa

    metadata = {PROPERTY_ID_KEY: str(item.id).encode(), **(UNCOMPRESSED if item.is_blob else {})}
    return pa.field(item.name, arrow_type(item.type), nullable=item.type.nullable, metadata=metadata)


def with_moments(rows: "TableLike") -> "TableLike":
    """Return rows whose moments are timestamps; the same rows if there are none (M1)."""
    if not any(map(_has_moments, rows.schema.types)):
        return rows
    import pyarrow as pa  # late: reading a catalog must not cost the import of Arrow

    schema = pa.schema([_moment_field(field) for field in rows.schema]).with_metadata(rows.schema.metadata)
    return rows.cast(schema)


def shown_rows(rows: "TableLike", type_: NodeType | EdgeType) -> "TableLike":
    """Return rows of a type's table as they leave the engine; the same rows if nothing changes (M1, M3)."""
    names = {item.name for item in type_.properties.values() if item.is_external}
    if names.isdisjoint(rows.schema.names):
        return with_moments(rows)
    import pyarrow as pa

    schema = pa.schema([_text_field(item) if item.name in names else item for item in rows.schema])
    return with_moments(rows.cast(schema.with_metadata(rows.schema.metadata)))


def shown_type(type_: NodeType | EdgeType, column: "pa.Field[pa.DataType]") -> "pa.DataType":
    """Return the type of a table's column as it leaves the engine (M1, M3)."""
    import pyarrow as pa

    item = type_.properties.get(column.name)
    return pa.utf8() if item is not None and item.is_external else moment_type(column.type)


def _text_field(item: "pa.Field[pa.DataType]") -> "pa.Field[pa.DataType]":
    import pyarrow as pa

    return item.with_type(pa.utf8()).remove_metadata()


def _has_moments(type_: "pa.DataType") -> bool:
    import pyarrow as pa

    if pa.types.is_list(type_):
        return _has_moments(type_.value_type)
    if pa.types.is_struct(type_):
        return any(_has_moments(field.type) for field in type_)
    return pa.types.is_date64(type_)


def _moment_field(field: "pa.Field[pa.DataType]") -> "pa.Field[pa.DataType]":
    return field.with_type(moment_type(field.type))


def moment_type(type_: "pa.DataType") -> "pa.DataType":
    """Return the type of a column as it leaves the engine (M1)."""
    import pyarrow as pa

    if pa.types.is_date64(type_):
        return pa.timestamp("ms", "UTC")
    if pa.types.is_list(type_):
        return pa.list_(_moment_field(type_.value_field))
    if pa.types.is_struct(type_):
        return pa.struct([_moment_field(type_.field(place)) for place in range(type_.num_fields)])
    return type_
