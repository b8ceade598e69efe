"""The Spark session of a process: the user's own, or one that is started quietly when bulk work begins.

J1  A session that other code started is used as it is, and never stopped.
J2  Our own is started once in a process and stays; `close_session`, or the end of the process, closes it.
J3  The output of the JVM and PySpark goes to a log file, not to the terminal.
J4  Log and start script are in a folder that this process made, under an unguessable name: a user who made
    it first could otherwise choose what is run. It goes with the process, unless an error named the log.
"""

import atexit
import importlib
import os
import shutil
import socket
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from omnigraph.bulk.connect.java import java_home, require_pyspark
from omnigraph.core.errors import SparkUnavailable
from omnigraph.storage.control.private_folder import open_own

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OWNED = "spark.omnigraph.owned"  # marks a session that we started, and may stop
PREFIX = "spark."
REMOTE_VARIABLE, MASTER_VARIABLE = "SPARK_REMOTE", "OMNIGRAPH_SPARK_MASTER"
CONF_VARIABLE = "OMNIGRAPH_SPARK_CONF"  # key=value pairs, separated by semicolons
LOG = "spark.log"
LOCAL_MASTER = "local[*]"
CONNECT_PACKAGES = {
    "grpc": "grpcio",
    "grpc_status": "grpcio-status",
    "google.rpc": "googleapis-common-protos",
    "zstandard": "zstandard",
}

CONNECT_PORT = 15002  # where an address has none
CONNECT_WAIT_S = 10.0
PROXY_VARIABLES = ("grpc_proxy", "https_proxy", "http_proxy")

_CALM = {
    "spark.app.name": "omnigraph",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.maxResultSize": "0",  # we bound what comes back: descriptions and first violations
    "spark.driver.memory": "2g",
    # A sorted join of keys takes three times as long as a hashed one.
    "spark.sql.join.preferSortMergeJoin": "false",
    "spark.sql.shuffle.partitions": "8",
}
_LOCAL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """What a user asked of Spark: a master, or a Connect server, and any option that begins with `spark.`."""

    master: str | None = None
    remote: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_given(self) -> bool:
        """Whether the user said where Spark should run."""
        return self.master is not None or self.remote is not None


def settings_from(environment: Mapping[str, str], *, master: str | None = None) -> SparkSettings:
    """Return the settings of an environment; a given master takes precedence.

    Raises:
        SparkUnavailable: the options are not `spark.key=value` pairs.
    """
    options: dict[str, str] = {}
    for pair in filter(None, map(str.strip, environment.get(CONF_VARIABLE, "").split(";"))):
        key, separator, value = pair.partition("=")
        if not separator or not key.startswith(PREFIX):
            raise SparkUnavailable(f"{CONF_VARIABLE}: {pair!r} is not spark.<name>=<value>")
        options[key] = value
    named = master or environment.get(MASTER_VARIABLE) or options.pop("spark.master", None)
    if named is not None and named.startswith("sc://"):
        return SparkSettings(None, named, options)
    remote = None if named else environment.get(REMOTE_VARIABLE) or options.pop("spark.remote", None)
    return SparkSettings(named or None, remote or None, options)


def open_session(settings: SparkSettings) -> "SparkSession":
    """Return the active session, or start one from the settings (J1, J2, J3).

    Raises:
        SparkUnavailable: there is no Java, or Spark did not start.
    """
    active = active_session()
    if active is not None:
        return active
    require_pyspark()
    try:
        return _start_remote(settings) if settings.remote is not None else _start(settings)
    except SparkUnavailable:
        raise
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise SparkUnavailable(f"Spark did not start ({reason}); its log is {log_path()}") from error


def require_connect() -> None:
    """Make sure that the client of Spark Connect is complete; without it PySpark may end the process.

    Raises:
        SparkUnavailable: names the packages that are missing.
    """
    missing = []
    for module, package in CONNECT_PACKAGES.items():
        try:
            importlib.import_module(module)
        except ImportError:
            missing.append(package)
    if missing:
        needed = ", ".join(missing)
        raise SparkUnavailable(f"Spark Connect needs {needed}: install them, or pyspark[connect]")


