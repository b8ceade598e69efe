"""The Arrow schema of a type's table: physical columns, then the properties by name."""

from typing import TYPE_CHECKING

from omnigraph.catalog.model import EdgeType, NodeType, Property
from omnigraph.core.values import Scalar, ValueType

if TYPE_CHECKING:
    import pyarrow as pa

PRIMARY_KEY_METADATA = {b"lance-schema:unenforced-primary-key": b"true"}  # set once, at creation, permanently
PROPERTY_ID_KEY = b"omnigraph.stable_property_id"


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

    metadata = {PROPERTY_ID_KEY: str(item.id).encode()}
    return pa.field(item.name, arrow_type(item.type), nullable=item.type.nullable, metadata=metadata)
