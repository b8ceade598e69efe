"""Pandas stays out of the program until it is needed, and is there for whoever asks."""

import gc
import json
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph.cli.lean_imports import lean_imports, let_pandas_in
from tests.support.atlas import GRAPH, place_atlas
from tests.support.commands import omnigraph, python, write

# A read by the program, and then, in the same process, whoever needs pandas.
PANDAS_AFTERWARDS = """\
import contextlib, gc, json, os, sys
before = gc.get_threshold()
from omnigraph.cli.main import main
with contextlib.redirect_stdout(open(os.devnull, "w")), contextlib.suppress(SystemExit):
    main(["query", "-e", "query q() { match { $c: Craft } return { $c.code } }", "--store", sys.argv[1]])
found = {
    "imported": "pandas" in sys.modules,
    "finders": [type(it).__module__ for it in sys.meta_path if "omnigraph" in type(it).__module__],
    "collects as before": before == gc.get_threshold(),
}
from omnigraph.cli.lean_imports import lean_imports
with lean_imports():
    import pandas  # by whoever needs it while a command runs
import omnigraph
with omnigraph.open(sys.argv[1], mode="ro") as graph:
    result = graph.query("query q() { match { $c: Craft } return { $c.code, $c.mass_kg } order { $c.code } }")
found["frame"] = result.to_pandas()["c.code"].tolist()
import pyarrow
found["table"] = pyarrow.Table.from_pandas(pandas.DataFrame({"n": [1, 2]})).column("n").to_pylist()
found["array"] = pyarrow.array(pandas.Series([3, None], dtype="Int64")).to_pylist()
print(json.dumps(found))
"""
# A library that is used: nothing is hidden from the process, so pyarrow imports pandas as it always does.
HIDES_NOTHING = """\
import json, sys
import omnigraph
with omnigraph.open(sys.argv[1], mode="ro") as graph:
    graph.commits()
ours = [type(it).__module__ for it in sys.meta_path if "omnigraph" in type(it).__module__]
print(json.dumps([ours, "pandas" in sys.modules]))
"""
# How much of the process is kept from the last search for garbage, asked when every other handler has run.
LEFT_AT_THE_END = """\
import atexit, gc, sys
atexit.register(lambda: print("searched" if gc.get_freeze_count() == 0 else "left"))
from omnigraph.cli.main import main
main({arguments})
"""
NANOSECONDS = 1_500_000_000_123_456_789


def test_pandas_can_be_imported_and_used_behind_a_command(tmp_path: Path) -> None:
    place_atlas(tmp_path)

    outcome = python("-W", "ignore::ResourceWarning", "-c", PANDAS_AFTERWARDS, GRAPH, cwd=tmp_path)

    assert json.loads(outcome.stdout) == {
        "imported": False,
        "finders": [],
        "collects as before": True,
        "frame": ["GLL-1", "VGR-1", "VGR-2"],
        "table": [1, 2],
        "array": [3, None],
    }


def test_the_library_hides_nothing_from_its_users(tmp_path: Path) -> None:
    place_atlas(tmp_path)

    outcome = python("-c", HIDES_NOTHING, GRAPH, cwd=tmp_path)

    assert json.loads(outcome.stdout) == [[], True]


def test_a_load_has_pandas_for_moments_of_nanoseconds(tmp_path: Path) -> None:
    """Python has no nanoseconds: pyarrow makes such values with pandas, and refuses them without."""
    write(tmp_path, "s.pg", "node Reading {\n    code: String @key\n    seen: [DateTime]\n}\n")
    seen = pa.array([[NANOSECONDS]], pa.list_(pa.timestamp("ns")))
    pq.write_table(pa.table({"code": ["a"], "seen": seen}), tmp_path / "r.parquet")
    assert omnigraph("init", "r.omni", "--schema", "s.pg", cwd=tmp_path).code == 0

    outcome = omnigraph("load", "r.omni", "--data", "Reading=r.parquet", "--mode", "append", cwd=tmp_path)

    assert outcome.code == 0, outcome


@pytest.mark.parametrize(("arguments", "expected"), [("", "left"), ('["version"]', "searched")])
def test_the_program_ends_at_once_and_leaves_the_process_of_others_alone(
    arguments: str, expected: str, tmp_path: Path
) -> None:
    outcome = python("-c", LEFT_AT_THE_END.format(arguments=arguments), "version", cwd=tmp_path)

    assert (outcome.code, outcome.stdout.splitlines()[-1]) == (0, expected)


def test_all_is_as_it_was_when_a_run_ends() -> None:
    before = state()

    with pytest.raises(KeyError):
        fail_inside(before)

    assert state() == before


def state() -> tuple[object, ...]:
    return (*sys.meta_path, gc.get_threshold())


def fail_inside(before: tuple[object, ...]) -> None:
    with lean_imports():
        assert state() != before
        raise KeyError


def test_a_command_that_needs_pandas_ends_the_hiding_and_no_more() -> None:
    before = list(sys.meta_path)

    with lean_imports():
        let_pandas_in()
        assert list(sys.meta_path) == before
        let_pandas_in()

    assert list(sys.meta_path) == before
