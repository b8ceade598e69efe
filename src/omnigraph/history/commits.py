"""Graph commits: a projection of the manifest's rows, never stored elsewhere.

C1  The lineage key (manifest version, time, id) is the one order of commits, for heads and for lists.
C2  The metadata of a commit is decoded when that commit is asked for.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

import pyarrow as pa

from omnigraph.core.temporal import moment_of_micros
from omnigraph.history.fold import (
    ascending,
    descending,
    greatest,
    least,
    position_of,
    where_above,
    where_at_most,
    where_equal,
)
from omnigraph.history.identity import branch_name
from omnigraph.history.manifest_rows import (
    COMMIT,
    SCHEMA_OF_MANIFEST,
    ManifestRow,
    commit_row,
    metadata_members,
)

MAINTENANCE_ACTOR = "omnigraph:maintenance"
RECOVERY_ACTOR = "omnigraph:recovery"
REPAIR_ACTOR = "omnigraph:repair"
FORCED_REPAIR_ACTOR = "omnigraph:repair:force"
OPERATIONS = "operations"  # in the metadata of a commit of several mutations
MESSAGE_SHOWN = 60  # characters: what a line has room for
_COLUMNS = ["object_id", "table_version", "table_branch", "metadata"]


@dataclass(frozen=True, slots=True)
class CommitOperation:
    """One of several mutations that were committed together: who asked for it, and what it counted."""

    actor_id: str | None
    query_name: str
    message: str | None
    affected_nodes: int
    affected_edges: int


@dataclass(frozen=True, slots=True)
class GraphCommit:
    """One publish: what it continues, who asked for it, when, and where it landed.

    Mutations that were committed together are its `operations`, in the order in which they ran. `actor_id`
    and `message` are then what all of them have in common, None where they differ.
    """

    graph_commit_id: str
    manifest_branch: str | None
    manifest_version: int
    parent_commit_id: str | None
    merged_parent_commit_id: str | None
    actor_id: str | None
    created_at_micros: int
    message: str | None
    operations: tuple[CommitOperation, ...] = ()

    @property
    def created_at(self) -> datetime:
        """When it was made, in UTC."""
        return moment_of_micros(self.created_at_micros)

    def __repr__(self) -> str:
        from omnigraph.core.markup import cut  # late: for people who look at one

        who = "" if self.actor_id is None else f" by {self.actor_id!r}"
        what = "" if self.message is None else f": {cut(self.message, MESSAGE_SHOWN)!r}"
        at = f"{branch_name(self.manifest_branch)!r} at {self.manifest_version}"
        return f"GraphCommit({self.graph_commit_id}, {at}, {self.created_at:%Y-%m-%d %H:%M:%SZ}{who}{what})"

    def _repr_html_(self) -> str:
        from omnigraph.core.markup import table  # late: for people who look at one

        members = [(name.removesuffix("_micros"), getattr(self, name)) for name in self.__slots__]
        rows = [(name, self.created_at if name == "created_at" else value) for name, value in members]
        return table(["graph commit", ""], [row for row in rows if row[1] not in {None, ()}], repr(self))

    def is_by(self, actor_id: str | None) -> bool:
        """Return whether an actor asked for this commit, or for one of the operations in it."""
        return self.actor_id == actor_id or any(item.actor_id == actor_id for item in self.operations)

    @property
    def lineage_key(self) -> tuple[int, int, str]:
        """The place of this commit in the order of all commits (C1)."""
        return self.manifest_version, self.created_at_micros, self.graph_commit_id


# What stands before the first commit of a graph whose history is empty: only one that came from an earlier
# format without its lineage is like that. Its id is that of no commit.
NO_COMMIT = GraphCommit("", None, 0, None, None, None, 0, None)


def lineage_row(commit: GraphCommit) -> ManifestRow:
    """Return the manifest row of a commit; what only its metadata has besides is left out."""
    metadata = {
        "parent_commit_id": commit.parent_commit_id,
        "merged_parent_commit_id": commit.merged_parent_commit_id,
        "actor_id": commit.actor_id,
        "created_at": commit.created_at_micros,
        "message": commit.message,
    }
    branch = branch_name(commit.manifest_branch)
    return commit_row(commit.graph_commit_id, branch, metadata, at=commit.manifest_version)


@dataclass(frozen=True, slots=True)
class CommitLog:
    """The commit rows of a branch, undecoded; `head` is the greatest by lineage key."""

    chunks: tuple[pa.Table, ...] = ()
    head: GraphCommit | None = None

    def with_rows(self, rows: pa.Table) -> "CommitLog":
        """Return the log with the commits among further manifest rows."""
        added = where_equal(rows, "object_type", COMMIT).select(_COLUMNS)
        if not added.num_rows:
            return self
        chunks = [*self.chunks, added]
        # Every publish looks for an id in all chunks: they stay few, and a row is copied seldom.
        while len(chunks) > 1 and chunks[-2].num_rows <= 2 * chunks[-1].num_rows:
            chunks[-2:] = [pa.concat_tables(chunks[-2:]).combine_chunks()]
        return CommitLog(tuple(chunks), self._newer(added))

    def find(self, commit_id: str) -> GraphCommit | None:
        """Return the commit with an id, or None."""
        if self.head is not None and self.head.graph_commit_id == commit_id:
            return self.head
        for chunk in reversed(self.chunks):
            position = position_of(chunk, "object_id", commit_id)
            if position >= 0:
                return _decode(chunk, position)
        return None

    def has(self, commit_id: str) -> bool:
        """Return whether there is a commit with an id; nothing is decoded."""
        return any(position_of(chunk, "object_id", commit_id) >= 0 for chunk in reversed(self.chunks))

    def branch_names(self) -> frozenset[str]:
        """Return the branches that the commits were made on, without main."""
        names = {name for chunk in self.chunks for name in chunk["table_branch"].unique().to_pylist()}
        return frozenset(str(name) for name in names if name is not None)

    def rows(self) -> pa.Table:
        """Return the undecoded rows, in no promised order."""
        if not self.chunks:
            return SCHEMA_OF_MANIFEST.empty_table().select(_COLUMNS)
        return pa.concat_tables(self.chunks)

    def newest_first(self, up_to: int | None = None) -> Iterator[GraphCommit]:
        """Yield commits by lineage key, greatest first, each decoded when its turn comes (C2)."""
        if not self.chunks:
            return
        rows = pa.concat_tables(self.chunks)
        if up_to is not None:
            rows = where_at_most(rows, "table_version", up_to)
        versions = rows["table_version"].to_pylist()
        for _, group in groupby(descending(rows, "table_version"), key=lambda position: versions[position]):
            commits = [_decode(rows, position) for position in group]
            yield from sorted(commits, key=lambda commit: commit.lineage_key, reverse=True)

    def oldest_first(
        self, *, above: int, up_to: int | None = None, limit: int | None = None
    ) -> Iterator[GraphCommit]:
        """Yield the commits above a manifest version, least first, each decoded when its turn comes (C2).

        A branch is one chain of first parents, and along it the versions grow.
        """
        rows = where_above(self.rows(), "table_version", above)
        if up_to is not None:
            rows = where_at_most(rows, "table_version", up_to)
        for position in ascending(rows, "table_version")[:limit]:
            yield _decode(rows, position)

    def head_at(self, version: int) -> GraphCommit | None:
        """Return the newest commit of a past manifest version."""
        return next(self.newest_first(version), None)

    @property
    def genesis_id(self) -> str:
        """The id of the oldest commit, which identifies a graph wherever it is stored; empty without one."""
        if not self.chunks:
            return NO_COMMIT.graph_commit_id
        oldest = min(least(chunk, "table_version") for chunk in self.chunks)
        genesis = self.head_at(oldest)
        assert genesis is not None, "a graph has a commit from its beginning"
        return genesis.graph_commit_id

    def effective(self, commit: GraphCommit) -> GraphCommit:
        """Return the commit that last changed rows: maintenance commits show what their parent shows."""
        while commit.actor_id == MAINTENANCE_ACTOR and commit.parent_commit_id is not None:
            parent = self.find(commit.parent_commit_id)
            if parent is None:
                return commit
            commit = parent
        return commit

    def is_known_synced(self, commit: GraphCommit) -> bool:
        """Return whether a later commit says that this one was on the disk when it was made."""
        later = where_above(self.rows(), "table_version", commit.manifest_version)
        synced = (metadata_members(text).get("synced_version") for text in later["metadata"].to_pylist())
        return any((version or 0) >= commit.manifest_version for version in synced)

    def __len__(self) -> int:
        """Return the number of commits."""
        return sum(chunk.num_rows for chunk in self.chunks)

    def _newer(self, added: pa.Table) -> GraphCommit:
        candidates = where_equal(added, "table_version", greatest(added, "table_version"))
        commits = [_decode(candidates, position) for position in range(candidates.num_rows)]
        if self.head is not None:
            commits.append(self.head)
        return max(commits, key=lambda commit: commit.lineage_key)


def _decode(rows: pa.Table, position: int) -> GraphCommit:
    metadata = metadata_members(rows["metadata"][position].as_py())
    return GraphCommit(
        graph_commit_id=str(rows["object_id"][position].as_py()),
        manifest_branch=rows["table_branch"][position].as_py(),
        manifest_version=int(str(rows["table_version"][position].as_py())),
        parent_commit_id=metadata.get("parent_commit_id"),
        merged_parent_commit_id=metadata.get("merged_parent_commit_id"),
        actor_id=metadata.get("actor_id"),
        created_at_micros=metadata["created_at"],
        message=metadata.get("message"),
        operations=tuple(CommitOperation(**item) for item in metadata.get(OPERATIONS) or ()),
    )
