"""What the verbs share: one open graph, its accepted schema, and the checks at every entry."""

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from omnigraph.catalog.model import Catalog
from omnigraph.commit.parts import Parts
from omnigraph.core.errors import BadRequest, HandleClosed, HandleForked, OmnigraphError, StorageError
from omnigraph.core.names import RESERVED_ACTOR_PREFIX
from omnigraph.core.together import both
from omnigraph.history.branches import SCHEMA_APPLY_LOCK, given_name
from omnigraph.history.identity import MAIN, BranchIdentity
from omnigraph.history.state import ManifestState, Snapshot
from omnigraph.operations.turns import Turns
from omnigraph.policy.gate import OPEN_GATE, Gate
from omnigraph.policy.request import AccessRequest, Action

if TYPE_CHECKING:
    from omnigraph.commit.publish import ManifestPublisher, Migrate, Secure
    from omnigraph.embedding import EmbeddingConfig
    from omnigraph.history.contract import Catalogs, Contract
    from omnigraph.operations.background import Maintenance
    from omnigraph.operations.query import Reading
    from omnigraph.storage.tables.manifest_table import ManifestHandle


MESSAGE_BYTES_MAX = 4_096  # a commit message is a note, not a document: every listing reads it


@dataclass(slots=True)
class OpenGraph:
    """One open graph: shared by threads, never by processes."""

    parts: Parts
    contract: "Contract"
    is_writable: bool
    _publisher: "ManifestPublisher | None" = None
    gate: Gate = OPEN_GATE  # asked by every entry before anything else
    embedding: "EmbeddingConfig | None" = None
    process: int = field(default_factory=os.getpid)
    lock: threading.Lock = field(default_factory=threading.Lock)
    is_closed: bool = False
    catalogs: "Catalogs" = field(init=False)
    maintenance: "Maintenance | None" = None  # the thread, if this process has one
    turns: Turns = field(default_factory=Turns)
    _reading: "Reading | None" = None

    def __post_init__(self) -> None:
        """Begin with the catalog of main."""
        from omnigraph.history.contract import Catalogs

        self.catalogs = Catalogs(self.contract)

    @property
    def catalog(self) -> Catalog:
        """The types of main, as this handle last saw it; a branch may have others."""
        return self.catalogs.of(self.parts.coordinator.known().schema.text)

    def learn(self, contract: "Contract") -> None:
        """Take the present schema of main, with its source."""
        self.contract = contract
        self.catalogs.learn(contract)

    def catalog_on(self, branch: str | None, from_: str | None = None) -> Catalog:
        """Return the types of a branch now; those of another one if it is only about to be made from that.

        Raises:
            BranchNotFound: there is no such branch.
        """
        name = given_name(branch)
        if from_ is not None and name != MAIN and self.parts.branches.find(name) is None:
            name = given_name(from_)
        return self.catalog_of(self.newest(name))

    def catalog_of(self, snapshot: "Snapshot | ManifestState") -> Catalog:
        """Return the types of a view: its branch, or its time, may have another schema than main has now."""
        text = snapshot.schema_text if isinstance(snapshot, Snapshot) else snapshot.schema.text
        return self.catalogs.of(text)

    @property
    def publisher(self) -> "ManifestPublisher":
        """The graph's only way to publish; a handle opened for reading gets one on first use."""
        if self._publisher is None:
            with self.lock:
                self._publisher = self._publisher or make_publisher(self.parts)
        return self._publisher

    @property
    def reading(self) -> "Reading":
        """What queries share; created for the first one."""
        if self._reading is None:
            from omnigraph.operations.query import Reading

            # A graph without a commit is told from others by what its schema was accepted as.
            genesis_id = self.parts.coordinator.known().commits.genesis_id or self.contract.accepted.domain
            with self.lock:
                if self._reading is None:
                    self._reading = Reading.of(self.parts, genesis_id, self.embedding)
        return self._reading

    def follow_write(self, branch: BranchIdentity) -> None:
        """Bring what queries of this handle have cached up to date with what was just written.

        The write pays for this, not the next query. It has landed: an error here is a warning.
        """
        reading = self._reading
        if reading is None:
            return
        try:
            state = self.last_seen(branch)
            reading.follow(state, self.catalog_of(state))
        except OmnigraphError as error:
            self.parts.warn(f"what queries have cached will be updated by the next query: {error}")

    def forget_past(self) -> None:
        """Drop the views of past snapshots, whose versions may have been removed; the newest ones stay."""
        reading = self._reading
        if reading is not None:
            reading.forget_past()

    def close_reading(self) -> None:
        """Release what queries have cached; the next query starts afresh."""
        with self.lock:
            reading, self._reading = self._reading, None
        if reading is not None:
            reading.close()

    def enter(self, actor: str | None, action: Action, branch: str | None) -> str:
        """Check a call on a branch before any I/O: process, actor, name, policy. Return the branch's name.

        Raises:
            HandleClosed: the handle was closed.
            HandleForked: the handle belongs to the parent of this process.
            BadRequest: the actor's name is the engine's, or the branch's name is reserved.
            PolicyDenied: the actor may not do this.
        """
        self._check_caller(actor)
        name = named_branch(branch)
        self.gate.require(AccessRequest(actor, action, name))
        return name

    def enter_target(
        self, actor: str | None, action: Action, target: str | None, *, source: str | None = None
    ) -> str:
        """Check a call that makes, changes or removes a branch, perhaps from another, as `enter` does."""
        self._check_caller(actor)
        name = named_branch(target)
        self.gate.require(AccessRequest(actor, action, source, name))
        return name

    def enter_whole(self, actor: str | None, action: Action) -> None:
        """Check a call that is about no branch in particular, as `enter` does."""
        self._check_caller(actor)
        self.gate.require(AccessRequest(actor, action))

    def may_know(self, actor: str | None, branch: str) -> bool:
        """Say whether an error may name a branch to an actor: one who may list all branches, or read this."""
        return self.gate.allows(AccessRequest(actor, Action.READ)) or self.gate.allows(
            AccessRequest(actor, Action.READ, branch)
        )

    def enter_somewhere(self, actor: str | None, action: Action) -> bool:
        """Check a call of which only storage knows the branch; return whether the actor may do it on any.

        Raises:
            PolicyDenied: the actor may do it on no branch at all.
        """
        self._check_caller(actor)
        return self.gate.require_somewhere(actor, action)

    def _check_caller(self, actor: str | None) -> None:
        self.require_open()
        if actor is not None:
            check_actor(actor)

    def require_open(self) -> None:
        """Refuse a handle that can no longer be used, or not in this process.

        Raises:
            HandleForked: it belongs to the parent of this process.
            HandleClosed: it was closed.
        """
        if os.getpid() != self.process:
            raise HandleForked
        if self.is_closed:
            raise HandleClosed

    def require_branch(self, name: str) -> BranchIdentity:
        """Return which branch a name means now.

        Raises:
            BranchNotFound: there is no branch of that name.
        """
        return self.parts.branches.resolve(name)

    def require_writable(self) -> None:
        """Refuse a write on a handle that was opened for reading.

        Raises:
            BadRequest: the graph was opened read-only.
        """
        if not self.is_writable:
            raise BadRequest("this handle is read-only: open the graph read-write to change it")

    def heal(self) -> bool:
        """Finish or undo what dead writers left behind; return whether it settled anything."""
        from omnigraph.commit.recovery.outcome import SweepResult
        from omnigraph.commit.recovery.sweep import SweepMode, sweep

        return SweepResult.DONE in sweep(self.parts, self.publisher, SweepMode.HEAL).values()

    def heal_if_due(self, *, begins_again: bool = True) -> None:
        """Heal, unless a look a moment ago has shown that there is nothing to do.

        `begins_again` says that the caller heals and is run again if it meets what was missed.
        """
        from omnigraph.commit.recovery.sweep import is_due

        if is_due(self.parts, begins_again=begins_again):
            self.heal()

    def heal_late(self) -> bool:
        """Heal if that was not due at the entry of a write; return whether it settled anything after all."""
        may_be_late = self.parts.writer is not None and self.parts.doubts.clear_at is not None
        return may_be_late and self.heal()

    def state(self, name: str = MAIN) -> ManifestState:
        """Return the newest state of a branch.

        Raises:
            BranchNotFound: there is no branch of that name.
        """
        return self._looked_up(name, self.parts.coordinator.state)

    def last_seen(self, branch: BranchIdentity) -> ManifestState:
        """Return the state of a branch that this handle saw or made last, without another look."""
        return self.parts.coordinator.warm(branch) or self.parts.coordinator.state(branch)

    def seen(self, name: str) -> ManifestState:
        """Return some state of a branch, perhaps an older one or of a branch that had the name before.

        Raises:
            BranchNotFound: this handle has seen none, and there is no such branch.
        """
        return self.parts.coordinator.seen(name) or self.last_seen(self.require_branch(name))

    def newest(self, name: str = MAIN) -> ManifestState:
        """Return a state that shows what a branch shows now; the past it may not know.

        Raises:
            BranchNotFound: there is no branch of that name.
        """
        return self._looked_up(name, self.parts.coordinator.newest)

    def _looked_up(self, name: str, look: Callable[[BranchIdentity], ManifestState]) -> ManifestState:
        """Return what a look at a branch shows, and make sure that its name still means that branch.

        In an object store both are asked for at once: a ref is never used twice, so a branch that the name
        means was there all the time since it was seen.
        """
        seen = self.parts.coordinator.seen(name)
        if seen is None or name == MAIN or self.parts.local_root is not None:
            return self._look_at(self.require_branch(name), look)
        branch, state = both(
            lambda: self.require_branch(name), lambda: self._tried(seen.branch, look), at_once=True
        )
        return state if state is not None and state.branch == branch else self._look_at(branch, look)

    def _tried(
        self, branch: BranchIdentity, look: Callable[[BranchIdentity], ManifestState]
    ) -> ManifestState | None:
        """Return what a look at a branch that may be gone shows, or None if it fails."""
        try:
            return look(branch)
        except OmnigraphError:
            return None

    def _look_at(
        self, branch: BranchIdentity, look: Callable[[BranchIdentity], ManifestState]
    ) -> ManifestState:
        try:
            return look(branch)
        except StorageError as error:
            if error.kind == "not_found":
                self.parts.branches.confirm(branch)  # deleted since we looked: say so
            raise


