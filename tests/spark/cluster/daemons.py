"""Spark's own daemons as processes of a test, from the pip package: a standalone cluster, a Connect server.

D1  Whatever happens in the block, every process that was started for it is dead when the block ends.
D2  A daemon counts as started when it says so in its log; nobody waits for a time.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pyspark

from omnigraph.bulk.connect.java import java_home

SPARK = Path(pyspark.__file__).parent
HOSTS = ("127.0.0.1", "localhost")  # two names of one machine: a second attempt is made on another host
WORKER_MEMORY, EXECUTOR_MEMORY = "1g", "768m"
PATIENCE_S = 300.0  # a machine with too much to do has taken two minutes to start a JVM
LOOK_S = 0.05
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Daemon:
    """One process, and where its output goes."""

    process: subprocess.Popen[bytes]
    log: Path

    def kill(self) -> None:
        """End it and all its descendants as a power switch would, at once."""
        kill_family(self.process)

    def said(self, pattern: str, *, times: int = 1) -> re.Match[str]:
        """Wait until the log has a line, or so many (D2)."""

        def look() -> re.Match[str] | None:
            assert self.process.poll() is None, self.log.read_text()
            found = list(re.finditer(pattern, self.log.read_text()))
            return found[times - 1] if len(found) >= times else None

        return wait_for(look, f"{pattern!r} in {self.log}")


@dataclass(frozen=True, slots=True)
class Cluster:
    """A master and its workers; each worker runs one executor with one core."""

    master: str
    workers: Sequence[Daemon]
    events: Path

    def environment(self, **settings: str) -> dict[str, str]:
        """Return the variables of a driver; settings have underscores where Spark's names have points."""
        options = {
            "spark.driver.host": HOSTS[0],
            "spark.driver.bindAddress": HOSTS[0],
            "spark.driver.memory": "1g",
            "spark.executor.memory": EXECUTOR_MEMORY,
            "spark.executor.cores": "1",
            # Both executors are there before the first task is given to one of them.
            "spark.cores.max": str(len(self.workers)),
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.scheduler.maxRegisteredResourcesWaitingTime": f"{PATIENCE_S:.0f}s",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": self.events.as_uri(),
            "spark.eventLog.compress": "false",
            "spark.eventLog.rolling.enabled": "false",
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
        conf = ";".join(f"{name}={value}" for name, value in options.items())
        return {
            "OMNIGRAPH_SPARK_MASTER": self.master,
            "OMNIGRAPH_SPARK_CONF": conf,
            "SPARK_LOCAL_IP": HOSTS[0],
        }


@contextmanager
def standalone_cluster(folder: Path, *environments: Mapping[str, str]) -> Iterator[Cluster]:
    """Start a master, and a worker for each environment, whose variables its executor gets too (D1)."""
    events = folder / "events"
    events.mkdir(parents=True)
    with _daemons(folder) as start:
        master = start("master", ["org.apache.spark.deploy.master.Master", *_listen(HOSTS[0])])
        address = master.said(r"spark://127\.0\.0\.1:[1-9]\d*")[0]
        workers = []
        for number, variables in enumerate(environments):
            place = ["-c", "1", "-m", WORKER_MEMORY, "-d", str(folder / f"work-{number}"), address]
            command = ["org.apache.spark.deploy.worker.Worker", *_listen(HOSTS[number]), *place]
            workers.append(start(f"worker-{number}", command, **variables))
        master.said("Registering worker", times=len(workers))
        yield Cluster(address, workers, events)


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """Start a Connect server with two cores of its own, and yield its address (D1)."""
    conf = {
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.driver.host": HOSTS[0],
        "spark.driver.bindAddress": HOSTS[0],
        "spark.connect.grpc.binding.address": HOSTS[0],
        "spark.connect.grpc.binding.port": "0",
    }
    options = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
    command = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", *options]
    with _daemons(folder) as start:
        server = start("connect", command, program="spark-submit", SPARK_DAEMON_MEMORY="1g")
        port = server.said(r"Spark Connect server started at: \S*:([1-9]\d*)")[1]
        yield f"sc://{HOSTS[0]}:{port}"


def descendants(pid: int) -> list[int]:
    """Return the processes that a process has started, and those that they have."""
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True)
    children: dict[int, list[int]] = {}
    for line in listed.stdout.splitlines():
        child, parent = map(int, line.split())
        children.setdefault(parent, []).append(child)
    found, waiting = [], [pid]
    while waiting:
        born = children.get(waiting.pop(), [])
        found += born
        waiting += born
    return found


def kill_family(process: subprocess.Popen[Any]) -> None:
    """End a process and all its descendants as a power switch would, at once."""
    for pid in [process.pid, *descendants(process.pid)] if process.poll() is None else []:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


def wait_for(look: Callable[[], Found | None], what: str) -> Found:
    """Look until there is something; the time is a limit for what never comes, and no measure."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < deadline, f"nobody has seen {what}"
        time.sleep(LOOK_S)


def _listen(host: str) -> list[str]:
    return ["--host", host, "--port", "0", "--webui-port", "0"]


@contextmanager
def _daemons(folder: Path) -> Iterator[Callable[..., Daemon]]:
    folder.mkdir(parents=True, exist_ok=True)
    started: list[Daemon] = []
    home = java_home(os.environ, folder)

    def start(name: str, command: Sequence[str], *, program: str = "spark-class", **more: str) -> Daemon:
        log = folder / f"{name}.log"
        variables = {
            **os.environ,
            **({} if home is None else {"JAVA_HOME": str(home)}),
            "SPARK_HOME": str(SPARK),
            "SPARK_LOCAL_IP": HOSTS[0],
            "SPARK_LOCAL_DIRS": str(folder / "local"),
            "SPARK_DAEMON_MEMORY": "256m",
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            **more,
        }
        with log.open("wb") as output:
            process = subprocess.Popen(
                [str(SPARK / "bin" / program), *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=variables,
                start_new_session=True,
            )
        started.append(Daemon(process, log))
        return started[-1]

    try:
        yield start
    finally:
        for daemon in reversed(started):
            daemon.kill()
