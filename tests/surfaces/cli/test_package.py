"""`import omnigraph`: every public name is there, and nothing heavy before it is used."""

import json
from pathlib import Path

import pytest

import omnigraph
from omnigraph.core import errors
from tests.support.atlas import ATLAS, SEED, lines
from tests.support.commands import python

HEAVY = {"lance", "pyarrow", "pyspark", "numpy", "click", "rich", "obstore"}


def test_importing_the_package_imports_nothing_heavy(tmp_path: Path) -> None:
    program = "import json, sys, omnigraph; dir(omnigraph); print(json.dumps(sorted(sys.modules)))"

    modules = json.loads(python("-c", program, cwd=tmp_path).stdout)

    assert {module.partition(".")[0] for module in modules} & HEAVY == set()
    assert [module for module in modules if module.startswith("omnigraph")] == ["omnigraph"]


def test_an_error_can_be_named_without_the_engine(tmp_path: Path) -> None:
    program = "import sys; from omnigraph import KeyConflict; print('lance' in sys.modules)"

    assert python("-c", program, cwd=tmp_path).stdout == "False\n"


@pytest.mark.parametrize("name", omnigraph.__all__)
def test_every_public_name_leads_somewhere(name: str) -> None:
    assert getattr(omnigraph, name) is not None
    assert name in dir(omnigraph)


def test_every_error_is_public() -> None:
    raised = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.OmnigraphError)
    }

    assert raised <= set(omnigraph.__all__)
    assert omnigraph.KeyConflict is errors.KeyConflict


def test_what_is_not_public_is_not_there() -> None:
    with pytest.raises(AttributeError, match="frobnicate"):
        getattr(omnigraph, "frobnicate")  # noqa: B009  the attribute is unknown to the type checker, too


def test_a_graph_from_the_package_alone(tmp_path: Path) -> None:
    with omnigraph.init(tmp_path / "g.omni", ATLAS) as graph:
        loaded: omnigraph.LoadResult = graph.load(lines(*SEED).encode(), "append", actor="act-mira")

    with omnigraph.open(tmp_path / "g.omni", mode="ro") as again:
        newest: omnigraph.Snapshot = again.snapshot()
        with pytest.raises(omnigraph.BadRequest, match="read-only"):
            again.load(b"", "merge")

    assert loaded.commit is not None
    assert loaded.index_commit == newest.head
    assert {key: entry.row_count for key, entry in newest.entries.items()} == {
        "edge:Flew": 3,
        "node:Craft": 3,
        "node:Mission": 2,
    }
