"""History lives in rows: every commit folds to the state that was recorded when it was made."""

import random
import time
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.commit.changes import (
    ManifestChange,
    RegisterTable,
    RenameTable,
    TombstoneTable,
    UpdateTable,
)
from omnigraph.commit.publish import FRAGMENTS_MAX, HORIZON_S, UPKEEP_INTERVAL, ManifestPublisher
from omnigraph.commit.recovery.kinds import RecoveryKind
from omnigraph.core.errors import RecoveryRequired
from omnigraph.core.failpoint import failpoint
from omnigraph.graph.graph import Graph
from omnigraph.history import commits as commits_module
from omnigraph.history.commits import GraphCommit
from omnigraph.history.fold import TableEntry
from omnigraph.history.identity import MAIN_BRANCH, TableIdentity
from omnigraph.history.manifest_rows import commit_row, rows_table
from omnigraph.operations.load.load import LoadMode
from omnigraph.storage.tables.handle import TableAddress
from omnigraph.storage.tables.manifest_table import ManifestHandle
from tests.engine.counting import Scans
from tests.support.engine import (
    Publisher,
    cold_state,
    intent,
    manifest_path,
    ndjson,
    node,
    pin,
    reopen,
    unchanging_rows,
    view,
)
from tests.support.queries import mutation
from tests.support.seam import internals, patched


class Recorder:
    """Publishes changes, and remembers the state that each commit showed."""

    def __init__(self, graph: Graph) -> None:
        self.publisher = Publisher(graph)
        self.recorded: list[tuple[GraphCommit, Mapping[str, TableEntry]]] = []

    def publish(self, *changes: ManifestChange) -> None:
        outcome = self.publisher.publish(*changes)
        self.recorded.append((outcome.commit, outcome.state.snapshot().entries))

    def check(self) -> None:
        state = cold_state(self.publisher.graph)
        for commit, entries in self.recorded:
            snapshot = state.snapshot_at(commit.manifest_version)
            assert snapshot.entries == entries
            assert snapshot.head == commit


def test_three_hundred_commits_fold_to_what_they_were(graph: Graph) -> None:
    # Renames, drops, re-adds, repointed pins; the manifest compacts itself on the way. Trimming waits.
    recorder, choose = Recorder(graph), random.Random(7)
    live: dict[TableIdentity, str] = {}
    names = iter(f"node:T{number}" for number in range(1_000))
    for number in range(300):
        kind = choose.choice(["register", "rename", "drop", "move", "move", "move"])
        if kind == "register" or not live:
            identity = TableIdentity(100 + choose.randrange(40), number + 1)
            name = choose.choice([next(names), *(f"node:R{n}" for n in range(3))])
            if name in live.values():
                continue
            live[identity] = name
            recorder.publish(RegisterTable(identity, name, pin(1)))
            continue
        identity = choose.choice(list(live))
        if kind == "rename":
            new_name = next(names)
            recorder.publish(RenameTable(identity, live[identity], new_name))
            live[identity] = new_name
        elif kind == "drop":
            entry = recorder.recorded[-1][1][live[identity]]
            recorder.publish(TombstoneTable(identity, live.pop(identity), entry.version + 1))
        else:
            ref = choose.choice([None, "fork"])
            recorder.publish(UpdateTable(identity, live[identity], pin(choose.randrange(2, 9), ref=ref)))

    assert len(recorder.recorded) > 250
    recorder.check()


@pytest.mark.case("engine", 336)
def test_every_commit_shows_the_names_of_its_time(graph: Graph) -> None:
    recorder = Recorder(graph)
    old, new = TableIdentity(101, 1), TableIdentity(102, 1)
    aliases: list[dict[str, TableIdentity]] = []

    def publish(expected: dict[str, TableIdentity], *changes: ManifestChange) -> None:
        recorder.publish(*changes)
        aliases.append(expected)

    publish({"node:A": old}, RegisterTable(old, "node:A", pin(1)))
    publish({"node:B": old}, RenameTable(old, "node:A", "node:B"))
    publish({"node:B": old, "node:A": new}, RegisterTable(new, "node:A", pin(1)))
    publish({"node:A": new}, TombstoneTable(old, "node:B", 2))
    publish({"node:B": new}, RenameTable(new, "node:A", "node:B"))

    recorder.check()
    state = cold_state(graph)
    for (commit, _), expected in zip(recorder.recorded, aliases, strict=True):
        entries = state.snapshot_at(commit.manifest_version).entries
        shown = {key: entry.identity for key, entry in entries.items() if entry.identity in (old, new)}
        assert shown == expected


def test_a_pin_that_returns_to_a_version_of_main_leaves_the_commits_between_alone(graph: Graph) -> None:
    recorder = Recorder(graph)
    entry = graph.snapshot().entry("node:Person")

    for version, ref in ((3, None), (4, "fork"), (3, None), (5, "fork"), (4, "fork")):
        recorder.publish(UpdateTable(entry.identity, "node:Person", pin(version, ref=ref)))

    recorder.check()


