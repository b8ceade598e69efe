"""From nothing to a graph, and from a place on a disk to a handle."""

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import lance
import pytest

from omnigraph import INTERNAL_SCHEMA_VERSION
from omnigraph.catalog.build import read_schema
from omnigraph.catalog.identity import accept_first
from omnigraph.commit.changes import RegisterTable, TombstoneTable
from omnigraph.commit.parts import WriteQueueManager
from omnigraph.core.errors import (
    AlreadyInitialized,
    GraphNotFound,
    InitializationClaimed,
    InitializationIndeterminate,
    NotFoundError,
    SchemaContractConflict,
    StorageError,
)
from omnigraph.core.failpoint import InjectedFault, failpoint
from omnigraph.core.span import Source
from omnigraph.graph.graph import Graph
from omnigraph.graph.opening import init
from omnigraph.history.contract import SCHEMA_FILES, Contract
from omnigraph.history.identity import TableIdentity
from omnigraph.history.manifest_rows import (
    MANIFEST_DIR,
    STAMP_KEY,
)
from omnigraph.operations.init import INIT_CLAIM
from omnigraph.operations.open import make_parts
from tests.support.engine import (
    PEOPLE,
    Publisher,
    chain,
    files,
    head,
    ids,
    manifest_rows,
    new_graph,
    pin,
    pins,
    reopen,
    table_path,
    together,
)
from tests.support.library import LIB
from tests.support.queries import mutation
from tests.support.seam import internals

PRIMARY_KEY = b"lance-schema:unenforced-primary-key"
ANN = mutation('insert Person { name: "ann" }')


# What init leaves


@pytest.mark.case("engine", 1)
def test_init_makes_tables_manifest_and_schema_files_and_nothing_else(tmp_path: Path) -> None:
    root = tmp_path / "graph"

    init(root, PEOPLE, durability="process").close()

    assert sorted(path.name for path in root.iterdir()) == sorted(
        [MANIFEST_DIR, "nodes", "edges", *SCHEMA_FILES]
    )
    assert len(list((root / "nodes").iterdir())) == 2
    assert len(list((root / "edges").iterdir())) == 2
    assert {
        key: lance.dataset(str(table_path(reopen(root), key))).count_rows() for key in pins(reopen(root))
    } == {
        "node:Person": 0,
        "node:Company": 0,
        "edge:Knows": 0,
        "edge:WorksAt": 0,
    }


@pytest.mark.case("engine", 2)
@pytest.mark.case("engine", 3)
def test_version_one_holds_the_stamp_genesis_and_the_head(graph: Graph) -> None:
    first = lance.dataset(f"{graph.uri}/{MANIFEST_DIR}", version=1)
    rows = {row["object_id"]: row for row in first.to_table().to_pylist()}
    genesis = head(graph)

    assert (first.schema.metadata or {})[STAMP_KEY.encode()] == b"4"
    assert INTERNAL_SCHEMA_VERSION == 4
    row = rows[genesis.graph_commit_id]
    assert (row["object_type"], row["table_version"], row["table_branch"]) == ("graph_commit", 1, None)
    assert "parent_commit_id" not in json.loads(row["metadata"])
    assert json.loads(rows["graph_head:main"]["metadata"]) == {"head_commit_id": genesis.graph_commit_id}
    assert first.latest_version == 1


@pytest.mark.case("engine", 4)
def test_every_dataset_follows_the_physical_rules(tmp_path: Path) -> None:
    graph = new_graph(tmp_path / "library", LIB)

    places = [(Path(graph.uri) / MANIFEST_DIR, "object_id")]
    places += [(table_path(graph, key), "id") for key in pins(graph)]
    assert len(places) == 10
    for place, key in places:
        dataset = lance.dataset(str(place))
        assert (dataset.schema.field(key).metadata or {})[PRIMARY_KEY] == b"true"
        assert dataset.has_stable_row_ids
        assert dataset.data_storage_version == "2.2"
        assert not any(name.startswith("lance.auto_cleanup") for name in dataset.config())


@pytest.mark.case("engine", 360)
def test_a_fresh_graph_has_one_schema_row_equal_to_its_file(graph: Graph) -> None:
    rows = [row for row in manifest_rows(graph) if row["object_type"] == "schema"]

    assert [row["metadata"] for row in rows] == [(Path(graph.uri) / "_schema.ir.json").read_text()]
    assert rows[0]["published_at"] == head(graph).manifest_version


# Init refused or failing


@pytest.mark.case("engine", 5)
@pytest.mark.parametrize("force", [False, True])
def test_init_on_a_graph_is_refused_and_changes_nothing(graph: Graph, force: bool) -> None:
    graph.mutate(ANN)
    before = files(Path(graph.uri))

    with pytest.raises(AlreadyInitialized):
        init(graph.uri, LIB, force=force, durability="process")

    assert files(Path(graph.uri)) == before


