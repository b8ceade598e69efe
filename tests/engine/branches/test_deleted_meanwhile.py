"""A look for lost branches beside a deletion: what is on its way out was not lost."""

from pathlib import Path

import pytest

import omnigraph
from omnigraph.history import branch_copies
from tests.support.seam import internals, patched

SCHEMA = "node Person { name: String @key }"


def test_a_branch_that_is_deleted_between_two_looks_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = branch_copies._control_of
    with omnigraph.init(tmp_path / "graph", SCHEMA) as graph:
        graph.create_branch("june")
        copies = internals(graph).parts.branches.copies

        def read_and_delete(copy: Path) -> str | None:
            control = read(copy)
            graph.delete_branch("june")
            return control

        patched(monkeypatch, "omnigraph.history.branch_copies._control_of", read_and_delete)

        assert copies.lost() == []
        assert graph.branches() == ["main"]
