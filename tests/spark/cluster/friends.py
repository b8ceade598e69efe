"""A graph of friends to load on a cluster, and what must be true of it afterwards, whatever happened."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, Popen
from tempfile import TemporaryFile
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from omnigraph.graph.graph import Graph
from omnigraph.graph.opening import init
from omnigraph.graph.opening import open as open_graph
from tests.spark.cluster.daemons import kill_family
from tests.support.commands import prepared
from tests.support.seam import internals

SCHEMA = """\
node Person { name: String @key }
edge Knows: Person -> Person { weight: I64 }
"""
ROW_GROUP_ROWS = 31_250


@dataclass(frozen=True, slots=True)
class Friends:
    """A graph, and the files that are to be loaded into it."""

    root: Path
    sources: tuple[str, ...]
    people: int
    edges: int

    def load_command(self, *more: str) -> list[str]:
        """Return the command that loads them on Spark; interrupts reach it."""
        given = [word for source in self.sources for word in ("--data", source)]
        arguments = ["load", str(self.root), *given, "--mode", "append", "--engine", "spark", "--no-index"]
        statement = "import signal; signal.signal(signal.SIGINT, signal.SIG_DFL)"
        return prepared(statement, *arguments, *more)

    @contextmanager
    def loading(self, variables: Mapping[str, str], *more: str, given: str = "") -> "Iterator[Popen[str]]":
        """Start that command in a process group of its own, as a shell would, with a text to read."""
        with TemporaryFile("w+") as stdin:
            stdin.write(given)
            stdin.seek(0)
            process = Popen(
                self.load_command(*more),
                stdin=stdin,
                stdout=PIPE,
                stderr=PIPE,
                text=True,
                env={**os.environ, **variables},
                start_new_session=True,
            )
        try:
            yield process
        finally:
            kill_family(process)
            process.communicate()

    def load(self, variables: Mapping[str, str], *more: str) -> "tuple[int, str, str]":
        """Run that command to its end; return its status and what it wrote."""
        with self.loading(variables, *more) as process:
            shown, told = process.communicate()
            return process.returncode, shown, told

    @property
    def data(self) -> Path:
        """The folder that fragments of edges are written to."""
        return self.table_folder("edge:Knows") / "data"

    def table_folder(self, table_key: str) -> Path:
        """Return where a table lies."""
        with open_graph(self.root, mode="ro") as graph:
            return self.root / graph.snapshot().entry(table_key).location

    def assert_loaded_once(self) -> None:
        """Every row is there once, by one commit, and nothing lies about but files in the data folders."""
        with open_graph(self.root) as graph:
            assert [commit.actor_id for commit in graph.commits()].count("omnigraph:recovery") == 0
            assert len(graph.commits()) == 2, "the genesis and the load"
            people, edges = graph.table("Person"), graph.table("Knows")
            assert sorted(map(str, people["name"].to_pylist())) == _names(self.people)
            assert edges.num_rows == self.edges
            assert pc.count_distinct(edges["id"]).as_py() == self.edges
            assert pc.count_distinct(edges["weight"]).as_py() == self.edges
            assert pc.sum(edges["weight"]).as_py() == self.edges * (self.edges - 1) // 2
            row_ids = dataset_of(graph, "edge:Knows").to_table(columns=["_rowid"])["_rowid"]
            assert pc.count_distinct(row_ids).as_py() == self.edges
        assert self.lying_about() == []

    def assert_untouched(self) -> None:
        """Nothing of a load is visible."""
        with open_graph(self.root) as graph:
            assert len(graph.commits()) == 1
            assert graph.table("Person").num_rows == graph.table("Knows").num_rows == 0

    def lying_about(self) -> list[str]:
        """Return what operations keep only while they work: spools, tokens, sidecars and their locks."""
        kept = [*self.root.glob("__spool_*"), *self.root.glob("__executor_probe_*")]
        return sorted(path.name for path in [*kept, *self.root.glob("__recovery/*")])

    def unreferenced(self) -> list[str]:
        """Return the data files of edges that no fragment has."""
        with open_graph(self.root, mode="ro") as graph:
            fragments = dataset_of(graph, "edge:Knows").get_fragments()
            known = {file.path for fragment in fragments for file in fragment.data_files()}
        return sorted({path.name for path in self.data.iterdir()} - known)


def make_friends(folder: Path, *, people: int, edges: int, files: int = 1) -> Friends:
    """Create an empty graph, and Parquet files of people and of their friendships."""
    root = folder / "graph"
    init(root, SCHEMA, durability="process").close()
    names = np.array(_names(people))
    pq.write_table(pa.table({"name": pa.array(names)}), folder / "people.parquet")
    ends = np.random.default_rng(1).integers(0, people, (2, edges))
    sources = [f"Person={folder / 'people.parquet'}"]
    for number, rows in enumerate(np.array_split(np.arange(edges), files)):
        path = folder / f"knows-{number}.parquet"
        columns = {"from": names[ends[0][rows]], "to": names[ends[1][rows]], "weight": rows}
        table = pa.table({name: pa.array(values) for name, values in columns.items()})
        pq.write_table(table, path, row_group_size=ROW_GROUP_ROWS)
        sources.append(f"Knows={path}")
    return Friends(root, tuple(sources), people, edges)


def dataset_of(graph: Graph, table_key: str) -> Any:  # noqa: ANN401 - Lance's own
    """Return the dataset that a graph has pinned for a table."""
    entry, parts = graph.snapshot().entry(table_key), internals(graph).parts
    return parts.open(entry)._dataset


def events_of(folder: Path, kind: str) -> Sequence[Mapping[str, Any]]:
    """Return what Spark has written down about its one application, by the kind of event."""
    (path,) = folder.iterdir()
    events = [json.loads(line) for line in path.read_text().splitlines()]
    return [event for event in events if event["Event"] == f"SparkListener{kind}"]


def _names(count: int) -> list[str]:
    return [f"p{number:06}" for number in range(count)]
