"""The rows of `__manifest`: columns, object ids, and how each kind of row is written.

R1  Every row except `graph_head` is written once and never changed: the keys of table rows carry
    `published_at`.
R2  Metadata that is not what a publish writes is damage, and is told as such: whoever reads a row does not
    look at it again.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa

from omnigraph.core.damage import GraphDamaged
from omnigraph.core.regular_file import GRAPH_MARK
from omnigraph.history.identity import TableIdentity, stored_name
from omnigraph.storage.files.sums import FileSum, encode_sums

MANIFEST_DIR = GRAPH_MARK
STAMP_KEY = "omnigraph:internal_schema_version"
# Builds that published by merging compared keys by it. Nothing here does; it cannot be taken off a column.
PRIMARY_KEY = {b"lance-schema:unenforced-primary-key": b"true"}

TABLE, TABLE_VERSION, TOMBSTONE = "table", "table_version", "table_tombstone"
SCHEMA, COMMIT, HEAD = "schema", "graph_commit", "graph_head"
TABLE_KINDS = (TABLE, TABLE_VERSION, TOMBSTONE)

SCHEMA_OF_MANIFEST = pa.schema(
    [
        pa.field("object_id", pa.utf8(), nullable=False, metadata=PRIMARY_KEY),
        pa.field("object_type", pa.utf8(), nullable=False),
        pa.field("location", pa.utf8()),
        pa.field("metadata", pa.utf8()),
        pa.field("base_objects", pa.list_(pa.utf8())),
        pa.field("table_key", pa.utf8(), nullable=False),
        pa.field("stable_table_id", pa.uint64()),
        pa.field("table_incarnation_id", pa.uint64()),
        pa.field("table_version", pa.uint64()),
        pa.field("table_branch", pa.utf8()),
        pa.field("row_count", pa.uint64()),
        pa.field("published_at", pa.uint64()),
    ]
)
# What folds and lists need: `base_objects` holds checksums, and only `verify` asks for them.
READ_COLUMNS = tuple(name for name in SCHEMA_OF_MANIFEST.names if name != "base_objects")
ManifestRow = dict[str, Any]


class _Members(dict[str, Any]):
    """The members of one row's metadata; asking for one that every such row has finds it, or damage (R2)."""

    def __missing__(self, name: str) -> Any:  # noqa: ANN401 - as the values of the dictionary
        raise _damaged(f"the metadata of a row has no '{name}'")


def metadata_members(text: object) -> dict[str, Any]:
    """Return the members of a row's metadata.

    Raises:
        GraphDamaged: the text is not one that a publish writes (R2).
    """
    try:
        members = orjson.loads(str(text))
    except orjson.JSONDecodeError as error:
        raise _damaged(f"the metadata of a row cannot be read: {error}") from error
    if not isinstance(members, dict):
        raise _damaged("the metadata of a row is no object")
    return _Members(members)


def _damaged(reason: str) -> GraphDamaged:
    return GraphDamaged(file=f"{MANIFEST_DIR}/data", reason=reason, dataset=MANIFEST_DIR)


@dataclass(frozen=True, slots=True)
class PublishedPin:
    """A published version of a table: on which Lance ref, with how many rows, from which transaction."""

    version: int
    ref: str | None
    row_count: int
    transaction_uuid: str | None
    branch: str
    published_at: int = 0
    upkeep_version: int = 0  # where small fragments were last folded; 0 is never, or as in the previous pin

    def names_same(self, other: "PublishedPin") -> bool:
        """Return whether both pin the same version of the same ref."""
        return (self.version, self.ref) == (other.version, other.ref)

    def is_same(self, other: "PublishedPin") -> bool:
        """Return whether both pin the same content."""
        mine = (self.row_count, self.transaction_uuid)
        return self.names_same(other) and mine == (other.row_count, other.transaction_uuid)


def registration_row(identity: TableIdentity, table_key: str, *, at: int) -> ManifestRow:
    """Return the row that registers a lifetime, or gives it another name."""
    return _row(
        f"{TABLE}:{identity.object_part}:{at}",
        TABLE,
        location=identity.location(table_key),
        metadata="{}",
        table_key=table_key,
        identity=identity,
        published_at=at,
    )


def pin_row(identity: TableIdentity, table_key: str, pin: PublishedPin, *, at: int) -> ManifestRow:
    """Return the row that pins a table to a version."""
    metadata = {
        "branch": stored_name(pin.branch),
        "manifest_path": None,
        "manifest_size": None,
        "e_tag": None,
        "naming_scheme": "V2",
        "transaction_uuid": pin.transaction_uuid,
        "upkeep_version": pin.upkeep_version,
    }
    return _row(
        f"{TABLE_VERSION}:{identity.object_part}:{at}",
        TABLE_VERSION,
        metadata=_json(metadata),
        table_key=table_key,
        identity=identity,
        table_version=pin.version,
        table_branch=pin.ref,
        row_count=pin.row_count,
        published_at=at,
    )


def schema_row(
    ir_text: str, *, at: int, source: str | None = None, upgraded_to: str | None = None
) -> ManifestRow:
    """Return the row that holds the accepted schema from here on.

    Its text as people wrote it is kept where no fold reads it, and behind it, for an upgrade, the commit of
    main whose schema it took over. Rows of earlier builds have neither.
    """
    base_objects = None if source is None else [source, *([] if upgraded_to is None else [upgraded_to])]
    return _row(f"{SCHEMA}:{at}", SCHEMA, metadata=ir_text, base_objects=base_objects, published_at=at)


def commit_row(
    commit_id: str,
    branch: str,
    metadata: dict[str, Any],
    *,
    at: int,
    sums: Sequence[FileSum] = (),
) -> ManifestRow:
    """Return the lineage row of a commit, with the checksums of the files that it added.

    Members of its metadata that are None are left out.
    """
    kept = {name: value for name, value in metadata.items() if value is not None}
    return _row(
        commit_id,
        COMMIT,
        metadata=_json(kept),
        base_objects=encode_sums(sums),
        table_version=at,
        table_branch=stored_name(branch),
        published_at=at,
    )


def head_row(branch: str, commit_id: str, parent_id: str | None) -> ManifestRow:
    """Return the one mutable row of a branch: its current head."""
    metadata = {"head_commit_id": commit_id}
    if parent_id is not None:
        metadata["parent_commit_id"] = parent_id
    return _row(f"{HEAD}:{branch}", HEAD, metadata=_json(metadata))


def rows_table(rows: list[ManifestRow]) -> pa.Table:
    """Return rows as a table of the manifest's schema."""
    return pa.Table.from_pylist(rows, schema=SCHEMA_OF_MANIFEST)


def _row(
    object_id: str,
    object_type: str,
    *,
    identity: TableIdentity | None = None,
    table_key: str = "",
    **values: object,
) -> ManifestRow:
    row: ManifestRow = dict.fromkeys(SCHEMA_OF_MANIFEST.names)
    row |= {"object_id": object_id, "object_type": object_type, "table_key": table_key, **values}
    if identity is not None:
        row["stable_table_id"] = identity.stable_table_id
        row["table_incarnation_id"] = identity.table_incarnation_id
    return row


def _json(document: dict[str, Any]) -> str:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)
