"""Writers are killed at random instants while they look after a graph, and so are copies of it."""

import os
import sys
from pathlib import Path
from time import monotonic

import pytest

import omnigraph
from tests.protocol.crash.upkeep_rounds import UPKEEP_KINDS, UpkeepRun
from tests.support.seeds import fixed_seed, fresh_seed


def run(root: Path, rounds: int, seed: int) -> UpkeepRun:
    """Kill a writer, or copies, in every round; a seed repeats the steps, not the instants."""
    started = monotonic()
    crash = UpkeepRun(root, seed)
    try:
        for number in range(1, rounds + 1):
            crash.round()
            if number % 50 == 0:
                sys.stdout.write(f"upkeep: {number} rounds after {monotonic() - started:.0f} s\n")
                sys.stdout.flush()
    finally:
        crash.close()
    with omnigraph.open(root, mode="ro") as graph:
        assert graph.verify().is_whole
        records = graph.recoveries()
    tally = crash.tally
    cut = ", ".join(f"{kind} {tally.landed[kind]}/{tally.vanished[kind]}" for kind in UPKEEP_KINDS)
    sys.stdout.write(
        f"upkeep: {tally.rounds} rounds, {tally.acknowledged} acknowledged steps, {tally.refused} refused, "
        f"{len(crash.model.commits)} commits, {crash.writers.opens_killed} opens killed, "
        f"{monotonic() - started:.0f} s\n"
        f"upkeep: cut off, landed/not: {cut}; {tally.idle} kills came after the answer\n"
        f"upkeep: {len(records)} recoveries; 0 acknowledged steps lost, 0 half visible, 0 rows changed, "
        f"0 failed opens, 0 copies that look whole and are not\n"
    )
    return crash


@pytest.mark.case("engine", 844)
def test_no_row_changes_when_what_looks_after_a_graph_is_killed(tmp_path: Path) -> None:
    run(tmp_path / "graph", rounds=2, seed=fixed_seed("CRASH_SEED"))


@pytest.mark.crash
@pytest.mark.case("engine", 844)
def test_no_row_changes_in_hundreds_of_kills(tmp_path: Path) -> None:
    rounds = int(os.environ.get("CRASH_ROUNDS", "300"))

    tally = run(tmp_path / "graph", rounds, seed=fresh_seed("CRASH_SEED")).tally

    for kind in UPKEEP_KINDS:
        assert tally.landed[kind] + tally.vanished[kind] >= rounds // 15, f"too few kills hit {kind}"