def require_server(remote: str, environment: Mapping[str, str]) -> None:
    """Make sure that a server listens at a Connect address: the client would try for minutes.

    Behind a proxy only the client can tell.

    Raises:
        SparkUnavailable: no server does.
    """
    place = urlsplit(remote)
    if place.scheme != "sc" or any(environment.get(name) for name in PROXY_VARIABLES):
        return
    try:
        host, port = place.hostname or "", place.port or CONNECT_PORT
        socket.create_connection((host, port), CONNECT_WAIT_S).close()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SparkUnavailable(
            f"no Spark Connect server answers at {remote} ({reason}): start one, or correct the address"
        ) from error


def active_session() -> "SparkSession | None":
    """Return the session of this process, if there is one; nothing is imported to find out."""
    if "pyspark.sql" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    with _calm():
        return SparkSession.getActiveSession()


def is_remote(spark: "SparkSession") -> bool:
    """Return whether a session is a Connect client, which has no context."""
    return "connect" in type(spark).__module__


def close_session() -> None:
    """Stop the session of this process if it is ours (J1); idempotent."""
    spark = active_session()
    if spark is None or spark.conf.get(OWNED, "false") != "true":
        return
    with _calm():
        if is_remote(spark):
            spark.stop()
            return
        gateway = spark.sparkContext._gateway
        spark.stop()
    from pyspark import SparkContext

    SparkContext._gateway = SparkContext._jvm = None
    if gateway is not None:
        gateway.shutdown()
        process = gateway.proc
        process.stdin.close()  # the JVM ends with its input
        process.wait()


def log_path() -> Path:
    """Return the file that the JVM of this process writes to; once named, it is kept (J4)."""
    folder = _scratch()
    atexit.unregister(_remove_scratch)
    return folder / LOG


def _start(settings: SparkSettings) -> "SparkSession":
    master = settings.master or LOCAL_MASTER
    conf = {**_CALM, OWNED: "true", **settings.options, "spark.master": master}
    if master.startswith("local"):
        conf = {**_LOCAL, **conf}
    home = java_home(os.environ, _scratch())
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with _environment("JAVA_HOME", home), _calm(), _output_to(_scratch() / LOG):
        from pyspark.sql import SparkSession

        builder = SparkSession.builder
        for key, value in conf.items():
            builder = builder.config(key, value)
        spark = builder.getOrCreate()
    atexit.register(close_session)
    return spark


def _start_remote(settings: SparkSettings) -> "SparkSession":
    assert settings.remote is not None
    require_server(settings.remote, os.environ)
    with _calm():
        require_connect()
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.remote(settings.remote)
        for key, value in {OWNED: "true", **settings.options}.items():
            builder = builder.config(key, value)
        spark = builder.getOrCreate()
    atexit.register(close_session)
    return spark


def _scratch() -> Path:
    """Return a folder of this process alone for the log, and for what Spark needs to start (J4)."""
    return _scratch_of(os.getpid())


@cache
def _scratch_of(pid: int) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="omnigraph-spark-"))
    atexit.register(_remove_scratch, folder, pid)
    return folder


def _remove_scratch(folder: Path, pid: int) -> None:
    if os.getpid() == pid:  # a forked child leaves it to its parent
        shutil.rmtree(folder, ignore_errors=True)  # what stays of it does no harm


@contextmanager
def _environment(name: str, value: Path | None) -> Iterator[None]:
    """Set a variable for processes that start in the block; `None` leaves it unchanged."""
    if value is None:
        yield
        return
    before = os.environ.get(name)
    os.environ[name] = str(value)
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


@contextmanager
def _calm() -> Iterator[None]:
    """Keep the warnings of PySpark about other libraries off the terminal (J3)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def _output_to(path: Path) -> Iterator[None]:
    """Let processes that start in the block write to a file: a JVM inherits its output (J3)."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    log = open_own(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.dup2(log, 1)
        os.dup2(log, 2)
        yield
    finally:
        for number, descriptor in enumerate(kept, 1):
            os.dup2(descriptor, number)
            os.close(descriptor)
        os.close(log)