@pytest.mark.case("engine", 6)
def test_force_replaces_leftover_schema_files(tmp_path: Path) -> None:
    root = tmp_path / "graph"
    root.mkdir()
    for name in SCHEMA_FILES:
        (root / name).write_text("leftover")

    with pytest.raises(AlreadyInitialized):
        init(root, PEOPLE, durability="process")
    graph = init(root, PEOPLE, force=True, durability="process")

    graph.mutate(ANN)
    assert (root / "_schema.pg").read_text() == PEOPLE


@pytest.mark.case("engine", 7)
def test_a_claim_keeps_others_out(tmp_path: Path) -> None:
    root = tmp_path / "graph"
    root.mkdir()
    (root / INIT_CLAIM).write_text("{}")

    with pytest.raises(InitializationClaimed):
        init(root, PEOPLE, durability="process")

    assert [path.name for path in root.iterdir()] == [INIT_CLAIM]


@pytest.mark.case("engine", 8)
@pytest.mark.parametrize("number", range(5))
def test_of_two_inits_one_wins(tmp_path: Path, number: int) -> None:
    root = tmp_path / "graph"
    schemas = [PEOPLE, LIB]

    outcomes = together(*(partial(init, root, schema, durability="process") for schema in schemas))

    (winner,) = [index for index, outcome in enumerate(outcomes) if isinstance(outcome, Graph)]
    assert isinstance(outcomes[1 - winner], AlreadyInitialized | InitializationClaimed)
    assert (root / "_schema.pg").read_text() == schemas[winner]
    assert len(chain(reopen(root))) == 1


@pytest.mark.case("engine", 9)
@pytest.mark.parametrize("place", ["init.after_schema_source", "init.after_schema_contract"])
def test_a_fault_before_the_first_table_takes_everything_back(tmp_path: Path, place: str) -> None:
    root = tmp_path / "graph"

    with pytest.raises(InjectedFault, match=place), failpoint(place, "raise"):
        init(root, PEOPLE, durability="process")

    assert files(root) == {}
    init(root, PEOPLE, durability="process").mutate(ANN)


def test_a_removal_that_fails_leaves_the_claim(tmp_path: Path) -> None:
    root = tmp_path / "graph"

    with (
        pytest.raises(InjectedFault, match="schema_cleanup_delete"),
        failpoint("init.after_schema_contract", "raise"),
        failpoint("init.schema_cleanup_delete", "raise"),
    ):
        init(root, PEOPLE, durability="process")

    assert INIT_CLAIM in files(root)


@pytest.mark.case("engine", 10)
def test_a_fault_after_the_first_table_leaves_everything(tmp_path: Path) -> None:
    root = tmp_path / "graph"

    with (
        pytest.raises(InitializationIndeterminate),
        failpoint("init.after_table_create", "skip:1,raise"),
    ):
        init(root, PEOPLE, durability="process")

    left = files(root)
    assert {INIT_CLAIM, *SCHEMA_FILES} <= left.keys()
    assert not any(name.startswith(MANIFEST_DIR) for name in left)
    with pytest.raises(GraphNotFound):
        reopen(root)


@pytest.mark.case("engine", 11)
def test_a_lost_answer_to_the_manifests_creation_is_success(tmp_path: Path) -> None:
    with failpoint("init.manifest_create_ack_lost", "raise"):
        graph = init(tmp_path / "graph", PEOPLE, durability="process")

    assert len(chain(graph)) == 1
    assert INIT_CLAIM not in files(Path(graph.uri))
    graph.mutate(ANN)


def test_a_lost_answer_that_cannot_be_looked_up_is_indeterminate(tmp_path: Path) -> None:
    with (
        pytest.raises(InitializationIndeterminate),
        failpoint("init.manifest_create_ack_lost", "raise"),
        failpoint("init.manifest_create_probe", "raise"),
    ):
        init(tmp_path / "graph", PEOPLE, durability="process")

    assert INIT_CLAIM in files(tmp_path / "graph")


@pytest.mark.case("engine", 12)
def test_a_crash_after_the_manifests_creation_leaves_a_graph(tmp_path: Path) -> None:
    root = tmp_path / "graph"

    with pytest.raises(InjectedFault), failpoint("init.post_manifest_create", "raise"):
        init(root, PEOPLE, durability="process")

    graph = reopen(root)
    graph.mutate(ANN)
    assert ids(graph, "Person") == ["ann"]


# Open


def test_no_graph_is_no_graph(tmp_path: Path) -> None:
    with pytest.raises(GraphNotFound):
        reopen(tmp_path / "nowhere")


