"""The id of an entity: derived from its key, or fresh.

E1  Equal keys have equal ids, whoever derives them and whatever the key columns are called today.
"""

import json
import math
import struct
from collections.abc import Mapping, Sequence
from decimal import Decimal

from omnigraph.catalog.model import NodeType
from omnigraph.core.errors import ExecutionError
from omnigraph.core.values import FLOATS, Scalar

KeyValue = str | int | float | bool
_F32_DIGITS_MAX = 9  # nine significant digits tell any two single-precision floats apart


def derive_id(node: NodeType, values: Mapping[str, KeyValue | None]) -> str:
    """Return the id of a keyed node from its stored values, in the order of the key (E1).

    Raises:
        ExecutionError: a key value is null or not finite.
    """
    assert node.key is not None, f"{node.name} has no key"
    texts = [_canonical_text(node, column, values.get(column)) for column in node.key]
    return texts[0] if len(texts) == 1 else _composite(texts)


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
    digits = _shortest_single(value) if scalar is Scalar.F32 else repr(value)
    text = format(Decimal(digits), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _shortest_single(value: float) -> str:
    """Return the shortest decimal that reads back as the same single-precision float."""
    single = struct.unpack("f", struct.pack("f", value))[0]
    candidates = (f"{single:.{digits}g}" for digits in range(1, _F32_DIGITS_MAX + 1))
    return next(text for text in candidates if struct.unpack("f", struct.pack("f", float(text)))[0] == single)
