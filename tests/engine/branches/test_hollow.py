"""Power cuts that leave the newest version of a branch's manifest, or of a fork, hollow."""

from pathlib import Path

import lance
import pytest

from omnigraph.core.failpoint import EXIT_STATUS
from omnigraph.graph.graph import Graph
from omnigraph.history.manifest_rows import MANIFEST_DIR
from omnigraph.storage.files.version_file import version_file_name
from tests.engine.branches.steps import insert, names, owners
from tests.support.engine import reopen
from tests.support.forked import Forked
from tests.support.hollow import DAMAGES, lose_notes
from tests.support.seam import internals

WRITE = """
import sys
import omnigraph as og
og.open(sys.argv[1]).mutate('query q() { insert Person { name: "cut" } }', branch="june")
"""
each_damage = pytest.mark.parametrize("damage", DAMAGES)


def cut(graph: Graph, place: str) -> None:
    with Forked(WRITE, graph.uri, OMNIGRAPH_FAILPOINTS=f"{place}=exit") as script:
        assert script.wait() == EXIT_STATUS


def newest(dataset: Path) -> Path:
    return dataset / version_file_name(lance.dataset(str(dataset)).version)


@pytest.mark.case("engine", 327)
@each_damage
def test_a_hollow_manifest_of_a_branch_is_moved_aside(graph: Graph, damage: str) -> None:
    graph.create_branch("june")
    insert(graph, "first", "june")
    ref = internals(graph).state("june").ref
    cut(graph, "write.post_publish_pre_sidecar_delete")
    dataset = Path(graph.uri) / MANIFEST_DIR / "tree" / str(ref)
    hollow = newest(dataset)
    version = lance.dataset(str(dataset)).version
    lose_notes(Path(graph.uri))
    DAMAGES[damage](hollow)

    with reopen(graph) as healed:
        assert names(healed, "june") == ["ann", "bob", "cut", "eve", "first"]
        moved = [r for r in healed.recoveries() if r.recovery_kind.wire == "version_quarantined"]
        (outcome,) = moved[0].outcomes
        assert (len(moved), outcome.table_key) == (1, f"{MANIFEST_DIR} of june")
        assert (outcome.from_version, outcome.to_version >= version - 1) == (version, True)
        insert(healed, "next", "june")
    assert names(graph) == ["ann", "bob", "eve"]


@pytest.mark.case("engine", 327)
@each_damage
def test_a_hollow_fork_is_moved_aside(graph: Graph, damage: str) -> None:
    graph.create_branch("june")
    insert(graph, "first", "june")
    entry = graph.snapshot("june").entry("node:Person")
    cut(graph, "write.post_table_commit")
    dataset = Path(graph.uri) / entry.location / "tree" / str(entry.owner)
    DAMAGES[damage](newest(dataset))

    with reopen(graph) as healed:
        assert names(healed, "june") == ["ann", "bob", "eve", "first"]
        moved = [r for r in healed.recoveries() if r.recovery_kind.wire == "version_quarantined"]
        assert [outcome.table_key for record in moved for outcome in record.outcomes] == ["node:Person"]
        insert(healed, "next", "june")
        assert owners(healed, "june")["node:Person"] == entry.owner
