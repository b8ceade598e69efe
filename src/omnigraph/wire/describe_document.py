"""The document of `describe`."""

from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.catalog.arrow_schema import arrow_type, moment_type
from omnigraph.core.values import Json
from omnigraph.graph.encode import json_values
from omnigraph.history.identity import branch_name

if TYPE_CHECKING:
    from omnigraph.core.values import ValueType
    from omnigraph.operations.describe.describe import EndDescription, PropertyDescription, TypeDescription


def describe_document(found: "TypeDescription", uri: str) -> Json:
    """Return a type and what its rows hold."""
    document: Json = {
        "uri": uri,
        "branch": branch_name(found.branch),
        "commit_id": found.commit_id,
        "kind": found.table_key.partition(":")[0],
        "name": found.name,
        "table_key": found.table_key,
        "row_count": found.rows,
        "annotations": list(found.annotations),
        "properties": [_property(item) for item in found.properties],
    }
    if found.source is not None and found.target is not None:
        return document | {"source": _end(found.source), "target": _end(found.target)}
    edges = [{"name": edge.name, "source": edge.source, "target": edge.target} for edge in found.edges]
    return document | {"interfaces": list(found.interfaces), "edges": edges}


def json_of(type_: "ValueType", values: "tuple[object, ...]") -> list[object]:
    """Return values of a property as JSON values."""
    if all(value is None for value in values):
        return list(values)
    return json_values(pa.array(values, moment_type(arrow_type(type_))))


def bounds_of(item: "PropertyDescription") -> list[object]:
    """Return the smallest and the largest value of a property as JSON values; null where there is none."""
    return json_of(item.type, (item.values.minimum, item.values.maximum))


def _property(item: "PropertyDescription") -> Json:
    found = item.values
    low, high = bounds_of(item)
    return {
        "name": item.name,
        "type": str(item.type),
        "annotations": list(item.annotations),
        "nulls": found.nulls,
        "distinct": found.distinct,
        "approximate": found.is_approximate,
        "min": low,
        "max": high,
        "samples": json_of(item.type, found.samples),
    }


def _end(end: "EndDescription") -> Json:
    found = end.degrees
    return {
        "type_name": end.type_name,
        "nodes": found.nodes,
        "nodes_without": found.nodes_without,
        "min": found.minimum,
        "median": found.median,
        "mean": found.mean,
        "max": found.maximum,
    }
