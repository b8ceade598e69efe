"""`repair`: what others committed to tables is told, published if it may be, and never a live writer's."""

import json
import threading
from pathlib import Path

import pytest

import omnigraph
from omnigraph.commit.recovery.pending import put_new
from omnigraph.commit.sidecar import Sidecar, SidecarTable, WriterKind
from omnigraph.core.errors import (
    BadRequest,
    DriftNeedsRepair,
    ExpectedVersionMismatch,
    PendingRecovery,
    SchemaApplyInProgress,
    SidecarCorrupt,
)
from omnigraph.core.failpoint import InjectedFault, failpoint
from omnigraph.graph.graph import Graph
from omnigraph.history.branches import SCHEMA_APPLY_LOCK, control_file
from omnigraph.history.commits import FORCED_REPAIR_ACTOR, REPAIR_ACTOR
from omnigraph.operations.repair_drift import DriftRepair, RepairedTable
from omnigraph.storage.control.locks import WriterLock
from tests.support.books import books, contents_of, fingerprint
from tests.support.foreign import add_rows, compact, foreign, remove_version
from tests.support.forked import Forked
from tests.support.in_process import invoke
from tests.support.protocol import BEFORE, WRITERS, give_up, go_on, paused_at, sidecars, stopped
from tests.support.seam import internals, patched

TOUCH_PERSON = 'query touch() { update Person set { age: 31 } where name = "ann" }'
PHASE_B = "write.post_finalize_pre_publisher="
PERSON = "node:Person"
REPAIR = """
import sys
import omnigraph
omnigraph.open(sys.argv[1]).repair(confirm=True, force=True)
"""


@pytest.fixture
def graph(root: Path) -> Graph:
    return omnigraph.open(root)


def table(result: DriftRepair, table_key: str = PERSON) -> RepairedTable:
    """Return what a repair says of a table; nothing is wrong with the others."""
    found = {table.table_key: table for table in result.tables}
    assert {
        key: (other.classification, other.action) for key, other in found.items() if key != table_key
    } == {key: ("no_drift", "no_op") for key in found if key != table_key}
    return found[table_key]


def moved_rows(graph: Graph) -> None:
    """Have something else compact the table of persons."""
    for age in range(3):
        graph.mutate(f'query touch() {{ update Person set {{ age: {age} }} where name = "ann" }}')
    compact(foreign(graph, PERSON))


def doubtful_rows(graph: Graph) -> None:
    """Have something else append a person."""
    add_rows(foreign(graph, PERSON), id=["eve"], name=["eve"])


def unknown_rows(graph: Graph) -> None:
    """Have something else append two persons, and lose what says how the first one came."""
    doubtful_rows(graph)
    add_rows(foreign(graph, PERSON), id=["fay"], name=["fay"])
    remove_version(graph, PERSON, graph.snapshot().entry(PERSON).version + 1)


KINDS = {
    "no_drift": lambda _graph: None,
    "verified_maintenance": moved_rows,
    "suspicious": doubtful_rows,
    "unverifiable": unknown_rows,
}
# What a preview, a confirmation and a forced one do: the table of 11.5.
ACTIONS = {
    "no_drift": ("no_op", "no_op", "no_op"),
    "verified_maintenance": ("preview", "healed", "healed"),
    "suspicious": ("preview", "refused", "forced"),
    "unverifiable": ("preview", "refused", "forced"),
}


@pytest.mark.case("engine", 273)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("asked", range(3))
def test_what_is_done_depends_on_what_was_committed_and_on_who_insists(
    graph: Graph, kind: str, asked: int
) -> None:
    KINDS[kind](graph)
    pin = graph.snapshot().entry(PERSON).version
    before, head = len(graph.commits()), foreign(graph, PERSON).version

    result = graph.repair(confirm=asked > 0, force=asked > 1)

    found, action = table(result), ACTIONS[kind][asked]
    assert (found.classification, found.action) == (kind, action)
    assert (found.pinned_version, found.head_version) == (pin, head)
    assert result.is_refused == (action == "refused")
    is_published = action in {"healed", "forced"}
    assert graph.snapshot().entry(PERSON).version == (head if is_published else pin)
    newest, *_ = commits = graph.commits()
    assert len(commits) == before + is_published
    assert result.commit == (newest if is_published else None)
    assert result.manifest_version == newest.manifest_version
    if is_published:
        assert newest.actor_id == (FORCED_REPAIR_ACTOR if action == "forced" else REPAIR_ACTOR)
        assert graph.verify(deep=True).is_whole


