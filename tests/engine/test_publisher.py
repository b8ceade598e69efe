"""The publisher: expectations, batches, retries, lost answers."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from omnigraph.commit.changes import (
    ManifestChange,
    RegisterTable,
    RenameTable,
    SetSchema,
    TombstoneTable,
    UpdateTable,
)
from omnigraph.commit.publish import PUBLISHER_RETRY_BUDGET, ManifestPublisher
from omnigraph.core.damage import GraphDamaged
from omnigraph.core.errors import (
    ExpectedVersionMismatch,
    InvariantViolation,
    OmnigraphError,
    PublishRetriesExhausted,
    RowLevelCasContention,
)
from omnigraph.core.failpoint import InjectedFault, failpoint
from omnigraph.core.ids import new_ulid
from omnigraph.graph.graph import Graph
from omnigraph.history.fold import TableEntry
from omnigraph.history.identity import MAIN_BRANCH, TableIdentity
from omnigraph.history.manifest_rows import commit_row, head_row, schema_row
from omnigraph.storage.files.version_file import version_file_name
from tests.support.engine import (
    Publisher,
    assert_settled,
    chain,
    cold_state,
    commit_rows,
    expecting,
    head,
    ids,
    intent,
    manifest_rows,
    pin,
    recovery_files,
    reopen,
    together,
)
from tests.support.queries import mutation
from tests.support.seam import internals

ANN = mutation('insert Person { name: "ann" }')
NEW = TableIdentity(77, 1)


@pytest.fixture
def publisher(graph: Graph) -> Publisher:
    """A publisher of synthetic changes on an empty graph."""
    return Publisher(graph)


@pytest.fixture
def person(graph: Graph) -> TableEntry:
    """The table of persons as it is published."""
    return graph.snapshot().entry("node:Person")


def move(entry: TableEntry, version: int, uuid: str | None = None) -> UpdateTable:
    """Return the change that pins a table elsewhere."""
    return UpdateTable(entry.identity, entry.table_key, pin(version, uuid=uuid))


def refused(publisher: Publisher, error: type[OmnigraphError], *changes: ManifestChange) -> str:
    """Return why a batch is refused, having checked that nothing was written."""
    before = manifest_rows(publisher.graph)
    version = cold_state(publisher.graph).version
    with pytest.raises(error) as caught:
        publisher.publish(*changes)
    assert manifest_rows(publisher.graph) == before
    assert cold_state(publisher.graph).version == version
    return str(caught.value)


# Expectations


@pytest.mark.case("engine", 125)
def test_a_met_expectation_publishes_one_version_further(publisher: Publisher, person: TableEntry) -> None:
    before = cold_state(publisher.graph).version

    outcome = publisher.publish(move(person, 2), expected=expecting(person))

    assert outcome.state.version == before + 1
    assert outcome.commit.manifest_version == before + 1
    assert publisher.graph.snapshot().entry("node:Person").version == 2


@pytest.mark.case("engine", 126)
def test_a_stale_expectation_is_final(publisher: Publisher, person: TableEntry) -> None:
    publisher.publish(move(person, 2))
    before = cold_state(publisher.graph).version

    with pytest.raises(ExpectedVersionMismatch) as caught:
        publisher.publish(move(person, 3), expected=expecting(person))

    error = caught.value
    assert (error.table_key, error.expected, error.actual) == ("node:Person", 1, 2)
    assert cold_state(publisher.graph).version == before


@pytest.mark.case("engine", 127)
def test_an_expectation_counts_for_tables_that_do_not_change(
    publisher: Publisher, person: TableEntry
) -> None:
    company = publisher.graph.snapshot().entry("node:Company")
    publisher.publish(move(person, 2))

    with pytest.raises(ExpectedVersionMismatch) as caught:
        publisher.publish(move(company, 2), expected=expecting(person, company))

    assert caught.value.table_key == "node:Person"
    assert publisher.graph.snapshot().entry("node:Company").version == 1


@pytest.mark.case("engine", 128)
def test_unknown_and_dropped_tables_have_versions_to_compare(
    publisher: Publisher, person: TableEntry
) -> None:
    unknown = TableEntry(NEW, "node:New", NEW.location("node:New"), pin(4))
    with pytest.raises(ExpectedVersionMismatch) as caught:
        publisher.publish(expected=expecting(unknown))
    assert (caught.value.table_key, caught.value.expected, caught.value.actual) == ("node:New", 4, 0)
    publisher.publish(expected=expecting(unknown, version=0))

    publisher.publish(TombstoneTable(person.identity, person.table_key, 2))
    with pytest.raises(ExpectedVersionMismatch) as caught:
        publisher.publish(expected=expecting(person))
    assert (caught.value.expected, caught.value.actual) == (1, 2)


# What it builds on


@pytest.mark.case("engine", 760)
def test_a_publish_looks_for_what_others_have_published_since(publisher: Publisher) -> None:
    publisher.publish()
    with reopen(publisher.graph) as other:
        Publisher(other).publish()

    outcome = publisher.publish()

    assert outcome.attempts == 1
    assert chain(publisher.graph)[-1] == outcome.commit


@pytest.mark.case("engine", 761)
def test_a_publish_does_not_take_the_place_of_one_whose_file_is_gone(publisher: Publisher) -> None:
    publisher.publish()
    with reopen(publisher.graph) as other:
        lost = Publisher(other).publish().state.version
    folder = internals(publisher.graph).parts.coordinator.address().local_path
    assert folder is not None
    (folder / version_file_name(lost)).unlink()

    with pytest.raises(GraphDamaged, match="is missing") as caught:
        publisher.publish()

    assert caught.value.file.endswith(version_file_name(lost))
    assert not (folder / version_file_name(lost)).exists()


# Batches


@pytest.mark.case("engine", 129)
def test_a_table_moves_once_in_a_batch(publisher: Publisher, person: TableEntry) -> None:
    ended = TombstoneTable(person.identity, person.table_key, 2)

    for second in (move(person, 3), move(person, 2), ended):
        message = refused(publisher, InvariantViolation, move(person, 2), second)
        assert message.endswith("is changed twice in one publish")


@pytest.mark.parametrize(
    "changes",
    [
        lambda entry: [UpdateTable(NEW, "node:New", pin(1))],
        lambda entry: [RenameTable(NEW, "node:New", "node:Newer")],
        lambda entry: [TombstoneTable(NEW, "node:New", 2)],
        lambda entry: [TombstoneTable(entry.identity, entry.table_key, 2), move(entry, 2)],
        lambda entry: [
            RenameTable(entry.identity, entry.table_key, "node:A"),
            RenameTable(entry.identity, entry.table_key, "node:B"),
        ],
    ],
)
def test_a_batch_that_contradicts_itself_is_refused(
    publisher: Publisher, person: TableEntry, changes: Callable[[TableEntry], list[ManifestChange]]
) -> None:
    refused(publisher, InvariantViolation, *changes(person))


def test_a_dead_table_is_not_updated(publisher: Publisher, person: TableEntry) -> None:
    publisher.publish(TombstoneTable(person.identity, person.table_key, 2))

    refused(publisher, InvariantViolation, move(person, 3))


def test_an_identity_is_registered_once(publisher: Publisher, person: TableEntry) -> None:
    again = RegisterTable(person.identity, "node:Again", pin(9))

    assert "in use (node:Person)" in refused(publisher, InvariantViolation, again)
    new = RegisterTable(NEW, "node:New", pin(1)), RegisterTable(NEW, "node:Newer", pin(1))
    assert "twice" in refused(publisher, InvariantViolation, *new)

    publisher.publish(TombstoneTable(person.identity, person.table_key, 2))
    assert "in use (dropped)" in refused(publisher, InvariantViolation, again)


def test_a_rename_names_the_table_as_it_is_called(publisher: Publisher, person: TableEntry) -> None:
    publisher.publish(RenameTable(person.identity, "node:Person", "node:Human"))
    stale = RenameTable(person.identity, "node:Person", "node:Being")

    assert "is called node:Human" in refused(publisher, InvariantViolation, stale)

    publisher.publish(
        RegisterTable(NEW, "node:New", pin(1)), RenameTable(person.identity, "node:Human", "node:Being")
    )
    assert {"node:New", "node:Being"} <= publisher.graph.snapshot().entries.keys()


@pytest.mark.case("engine", 433)
def test_a_batch_that_writes_a_key_twice_is_refused(publisher: Publisher, person: TableEntry) -> None:
    changes = RegisterTable(NEW, "node:New", pin(1)), RenameTable(NEW, "node:New", "node:Newer")

    assert "written twice" in refused(publisher, InvariantViolation, *changes)
    schemas = SetSchema("{}", "", 1), SetSchema("{}", "", 1)
    assert "'schema:2' would be written twice" in refused(publisher, InvariantViolation, *schemas)


@pytest.mark.case("engine", 433)
def test_a_key_that_the_state_has_is_refused(publisher: Publisher, person: TableEntry) -> None:
    commit = publisher.publish(TombstoneTable(person.identity, person.table_key, 2)).commit
    state, at = cold_state(publisher.graph), commit.manifest_version + 1
    (tombstone,) = [row for row in manifest_rows(publisher.graph) if row["object_type"] == "table_tombstone"]
    repeated = [
        commit_row(commit.graph_commit_id, "main", {"created_at": 1}, at=at),
        tombstone | {"published_at": at},
        schema_row("{}", at=commit.manifest_version),
    ]

    for row in repeated:
        with pytest.raises(InvariantViolation, match=f"'{row['object_id']}' would be written twice"):
            state.replaced_places([row])
    head = head_row("main", new_ulid(), commit.graph_commit_id)
    assert state.replaced_places([head, schema_row("{}", at=at)]) == [state.head_places["main"]]
    assert state.replaced_places([head_row("june", new_ulid(), None)]) == []
    with pytest.raises(InvariantViolation, match="'graph_head:main' would be written twice"):
        replace(state, head_places={}).replaced_places([head])


@pytest.mark.case("engine", 130)
def test_naming_the_current_pin_writes_no_row_and_other_content_is_refused(
    publisher: Publisher, person: TableEntry
) -> None:
    publisher.publish(move(person, 2))
    rows = _pin_rows(publisher.graph, person)

    publisher.publish(move(person, 2))
    assert _pin_rows(publisher.graph, person) == rows
    refused(publisher, ExpectedVersionMismatch, move(person, 2, uuid="another"))


@pytest.mark.case("engine", 130)
def test_a_pin_that_returns_is_a_row_of_its_own(publisher: Publisher, person: TableEntry) -> None:
    versions = [2, 3, 2, 1, 3]
    commits = [publisher.publish(move(person, version)).commit for version in versions]

    assert len(_pin_rows(publisher.graph, person)) == len(versions) + 1
    state = cold_state(publisher.graph)
    folded = [state.snapshot_at(commit.manifest_version).entry("node:Person").version for commit in commits]
    assert folded == versions


def _pin_rows(graph: Graph, entry: TableEntry) -> list[str]:
    prefix = f"table_version:{entry.identity.object_part}:"
    return [row["object_id"] for row in manifest_rows(graph) if row["object_id"].startswith(prefix)]


@pytest.mark.case("engine", 131)
def test_two_tables_under_one_name_are_refused(publisher: Publisher, person: TableEntry) -> None:
    text = refused(publisher, InvariantViolation, RegisterTable(NEW, "node:Person", pin(1)))
    assert "node:Person" in text
    rename = RenameTable(person.identity, person.table_key, "node:Company")
    assert "node:Company" in refused(publisher, InvariantViolation, rename)


def test_names_may_be_swapped_in_one_batch(publisher: Publisher, person: TableEntry) -> None:
    company = publisher.graph.snapshot().entry("node:Company")

    publisher.publish(
        RenameTable(person.identity, "node:Person", "node:Company"),
        RenameTable(company.identity, "node:Company", "node:Person"),
    )

    assert publisher.graph.snapshot().entry("node:Person").identity == company.identity


# Contention


@pytest.mark.case("engine", 138)
def test_contention_while_loading_the_state_is_retried(publisher: Publisher, person: TableEntry) -> None:
    with failpoint("publish.load_state_retryable_contention", call=_Contended(1)):
        outcome = publisher.publish(move(person, 2))

    assert outcome.attempts == 2
    assert len(chain(publisher.graph)) == 2


class _Contended:
    """Raises contention on the first hits."""

    def __init__(self, hits: int) -> None:
        self.left = hits

    def __call__(self) -> None:
        if self.left:
            self.left -= 1
            raise RowLevelCasContention("injected")


@pytest.mark.case("engine", 139)
def test_six_contended_attempts_leave_a_sidecar_for_the_next_write(graph: Graph) -> None:
    with (
        pytest.raises(PublishRetriesExhausted, match=str(PUBLISHER_RETRY_BUDGET + 1)) as caught,
        failpoint("publish.before_update", "contention"),
    ):
        graph.mutate(ANN)

    operation = caught.value.recovery_operation_id
    assert recovery_files(graph) == [f"{operation}.json", f"{operation}.lock"]
    assert ids(graph, "Person") == []
    graph.mutate(mutation('insert Person { name: "bob" }'))
    assert ids(graph, "Person") == ["ann", "bob"]
    assert [commit.actor_id for commit in chain(graph)] == [None, "omnigraph:recovery", None]
    assert_settled(graph)


@pytest.mark.case("engine", 140)
def test_id_and_time_are_minted_once_and_the_parent_is_the_head_found(
    publisher: Publisher, person: TableEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_VERIFY", "off")  # the pins of this test name versions that nobody made
    rival = Publisher(reopen(publisher.graph))
    lineage = intent(created_at=4711)
    rivals = _Rivals(rival, 2)

    with failpoint("publish.before_update", call=rivals):
        outcome = publisher.publish(move(person, 2), lineage=lineage)

    assert outcome.attempts == 3
    assert (outcome.commit.graph_commit_id, outcome.commit.created_at_micros) == (
        lineage.graph_commit_id,
        4711,
    )
    assert outcome.commit.parent_commit_id == rivals.published[-1]
    commits = chain(reopen(publisher.graph))
    assert [commit.graph_commit_id for commit in commits[1:]] == [*rivals.published, lineage.graph_commit_id]


class _Rivals:
    """Publishes on the first hits: another handle is faster each time."""

    def __init__(self, rival: Publisher, times: int) -> None:
        self.rival, self.left, self.published = rival, times, list[str]()
        self._is_inside = False

    def __call__(self) -> None:
        if self._is_inside or not self.left:
            return
        self.left -= 1
        self._is_inside = True
        # The one who waits here holds the publish lock; a rival on another host would not ask for it.
        manifest = internals(self.rival.graph).parts.coordinator
        unlocked = ManifestPublisher(
            manifest,
            internals(self.rival.graph).parts.store,
            internals(self.rival.graph).parts.syncer,
            local_root=None,
            warn=print,
        )
        outcome = unlocked.publish(MAIN_BRANCH, [], {}, intent())
        self.published.append(outcome.commit.graph_commit_id)
        self._is_inside = False


@pytest.mark.case("engine", 143)
@pytest.mark.parametrize("is_whole_write", [True, False])
def test_an_answer_that_is_lost_is_looked_up(graph: Graph, is_whole_write: bool) -> None:
    with failpoint("publish.after_update_ack_lost", "raise"):
        commit = graph.mutate(ANN).commit if is_whole_write else Publisher(graph).publish().commit

    assert commit == head(graph)
    assert len(commit_rows(graph)) == 2
    assert_settled(graph)


def test_a_publish_that_fails_before_its_merge_leaves_nothing(
    publisher: Publisher, person: TableEntry
) -> None:
    with pytest.raises(InjectedFault), failpoint("publish.before_update", "raise"):
        publisher.publish(move(person, 2))

    assert len(chain(publisher.graph)) == 1


@pytest.mark.case("engine", 289)
def test_two_publishes_of_150_rows_both_land(publisher: Publisher) -> None:
    others = [publisher, Publisher(reopen(publisher.graph))]

    def register(side: int) -> Callable[[], object]:
        tables = [TableIdentity(1_000 + 1_000 * side + number, 1) for number in range(75)]
        batch = [RegisterTable(table, f"node:T{table.stable_table_id}", pin(1)) for table in tables]
        return lambda: others[side].publish(*batch)

    outcomes = together(register(0), register(1))

    assert [outcome for outcome in outcomes if isinstance(outcome, Exception)] == []
    object_ids = [row["object_id"] for row in manifest_rows(publisher.graph)]
    assert len(object_ids) == len(set(object_ids))
    assert len(cold_state(publisher.graph).snapshot().entries) == 4 + 150
    assert len(chain(publisher.graph)) == 3


def test_the_head_row_says_what_the_commits_say(publisher: Publisher, person: TableEntry) -> None:
    for version in (2, 3):
        publisher.publish(move(person, version))

    (row,) = [row for row in manifest_rows(publisher.graph) if row["object_type"] == "graph_head"]
    newest = head(publisher.graph)
    assert json.loads(row["metadata"]) == {
        "head_commit_id": newest.graph_commit_id,
        "parent_commit_id": newest.parent_commit_id,
    }
    assert cold_state(publisher.graph).heads == {"main": newest.graph_commit_id}