@pytest.mark.case("engine", 14)
def test_a_missing_schema_file_is_named_with_the_others(graph: Graph) -> None:
    (Path(graph.uri) / "_schema.pg").unlink()

    with pytest.raises(NotFoundError) as caught:
        reopen(graph)

    assert all(name in str(caught.value) for name in SCHEMA_FILES)


@pytest.mark.case("engine", 15)
def test_a_table_that_only_the_schema_has_stops_the_open(graph: Graph) -> None:
    entry = graph.snapshot().entry("node:Company")
    Publisher(graph).publish(TombstoneTable(entry.identity, entry.table_key, entry.version + 1))

    with pytest.raises(SchemaContractConflict, match="the schema has node:Company, the manifest does not"):
        reopen(graph)


@pytest.mark.case("engine", 15)
def test_a_table_that_only_the_manifest_has_stops_the_open(graph: Graph) -> None:
    Publisher(graph).publish(RegisterTable(TableIdentity(77, 1), "node:Extra", pin(1)))

    with pytest.raises(SchemaContractConflict, match="the manifest has node:Extra, the schema does not"):
        reopen(graph)


@pytest.mark.case("engine", 256)
@pytest.mark.parametrize("name", SCHEMA_FILES)
def test_schema_files_edited_by_hand_are_refused_until_they_are_restored(graph: Graph, name: str) -> None:
    """An open handle looks at them when it is refreshed, and goes on with the schema that it has."""
    path = Path(graph.uri) / name
    written = path.read_text()
    edits = {
        "_schema.pg": written.replace("age: I32?", "age: I64?"),
        "_schema.ir.json": written.replace("nickName", "nickname"),
        "__schema_state.json": written.replace('"schema_shape_hash": "', '"schema_shape_hash": "x'),
    }
    assert edits[name] != written
    path.write_text(edits[name])

    for refused in (graph.refresh, partial(reopen, graph), partial(reopen, graph, mode="ro")):
        with pytest.raises(SchemaContractConflict):
            refused()
    path.write_text(written)

    graph.refresh()
    graph.mutate(ANN)
    with reopen(graph) as opened:
        assert ids(opened, "Person") == ["ann"]


@pytest.mark.case("engine", 256)
def test_a_comment_added_to_the_schema_by_hand_is_fine(graph: Graph) -> None:
    path = Path(graph.uri) / "_schema.pg"
    path.write_text(f"// who we know\n{path.read_text()}\n// and nobody else\n")

    graph.refresh()
    graph.mutate(ANN)
    for opened in (reopen(graph), reopen(graph, mode="ro")):
        assert ids(opened, "Person") == ["ann"]


def test_a_refresh_that_is_refused_leaves_the_handle_its_schema(graph: Graph) -> None:
    before = internals(graph).contract
    text = PEOPLE.replace("Company", "Firm")
    desired = read_schema(Source(text))
    for name, content in Contract.of(desired, accept_first(desired)).texts.items():
        (Path(graph.uri) / name).write_text(content)

    with pytest.raises(SchemaContractConflict):
        graph.refresh()

    assert internals(graph).contract is before


@pytest.mark.case("engine", 17)
def test_every_spelling_of_a_root_shares_one_queue_manager(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    monkeypatch.chdir(tmp_path)
    name = Path(graph.uri).name

    managers = [
        make_parts(uri).queues for uri in (f"{tmp_path}/{name}", name, f"./{name}/", f"{link}/{name}")
    ]

    assert all(manager is managers[0] for manager in managers)
    assert make_parts(str(tmp_path / "another")).queues is not managers[0]
    assert isinstance(managers[0], WriteQueueManager)


def _link_that_replaces(source: os.PathLike[str], target: os.PathLike[str]) -> None:
    Path(target).write_bytes(Path(source).read_bytes())


def _lock_that_everybody_gets(_descriptor: int, _operation: int) -> None:
    pass


@pytest.mark.case("engine", 13)
@pytest.mark.parametrize(
    ("broken", "stand_in"), [("os.link", _link_that_replaces), ("fcntl.flock", _lock_that_everybody_gets)]
)
def test_a_disk_that_keeps_no_promise_is_refused_for_writing(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str, stand_in: object
) -> None:
    monkeypatch.setattr(broken, stand_in)

    attempts: list[Callable[[], Graph]] = [
        partial(init, tmp_path / "new", PEOPLE, durability="process"),
        partial(reopen, graph),
    ]
    for attempt in attempts:
        with pytest.raises(StorageError) as caught:
            attempt()
        assert caught.value.kind == "configuration"

    assert files(tmp_path / "new") == {}
    assert ids(reopen(graph, mode="ro"), "Person") == []
