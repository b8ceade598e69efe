"""Ids of whole columns; the same ids as `catalog.entity_id` derives one by one."""

import math
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import KeyValue, NodeType, derive_id
from omnigraph.core.values import FLOATS, Scalar
from omnigraph.validate.columns import Column

_NEEDS_ESCAPE = r'["\\\x00-\x1f]'  # what JSON cannot hold unescaped between quotes


def derive_ids(node: NodeType, columns: Mapping[str, Column]) -> Column:
    """Return the ids of keyed nodes from their stored values; null where a key part is null or not finite."""
    assert node.key is not None, f"{node.name} has no key"
    stored = [_stored(node, name, columns[name]) for name in node.key]
    if any(node.properties[name].type.scalar in FLOATS for name in node.key):
        return _one_by_one(node, stored)
    texts = [column.cast(pa.utf8()) for column in stored]
    if len(texts) == 1:
        return texts[0]
    if any(pc.any(pc.match_substring_regex(text, _NEEDS_ESCAPE)).as_py() for text in texts):
        return _one_by_one(node, stored)
    quoted: Sequence[Column] = [pc.binary_join_element_wise('"', text, '"', "") for text in texts]
    return pc.binary_join_element_wise("[", pc.binary_join_element_wise(*quoted, ","), "]", "")


def _stored(node: NodeType, name: str, column: Column) -> Column:
    """Return a column of values whose text makes up an id: days and milliseconds as numbers."""
    match node.properties[name].type.scalar:
        case Scalar.DATE:
            return column.cast(pa.int32())
        case Scalar.DATETIME:
            return column.cast(pa.int64())
        case _:
            return column


def _one_by_one(node: NodeType, stored: Sequence[Column]) -> Column:
    assert node.key is not None
    rows = zip(*(column.to_pylist() for column in stored), strict=True)
    return pa.array([_id(node, dict(zip(node.key, row, strict=True))) for row in rows], pa.utf8())


def _id(node: NodeType, values: Mapping[str, KeyValue | None]) -> str | None:
    for value in values.values():
        if value is None or (isinstance(value, float) and not math.isfinite(value)):
            return None
    return derive_id(node, values)
