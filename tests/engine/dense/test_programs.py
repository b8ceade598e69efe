"""Derived state that has been brought forward equals derived state made anew, whatever was written."""

import random
from pathlib import Path

import pytest

from omnigraph.graph.graph import Graph
from omnigraph.history.state import Snapshot
from tests.engine.dense.graphs import SCHEMA, check, derived_of, reader
from tests.engine.dense.writes import Writer
from tests.support.engine import new_graph

STEPS = 30


@pytest.mark.parametrize("seed", range(3))
def test_after_every_write_everything_derived_agrees_with_the_rows(tmp_path: Path, seed: int) -> None:
    with new_graph(tmp_path / "graph", SCHEMA) as graph:
        warm = derived_of(graph)
        writer = Writer(graph, random.Random(seed))
        for _ in range(STEPS):
            writer.write()

            check(reader(graph, warm))

        counts = warm.counts
        assert counts.slot_advances > counts.slot_rebuilds
        assert counts.csr_overlays > 0
        warm.close()


def test_older_snapshots_stay_right_while_newer_ones_are_derived(tmp_path: Path) -> None:
    with new_graph(tmp_path / "graph", SCHEMA) as graph:
        warm = derived_of(graph)
        writer, dice = Writer(graph, random.Random(7)), random.Random(8)
        seen: list[Snapshot] = []
        for _ in range(14):
            writer.write()
            seen.append(graph.snapshot())

            check(reader(graph, warm, dice.choice(seen)))
        for snapshot in reversed(seen):
            check(reader(graph, warm, snapshot))
        warm.close()


def test_upkeep_moves_rows_and_changes_nothing_derived(tmp_path: Path) -> None:
    with new_graph(tmp_path / "graph", SCHEMA) as graph:
        warm = derived_of(graph)
        writer = Writer(graph, random.Random(3))
        writer.load_many()
        check(reader(graph, warm))
        before = warm.counts
        for step in range(66):
            writer.update_person()
            if step % 13 == 0 or step > 60:
                check(reader(graph, warm))

        assert _maintained(graph)
        assert warm.counts.slot_rebuilds == before.slot_rebuilds
        assert warm.counts.csr_builds == before.csr_builds
        assert warm.counts.column_builds == before.column_builds
        assert warm.counts.id_builds == before.id_builds
        warm.close()


def _maintained(graph: Graph) -> bool:
    return any(commit.actor_id == "omnigraph:maintenance" for commit in graph.commits())
