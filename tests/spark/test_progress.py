"""What a load tells: figures, words for people, documents for machines."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import omnigraph
from omnigraph.bulk.connect.progress import ProgressEvent, Stage, added_up
from omnigraph.cli.load_progress import describe, event_document, size_text
from tests.support.commands import SCHEMA
from tests.support.in_process import invoke

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HALF = ProgressEvent(
    Stage.READ, 2, 4, rows=1_200, bytes_done=300_000_000, bytes_total=1_200_000_000, seconds=6.0
)
TASKS = ProgressEvent(Stage.KEYS, 3, 4, seconds=9.0)
DONE = ProgressEvent(Stage.READ, rows=3_000, bytes_done=12_000, bytes_total=12_000, is_done=True, seconds=1.5)


def test_rates_and_the_time_that_is_left_follow_from_what_is_done() -> None:
    assert (HALF.bytes_per_s, HALF.rows_per_s, HALF.remaining_s) == (50_000_000, 200, 18.0)
    assert (TASKS.bytes_per_s, TASKS.rows_per_s, TASKS.remaining_s) == (None, None, 3.0)
    assert ProgressEvent(Stage.START).remaining_s is None
    assert DONE.remaining_s == 0.0


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (HALF, "1,200 rows, 300 MB of 1.2 GB, 50 MB/s, 18 s left"),
        (TASKS, "3 of 4 tasks, 3 s left"),
        (DONE, "3,000 rows, 12 kB, 8.0 kB/s, 1.5 s"),
        (ProgressEvent(Stage.COMMIT), ""),
    ],
)
def test_a_person_reads_rows_bytes_rate_and_what_is_left(event: ProgressEvent, text: str) -> None:
    assert describe(event) == text


def test_sizes_have_two_digits_at_least() -> None:
    sizes = [size_text(size) for size in (0, 999, 1_000, 9_940, 10_000, 2.5e12, 4e15)]

    assert sizes == ["0 bytes", "999 bytes", "1.0 kB", "9.9 kB", "10 kB", "2.5 TB", "4000 TB"]


def test_a_machine_reads_the_same() -> None:
    document = event_document(HALF)

    assert json.loads(json.dumps(document)) == {
        "stage": "read and parse",
        "done": False,
        "tasks_done": 2,
        "tasks_total": 4,
        "rows": 1_200,
        "bytes": 300_000_000,
        "bytes_total": 1_200_000_000,
        "seconds": 6.0,
        "rows_per_second": 200,
        "bytes_per_second": 50_000_000,
        "seconds_left": 18.0,
    }
    assert event_document(ProgressEvent(Stage.START))["seconds_left"] is None


def test_the_time_of_tasks_is_added_up_by_stage() -> None:
    assert added_up([{Stage.READ: 1.0, Stage.WRITE: 2.0}, {Stage.READ: 3.0}]) == {
        Stage.READ: 4.0,
        Stage.WRITE: 2.0,
    }


def test_stages_of_one_pass_share_its_time_and_a_pipe_gets_a_line_for_each(
    spark: "SparkSession", tmp_path: Path
) -> None:
    (tmp_path / "atlas.pg").write_text(SCHEMA)
    path = tmp_path / "crafts.csv"
    path.write_text("code,name\n" + "".join(f"c{row},n\n" for row in range(2_000)))
    events: list[ProgressEvent] = []

    with omnigraph.init(tmp_path / "a.omni", SCHEMA) as graph:
        graph.load([f"Craft={path}"], "append", engine="spark", index=False, progress=events.append)
    assert invoke("init", "b.omni", "--schema", "atlas.pg", cwd=tmp_path).code == 0
    arguments = ["load", "b.omni", "--data", "Craft=crafts.csv", "--mode", "append", "--engine", "spark"]
    outcome = invoke(*arguments, cwd=tmp_path)

    last = {event.stage: event for event in events if event.is_done}
    together = [last[stage] for stage in (Stage.READ, Stage.VALUES, Stage.WRITE)]
    assert all(event.rows == 2_000 and event.seconds > 0 for event in together)
    assert len({event.seconds for event in together}) == 3
    (line,) = [line for line in outcome.stderr.splitlines() if line.startswith("write fragments")]
    assert "2,000 rows" in line