def named_branch(branch: str | None) -> str:
    """Return the name of the branch that a call means.

    Raises:
        BadRequest: it is the engine's.
    """
    name = given_name(branch)
    if name == SCHEMA_APPLY_LOCK:
        raise BadRequest(f"branch name {name!r} is reserved for the engine")
    return name


def make_publisher(parts: Parts) -> "ManifestPublisher":
    """Return the publisher of a graph."""
    from omnigraph.commit.publish import PUBLISHER_RETRY_BUDGET, STORE_RETRY_BUDGET, ManifestPublisher

    return ManifestPublisher(
        parts.coordinator,
        parts.store,
        parts.syncer,
        local_root=parts.local_root,
        warn=parts.warn,
        check_branch=_branch_check(parts),
        migrate=_migration(parts),
        summer=parts.summer,
        retries=STORE_RETRY_BUDGET if parts.local_root is None else PUBLISHER_RETRY_BUDGET,
    )


def _branch_check(parts: Parts) -> Callable[[BranchIdentity], object]:
    """Return how a publish looks for its branch: on an object store it must not be about to end either."""
    if parts.local_root is not None:
        return parts.branches.confirm
    from omnigraph.commit.recovery.ending import require_going_on

    return lambda branch: require_going_on(parts, branch)


def _migration(parts: Parts) -> "Migrate":
    """Return how a publisher brings a branch to the newest format."""

    def run(branch: BranchIdentity, secure: "Secure") -> "ManifestHandle":
        from omnigraph.history.migrations import Migrating, migrate

        parts.check_writer()
        graph = Migrating(parts.coordinator, parts.branches, parts.adapter, parts.refs, parts.syncer, secure)
        return migrate(graph, branch)

    return run


