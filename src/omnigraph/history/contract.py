"""The accepted schema of a graph: in its manifest, and in three files that repeat it.

N1  Which schema a branch has is decided by the newest `schema` row of its manifest, which comes with the same
    publish as the versions of its tables. The files repeat main's, for people and for other programs.
N2  Files that are behind, because whoever changed the schema died before it had written them, are written by
    the next read-write open; so are those of a schema that a repair gave up. A read-only one goes by the
    manifest, and writes nothing.
N3  Files that say what no accepted schema of main said were edited: the graph is not served until they are
    put back. A mismatch is named. The source is written before the document: one that is older than the
    document beside it was edited, too, although it was a schema of main once.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from omnigraph.catalog.build import (
    IDENTITY_VERSION,
    build_catalog,
    ir_hash,
    ir_text,
    read_ir,
    reread_schema,
    written_keys,
)
from omnigraph.catalog.identity import AcceptedSchema
from omnigraph.catalog.model import Catalog
from omnigraph.catalog.render import render_schema
from omnigraph.catalog.shape import DesiredSchema
from omnigraph.core.errors import NotFoundError, SchemaContractConflict
from omnigraph.core.failpoint import hit
from omnigraph.core.recent import Recent
from omnigraph.core.source_errors import SourceError
from omnigraph.core.span import Source
from omnigraph.core.values import read_json
from omnigraph.history.identity import TableIdentity, identity_of
from omnigraph.history.state import ManifestState, Snapshot
from omnigraph.storage.control.object_store import StorageAdapter

if TYPE_CHECKING:
    from omnigraph.history.coordinator import Coordinator

SCHEMA_SOURCE, SCHEMA_IR, SCHEMA_STATE = "_schema.pg", "_schema.ir.json", "__schema_state.json"
SCHEMA_FILES = (SCHEMA_SOURCE, SCHEMA_IR, SCHEMA_STATE)
STATE_FORMAT = 1
_EDITED = {
    "schema_shape_hash": SCHEMA_SOURCE,
    "schema_ir_hash": SCHEMA_IR,
    "schema_identity_domain": SCHEMA_IR,
}
SOURCES_KEPT = 16  # compiled schemas that a process remembers: few graphs, and few schemas in use of each


@dataclass(frozen=True, slots=True)
class Contract:
    """An accepted schema as its files hold it, or the manifest."""

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


class Catalogs:
    """The catalogs of the schemas that a handle has met, by their documents; each is built once.

    Branches and past commits may have other schemas than main has now.
    """

    def __init__(self, contract: Contract) -> None:
        """Take the schema of main, whose source says how its keys are written."""
        self._known: Recent[str, Catalog] = Recent(SOURCES_KEPT)
        self.learn(contract)

    def learn(self, contract: Contract) -> None:
        """Keep the catalog of a schema that was read with its source."""
        self._known.put(contract.texts[SCHEMA_IR], contract.catalog)
        self._known.put("", contract.catalog)  # manifests of earlier formats have no schema: it never changed

    def of(self, text: str) -> Catalog:
        """Return the catalog of an accepted schema, given as a document.

        Raises:
            SchemaContractConflict: the document is no schema.
        """
        return self._known.made(text, lambda: build_catalog(accepted_in(text)))


def accepted_in(text: str) -> AcceptedSchema:
    """Return the accepted schema of a document in the manifest.

    Raises:
        SchemaContractConflict: the document is no schema.
    """
    try:
        return read_ir(text)
    except ValueError as error:
        raise SchemaContractConflict(f"the schema in the manifest cannot be read: {error}") from error


def read_contract(adapter: StorageAdapter) -> Contract:
    """Return the accepted schema.

    Raises:
        NotFoundError: a file is missing.
        SchemaContractConflict: the files contradict one another (N3).
    """
    return _read(_texts(adapter))


def _texts(adapter: StorageAdapter) -> dict[str, str]:
    texts = adapter.read_texts(SCHEMA_FILES)
    missing = [name for name, text in texts.items() if text is None]
    if missing:
        expected = ", ".join(SCHEMA_FILES)
        raise NotFoundError(f"{', '.join(missing)} is missing: put the schema files {expected} back")
    return {name: str(text) for name, text in texts.items()}


def _read(texts: Mapping[str, str]) -> Contract:
    source, ir, state = (texts[name] for name in SCHEMA_FILES)
    try:
        recorded = read_json(state)
        accepted = read_ir(ir)
    except ValueError as error:
        raise SchemaContractConflict(f"the schema files cannot be read: {error}") from error
    if not isinstance(recorded, dict):
        raise SchemaContractConflict(f"the schema files cannot be read: {SCHEMA_STATE} is not an object")
    desired = compiled(source)
    contract = Contract.of(desired, accepted)
    for name, actual in _facts(ir, desired.shape.hash, accepted.domain).items():
        if recorded.get(name) != actual:
            edited = _EDITED.get(name, SCHEMA_STATE)
            message = (
                f"{edited} was edited, or {SCHEMA_STATE}, which records {name} {recorded.get(name)}, "
                f"found {actual}: put the schema files back as they were; "
                "`omnigraph schema apply` changes the schema"
            )
            raise SchemaContractConflict(message)
    return contract


def current_contract(adapter: StorageAdapter, coordinator: "Coordinator", *, may_write: bool) -> Contract:
    """Return the schema of main: that of the files, or the manifest's where it has another one (N1, N2).

    The files are read first: what a change of the schema writes there is published by then.

    Raises:
        NotFoundError: a file is missing.
        SchemaContractConflict: the files were edited (N3).
    """
    texts = _texts(adapter)
    newest = coordinator.newest()
    conflict: SchemaContractConflict | None = None
    try:
        contract = _read(texts)
        if newest.schema.text in {texts[SCHEMA_IR], ""}:  # a manifest of an earlier format has none
            return contract
    except SchemaContractConflict as error:
        conflict = error
    known = coordinator.state().schema_texts()
    if _is_older_source(texts, known):
        raise SchemaContractConflict(
            f"{SCHEMA_SOURCE} was edited: it declares an earlier schema than {SCHEMA_IR}. "
            "Put it back as it was; "
            "`omnigraph schema apply` changes the schema"
        )
    if not _are_of(texts, known) and not _are_of(texts, (*known, *coordinator.schemas_given_up())):
        message = f"{SCHEMA_IR} is not the schema in the manifest: put the schema files back"
        raise conflict or SchemaContractConflict(message)
    return promote_schema(adapter, coordinator) if may_write else contract_of(coordinator, newest)


def promote_schema(adapter: StorageAdapter, coordinator: "Coordinator") -> Contract:
    """Write main's schema to the files, the state last, and return it (N2)."""
    contract = contract_of(coordinator, coordinator.newest())
    for name, text in contract.texts.items():
        adapter.write_text(name, text)
        if name == SCHEMA_SOURCE:
            hit("schema_apply.mid_promote")
    return contract


