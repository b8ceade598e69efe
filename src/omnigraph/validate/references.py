"""References to bytes elsewhere as values of Blob properties: conversion and admission.

R1  A write that names a reference has it checked here, whatever surface it came in by: it must lie below one
    of the bases that the catalog has for its property.
R2  A reference that a row has stays when its base is removed. So what is stored is checked for its form
    alone, and a merge checks only what its target does not have already.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from omnigraph.catalog.model import EdgeType, NodeType, Property
from omnigraph.core.external_uri import form_fault, outside_fault, reference_fault
from omnigraph.core.values import json_name
from omnigraph.validate.columns import Column

BLOB_PREFIX = "base64:"


def coerce_references(values: Sequence[object], item: Property) -> tuple[Column, list[tuple[int, str]]]:
    """Return a column of references, and the rows whose value is none, each with the reason (R1)."""
    stored: list[bytes | None] = []
    problems: list[tuple[int, str]] = []
    for row, value in enumerate(values):
        fault = None if value is None else _fault(value, item)
        if fault is not None:
            problems.append((row, fault))
        stored.append(value.encode() if fault is None and isinstance(value, str) else None)
    return pa.array(stored, pa.large_binary()), problems


def _fault(value: object, item: Property) -> str | None:
    if not isinstance(value, str):
        return f"expected the URI of a reference as a text, got {json_name(value)}"
    if value.startswith(BLOB_PREFIX):
        return "the property holds references (@external), not bytes: give the URI of bytes elsewhere"
    fault = reference_fault(value, item.external)
    return None if fault is None else f"not a reference that @external allows: {fault}"


def external_properties(type_: NodeType | EdgeType) -> Iterator[tuple[int, Property]]:
    """Yield the properties of a type that hold references, each with its place among all of them."""
    for place, item in enumerate(type_.properties.values()):
        if item.is_external:
            yield place, item


def malformed(column: Column) -> dict[int, str]:
    """Return which stored values are no references at all, by row, with the reason (R2)."""
    faults: dict[int, str] = {}
    for row, value in enumerate(column.to_pylist()):
        fault = None if value is None else stored_fault(value)
        if fault is not None:
            faults[row] = f"not a reference: {fault}"
    return faults


def stored_fault(value: bytes) -> str | None:
    """Return why stored bytes are no reference, or `None` if they are one."""
    try:
        return form_fault(value.decode())
    except UnicodeDecodeError:
        return "it is no text"


def outside(column: Column, item: Property) -> dict[int, str]:
    """Return which references lie below none of the bases of a property, by row, with the reason (R1)."""
    faults: dict[int, str] = {}
    for row, value in enumerate(column.to_pylist()):
        fault = None if value is None else outside_fault(value.decode(errors="replace"), item.external)
        if fault is not None:
            faults[row] = f"not a reference that @external allows: {fault}"
    return faults