@pytest.mark.case("engine", 338)
def test_no_publish_changes_a_row_that_is_there(graph: Graph) -> None:
    publisher = Publisher(graph)
    entry = graph.snapshot().entry("edge:Knows")
    new = TableIdentity(101, 1)

    def load(mode: LoadMode, name: str) -> None:
        graph.load(ndjson([node("Person", name=name)]), mode, index=False)

    def recover(place: str, kind: RecoveryKind) -> None:
        two_tables = 'insert Person { name: "cut" } insert Company { name: "cut" }'
        with pytest.raises(RecoveryRequired), failpoint(place, "raise"):
            graph.mutate(mutation(two_tables))
        reopen(graph).close()
        assert graph.recoveries()[0].recovery_kind is kind

    def upkeep() -> None:
        kept_up = graph.snapshot().entry("node:Person").pin.upkeep_version
        for number in range(UPKEEP_INTERVAL):
            graph.mutate(mutation(f'insert Person {{ name: "p{number}" }}'))
        assert graph.snapshot().entry("node:Person").pin.upkeep_version > kept_up
        assert len(internals(graph).state().fragments) < UPKEEP_INTERVAL

    kinds: dict[str, Any] = {
        "insert": lambda: graph.mutate(mutation('insert Person { name: "ann" }')),
        "update": lambda: graph.mutate(mutation('update Person set { age: 1 } where name = "ann"')),
        "append": lambda: load("append", "bob"),
        "merge": lambda: load("merge", "bob"),
        "index build": graph.ensure_indices,
        "delete": lambda: graph.mutate(mutation('delete Person where name = "bob"')),
        "overwrite": lambda: load("overwrite", "cid"),
        "roll-forward": lambda: recover("write.post_finalize_pre_publisher", RecoveryKind.ROLLED_FORWARD),
        "roll-back": lambda: recover("write.post_table_commit", RecoveryKind.ROLLED_BACK),
        "upkeep, and a folded manifest": upkeep,
        "registration": lambda: publisher.publish(RegisterTable(new, "node:New", pin(1))),
        "rename": lambda: publisher.publish(RenameTable(new, "node:New", "node:Newer")),
        "repointing": lambda: publisher.publish(UpdateTable(new, "node:Newer", pin(7, ref="x"))),
        "drop": lambda: publisher.publish(TombstoneTable(new, "node:Newer", 8)),
        "same pin": lambda: publisher.publish(UpdateTable(entry.identity, "edge:Knows", entry.pin)),
    }
    for name, publish in kinds.items():
        before = unchanging_rows(graph)
        publish()
        after = unchanging_rows(graph)
        assert {key: after.get(key) for key in before} == before, name
        assert len(after) > len(before), name


