"""The decoded manifest of one branch: an immutable value that advances by the rows it has not seen.

S1  A state never changes; advancing gives a new one.
S2  An advanced state equals a cold one: rows are written once and publishes are numbered upwards, so it reads
    the fragments it has not seen and keeps the rows above its own newest publish.
S3  A state knows where the head rows lie in its version, so that a publish can replace one without looking
    for it. A fold moves them into a fragment that was not seen before: the place comes with its rows.
S4  No key is in a manifest twice. Nothing but the state is asked for that: keys of table rows and schemas
    carry the number of their publish, and numbers only grow.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import pyarrow as pa

from omnigraph import INTERNAL_SCHEMA_VERSION
from omnigraph.core.errors import InvariantViolation, VersionNotFound
from omnigraph.history.commits import NO_COMMIT, CommitLog, GraphCommit
from omnigraph.history.fold import (
    TableEntry,
    TableStates,
    fold,
    where_above,
    where_above_or_equal_to,
    where_equal,
    where_one_of,
)
from omnigraph.history.identity import BranchIdentity, TableIdentity, stored_name
from omnigraph.history.manifest_rows import (
    COMMIT,
    HEAD,
    READ_COLUMNS,
    SCHEMA,
    TABLE_KINDS,
    TABLE_VERSION,
    TOMBSTONE,
    ManifestRow,
    metadata_members,
)
from omnigraph.storage.files.version_file import check_ref
from omnigraph.storage.tables.manifest_table import ROW_ADDRESS, ManifestHandle

_LOG_CHUNKS_MAX = 64


@dataclass(frozen=True, slots=True)
class AcceptedText:
    """The newest accepted schema of a branch, as a document, and the publish that brought it."""

    text: str = ""
    published_at: int = 0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One immutable view of the graph: a branch at a manifest version."""

    branch_identity: BranchIdentity
    manifest_version: int
    entries: Mapping[str, TableEntry]
    head: GraphCommit
    schema_text: str = field(default="", repr=False)  # the accepted schema of that time, as a document
    stamp: int = INTERNAL_SCHEMA_VERSION  # the storage format of its manifest

    @property
    def branch(self) -> str | None:
        """The name of the branch; None is main."""
        return stored_name(self.branch_identity.name)

    @property
    def commit_id(self) -> str:
        """The newest commit that it shows."""
        return self.head.graph_commit_id

    @property
    def tables(self) -> tuple[TableEntry, ...]:
        """Its tables; `entries` has them by their keys."""
        return tuple(self.entries.values())

    def __repr__(self) -> str:
        branch = self.branch_identity.name
        return f"Snapshot({branch!r} at {self.manifest_version}, {self.head!r}, {tables_line(self.tables)})"

    def _repr_html_(self) -> str:
        return tables_shown(self.tables, repr(self))

    def showing(self, entries: Mapping[str, TableEntry]) -> "Snapshot":
        """Return the same view with some tables at other versions that hold the same rows."""
        return replace(self, entries={**self.entries, **entries})

    def entry(self, table_key: str) -> TableEntry:
        """Return a table of the snapshot; the catalog and the manifest name the same ones."""
        entry = self.entries.get(table_key)
        if entry is None:
            raise InvariantViolation(f"snapshot {self.manifest_version} has no table {table_key}")
        return entry