def contract_of(coordinator: "Coordinator", state: ManifestState) -> Contract:
    """Return the schema of a state of a branch as its manifest holds it.

    Rows of earlier builds lack the source; then it is written from the document, without its comments.
    """
    accepted = accepted_in(state.schema.text)
    source = coordinator.schema_source(state) or render_schema(accepted.shape)
    return Contract.of(compiled(source), accepted)


def _is_older_source(texts: Mapping[str, str], known: Sequence[str]) -> bool:
    """Return whether the source is of a schema that main gave up before it had that of the document (N3)."""
    try:
        shape = compiled(texts[SCHEMA_SOURCE]).shape.hash
    except SourceError:
        return False
    sources = [place for place, text in enumerate(known) if accepted_in(text).shape.hash == shape]
    return bool(sources) and texts[SCHEMA_IR] in known and sources[-1] < known.index(texts[SCHEMA_IR])


def _are_of(texts: Mapping[str, str], documents: Iterable[str]) -> bool:
    """Return whether each file is what it was under some schema that main has or had (N3)."""
    known = {text: accepted_in(text) for text in documents}
    try:
        recorded = read_json(texts[SCHEMA_STATE])
        shape = compiled(texts[SCHEMA_SOURCE]).shape.hash
    except (ValueError, SourceError):
        return False
    states = [_facts(text, accepted.shape.hash, accepted.domain) for text, accepted in known.items()]
    is_known_state = isinstance(recorded, dict) and any(facts.items() <= recorded.items() for facts in states)
    is_known_source = shape in {accepted.shape.hash for accepted in known.values()}
    return texts[SCHEMA_IR] in known and is_known_state and is_known_source


def _facts(ir: str, shape_hash: str, domain: str) -> dict[str, str]:
    """Return what the state file records of the other two."""
    return {"schema_ir_hash": ir_hash(ir), "schema_shape_hash": shape_hash, "schema_identity_domain": domain}


@lru_cache(SOURCES_KEPT)
def compiled(source: str) -> DesiredSchema:
    """Return what the text of `_schema.pg` declares; a process compiles a text only once.

    Raises:
        ParseError, CatalogError: the text is not a valid schema.
    """
    return reread_schema(Source(source, SCHEMA_SOURCE))


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
