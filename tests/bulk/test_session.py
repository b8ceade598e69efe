"""The session: from settings, the user's own when there is one, and quiet."""

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from omnigraph.bulk.jobs import Jobs
from omnigraph.bulk.probe import Probe, check_executors, driver_versions
from omnigraph.bulk.session import SparkSettings, active_session, open_session, settings_from
from omnigraph.core.errors import ResourceLimit, SparkUnavailable

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def test_settings_come_from_the_environment_and_a_given_master_goes_first() -> None:
    options = {"OMNIGRAPH_SPARK_CONF": "spark.a=1; spark.b=x=y", "SPARK_REMOTE": "sc://host"}

    assert settings_from(options) == SparkSettings(None, "sc://host", {"spark.a": "1", "spark.b": "x=y"})
    assert settings_from(options, master="local[1]").master == "local[1]"
    assert settings_from(options, master="local[1]").remote is None
    assert settings_from({}, master="sc://other").remote == "sc://other"
    assert settings_from({"OMNIGRAPH_SPARK_CONF": "spark.master=local[3]"}).master == "local[3]"
    assert not settings_from({}).is_given
    with pytest.raises(SparkUnavailable, match=r"not spark\.<name>=<value>"):
        settings_from({"OMNIGRAPH_SPARK_CONF": "master=x"})


def test_an_active_session_is_used_whatever_the_settings_say(spark: "SparkSession") -> None:
    assert open_session(SparkSettings("spark://elsewhere:7077")) is spark
    assert active_session() is spark


def test_an_executor_that_differs_is_named_before_work(spark: "SparkSession", tmp_path: "Path") -> None:
    jobs = Jobs(spark, "probe")
    versions = driver_versions()
    (tmp_path / "token").write_text("yes")

    check_executors(jobs, Probe(str(tmp_path), "token", "yes", versions))
    with pytest.raises(SparkUnavailable, match="does not see the graph at"):
        check_executors(jobs, Probe(str(tmp_path), "token", "no", versions))
    with pytest.raises(SparkUnavailable, match=r"has pyarrow .*, not 0\.1"):
        check_executors(jobs, Probe(str(tmp_path), "token", "yes", (*versions, ("pyarrow", "0.1"))))
    with pytest.raises(SparkUnavailable, match="has no-such-package not installed, not 1"):
        check_executors(jobs, Probe(str(tmp_path), "token", "yes", (("no-such-package", "1"),)))


def test_errors_of_ours_come_back_from_tasks_as_they_are(spark: "SparkSession") -> None:
    def work(number: int) -> int:
        if number > 1:
            raise ResourceLimit(resource=f"bytes of line {number}", limit=1, actual=number)
        return number

    def broken(number: int) -> int:
        raise ZeroDivisionError(number)

    jobs = Jobs(spark, "errors")
    assert jobs.each([0, 1], work) == [0, 1]
    with pytest.raises(ResourceLimit, match="bytes of line 2: 2 over 1"):
        jobs.each([0, 3, 2, 2], lambda number: work(2 if number == 3 else number))
    with pytest.raises(SparkUnavailable, match="ZeroDivisionError"):
        jobs.each([1], broken)


def test_nothing_but_bulk_work_imports_pyspark() -> None:
    script = "import sys, omnigraph.graph.graph, omnigraph.cli.commands.load; print('pyspark' in sys.modules)"

    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout

    assert shown == "False\n"
