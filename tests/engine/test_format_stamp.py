"""The format stamp of a graph: what this build does not read, it refuses before it reads anything else."""

from collections.abc import Callable
from pathlib import Path

import lance
import pytest

from omnigraph import INTERNAL_SCHEMA_VERSION
from omnigraph.core.errors import FormatVersionError
from omnigraph.graph.graph import Graph
from omnigraph.history.manifest_rows import STAMP_KEY
from omnigraph.history.stamp import read_stamp
from tests.support.engine import manifest_path, new_graph, reopen
from tests.support.queries import mutation

INSERT = mutation('insert Person { name: "bob" }')
ENTRIES: dict[str, Callable[[Graph], object]] = {
    "snapshot": lambda graph: graph.snapshot(),
    "table": lambda graph: graph.table("Person"),
    "commits": lambda graph: graph.commits(),
    "mutation": lambda graph: graph.mutate(INSERT),
}


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return new_graph(tmp_path / "graph")


def restamp(graph: Graph, stamp: str) -> int:
    """Give a graph another format, as a build of that format does, and return the manifest's version."""
    manifest = lance.dataset(str(manifest_path(graph)))
    manifest.update_schema_metadata({STAMP_KEY: stamp})
    return manifest.version


@pytest.mark.parametrize("stamp", [str(INTERNAL_SCHEMA_VERSION + 1), "0", "four"])
@pytest.mark.parametrize("mode", ["rw", "ro"])
def test_a_graph_of_another_format_is_not_opened(graph: Graph, stamp: str, mode: str) -> None:
    restamp(graph, stamp)

    with pytest.raises(FormatVersionError, match=f"format.*{stamp}"):
        reopen(graph, mode="rw" if mode == "rw" else "ro")


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_handle_stops_when_its_graph_got_a_newer_format(graph: Graph, entry: str) -> None:
    graph.snapshot()
    version = restamp(graph, str(INTERNAL_SCHEMA_VERSION + 1))

    with pytest.raises(FormatVersionError, match="upgrade omnigraph"):
        ENTRIES[entry](graph)

    assert lance.dataset(str(manifest_path(graph))).version == version


def test_a_manifest_without_a_stamp_has_the_oldest_format() -> None:
    assert read_stamp({}) == 1
