"""Copies that are killed again and again, behind any number of files, end up whole."""

import os
import sys
from pathlib import Path

import pytest

from tests.protocol.test_clone_crash import killed_anywhere, new_source
from tests.support.seeds import fresh_seed

ROUNDS = 40


@pytest.mark.crash
@pytest.mark.case("engine", 524)
def test_many_runs_killed_behind_any_number_of_files(tmp_path: Path) -> None:
    rounds = int(os.environ.get("CRASH_ROUNDS", ROUNDS))

    killed = killed_anywhere(new_source(tmp_path / "graph"), tmp_path, rounds, fresh_seed("CRASH_SEED"))

    sys.stdout.write(f"clone: {rounds} copies, {killed} runs killed, every copy whole\n")
    assert killed >= rounds
