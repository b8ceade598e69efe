"""The session: from settings, the user's own when there is one, and quiet."""

import socket
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from omnigraph.bulk.connect.admission import Probe, driver_versions
from omnigraph.bulk.connect.jobs import Jobs
from omnigraph.bulk.connect.probe import check_executors
from omnigraph.bulk.connect.session import (
    SparkSettings,
    active_session,
    open_session,
    require_connect,
    require_server,
    settings_from,
)
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


def test_a_client_of_connect_that_is_not_complete_is_an_error_that_names_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in ("grpc", "grpc_status", "google", "google.rpc", "zstandard"):
        monkeypatch.setitem(sys.modules, module, None)

    with pytest.raises(SparkUnavailable, match=r"needs grpcio, grpcio-status, .*pyspark\[connect\]"):
        require_connect()


def test_a_server_that_is_not_there_is_told_at_once() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = f"sc://127.0.0.1:{nobody.getsockname()[1]}/;user_id=ann"

        with pytest.raises(SparkUnavailable, match=r"no Spark Connect server answers at sc://127.*refused"):
            require_server(address, {})
        with pytest.raises(SparkUnavailable, match="correct the address"):
            require_server("sc://127.0.0.1:port", {})
        require_server(address, {"https_proxy": "http://proxy"})
        require_server("local[2]", {})
        nobody.listen()
        require_server(address, {})


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


def test_an_executor_that_comes_later_is_looked_at_before_its_first_task(
    spark: "SparkSession", tmp_path: "Path"
) -> None:
    (tmp_path / "token").write_text("yes")
    probe = Probe(str(tmp_path), "token", "yes", driver_versions())

    assert Jobs(spark, "same", probe=probe).each([1, 2], str) == ["1", "2"]
    other = Jobs(spark, "other", probe=replace(probe, versions=(("pyarrow", "0.1"),)))
    with pytest.raises(SparkUnavailable, match=r"the executor on \S+ has pyarrow .*, not 0\.1"):
        other.each([1, 2], str)
    with pytest.raises(SparkUnavailable, match=r"^the executor on \S+ has pyarrow .*, not 0\.1"):
        other.collect(other.over([1, 2], lambda _number: iter(()), "number long"))


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


def test_an_interrupt_stays_one_when_spark_tells_of_cancelled_jobs(spark: "SparkSession") -> None:
    def interrupted() -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise RuntimeError("job 3 was cancelled")

    with pytest.raises(KeyboardInterrupt):
        Jobs(spark, "interrupted").run(interrupted)


def test_nothing_but_bulk_work_imports_pyspark() -> None:
    script = "import sys, omnigraph.graph.graph, omnigraph.cli.commands.load; print('pyspark' in sys.modules)"

    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout

    assert shown == "False\n"
