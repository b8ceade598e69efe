"""Writers that make, change, merge and delete branches are killed at random instants.

The parent draws every step from the dictionary model of branches. After each kill it reopens the graph and
compares every branch; of the step that was cut off it accepts both outcomes and nothing in between.
"""

import os
import sys
from pathlib import Path
from time import monotonic

import pytest

import omnigraph
from tests.protocol.crash.branch_rounds import KINDS, BranchRun
from tests.support.seeds import fixed_seed, fresh_seed


def run(root: Path, rounds: int, seed: int) -> None:
    """Kill a writer in every round; a seed repeats the steps, not the instants."""
    started = monotonic()
    crash = BranchRun(root, seed)
    try:
        for number in range(1, rounds + 1):
            crash.round()
            if number % 50 == 0:
                sys.stdout.write(f"branches: {number} rounds after {monotonic() - started:.0f} s\n")
                sys.stdout.flush()
    finally:
        crash.close()
    with omnigraph.open(root, mode="ro") as graph:
        records = graph.recoveries()
    tally = crash.tally
    merges = sum(len(commit.parents) > 1 for commit in crash.model.commits.values())
    cut = ", ".join(f"{kind} {tally.landed[kind]}/{tally.vanished[kind]}" for kind in KINDS)
    sys.stdout.write(
        f"branches: {tally.rounds} rounds, {tally.acknowledged} acknowledged steps, {tally.refused} refused, "
        f"{len(crash.model.commits)} commits ({merges} merges), {crash.writers.opens_killed} opens killed, "
        f"{monotonic() - started:.0f} s\n"
        f"branches: steps cut off, landed/not: {cut}; {tally.idle} kills came after the answer\n"
        f"branches: {len(records)} recoveries; 0 acknowledged steps lost, 0 half visible, 0 failed opens, "
        f"one chain and pin = HEAD on every branch after every open\n"
    )


def test_no_acknowledged_step_is_lost_when_a_writer_of_branches_is_killed(tmp_path: Path) -> None:
    run(tmp_path / "graph", rounds=7, seed=fixed_seed("CRASH_SEED"))


@pytest.mark.crash
def test_no_acknowledged_step_is_lost_in_hundreds_of_kills(tmp_path: Path) -> None:
    rounds = int(os.environ.get("CRASH_ROUNDS", "300"))
    run(tmp_path / "graph", rounds, seed=fresh_seed("CRASH_SEED"))
