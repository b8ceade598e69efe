"""The document of a catalog: what a schema says, for those who do not parse one."""

from omnigraph.catalog.annotations import own_annotations, property_annotations, type_annotations
from omnigraph.catalog.model import Catalog, EdgeType, InterfaceType, NodeType, Property
from omnigraph.catalog.shape import type_json
from omnigraph.core.values import Json


def catalog_document(catalog: Catalog) -> Json:
    """Return every type of a schema with its properties, keys and constraints, each kind by name."""
    return {
        "interfaces": [_interface(type_) for type_ in catalog.interfaces.values()],
        "nodes": [_node(type_) for type_ in catalog.nodes.values()],
        "edges": [_edge(type_) for type_ in catalog.edges.values()],
    }


def _interface(type_: InterfaceType) -> Json:
    properties = [_property(item, own_annotations(item)) for item in type_.properties.values()]
    return {"name": type_.name, "properties": properties}


def _node(type_: NodeType) -> Json:
    key = None if type_.written_key is None else list(type_.written_key)
    return {**_table(type_), "interfaces": list(type_.interfaces), "key": key}


def _edge(type_: EdgeType) -> Json:
    cardinality = {"min": type_.low, "max": type_.high}
    return {**_table(type_), "source": type_.source, "target": type_.target, "cardinality": cardinality}


def _table(type_: NodeType | EdgeType) -> Json:
    return {
        "name": type_.name,
        "table_key": type_.table_key,
        "annotations": list(type_annotations(type_)),
        "unique": [list(columns) for columns in type_.unique],
        "indexes": [list(columns) for columns in type_.indexes],
        "properties": [
            _property(item, property_annotations(type_, item)) for item in type_.properties.values()
        ],
    }


def _property(item: Property, annotations: tuple[str, ...]) -> Json:
    embed = None if item.embed is None else {"source": item.embed.source, "model": item.embed.model}
    return {
        "name": item.name,
        "type": str(item.type),
        "property_type": type_json(item.type),
        "annotations": list(annotations),
        "embed": embed,
        "external": list(item.external),
    }
