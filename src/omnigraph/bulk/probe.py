"""Are the executors like the driver? Before any work: do they have the packages, and see the storage?"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version

import pyarrow as pa

from omnigraph.bulk.jobs import Jobs
from omnigraph.core.errors import SparkUnavailable
from omnigraph.storage.object_store import StorageAdapter

PROBE_NAME = "__executor_probe_{}"  # under the graph root, for the time of one operation
PACKAGES = ("pylance", "pyarrow")


@dataclass(frozen=True, slots=True)
class Probe:
    """What an executor must find: the token under the root, and the versions of the driver."""

    root: str
    name: str
    token: str
    versions: tuple[tuple[str, str], ...]


@contextmanager
def probed(jobs: Jobs, root: str, adapter: StorageAdapter) -> Iterator[None]:
    """Write a token, let the executors read it back, and take it away at the end, whatever happens.

    Raises:
        SparkUnavailable: an executor lacks a package, has another version, or does not see the graph.
    """
    probe = Probe(root, PROBE_NAME.format(jobs.operation_id), jobs.operation_id, driver_versions())
    adapter.write_text(probe.name, probe.token)
    try:
        check_executors(jobs, probe)
        yield
    finally:
        adapter.discard(probe.name)


def driver_versions() -> tuple[tuple[str, str], ...]:
    """Return the versions of this process, by package."""
    import platform

    import omnigraph

    python = ".".join(platform.python_version_tuple()[:2])
    own = ("python", python), ("omnigraph", omnigraph.__version__)
    return (*own, *((name, version(name)) for name in PACKAGES))


def check_executors(jobs: Jobs, probe: Probe) -> None:
    """Compare every executor with the driver.

    Raises:
        SparkUnavailable: with the host and what is different there.
    """
    fields = (probe.root, probe.name, probe.token, probe.versions)

    # Sent by value: an executor without our package must be able to run it, and to say so.
    def look(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import importlib.metadata
        import platform
        import socket

        import pyarrow

        root, name, token, versions = fields
        problem = ""
        for package, wanted in versions:
            try:
                if package == "python":
                    found = ".".join(platform.python_version_tuple()[:2])
                elif package == "omnigraph":
                    import omnigraph

                    found = omnigraph.__version__
                else:
                    found = importlib.metadata.version(package)
            except Exception:  # noqa: BLE001 - whatever keeps a package from being there
                found = "not installed"
            if found != wanted:
                problem = f"has {package} {found}, not {wanted}"
                break
        if not problem:
            try:
                from omnigraph.storage.durability import Durability
                from omnigraph.storage.object_store import open_adapter
                from omnigraph.storage.uri import GraphRoot

                adapter = open_adapter(GraphRoot.parse(root), Durability.PROCESS)
                seen = adapter.read_text_if_exists(name)
                if seen != token:
                    problem = f"does not see the graph at {root}"
            except Exception as error:  # noqa: BLE001 - any failure means that the graph is out of reach
                problem = f"cannot read the graph at {root}: {error}"
        for _batch in numbers:
            yield pyarrow.RecordBatch.from_pydict({"host": [socket.gethostname()], "problem": [problem]})

    count = jobs.parallelism * 2
    frame = jobs.spark.range(0, count, 1, count).mapInArrow(look, "host string, problem string")
    found = jobs.collect(frame)
    for host, problem in zip(found["host"].to_pylist(), found["problem"].to_pylist(), strict=True):
        if problem:
            raise SparkUnavailable(f"the executor on {host} {problem}")