def check_actor(actor: str) -> None:
    """Refuse a name that no actor may have.

    Raises:
        BadRequest: it is no text, is blank, has several lines, is not valid text, or is the engine's own.
    """
    _check_text(actor, "actor")
    if not actor.strip() or actor.splitlines() != [actor] or actor.startswith(RESERVED_ACTOR_PREFIX):
        raise BadRequest(
            f"actor {actor!r} is not allowed: it is blank, has several lines, or is reserved for the engine"
        )


def check_message(message: str | None) -> None:
    """Refuse a commit message that is too long or not valid text.

    Raises:
        BadRequest: it is above the limit, or has half a surrogate pair.
    """
    if message is not None:
        _check_text(message, "message")
    if message is not None and len(message.encode()) > MESSAGE_BYTES_MAX:
        raise BadRequest(f"the message has more than {MESSAGE_BYTES_MAX} bytes")


def _check_text(text: object, what: str) -> None:
    """Refuse what no file can hold as text: also half a surrogate pair, to which broken input decodes."""
    if not isinstance(text, str):
        raise BadRequest(f"the {what} must be a text, not {type(text).__name__}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadRequest(f"the {what} is not valid text: {error.reason}") from error


def refresh_coordinator_only(graph: OpenGraph, name: str = MAIN) -> ManifestState:
    """Drop what is cached and read the manifest afresh; no sidecar is listed, read or touched.

    For code that holds a sidecar itself: `refresh` heals, and would finish the caller's own unfinished work.

    Raises:
        BranchNotFound: there is no branch of that name.
    """
    graph.parts.coordinator.forget()
    return graph.state(name)
