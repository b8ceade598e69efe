"""The id of an entity: derived from its key, or fresh.

E1  Equal keys have equal ids, no matter which code derives them or how the key columns are now named.
"""

import json
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal

from omnigraph.catalog.model import EdgeType, NodeType
from omnigraph.core.errors import ExecutionError
from omnigraph.core.values import FLOATS, Scalar

KeyValue = str | int | float | bool


def derive_id(node: NodeType, values: Mapping[str, KeyValue | None]) -> str:
    """Return the id of a keyed node from its stored values, in the order of the key (E1).

    Raises:
        ExecutionError: a key value is null or not finite.
    """
    assert node.key is not None, f"{node.name} has no key"
    texts = [_canonical_text(node, column, values.get(column)) for column in node.key]
    return texts[0] if len(texts) == 1 else _composite(texts)


def lookup_column(type_: NodeType | EdgeType, column: str) -> str:
    """Return the column to compare instead: a key that is one text is the id, which has a B-tree."""
    if isinstance(type_, NodeType) and type_.key == (column,):
        property_ = type_.properties[column].type
        return "id" if property_.scalar is Scalar.STRING else column
    return column


def _composite(texts: Sequence[str]) -> str:
    return json.dumps(list(texts), separators=(",", ":"), ensure_ascii=False)


def _canonical_text(node: NodeType, column: str, value: KeyValue | None) -> str:
    if value is None:
        raise ExecutionError(f"the key of {node.name} cannot contain null: {column}")
    if isinstance(value, bool):
        return "true" if value else "false"
    scalar = node.properties[column].type.scalar
    if scalar in FLOATS:
        return _float_text(float(value), scalar, f"{node.name}.{column}")
    return str(value)


def _float_text(value: float, scalar: Scalar, where: str) -> str:
    if not math.isfinite(value):
        raise ExecutionError(f"the key {where} must be finite, not {value}")
    if value == 0:
        return "0"
    if scalar is Scalar.F32:
        return _single_text(value)
    text = format(Decimal(repr(value)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _single_text(value: float) -> str:
    """Return the shortest decimal that reads back as the same single-precision float."""
    import numpy as np  # late: few keys are floats, and fewer still single-precision

    return np.format_float_positional(np.float32(value), unique=True, trim="-")