@dataclass(frozen=True, slots=True)
class ManifestState:
    """Everything that the rows of a branch's manifest say, as of one of its Lance versions."""

    branch: BranchIdentity
    version: int
    fragments: Mapping[int, str] = field(default_factory=dict)  # the data file of each
    tables: TableStates = field(default_factory=TableStates)
    commits: CommitLog = field(default_factory=CommitLog)
    heads: Mapping[str, str] = field(default_factory=dict)
    head_places: Mapping[str, int] = field(default_factory=dict)  # addresses, as far as known (S3)
    log: tuple[pa.Table, ...] = ()
    schema: AcceptedText = field(default_factory=AcceptedText)
    stamp: int = INTERNAL_SCHEMA_VERSION  # the storage format that it was read from

    @property
    def ref(self) -> str | None:
        """The Lance ref of the manifest."""
        return self.branch.ref

    @property
    def head(self) -> GraphCommit:
        """The newest commit; `NO_COMMIT` where the history is empty."""
        return self.commits.head or NO_COMMIT

    @property
    def sequence(self) -> int:
        """The greatest manifest version that a commit recorded; the Lance version may be higher."""
        return self.head.manifest_version

    def snapshot(self) -> Snapshot:
        """Return the newest view."""
        entries = {entry.table_key: entry for entry in self.tables.entries()}
        return Snapshot(self.branch, self.sequence, entries, self.head, self.schema.text, self.stamp)

    def snapshot_at(self, version: int) -> Snapshot:
        """Return the view at a past manifest version, folded from rows.

        Raises:
            VersionNotFound: the branch has no such version.
        """
        head = self.commits.head_at(version) if 1 <= version <= self.version else None
        if head is None:
            raise VersionNotFound(f"manifest version {version} is not between 1 and {self.version}")
        tables = fold(TableStates(), self._table_rows(), up_to=version)
        entries = {entry.table_key: entry for entry in tables.entries()}
        schema_text = self.schema_text_at(version)
        return Snapshot(self.branch, version, entries, head, schema_text, self.stamp)

    def pinned_refs(self) -> frozenset[str]:
        """Return the refs that any pin of this branch names, past ones included."""
        refs = where_equal(self._table_rows(), "object_type", TABLE_VERSION)["table_branch"]
        return frozenset(check_ref(str(ref), "a pin") for ref in refs.unique().drop_null().to_pylist())

    def pinned_versions(self, since: int = 0) -> frozenset[tuple[str, str | None, int]]:
        """Return every version that a pin of this branch names, past ones included: place, ref, number.

        With `since` those that nothing shows from that manifest version on are left out.
        """
        rows = where_equal(self._table_rows(), "object_type", TABLE_VERSION)
        if since:
            rows = where_above(rows, "published_at", since)
            shown = self.snapshot_at(since).entries.values()
            in_force = frozenset((entry.location, entry.pin.ref, entry.version) for entry in shown)
            return in_force | self._named_versions(rows)
        return self._named_versions(rows)

    def _named_versions(self, rows: pa.Table) -> frozenset[tuple[str, str | None, int]]:
        columns = ["stable_table_id", "table_incarnation_id", "table_key", "table_branch", "table_version"]
        self.pinned_refs()  # none of them leads elsewhere
        return frozenset(
            (TableIdentity(stable, incarnation).location(key), ref, version)
            for stable, incarnation, key, ref, version in zip(
                *(rows[name].to_pylist() for name in columns), strict=True
            )
        )

    def forks_of(self, branch: str) -> frozenset[tuple[TableIdentity, str]]:
        """Return the forks that a branch published, past ones included: which table, and which ref."""
        rows = where_equal(self._table_rows(), "object_type", TABLE_VERSION)
        columns = ["stable_table_id", "table_incarnation_id", "table_branch", "metadata"]
        stored = stored_name(branch)
        return frozenset(
            (
                TableIdentity(row["stable_table_id"], row["table_incarnation_id"]),
                check_ref(row["table_branch"], "a pin"),
            )
            for row in rows.select(columns).to_pylist()
            if row["table_branch"] is not None and metadata_members(row["metadata"])["branch"] == stored
        )

    def snapshots_of(self, commits: Sequence[GraphCommit]) -> Iterator[Snapshot]:
        """Yield the view of each commit, oldest first; rows are folded once, however many there are."""
        rows = self._table_rows().sort_by("published_at")
        published = rows["published_at"].to_numpy()
        tables, start = TableStates(), 0
        for commit in commits:
            end = int(published.searchsorted(commit.manifest_version, side="right"))
            tables, start = fold(tables, rows.slice(start, end - start)), end
            entries = {entry.table_key: entry for entry in tables.entries()}
            schema_text = self.schema_text_at(commit.manifest_version)
            yield Snapshot(self.branch, commit.manifest_version, entries, commit, schema_text, self.stamp)

    def schema_text_at(self, version: int) -> str:
        """Return the accepted schema's text as of a manifest version; the oldest text for an earlier one."""
        if version >= self.schema.published_at:
            return self.schema.text
        rows = self._rows_of(SCHEMA).select(["published_at", "metadata"]).to_pylist()
        texts = sorted((row["published_at"], row["metadata"]) for row in rows)
        known = [text for at, text in texts if at <= version]
        return str(known[-1] if known else texts[0][1])

    def schema_texts(self) -> tuple[str, ...]:
        """Return every schema that this branch has accepted, as documents, the oldest first."""
        return tuple(accepted.text for accepted in self.schemas())

    def schemas(self) -> tuple[AcceptedText, ...]:
        """Return every schema that this branch has accepted, with its publish, the oldest first."""
        rows = self._rows_of(SCHEMA).select(["published_at", "metadata"]).sort_by("published_at")
        return tuple(AcceptedText(row["metadata"], row["published_at"]) for row in rows.to_pylist())

    def with_rows(self, rows: pa.Table, *, version: int, fragments: Mapping[int, str]) -> "ManifestState":
        """Return the state with further rows; those that it already has are skipped (S1, S2)."""
        rows = self._unseen(rows)
        heads, places = dict(self.heads), dict(self.head_places)
        for row in where_equal(rows, "object_type", HEAD).to_pylist():
            branch = row["object_id"].removeprefix(f"{HEAD}:")
            heads[branch] = metadata_members(row["metadata"])["head_commit_id"]
            places.pop(branch, None)
            if ROW_ADDRESS in row:
                places[branch] = row[ROW_ADDRESS]
        rows = rows.select(READ_COLUMNS)
        kept = where_one_of(rows, "object_type", [*TABLE_KINDS, SCHEMA])
        log = (*self.log, kept) if kept.num_rows else self.log
        if len(log) > _LOG_CHUNKS_MAX:
            log = (pa.concat_tables(log).combine_chunks(),)
        return ManifestState(
            self.branch,
            version,
            fragments,
            fold(self.tables, rows),
            self.commits.with_rows(rows),
            heads,
            places,
            log,
            self._newest_schema(rows),
        )

    def _newest_schema(self, rows: pa.Table) -> AcceptedText:
        """Return the schema with the greatest number: that of further rows, if they bring one."""
        found = [
            AcceptedText(row["metadata"], row["published_at"])
            for row in where_equal(rows, "object_type", SCHEMA)
            .select(["metadata", "published_at"])
            .to_pylist()
        ]
        return max([self.schema, *found], key=lambda schema: schema.published_at)

    def replaced_places(self, rows: Sequence[ManifestRow]) -> list[int]:
        """Return where the rows lie that a publish replaces: its head row, if there is one (S3).

        Raises:
            InvariantViolation: a key would be in the manifest twice (S4).
        """
        counts = Counter(row["object_id"] for row in rows)
        for row in rows:
            if counts[row["object_id"]] > 1 or self._has_key(row):
                raise InvariantViolation(f"publish: key {row['object_id']!r} would be written twice")
        branches = [
            str(row["object_id"]).removeprefix(f"{HEAD}:") for row in rows if row["object_type"] == HEAD
        ]
        return [self.head_places[branch] for branch in branches if branch in self.heads]

    def _has_key(self, row: ManifestRow) -> bool:
        """Return whether a key is there and stays there."""
        key, kind = row["object_id"], row["object_type"]
        if kind == HEAD:
            branch = key.removeprefix(f"{HEAD}:")
            return branch in self.heads and branch not in self.head_places
        if kind == COMMIT:
            return self.commits.has(key)
        if kind == TOMBSTONE:
            ended = self.tables.tombstones.get(
                TableIdentity(row["stable_table_id"], row["table_incarnation_id"])
            )
            return ended is not None and ended[0] == row["table_version"]
        return bool(row["published_at"] <= self.sequence)

    def landed(self, before: ManifestHandle, made: ManifestHandle) -> "ManifestState":
        """Return this state, folded from a publish whose first row is a head row, as it landed (S3)."""
        first = min(set(made.fragment_ids) - set(before.fragment_ids))
        places = {**self.head_places, self.branch.name: first << 32}
        fragments = made.fragments(self.fragments)
        return replace(self, version=made.version, fragments=fragments, head_places=places)

    def continues(self, former: "ManifestState") -> bool:
        """Return whether what this state has beyond an older one continues from the older one's head."""
        if former.commits.head is None:
            return not former.fragments  # nothing tells a fold of its rows from others
        for first in self.commits.oldest_first(above=former.sequence, limit=1):
            return first.parent_commit_id == former.head.graph_commit_id
        return self.heads == former.heads

    def _unseen(self, rows: pa.Table) -> pa.Table:
        """Return the rows above the newest publish that this state knows, and heads.

        Every publish loads a version not below the real one of its predecessor: its number is greater.
        """
        if self.commits.head is None:
            return rows
        return where_above_or_equal_to(rows, "published_at", self.sequence, "object_type", HEAD)

    def _table_rows(self) -> pa.Table:
        return pa.concat_tables(self.log)

    def _rows_of(self, kind: str) -> pa.Table:
        return where_equal(self._table_rows(), "object_type", kind)


class CountedTable(Protocol):
    """What is shown of a table of a state."""

    @property
    def table_key(self) -> str:
        """The table."""
        ...

    @property
    def version(self) -> int:
        """Its version."""
        ...

    @property
    def row_count(self) -> int:
        """Its rows."""
        ...


def tables_line(tables: Collection[CountedTable]) -> str:
    """Return how many tables a state has, and how many rows."""
    return f"{len(tables)} tables, {sum(table.row_count for table in tables)} rows"


def tables_shown(tables: Collection[CountedTable], line: str) -> str:
    """Return the tables of a state as a notebook shows them, nodes before edges."""
    from omnigraph.core.markup import table  # late: for people who look at one

    ordered = sorted(tables, key=lambda found: (not found.table_key.startswith("node"), found.table_key))
    rows = [(found.table_key, found.version, found.row_count) for found in ordered]
    return table(["table", "version", "rows"], rows, line)