@pytest.mark.case("engine", 340)
@pytest.mark.parametrize("count", [1, FRAGMENTS_MAX - 1, FRAGMENTS_MAX, 200])
def test_a_warm_handle_advances_over_foreign_publishes_by_what_it_has_not_seen(
    graph: Graph, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    warm = reopen(graph)
    seen = internals(warm).state().fragments
    publisher, entry = Publisher(graph), graph.snapshot().entry("node:Person")
    for number in range(count):
        publisher.publish(UpdateTable(entry.identity, "node:Person", pin(number + 2)))
    store, scans = internals(warm).parts.store, Scans(monkeypatch)

    advanced = internals(warm).state()
    after = store.io_stats()

    assert scans.taken() == [(len(advanced.fragments.keys() - seen.keys()), len(advanced.fragments))]
    assert len(advanced.fragments) <= FRAGMENTS_MAX
    assert view(advanced) == view(cold_state(graph))
    scans.taken()
    assert internals(warm).state() is advanced
    assert scans.taken() == []
    assert store.io_stats().read_bytes == after.read_bytes


@pytest.mark.case("engine", 343)
def test_metadata_of_commits_is_decoded_for_those_asked_for(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    _add_commits(graph, 10_000)
    decoded: list[int] = []
    decode = commits_module._decode

    def counted(rows: pa.Table, position: int) -> GraphCommit:
        decoded.append(position)
        return decode(rows, position)

    patched(monkeypatch, "omnigraph.history.commits._decode", counted)

    cold = reopen(graph, mode="ro")
    state = cold_state(graph)
    assert len(state.commits) == 10_001
    assert len(decoded) == 2  # the head, once for each of the two that looked
    decoded.clear()
    assert len(cold.commits(limit=10)) == 10
    assert len(decoded) == 10
    decoded.clear()
    newest, older = cold.commits(limit=2)
    decoded.clear()
    cold.commit(newest.graph_commit_id)
    assert decoded == []  # the head was decoded by the open
    cold.commit(older.graph_commit_id)
    assert len(decoded) == 1


@pytest.mark.case("engine", 340)
def test_rows_that_a_state_has_are_passed_over(graph: Graph) -> None:
    for name in ("ann", "ben"):
        graph.mutate(mutation(f'insert Person {{ name: "{name}" }}'))
    coordinator, state = internals(graph).parts.coordinator, cold_state(graph)
    handle = coordinator.manifest.open_fresh(coordinator.address())
    rows = coordinator.manifest.read(handle, with_places=True)

    again = state.with_rows(rows, version=state.version, fragments=state.fragments)

    assert view(again) == view(state)


def _add_commits(graph: Graph, count: int) -> None:
    """Put commits into the manifest in one write: their rows are all that counts."""
    coordinator = internals(graph).parts.coordinator
    handle = coordinator.manifest.open_fresh(coordinator.address())
    parent = internals(graph).state().head.graph_commit_id
    rows = []
    for number in range(count):
        commit_id = f"01ARZ3NDEKTSV4RRFFQ{number:07d}"
        metadata = {"parent_commit_id": parent, "created_at": number + 1}
        rows.append(commit_row(commit_id, "main", metadata, at=number + 2))
        parent = commit_id
    coordinator.manifest.publish(handle, rows_table(rows), commit_id=parent)


@pytest.mark.case("engine", 290)
def test_two_hundred_publishes_keep_the_manifest_compact(graph: Graph) -> None:
    recorder, entry = Recorder(graph), graph.snapshot().entry("node:Person")
    store = internals(graph).parts.store
    reads, folded_at = [], []
    for number in range(3 * FRAGMENTS_MAX):
        before, fragments = store.io_stats().reads, len(internals(graph).state().fragments)
        recorder.publish(UpdateTable(entry.identity, "node:Person", pin(number + 2)))
        reads.append(store.io_stats().reads - before)
        left = len(internals(graph).state().fragments)
        assert left < 2 * 64
        if left < fragments:
            folded_at.append(number)

    recorder.check()
    first, second, third = folded_at
    assert second - first == third - second == FRAGMENTS_MAX - 1
    one, other = sum(reads[first:second]), sum(reads[second:third])
    assert max(one, other) <= min(one, other) * 1.02
    assert not (manifest_path(graph) / "_indices").exists()


@pytest.mark.case("engine", 341)
def test_a_handle_that_grew_old_is_not_published_on(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    parts, now = internals(graph).parts, [0.0]
    opened: list[int] = []
    handles: list[ManifestHandle] = []
    published: list[ManifestHandle] = []
    manifest = parts.coordinator.manifest
    open_fresh, publish = manifest.open_fresh, manifest.publish

    def counted_open(address: TableAddress) -> ManifestHandle:
        handles.append(open_fresh(address))
        return handles[-1]

    def counted_publish(
        handle: ManifestHandle, rows: pa.Table, *, commit_id: str, replaced: Sequence[int]
    ) -> ManifestHandle:
        published.append(handle)
        return publish(handle, rows, commit_id=commit_id, replaced=replaced)

    monkeypatch.setattr(manifest, "open_fresh", counted_open)
    monkeypatch.setattr(manifest, "publish", counted_publish)
    publisher = ManifestPublisher(
        parts.coordinator,
        parts.store,
        parts.syncer,
        local_root=parts.local_root,
        warn=print,
        boot_clock=lambda: now[0],
        horizon_s=3_600,
    )

    def sleep_through_half_the_horizon() -> None:
        opened.append(len(opened))
        if len(opened) < 3:
            now[0] += 1_801

    with failpoint("publish.post_open_pre_update", call=sleep_through_half_the_horizon):
        outcome = publisher.publish(MAIN_BRANCH, [], {}, intent())

    assert outcome.attempts == len(opened) == 3
    # One was opened for each attempt; the last one, which is young, is published on.
    assert (len(handles), [handle.opened_at for handle in published]) == (3, [now[0]])
    assert len(graph.commits()) == 2


@pytest.mark.case("engine", 341)
def test_ages_are_measured_with_a_clock_that_counts_sleep(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that slept: the wall and the monotonic clock may say what they like."""
    slept = [0.0]
    monkeypatch.setattr(time, "CLOCK_BOOTTIME", 7, raising=False)
    monkeypatch.setattr(time, "clock_gettime", lambda clock: 1_000.0 * (clock == 7) + slept[0])
    places: list[float] = []

    def sleep_once() -> None:
        places.append(slept[0])
        slept[0] = HORIZON_S / 2 + 1

    with failpoint("publish.post_open_pre_update", call=sleep_once):
        graph.mutate(mutation('insert Person { name: "ann" }'))

    assert places == [0.0, slept[0]]
    assert [commit.manifest_version for commit in graph.commits()] == [2, 1]
