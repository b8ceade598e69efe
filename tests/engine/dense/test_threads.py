"""One derived state, many threads, while somebody writes."""

import random
from pathlib import Path

from omnigraph.history.state import Snapshot
from tests.engine.dense.graphs import SCHEMA, check, derived_of, reader
from tests.engine.dense.writes import Writer
from tests.support.engine import new_graph, together


def test_eight_threads_see_their_own_snapshots(tmp_path: Path) -> None:
    with new_graph(tmp_path / "graph", SCHEMA) as graph:
        writer = Writer(graph, random.Random(11))
        writer.load_many()
        warm = derived_of(graph, tmp_path / "cache", views_max=3)
        seen: list[Snapshot] = [graph.snapshot()]

        def write() -> None:
            for _ in range(8):
                writer.write()
                seen.append(graph.snapshot())

        def read(seed: int) -> None:
            dice = random.Random(seed)
            for _ in range(5):
                check(reader(graph, warm, dice.choice(seen[-3:])))

        outcomes = together(write, *(lambda seed=seed: read(seed) for seed in range(7)))

        assert outcomes == [None] * 8
        check(reader(graph, warm))
        warm.close()


def test_threads_wait_for_one_build(tmp_path: Path) -> None:
    with new_graph(tmp_path / "graph", SCHEMA) as graph:
        Writer(graph, random.Random(12)).load_many()
        warm = derived_of(graph)
        snapshot = graph.snapshot()

        outcomes = together(*[lambda: check(reader(graph, warm, snapshot))] * 8)

        assert outcomes == [None] * 8
        assert warm.counts.slot_rebuilds == 4
        assert warm.counts.id_builds == 4
        assert warm.counts.csr_builds == 4
