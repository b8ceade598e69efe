"""Repair of drift and deep verification on an S3-compatible server: as on a disk."""

import json
import threading
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import omnigraph
from omnigraph.core.errors import PendingRecovery
from omnigraph.core.failpoint import failpoint
from omnigraph.graph.graph import Graph
from omnigraph.history.commits import FORCED_REPAIR_ACTOR
from omnigraph.operations.repair_drift import DriftRepair
from omnigraph.operations.verify.report import VerifyReport
from omnigraph.operations.verify.verify import verify_place
from omnigraph.storage.control.uri import GraphRoot
from tests.support.in_process import invoke
from tests.support.protocol import BEFORE, SCHEMA, paused_at, records
from tests.support.seam import internals

pytestmark = pytest.mark.slow

TOUCH = 'query touch() { update Person set { age: 31 } where name = "ann" }'


@pytest.fixture
def graph(indexed_graph: Graph) -> Graph:
    return indexed_graph


def append(graph: Graph, root: GraphRoot, table_key: str, **columns: list[str]) -> None:
    """Commit rows with Lance alone."""
    place = f"{root.uri}/{graph.snapshot().entry(table_key).location}"
    schema = lance.dataset(place, storage_options=root.storage_options).schema
    count = len(next(iter(columns.values())))
    arrays = [pa.array(columns.get(field.name, [None] * count), field.type) for field in schema]
    rows = pa.Table.from_arrays(arrays, schema=schema)
    lance.write_dataset(rows, place, mode="append", storage_options=root.storage_options)


def actions(result: DriftRepair) -> dict[str, tuple[str, str]]:
    return {table.table_key: (table.classification, table.action) for table in result.tables}


def kinds(report: VerifyReport) -> list[tuple[str, str]]:
    return [(finding.kind, finding.where) for finding in report.findings]


@pytest.mark.case("surfaces", 262)
def test_drift_is_classified_refused_and_forced_as_on_a_disk(graph: Graph, root: GraphRoot) -> None:
    append(graph, root, "node:Person", id=["eve"], name=["eve"])

    found = verify_place(root.uri)
    preview, refused = graph.repair(), graph.repair(confirm=True)
    forced = graph.repair(confirm=True, force=True)

    assert kinds(found) == [("drift", "node:Person")]
    assert actions(preview)["node:Person"] == ("suspicious", "preview")
    assert actions(refused)["node:Person"] == ("suspicious", "refused")
    assert actions(forced)["node:Person"] == ("suspicious", "forced")
    assert graph.commits()[0].actor_id == FORCED_REPAIR_ACTOR
    graph.mutate(TOUCH)
    assert graph.verify(deep=True).is_whole


@pytest.mark.case("surfaces", 262)
def test_rows_that_break_a_rule_are_named_as_on_a_disk(graph: Graph, root: GraphRoot) -> None:
    append(graph, root, "edge:Knows", id=["k"], src=["ann"], dst=["nobody"])
    graph.repair(confirm=True, force=True)

    report = verify_place(root.uri, deep=True)

    assert kinds(report) == [("endpoint", "edge:Knows 'k'")]


@pytest.mark.case("surfaces", 262)
def test_the_command_repairs_a_store_and_goes_back_on_a_disk_only(
    graph: Graph, root: GraphRoot, tmp_path: Path
) -> None:
    append(graph, root, "node:Person", id=["eve"], name=["eve"])
    graph.close()

    forced = invoke("repair", root.uri, "--confirm", "--force", "--json", cwd=tmp_path)
    back = invoke("repair", root.uri, "--to", "1", "--yes", cwd=tmp_path)
    deep = invoke("verify", root.uri, "--deep", "--json", cwd=tmp_path)

    assert (forced.code, back.code, deep.code) == (0, 1, 0)
    said = {table["table_key"]: table["action"] for table in json.loads(forced.stdout)["tables"]}
    assert said["node:Person"] == "forced"
    assert "repair --to needs a local disk" in back.stderr
    assert json.loads(deep.stdout)["rows_checked"] == 10


@pytest.mark.case("surfaces", 262)
def test_a_live_writer_is_waited_for_and_a_dead_one_is_named(graph: Graph, root: GraphRoot) -> None:
    other = omnigraph.open(root.uri)
    asked, results = threading.Event(), list[DriftRepair]()
    repairing = threading.Thread(target=lambda: results.append(other.repair(confirm=True, force=True)))

    def meanwhile() -> None:
        with paused_at("recovery.sidecar_list", "call", asked.set):
            repairing.start()
            assert asked.wait(60)

    with paused_at("write.post_finalize_pre_publisher", "call", meanwhile):
        graph.mutate(TOUCH)
    repairing.join(60)

    assert {action for _, action in actions(results[0]).values()} == {"no_op"}
    with failpoint("write.post_finalize_pre_publisher", "raise"), pytest.raises(omnigraph.RecoveryRequired):
        graph.mutate(TOUCH)
    with pytest.raises(PendingRecovery, match="reopen it read-write first"):
        other.repair()


@pytest.mark.case("engine", 724)
def test_a_lost_control_object_of_a_branch_with_commits_is_found(root: GraphRoot) -> None:
    with omnigraph.init(root.uri, SCHEMA) as graph:
        graph.load(records(BEFORE), "append", index=False)
        for name in ("june", "july"):
            graph.create_branch(name)
            graph.mutate('query q() { insert Person { name: "zoe" } }', branch=name)
        graph.delete_branch("july")
        assert graph.verify().is_whole
        adapter = internals(graph).parts.adapter
        kept = adapter.read_text("__branches/june.json")
        adapter.delete("__branches/june.json")

        [found] = graph.verify().findings
        assert (found.kind.value, found.where) == ("control_file", "__branches/june.json")
        adapter.write_text("__branches/june.json", kept)
        assert graph.verify().is_whole
