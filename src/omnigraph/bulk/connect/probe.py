"""Do the executors match the driver? Before any work: do they have the packages, and see the storage?"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa

from omnigraph.bulk.connect.admission import Probe, driver_versions, examination, refusal
from omnigraph.bulk.connect.jobs import Jobs
from omnigraph.bulk.connect.leftovers import TOKEN, living_token
from omnigraph.core.errors import SparkUnavailable
from omnigraph.storage.control.object_store import StorageAdapter
from omnigraph.storage.control.uri import GraphRoot


@contextmanager
def probed(jobs: Jobs, root: GraphRoot, adapter: StorageAdapter) -> Iterator[Jobs]:
    """Write a token, let the executors read it back, and remove it at the end, whatever happens.

    The jobs yielded also check the executors that join later, before their first task.

    Raises:
        SparkUnavailable: an executor lacks a package, has another version, or does not see the graph.
        StorageError: the token cannot be written.
    """
    name = TOKEN + jobs.operation_id
    probe = Probe(root.uri, name, jobs.operation_id, driver_versions())
    with living_token(root, adapter, name, probe.token):
        check_executors(jobs, probe)
        yield replace(jobs, probe=probe)


def check_executors(jobs: Jobs, probe: Probe) -> None:
    """Compare the executors that are there with the driver.

    Raises:
        SparkUnavailable: names the host and what is different there.
    """
    problem = examination(probe)

    def look(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import socket

        import pyarrow

        found = problem()
        for _batch in numbers:
            yield pyarrow.RecordBatch.from_pydict({"host": [socket.gethostname()], "problem": [found]})

    count = jobs.parallelism * 2
    frame = jobs.spark.range(0, count, 1, count).mapInArrow(look, "host string, problem string")
    found = jobs.collect(frame)
    for host, said in zip(found["host"].to_pylist(), found["problem"].to_pylist(), strict=True):
        if said:
            raise SparkUnavailable(refusal(str(host), str(said)))
