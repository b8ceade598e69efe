"""A folder that cannot be listed ends every verb in an error of ours, whichever folder and whichever verb."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import omnigraph
from omnigraph.graph.graph import Graph
from omnigraph.storage.damage.quarantine import QUARANTINE_DIR
from tests.engine.branches.steps import insert
from tests.support.engine import copy_of, new_graph

LISTINGS_MAX = 400  # of one verb on this small graph: a verb with more lists something again and again
LONG = {"status", "verify"}  # they list most, and share their listings with the others
QUARANTINE_ID = "01M7V1FNNHB6MQEA28XNF6A9NE"

VERBS: dict[str, Callable[[Path], object]] = {
    "open": lambda root: omnigraph.open(root).close(),
    "branches": lambda root: _with(root, Graph.branches),
    "delete_branch": lambda root: _with(root, lambda graph: graph.delete_branch("june")),
    "cleanup": lambda root: _with(root, lambda graph: graph.cleanup(1)),
    "optimize": lambda root: _with(root, Graph.optimize),
    "verify": lambda root: _with(root, lambda graph: graph.verify(deep=True)),
    "status": lambda root: _with(root, Graph.status),
    "quarantined": omnigraph.quarantined,
    "restore_quarantined": lambda root: omnigraph.restore_quarantined(root, QUARANTINE_ID),
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a graph with a branch, with a load that may live, and with something in quarantine."""
    root = tmp_path / "graph"
    with new_graph(root) as graph:
        insert(graph, "ann")
        graph.create_branch("june")
        insert(graph, "of june", "june")
    (root / QUARANTINE_DIR / QUARANTINE_ID / "nodes" / "x" / "_versions").mkdir(parents=True)
    return root


@pytest.mark.parametrize(
    "verb", [pytest.param(verb, marks=[pytest.mark.slow] if verb in LONG else []) for verb in VERBS]
)
def test_a_folder_that_cannot_be_listed_is_an_error_of_ours(root: Path, tmp_path: Path, verb: str) -> None:
    failed = list[str]()
    for number in range(LISTINGS_MAX):
        copy = copy_of(root, tmp_path / f"copy-{number}")
        with _listing_failing_at(number) as raised:
            try:
                VERBS[verb](copy)
            except omnigraph.OmnigraphError as error:
                failed.append(str(error))
        if not raised:
            break
    else:
        pytest.fail(f"{verb} lists more than {LISTINGS_MAX} folders")

    assert any("Input/output error" in text for text in failed)


def _with(root: Path, verb: Callable[[Graph], object]) -> None:
    with omnigraph.open(root, durability="process") as graph:
        verb(graph)


@contextmanager
def _listing_failing_at(number: int) -> Iterator[list[object]]:
    """Let one listing of a folder fail; yield the folders of those that did."""
    listed, raised = iter(range(LISTINGS_MAX * 2)), list[object]()
    scandir, listdir = os.scandir, os.listdir

    def failing(call: Callable[..., object]) -> Any:  # noqa: ANN401 - stands for calls with several signatures
        def listing(*arguments: object) -> object:
            if next(listed) == number:
                raised.append(arguments)
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return call(*arguments)

        return listing

    with (
        mock.patch.object(os, "scandir", failing(scandir)),
        mock.patch.object(os, "listdir", failing(listdir)),
    ):
        yield raised
