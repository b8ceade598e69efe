"""A load on a real cluster, of whose two workers one dies, fails, or does not come to an end."""

from pathlib import Path

import pytest

from tests.spark.cluster.daemons import standalone_cluster, wait_for
from tests.spark.cluster.friends import events_of, make_friends

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

PLACE = "bulk.post_write_pre_report"


def test_a_killed_worker_neither_fails_nor_doubles_a_load(tmp_path: Path) -> None:
    friends = make_friends(tmp_path, people=5_000, edges=2_000_000)
    folder = friends.data
    with (
        standalone_cluster(tmp_path / "cluster", {}, {}) as cluster,
        friends.loading(cluster.environment(), "--quiet") as load,
    ):
        wait_for(lambda: folder.exists() and any(folder.iterdir()), "the first fragment")
        cluster.workers[0].kill()
        _, told = load.communicate()
        assert load.returncode == 0, told

    ends = events_of(cluster.events, "TaskEnd")
    lost = [event for event in ends if event["Task End Reason"]["Reason"] == "ExecutorLostFailure"]
    assert lost, "the worker died in the middle of a task"
    friends.assert_loaded_once()


@pytest.mark.case("engine", 120)
@pytest.mark.parametrize(
    ("action", "settings"),
    [
        # The first attempt of a task on that worker has written all it has to, and then does not say so.
        (
            "delay:3600000",
            {
                "spark_speculation": "true",
                "spark_speculation_interval": "100ms",
                "spark_speculation_quantile": "0.25",
                "spark_speculation_multiplier": "1.1",
            },
        ),
        # Every attempt on that worker fails after it has written.
        ("raise", {"spark_task_maxFailures": "100"}),
    ],
)
def test_a_second_attempt_of_a_task_adds_no_rows(
    tmp_path: Path, action: str, settings: dict[str, str]
) -> None:
    friends = make_friends(tmp_path, people=500, edges=400_000, files=3)  # too large to share a task
    failing = {"OMNIGRAPH_FAILPOINTS": f"{PLACE}={action}"}
    with standalone_cluster(tmp_path / "cluster", failing, {}) as cluster:
        status, _, told = friends.load(cluster.environment(**settings), "--quiet")
        assert status == 0, told

    started = events_of(cluster.events, "TaskStart")
    again = [event for event in started if event["Task Info"]["Speculative"] or event["Task Info"]["Attempt"]]
    assert again, "a task was tried twice"
    assert friends.unreferenced() == [], "what the other attempt wrote is gone"
    friends.assert_loaded_once()
