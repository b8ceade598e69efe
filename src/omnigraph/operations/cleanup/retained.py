"""What a cleanup must leave alone: every version and ref that somebody may still ask for.

K1  What a live branch shows stays, and everything newer on the same table and ref. So does what a branch will
    show that is being created: its ref is there before its control object is.
K2  What a reader of this process has pinned stays, and everything newer.
K3  Where two live branches meet stays, on whatever branch that is: their next merge reads it. So does what is
    left of a deleted branch in whose commits others may meet.
K4  If a live branch cannot be read, or a version that it shows cannot be opened, nothing is removed at all.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from omnigraph.commit.parts import Parts
from omnigraph.commit.reclaim import is_old_ref, named_refs
from omnigraph.commit.recovery.repair_note import refs_given_up
from omnigraph.commit.retention import Limits, VersionFiles
from omnigraph.core.damage import GraphDamaged
from omnigraph.core.errors import AmbiguousMergeBase, StorageError
from omnigraph.core.failpoint import hit
from omnigraph.core.together import each
from omnigraph.history.ancestry import MergedBase
from omnigraph.history.identity import BranchIdentity, branch_name
from omnigraph.history.state import ManifestState, Snapshot
from omnigraph.merge.base import Base
from omnigraph.operations.branches import is_meeting_place
from omnigraph.operations.context import OpenGraph
from omnigraph.operations.merge.base import MergeBase

Place = tuple[str, str | None]  # a table's path below the root, and a ref of it


@dataclass(frozen=True, slots=True)
class KnownTable:
    """A table that some branch knows: its name, and when the last branch dropped it, if all did."""

    table_key: str
    ended_at: int | None


@dataclass(slots=True)
class Retained:
    """What stays: everything from `floors` on, exactly the versions in `exact`, and the named refs."""

    tables: Mapping[str, KnownTable]
    floors: dict[Place, int] = field(default_factory=dict)
    exact: dict[Place, set[int]] = field(default_factory=dict)
    refs: set[str] = field(default_factory=set)
    untouched_refs: frozenset[str] = frozenset()  # with every version: the way back of a repair
    doubts: list[str] = field(default_factory=list)

    def keep_from(self, snapshot: Snapshot) -> None:
        """Keep what a snapshot shows, and everything newer."""
        for entry in snapshot.entries.values():
            self.keep_version_from((entry.location, entry.pin.ref), entry.version)

    def keep_version_from(self, place: Place, version: int) -> None:
        """Keep a version and everything newer on its ref."""
        self.floors[place] = min(version, self.floors.get(place, version))

    def keep_exactly(self, snapshot: Snapshot) -> None:
        """Keep what a snapshot shows."""
        for entry in snapshot.entries.values():
            self.exact.setdefault((entry.location, entry.pin.ref), set()).add(entry.version)

    def removable(
        self, place: Place, found: VersionFiles, limits: Limits, *, now: int, hinted: int
    ) -> set[int]:
        """Return the versions of a table or ref that are beyond the limits, and that nobody needs."""
        if place[1] in self.untouched_refs:
            return set()
        known = self.tables.get(place[0])
        old = limits.old(found, now, hinted=hinted, ended_at=None if known is None else known.ended_at)
        floor, exact = self.floors.get(place), self.exact.get(place, set())
        return {version for version in old if (floor is None or version < floor) and version not in exact}


def find_retained(graph: OpenGraph) -> Retained:
    """Return what stays.

    Raises:
        OmnigraphError: a live branch cannot be read, or a version that it shows cannot be opened (K4).
    """
    parts = graph.parts
    states = _live_states(parts)
    shown = [state.snapshot() for state in states]
    begun = _begun(parts, states)
    retained = Retained(_tables(states))
    retained.refs |= named_refs(parts)
    retained.untouched_refs = refs_given_up(parts)
    for snapshot in (*shown, *begun.values()):
        retained.keep_from(snapshot)  # K1
    retained.refs |= begun.keys()
    for location, ref, version in parts.readers.pinned():
        retained.keep_version_from((location, ref), version)  # K2
        retained.refs |= set() if ref is None else {ref}
    for snapshot in _merge_bases(graph, states):
        retained.keep_exactly(snapshot)  # K3
    _keep_meeting_places(parts, states, retained)
    _open_all(parts, shown)
    return retained


def _live_states(parts: Parts) -> list[ManifestState]:
    """Return the newest state of every branch (K4)."""
    parts.branches.copies.refuse_lost()
    states = []
    for branch in parts.branches.live():
        hit("cleanup.resolve_branch_snapshot")
        states.append(parts.coordinator.state(branch))
    return states


def _begun(parts: Parts, states: Iterable[ManifestState]) -> dict[str, Snapshot]:
    """Return what refs of the manifest start from that may be about to become branches, by ref (K1).

    Looked for after the branches were read: a branch that moves on past such a start does so after the ref
    was made. An old ref without a control object is what is left of a branch, not the beginning of one.
    """
    by_ref = {state.ref: state for state in states}
    found: dict[str, Snapshot] = {}
    for ref in parts.store.list_refs(parts.coordinator.address()):
        if ref.name in by_ref or is_old_ref(parts, ref.name):
            continue
        source = by_ref.get(ref.parent)
        if source is None:
            continue  # of a branch that is gone: creating it fails on that
        if source.version < ref.parent_version:
            source = parts.coordinator.state(source.branch)
        found[ref.name] = source.snapshot_at(ref.parent_version)
    return found


def _tables(states: Iterable[ManifestState]) -> dict[str, KnownTable]:
    """Return every table that a live branch knows, dropped ones included, by location."""
    found: dict[str, KnownTable] = {}
    for state in states:
        for identity, registration in state.tables.registrations.items():
            ended_at = None
            if state.tables.is_dead(identity):
                commit = state.commits.head_at(state.tables.tombstones[identity][1])
                ended_at = None if commit is None else commit.created_at_micros
            known = found.get(registration.location)
            if known is not None:
                is_live = known.ended_at is None or ended_at is None
                ended_at = None if is_live else max(known.ended_at or 0, ended_at or 0)
            found[registration.location] = KnownTable(registration.table_key, ended_at)
    return found


def _merge_bases(graph: OpenGraph, states: list[ManifestState]) -> Iterator[Snapshot]:
    """Yield where live branches meet; those that cannot be merged as it is meet nowhere."""
    for one, other in combinations(states, 2):
        base = MergeBase(graph, one, other)
        try:
            yield from _leaves(base.read(base.find()))
        except AmbiguousMergeBase:
            continue


def _leaves(base: Base) -> Iterator[Snapshot]:
    if isinstance(base, MergedBase):
        for part in (base.one, base.other, base.over):
            yield from _leaves(part)
    else:
        yield base


def _keep_meeting_places(parts: Parts, states: Sequence[ManifestState], retained: Retained) -> None:
    """Keep what is left of deleted branches, where others may meet in it (K3); doubt keeps it, too."""
    live = {state.ref for state in states}
    for ref in parts.store.list_refs(parts.coordinator.address()):
        if ref.name in live or not is_old_ref(parts, ref.name):
            continue
        try:
            left = parts.coordinator.read_apart(BranchIdentity(ref.name, ref.name))
            is_shown = any(state.commits.has(left.head.graph_commit_id) for state in states)
            name = branch_name(left.head.manifest_branch)
            if is_shown or not is_meeting_place(parts, name, left):
                continue
            own = [commit for commit in left.commits.oldest_first(above=0) if commit.manifest_branch == name]
            snapshots = list(left.snapshots_of(own))
        except StorageError as error:
            if error.kind == "not_found" and not isinstance(error, GraphDamaged):
                continue  # nothing of it can be read, by nobody
            retained.doubts.append(f"what is left of a deleted branch cannot be read and stays: {error}")
            retained.refs.add(ref.name)
            continue
        retained.refs |= {ref.name, *left.pinned_refs()}
        for snapshot in snapshots:
            retained.keep_exactly(snapshot)


def _open_all(parts: Parts, shown: Iterable[Snapshot]) -> None:
    """Open every version that a branch shows (K4).

    Raises:
        StorageError: one cannot be opened.
    """
    pins = {
        (parts.address(entry), entry.version) for snapshot in shown for entry in snapshot.entries.values()
    }
    each(
        lambda pin: parts.store.open_unshared(*pin),
        sorted(pins, key=str),
        at_once=parts.local_root is None,
    )
