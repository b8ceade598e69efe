"""The first traversal of a process: everything is imported first, then a graph is opened and asked."""

import importlib
import multiprocessing
import os
import pkgutil
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter

from bench.support.questions import Values


@dataclass(frozen=True, slots=True)
class Restart:
    """Seconds of the steps of a fresh process, one after another, and where its adjacency came from."""

    opened: float
    one_hop: float
    reach: float
    csr_loads: int
    csr_builds: int

    @property
    def total(self) -> float:
        """From nothing open to both answers."""
        return self.opened + self.one_hop + self.reach


def restart(folder: Path, cache: Path, one_hop: Values, reach: Values) -> Restart:
    """Ask a graph in a new process, which keeps its derived files in a directory."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_ask, args=(theirs, folder, cache, one_hop, reach))
    process.start()
    theirs.close()
    found = ours.recv()
    process.join()
    assert isinstance(found, Restart)
    return found


def _ask(pipe: Connection, folder: Path, cache: Path, one_hop: Values, reach: Values) -> None:
    os.environ["OMNIGRAPH_CACHE_DIR"] = str(cache)
    _import_all("omnigraph")
    from bench.support.ours import Ours

    ours = Ours()
    moments = [perf_counter()]
    ours.open(folder)
    moments.append(perf_counter())
    for question, values in (("one hop with filter", one_hop), ("reach 1..3", reach)):
        ours.ask(question, values)()
        moments.append(perf_counter())
    seconds = (after - before for before, after in pairwise(moments))
    counts = ours.graph._graph.reading.derived.counts
    pipe.send(Restart(*seconds, counts.csr_loads, counts.csr_builds))
    ours.close()


def _import_all(package: str) -> None:
    """Import a package with all below it: imports are not what is measured."""
    for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