@pytest.mark.case("engine", 273)
@pytest.mark.parametrize("kind", ["verified_maintenance", "suspicious", "unverifiable"])
def test_a_repaired_table_is_written_again_and_nothing_is_left_to_repair(graph: Graph, kind: str) -> None:
    KINDS[kind](graph)
    with pytest.raises(DriftNeedsRepair, match="run omnigraph repair"):
        graph.mutate(TOUCH_PERSON)

    graph.repair(confirm=True, force=True)

    graph.mutate(TOUCH_PERSON)
    assert table(graph.repair()).action == "no_op"
    added = {"suspicious": 1, "unverifiable": 2}.get(kind, 0)
    assert graph.table("Person").num_rows == len(BEFORE["Person"]) + added


@pytest.mark.case("engine", 273)
def test_a_rewrite_that_remapped_an_index_is_verified_maintenance(graph: Graph) -> None:
    graph.ensure_indices()
    moved_rows(graph)
    before = contents_of(graph)

    found = table(graph.repair(confirm=True))

    assert (found.classification, found.action) == ("verified_maintenance", "healed")
    assert "rewrite" in found.operations
    assert (found.rows.added, found.rows.changed, found.rows.removed) == (0, 0, 0)
    assert contents_of(graph) == before


@pytest.mark.case("engine", 273)
@pytest.mark.case("engine", 218)
@pytest.mark.parametrize("is_forced", [False, True])
def test_the_drift_of_a_live_writer_is_waited_for_and_never_offered(root: Path, is_forced: bool) -> None:
    with omnigraph.open(root) as graph, stopped(root, "insert", PHASE_B) as script:
        asked = threading.Event()
        results: list[DriftRepair] = []
        thread = threading.Thread(
            target=lambda: results.append(graph.repair(confirm=is_forced, force=is_forced))
        )

        with paused_at("recovery.sidecar_list", "call", asked.set):
            thread.start()
            assert asked.wait(60)
        assert thread.is_alive()
        script.write_line()
        assert script.read_line() == "done"
        thread.join(60)

        (result,) = results
        assert {found.action for found in result.tables} == {"no_op"}
        assert contents_of(graph) == WRITERS["insert"].after
        assert graph.commits()[0].actor_id == "writer"


@pytest.mark.case("engine", 273)
def test_a_writer_that_comes_and_goes_between_the_looks_is_seen_by_its_pin(root: Path) -> None:
    """It writes behind the look at HEAD, and its sidecar is gone before the look at the sidecars."""
    with omnigraph.open(root) as graph, stopped(root, "insert", WRITERS["insert"].points["P0"]) as script:
        with paused_at("recovery.sidecar_list", "skip:1,call", lambda: go_on(script)):
            result = graph.repair(confirm=True, force=True)

        assert {found.action for found in result.tables} == {"no_op"}
        assert table(result).pinned_version == graph.snapshot().entry(PERSON).version
        assert contents_of(graph) == WRITERS["insert"].after


