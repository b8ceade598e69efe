"""Changes as callers see them: which entity, what happened to it, how it looked before and after."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from omnigraph.core.temporal import moment_of_micros
from omnigraph.history.commits import GraphCommit
from omnigraph.history.identity import TableIdentity, branch_name

KINDS = ("node", "edge")  # in the order in which changes come


class Op(StrEnum):
    """What happened to an entity."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class TypeRef:
    """A type: an id that a rename keeps and a new lifetime does not, and the name."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Both ends of an edge."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Image:
    """An entity at one time: its properties, and for an edge its ends.

    Values are those of JSON, but `date` and aware `datetime` for times.
    """

    properties: Mapping[str, object]
    endpoints: Endpoints | None = None


@dataclass(frozen=True, slots=True)
class EntityChange:
    """One changed entity: an insert has no image before, a delete none after."""

    kind: str
    type: TypeRef
    id: str
    op: Op
    before: Image | None
    after: Image | None


@dataclass(frozen=True, slots=True)
class ChangeCause:
    """The commit that made changes."""

    graph_commit_id: str
    parent_commit_id: str | None
    merged_parent_commit_id: str | None
    authored_branch: str
    actor_id: str | None
    authored_at_micros: int

    @property
    def authored_at(self) -> datetime:
        """When it was made, in UTC."""
        return moment_of_micros(self.authored_at_micros)

    @staticmethod
    def of(commit: GraphCommit) -> "ChangeCause":
        """Return a commit as a cause."""
        return ChangeCause(
            commit.graph_commit_id,
            commit.parent_commit_id,
            commit.merged_parent_commit_id,
            branch_name(commit.manifest_branch),
            commit.actor_id,
            commit.created_at_micros,
        )


@dataclass(frozen=True, slots=True)
class ChangeBlock:
    """Changes of one commit; one that spans pages comes in several blocks with the same cause."""

    cause: ChangeCause
    changes: tuple[EntityChange, ...]


@dataclass(frozen=True, slots=True)
class ChangeFilter:
    """Which changes are wanted: by kind, by type and by operation; an empty part wants all."""

    kinds: frozenset[str] = frozenset()
    type_ids: frozenset[str] = frozenset()
    ops: frozenset[Op] = frozenset()

    def wants_table(self, kind: str, type_id: str) -> bool:
        """Return whether changes of a type may be wanted."""
        return (not self.kinds or kind in self.kinds) and (not self.type_ids or type_id in self.type_ids)

    def wants_op(self, op: Op) -> bool:
        """Return whether an operation is wanted."""
        return not self.ops or op in self.ops

    @property
    def digest(self) -> str:
        """What a cursor stores of it: equal exactly for filters that want the same."""
        parts = [sorted(self.kinds), sorted(self.type_ids), sorted(self.ops)]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def type_id(domain: str, identity: TableIdentity) -> str:
    """Return the opaque id of a type: it tells lifetimes apart and nothing else."""
    text = f"{domain}:{identity.stable_table_id:x}:{identity.table_incarnation_id:x}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]
