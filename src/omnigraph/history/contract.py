"""The schema contract: three files that say which schema the graph has accepted.

N1  The files agree with one another and with the manifest, or the graph is not served: a mismatch is named.
"""

import json
from dataclasses import dataclass
from functools import lru_cache

from omnigraph.catalog.build import (
    IDENTITY_VERSION,
    build_catalog,
    ir_hash,
    ir_text,
    read_ir,
    read_schema,
    written_keys,
)
from omnigraph.catalog.identity import AcceptedSchema
from omnigraph.catalog.model import Catalog
from omnigraph.catalog.shape import DesiredSchema
from omnigraph.core.errors import NotFoundError, SchemaContractConflict
from omnigraph.core.span import Source
from omnigraph.core.values import read_json
from omnigraph.history.identity import TableIdentity, identity_of
from omnigraph.history.state import Snapshot
from omnigraph.storage.control.object_store import StorageAdapter

SCHEMA_SOURCE, SCHEMA_IR, SCHEMA_STATE = "_schema.pg", "_schema.ir.json", "__schema_state.json"
SCHEMA_FILES = (SCHEMA_SOURCE, SCHEMA_IR, SCHEMA_STATE)
STATE_FORMAT = 1
SOURCES_KEPT = 16  # compiled schemas that a process remembers; it has a few graphs, and each has one


@dataclass(frozen=True, slots=True)
class Contract:
    """An accepted schema as its files hold it."""

    source: str
    accepted: AcceptedSchema
    catalog: Catalog

    @staticmethod
    def of(desired: DesiredSchema, accepted: AcceptedSchema) -> "Contract":
        """Return the contract of a schema and what was accepted of it."""
        source = desired.file.source.text
        return Contract(source, accepted, build_catalog(accepted, written_keys(desired.file)))

    @property
    def texts(self) -> dict[str, str]:
        """The text of each file, by name, in the order they are written."""
        ir = ir_text(self.accepted)
        state = {
            "format_version": STATE_FORMAT,
            "schema_shape_hash": self.catalog.shape_hash,
            "schema_ir_hash": ir_hash(ir),
            "schema_identity_version": IDENTITY_VERSION,
            "schema_identity_domain": self.accepted.domain,
        }
        return {SCHEMA_SOURCE: self.source, SCHEMA_IR: ir, SCHEMA_STATE: json.dumps(state, indent=1)}

    def tables(self) -> dict[str, TableIdentity]:
        """Return the lifetime of every table that the schema asks for, by table key."""
        return {type_.table_key: identity_of(type_) for type_ in self.catalog.types}


def read_contract(adapter: StorageAdapter) -> Contract:
    """Return the accepted schema.

    Raises:
        NotFoundError: a file is missing.
        SchemaContractConflict: the files contradict one another (N1).
    """
    texts = adapter.read_texts(SCHEMA_FILES)
    missing = [name for name, text in texts.items() if text is None]
    if missing:
        expected = ", ".join(SCHEMA_FILES)
        raise NotFoundError(f"{', '.join(missing)} is missing: put the schema files {expected} back")
    source, ir, state = (str(texts[name]) for name in SCHEMA_FILES)
    try:
        recorded = read_json(state)
        accepted = read_ir(ir)
    except ValueError as error:
        raise SchemaContractConflict(f"the schema files cannot be read: {error}") from error
    if not isinstance(recorded, dict):
        raise SchemaContractConflict(f"the schema files cannot be read: {SCHEMA_STATE} is not an object")
    desired = compiled(source)
    contract = Contract.of(desired, accepted)
    facts = {
        "schema_ir_hash": ir_hash(ir),
        "schema_shape_hash": desired.shape.hash,
        "schema_identity_domain": accepted.domain,
    }
    for name, actual in facts.items():
        if recorded.get(name) != actual:
            message = f"{SCHEMA_STATE} records {name} {recorded.get(name)}, found {actual}"
            raise SchemaContractConflict(message)
    return contract


@lru_cache(SOURCES_KEPT)
def compiled(source: str) -> DesiredSchema:
    """Return what the text of `_schema.pg` declares; a process compiles a text only once.

    Raises:
        ParseError, CatalogError: the text is not a valid schema.
    """
    return read_schema(Source(source, SCHEMA_SOURCE))


def check_against_manifest(contract: Contract, snapshot: Snapshot) -> None:
    """Check that schema and manifest name the same tables.

    Raises:
        SchemaContractConflict: for the first table that only one of them has, or that is another lifetime.
    """
    wanted = contract.tables()
    for table_key in sorted(wanted.keys() | snapshot.entries.keys()):
        entry = snapshot.entries.get(table_key)
        if entry is None:
            raise SchemaContractConflict(f"the schema has {table_key}, the manifest does not")
        if table_key not in wanted:
            raise SchemaContractConflict(f"the manifest has {table_key}, the schema does not")
        if entry.identity != wanted[table_key]:
            raise SchemaContractConflict(f"{table_key} in the manifest is not the table in the schema")