@pytest.mark.case("engine", 273)
def test_a_writer_that_is_seen_by_its_sidecar_alone_is_not_published(
    root: Path, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It began behind the wait for writers, and HEAD has moved when it is looked at."""
    patched(monkeypatch, "omnigraph.commit.recovery.quiet.WAIT_S", 0.0)
    doubtful_rows(graph)
    parts, state = internals(graph).parts, internals(graph).state()
    held: list[WriterLock] = []

    def begin() -> None:
        lock = WriterLock.acquire(root / "__recovery", parts.new_id)
        tables = (SidecarTable.of(state.snapshot().entry(PERSON)),)
        put_new(
            parts,
            Sidecar(
                operation_id=lock.operation_id,
                writer_kind=WriterKind.MUTATION,
                started_at=parts.clock(),
                branch=state.branch,
                actor_id=None,
                graph_commit_id=parts.new_id(),
                recovery_commit_id=parts.new_id(),
                tables=tables,
                host="here",
                boot_id="now",
                pid=1,
            ),
        )
        held.append(lock)

    with paused_at("recovery.sidecar_list", "skip:1,call", begin), pytest.raises(PendingRecovery) as caught:
        graph.repair(confirm=True, force=True)

    assert caught.value.operation_ids == (held[0].operation_id,)
    assert FORCED_REPAIR_ACTOR not in {commit.actor_id for commit in graph.commits()}
    held[0].release()


@pytest.mark.case("engine", 218)
@pytest.mark.parametrize("point", ["P1", "P2", "P3"])
def test_beside_the_sidecar_of_a_dead_writer_nothing_is_repaired(root: Path, point: str) -> None:
    graph = omnigraph.open(root)
    give_up(root, "insert", point)
    doubtful_rows(graph)
    (sidecar,) = sidecars(root)
    before = fingerprint(root)

    looks: list[bool] = []
    for confirm in (False, True):
        with (
            failpoint("recovery.sidecar_list", "call", lambda: looks.append(True)),
            pytest.raises(PendingRecovery, match="reopen it read-write first") as caught,
        ):
            graph.repair(confirm=confirm, force=confirm)
        assert caught.value.operation_ids == (sidecar.stem,)

    assert fingerprint(root) == before
    assert len(looks) == 4, "twice each time: nobody waits for the dead"


def test_a_live_writer_that_does_not_finish_is_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    patched(monkeypatch, "omnigraph.commit.recovery.quiet.WAIT_S", 0.0)
    with omnigraph.open(root) as graph, stopped(root, "insert", PHASE_B):
        (sidecar,) = sidecars(root)
        with pytest.raises(PendingRecovery) as caught:
            graph.repair(confirm=True, force=True)

    assert caught.value.operation_ids == (sidecar.stem,)


def test_sidecars_that_cannot_be_read_stop_a_repair(root: Path, graph: Graph) -> None:
    doubtful_rows(graph)
    (root / "__recovery" / "01J00000000000000000000000.json").touch()

    with pytest.raises(SidecarCorrupt):
        graph.repair(confirm=True, force=True)


def test_a_repair_waits_for_no_schema_change(graph: Graph) -> None:
    doubtful_rows(graph)
    internals(graph).parts.adapter.write_text(control_file(SCHEMA_APPLY_LOCK), "{}")

    with pytest.raises(SchemaApplyInProgress):
        graph.repair(confirm=True, force=True)


@pytest.mark.case("engine", 510)
def test_a_preview_tells_which_rows_change_and_which_rules_they_break(graph: Graph) -> None:
    people, knows = foreign(graph, PERSON), foreign(graph, "edge:Knows")
    add_rows(people, id=["ann", "gus"], name=["ann", "gus"])
    people = foreign(graph, PERSON)
    people.delete("id = 'bob'")
    add_rows(knows, id=["k9"], src=["ann"], dst=["nobody"])
    before = fingerprint(Path(graph.uri))

    result = graph.repair()

    found = {table.table_key: table for table in result.tables}
    people_rows, knows_rows = found[PERSON].rows, found["edge:Knows"].rows
    assert (people_rows.added, people_rows.changed, people_rows.removed) == (2, 0, 1)
    assert (knows_rows.added, knows_rows.changed, knows_rows.removed) == (1, 0, 0)
    assert "node:Person gets id 'ann' twice" in people_rows.broken
    assert {"src 'bob' not found in Person", "dst 'bob' not found in Person"} <= set(people_rows.broken)
    assert "dst 'nobody' not found in Person" in knows_rows.broken
    assert people_rows.broken_total is not None
    assert people_rows.broken_total >= 3
    assert fingerprint(Path(graph.uri)) == before


@pytest.mark.case("engine", 511)
def test_columns_that_do_not_fit_are_published_by_nobody(graph: Graph) -> None:
    foreign(graph, PERSON).drop_columns(["age"])
    pin = graph.snapshot().entry(PERSON).version

    found = table(graph.repair(confirm=True, force=True))

    assert (found.classification, found.action) == ("suspicious", "refused")
    assert found.error == "does not fit its type: column age is missing"
    assert graph.snapshot().entry(PERSON).version == pin


@pytest.mark.case("engine", 511)
def test_a_version_that_cannot_be_read_is_published_by_nobody(graph: Graph) -> None:
    doubtful_rows(graph)
    location = Path(graph.uri) / graph.snapshot().entry(PERSON).location
    newest = min((location / "_versions").glob("*.manifest"))
    newest.write_bytes(newest.read_bytes()[:-5])
    internals(graph).parts.store.forget(internals(graph).parts.address(graph.snapshot().entry(PERSON)))

    found = table(graph.repair(confirm=True, force=True))

    assert (found.classification, found.action) == ("unverifiable", "refused")
    assert found.error is not None
    assert found.rows.added is None


@pytest.mark.case("engine", 512)
def test_drift_of_a_branch_is_repaired_there(graph: Graph) -> None:
    graph.create_branch("june")
    graph.mutate(TOUCH_PERSON, branch="june")
    pin = graph.snapshot("june").entry(PERSON).version
    add_rows(foreign(graph, PERSON, "june"), id=["eve"], name=["eve"])
    with pytest.raises(DriftNeedsRepair, match="run omnigraph repair --branch june"):
        graph.mutate(TOUCH_PERSON, branch="june")

    on_main, on_june = graph.repair(), graph.repair(confirm=True, force=True, branch="june")

    assert {found.action for found in on_main.tables} == {"no_op"}
    assert {found.table_key for found in on_june.tables} == {PERSON}, "the others are main's"
    assert table(on_june).action == "forced"
    assert graph.snapshot("june").entry(PERSON).version > pin
    assert graph.table("Person", branch="june").num_rows == len(BEFORE["Person"]) + 1
    assert contents_of(graph) == BEFORE


def test_two_tables_are_published_in_one_commit_that_names_the_force(graph: Graph) -> None:
    moved_rows(graph)
    add_rows(foreign(graph, "node:Company"), id=["zeta"], name=["zeta"])
    before = len(graph.commits())

    result = graph.repair(confirm=True, force=True)

    actions = {found.table_key: found.action for found in result.tables}
    assert (actions[PERSON], actions["node:Company"]) == ("healed", "forced")
    assert len(graph.commits()) == before + 1
    assert graph.commits()[0].actor_id == FORCED_REPAIR_ACTOR


def test_a_refusal_leaves_what_is_in_doubt_and_publishes_the_rest(graph: Graph) -> None:
    moved_rows(graph)
    add_rows(foreign(graph, "node:Company"), id=["zeta"], name=["zeta"])
    pin = graph.snapshot().entry("node:Company").version

    result = graph.repair(confirm=True)

    actions = {found.table_key: found.action for found in result.tables}
    assert (actions[PERSON], actions["node:Company"]) == ("healed", "refused")
    assert graph.snapshot().entry("node:Company").version == pin
    assert graph.commits()[0].actor_id == REPAIR_ACTOR


def test_a_publish_that_another_writer_outran_expects_the_old_pin(graph: Graph) -> None:
    doubtful_rows(graph)

    def meanwhile() -> None:
        with Forked(REPAIR, graph.uri) as other:  # in a process of its own, which no queue of ours stops
            assert other.wait() == 0

    with (
        paused_at("repair.post_sync_pre_publish", "call", meanwhile),
        pytest.raises(ExpectedVersionMismatch),
    ):
        graph.repair(confirm=True, force=True)

    assert [commit.actor_id for commit in graph.commits()].count(FORCED_REPAIR_ACTOR) == 1


def test_a_repair_that_dies_before_its_publish_changes_nothing(root: Path, graph: Graph) -> None:
    doubtful_rows(graph)
    pins = books(root).pins

    with failpoint("repair.post_sync_pre_publish", "raise"), pytest.raises(InjectedFault):
        graph.repair(confirm=True, force=True)

    assert books(root).pins == pins
    assert table(graph.repair(confirm=True, force=True)).action == "forced"


def test_what_is_published_is_synced_first_and_its_sums_are_recorded(root: Path, graph: Graph) -> None:
    doubtful_rows(graph)
    with failpoint("durability.pre_table_sync", "raise"), pytest.raises(Exception, match="durability"):
        graph.repair(confirm=True, force=True)
    assert table(omnigraph.open(root).repair()).action == "preview"

    omnigraph.open(root).repair(confirm=True, force=True)

    assert graph.verify().counts["not_recorded"] == 0


def test_force_needs_confirm_and_publishing_a_handle_that_writes(root: Path, graph: Graph) -> None:
    doubtful_rows(graph)

    with pytest.raises(BadRequest, match="needs confirm"):
        graph.repair(force=True)
    with omnigraph.open(root, mode="ro") as reader:
        assert table(reader.repair()).action == "preview"
        with pytest.raises(BadRequest, match="read-only"):
            reader.repair(confirm=True)


# The command


@pytest.mark.case("surfaces", 104)
def test_the_command_says_that_nothing_is_wrong(root: Path) -> None:
    plain = invoke("repair", root, cwd=root.parent)
    found = invoke("repair", root, "--json", cwd=root.parent)

    assert plain.code == found.code == 0
    assert "4 tables of branch main: all are as they were published" in plain.stdout
    said = json.loads(found.stdout)
    assert {table["classification"] for table in said["tables"]} == {"no_drift"}
    assert {table["action"] for table in said["tables"]} == {"no_op"}
    assert (said["confirm"], said["force"], said["commit"]) == (False, False, None)


@pytest.mark.case("surfaces", 104)
def test_the_command_refuses_what_is_in_doubt_until_it_is_forced(root: Path) -> None:
    with omnigraph.open(root) as graph:
        doubtful_rows(graph)
        pin = graph.snapshot().entry(PERSON).version

    preview = invoke("repair", root, cwd=root.parent)
    refused = invoke("repair", root, "--confirm", cwd=root.parent)
    as_json = invoke("repair", root, "--confirm", "--json", cwd=root.parent)
    forced = invoke("repair", root, "--confirm", "--force", cwd=root.parent)
    again = invoke("repair", root, "--confirm", "--force", "--json", cwd=root.parent)

    assert (preview.code, refused.code, as_json.code, forced.code, again.code) == (0, 1, 1, 0, 0)
    assert "1 rows added, 0 changed, 0 removed" in preview.stdout
    assert "--confirm --force publishes these tables" in preview.stdout
    (person,) = [t for t in json.loads(as_json.stdout)["tables"] if t["table_key"] == PERSON]
    assert set(person) == {
        *("table_key", "manifest_version", "lance_head_version", "classification", "action", "operations"),
        *("rows_added", "rows_changed", "rows_removed", "broken_rules", "broken_rules_total", "error"),
    }
    assert (person["classification"], person["action"]) == ("suspicious", "refused")
    assert (person["manifest_version"], person["lance_head_version"]) == (pin, pin + 1)
    assert person["operations"] == ["append"]
    assert "published as commit" in forced.stdout
    assert {table["action"] for table in json.loads(again.stdout)["tables"]} == {"no_op"}


@pytest.mark.case("surfaces", 105)
def test_a_preview_tells_that_a_writer_died_and_a_confirmed_run_settles_what_it_left(root: Path) -> None:
    give_up(root, "insert", "P3")
    (sidecar,) = sidecars(root)
    before = fingerprint(root)

    preview = invoke("repair", root, cwd=root.parent)

    assert preview.code == 1
    assert "reopen it read-write first" in preview.stderr
    assert sidecar.stem in preview.stderr
    assert fingerprint(root) == before

    confirmed = invoke("repair", root, "--confirm", "--json", cwd=root.parent)

    assert confirmed.code == 0
    assert {table["action"] for table in json.loads(confirmed.stdout)["tables"]} == {"no_op"}
    assert not sidecars(root)


@pytest.mark.case("surfaces", 105)
def test_the_command_waits_for_a_live_writer(root: Path) -> None:
    with stopped(root, "insert", PHASE_B) as script:

        def finish() -> None:
            script.write_line()
            assert script.read_line() == "done"

        with paused_at("recovery.sidecar_list", "call", finish):
            outcome = invoke("repair", root, "--json", cwd=root.parent)

    assert outcome.code == 0
    assert {table["action"] for table in json.loads(outcome.stdout)["tables"]} == {"no_op"}


@pytest.mark.case("surfaces", 260)
@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--force"], "needs --confirm"),
        (["--to", "1", "--confirm"], "takes --yes"),
        (["--yes"], "goes with --to"),
        (["--as", "mira"], "goes with --to"),
    ],
)
def test_flags_that_do_not_go_together_are_refused(root: Path, flags: list[str], told: str) -> None:
    before = fingerprint(root)

    outcome = invoke("repair", root, *flags, cwd=root.parent)

    assert outcome.code == 2
    assert told in outcome.stderr
    assert fingerprint(root) == before
