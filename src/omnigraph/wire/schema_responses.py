"""The shapes of the documents about schemas: their text, their types, plans and changes of them."""

from typing import Any

from pydantic import Field

from omnigraph.wire.responses import CommitOutput, PendingIndexItem, WireDocument


class PropertyTypeOutput(WireDocument):
    """A type of values, in parts; a vector is {"Vector": dimension}."""

    scalar: str | dict[str, int]
    nullable: bool
    enum_values: list[str] | None
    is_list: bool = Field(alias="list")


class EmbedOutput(WireDocument):
    """The text that a vector stands for, and the model that makes it if the schema says."""

    source: str
    model: str | None


class CatalogProperty(WireDocument):
    """A property; its type as a schema writes it, and in parts."""

    name: str
    type: str
    property_type: PropertyTypeOutput
    annotations: list[str]
    embed: EmbedOutput | None
    external: list[str]


class CatalogInterface(WireDocument):
    """Properties that node types share."""

    name: str
    properties: list[CatalogProperty]


class CatalogTable(WireDocument):
    """A type that has a table; constraints list their properties."""

    name: str
    table_key: str
    annotations: list[str]
    unique: list[list[str]]
    indexes: list[list[str]]
    properties: list[CatalogProperty]


class CatalogNode(CatalogTable):
    """A node type; `key` is in the order of the schema."""

    interfaces: list[str]
    key: list[str] | None


class CardinalityOutput(WireDocument):
    """How many edges of a type leave a node; without a greatest number, any."""

    min: int
    max: int | None


class CatalogEdge(CatalogTable):
    """An edge type, from nodes of type `source` to nodes of type `target`."""

    source: str
    target: str
    cardinality: CardinalityOutput


class CatalogOutput(WireDocument):
    """Every type of a schema, each kind by name."""

    interfaces: list[CatalogInterface]
    nodes: list[CatalogNode]
    edges: list[CatalogEdge]


class SchemaOutput(WireDocument):
    """A schema, as it was given; of a snapshot also the branch that it is of, and its types where asked."""

    schema_source: str
    branch: str | None = None
    catalog: CatalogOutput | None = None


class SchemaPlanOutput(WireDocument):
    """The steps from one schema to another."""

    uri: str
    supported: bool
    step_count: int
    steps: list[dict[str, Any]]
    notes: list[str]


class SchemaApplyOutput(WireDocument):
    """What a change of a schema did."""

    uri: str
    branch: str
    supported: bool
    applied: bool
    manifest_version: int
    step_count: int
    steps: list[dict[str, Any]]
    commit: CommitOutput | None
    index_commit: CommitOutput | None
    pending_indexes: list[PendingIndexItem]
    warnings: list[str]
    notes: list[str]
