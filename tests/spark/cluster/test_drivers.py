"""A driver that dies or is interrupted while its tasks write: `omnigraph load` as a real process."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen

import pytest

from tests.spark.cluster.daemons import descendants, wait_for
from tests.spark.cluster.friends import Friends, make_friends

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

# Both tasks that run have written their fragments, and never say so: the middle of the stage, for as long
# as anybody looks.
STUCK = {"OMNIGRAPH_FAILPOINTS": "bulk.post_write_pre_report=delay:3600000"}
LOCAL = {
    "OMNIGRAPH_SPARK_MASTER": "local[2]",
    "OMNIGRAPH_SPARK_CONF": "spark.driver.memory=1g;spark.sql.shuffle.partitions=2",
}
PERSON = '{"type": "Person", "data": {"name": "from-standard-input"}}\n'


@pytest.fixture
def friends(tmp_path: Path) -> Friends:
    return make_friends(tmp_path, people=500, edges=20_000, files=4)


@contextmanager
def stuck_load(friends: Friends) -> "Iterator[Popen[str]]":
    """Start a load that also spools what comes by standard input, and wait until its tasks have written."""
    folder = friends.data
    with friends.loading({**LOCAL, **STUCK}, "--data", "-", given=PERSON) as load:
        wait_for(lambda: folder.exists() and any(folder.iterdir()), "the first fragment")
        assert [name[:8] for name in friends.lying_about()] == ["__execut", "__spool_"]
        yield load


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_killed_driver_leaves_files_and_the_next_load_tidies_up(friends: Friends) -> None:
    with stuck_load(friends) as load:
        family = descendants(load.pid)

        load.kill()
        load.communicate()

    wait_for(lambda: not any(map(is_running, family)), "the end of what the driver had started")
    friends.assert_untouched()
    assert len(friends.lying_about()) == 2
    status, _, told = friends.load(LOCAL, "--quiet")
    assert status == 0, told
    friends.assert_loaded_once()
    assert friends.unreferenced(), "cleanup takes them when they are old enough"


@pytest.mark.case("surfaces", 108)
def test_ctrl_c_cancels_the_jobs_and_ends_with_its_code(friends: Friends) -> None:
    with stuck_load(friends) as load:
        family = descendants(load.pid)

        os.killpg(load.pid, signal.SIGINT)  # as a terminal does: everybody in the foreground gets it
        shown, told = load.communicate()

    assert (load.returncode, shown) == (130, ""), told
    assert "Traceback" not in told
    wait_for(lambda: not any(map(is_running, family)), "the end of what the driver had started")
    assert friends.lying_about() == []
    assert friends.unreferenced() == []
    friends.assert_untouched()
