"""Hostile and broken input on Spark: the same refusals as in process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import omnigraph
from omnigraph.core.errors import OmnigraphError, ValidationError
from tests.support import damage
from tests.support.seam import patched
from tests.support.spark import spark_session

if TYPE_CHECKING:
    from omnigraph.graph.graph import Graph

pytestmark = pytest.mark.slow
SCHEMA = """\
node Person {
    name: String @key
    age: I32?
    group: String?
    tags: [String]?
}
"""


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Graph:
    """A graph whose loads are cut into small slices."""
    patched(monkeypatch, "omnigraph.operations.load.spark.SLICE_BYTES_MIN", 300)
    patched(monkeypatch, "omnigraph.operations.load.spark.SLICE_BYTES_MAX", 300)
    spark_session()
    return omnigraph.init(tmp_path / "graph", SCHEMA, durability="process")


def same_refusal(graph: Graph, source: object) -> OmnigraphError:
    """Return the error of a load, which is the same on both engines and leaves nothing."""
    found = []
    for engine in ("local", "spark"):
        with pytest.raises(OmnigraphError) as caught:
            graph.load(source, "append", index=False, engine=engine)  # type: ignore[arg-type] # any input
        found.append(caught.value)
    assert [type(error) for error in found] == [type(found[0])] * 2
    assert str(found[1]) == str(found[0])
    assert graph.table("Person").num_rows == 0
    return found[0]


@pytest.mark.case("engine", 890)
def test_ten_thousand_wrong_rows_are_enough_for_both_engines(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MIN", "MAX"):
        patched(monkeypatch, f"omnigraph.operations.load.spark.SLICE_BYTES_{name}", 8_000)
    graph.apply_schema(SCHEMA + "edge Knows: Person -> Person\n")
    edge = b'{"edge": "Knows", "from": "nobody", "to": "nothing", "data": {"id": "e"}}\n'
    row = b'{"type": "Person", "data": {"name": 5}}\n'

    for garbage in (12_000, 9_900):
        found = []
        for engine in ("local", "spark"):
            with pytest.raises(ValidationError) as caught:
                graph.load(edge + row + b"x" * 20 + b"\nx" * garbage, "append", engine=engine)
            found.append(caught.value)
        local, spark = found

        assert (spark.kind, spark.line, str(spark)) == (local.kind, local.line, str(local))
        assert spark.violations == local.violations
        assert (spark.total, spark.is_cut_short) == (local.total, local.is_cut_short)
        assert local.is_cut_short == (garbage == 12_000)


@pytest.mark.case("engine", 385)
@pytest.mark.case("engine", 386)
def test_damaged_files_are_refused_by_both_engines_alike(graph: Graph, tmp_path: Path) -> None:
    text = tmp_path / "text.parquet"
    damage.write_parquet(text, damage.rows())
    damage.replace_once(text, b"bert", damage.BAD_TEXT)
    offsets = tmp_path / "offsets.arrow"
    first = damage.rows().set_column(0, "name", pa.array(["a", "b", "c", "d"]))
    with pa.ipc.new_file(str(offsets), first.schema) as writer:
        writer.write_table(first)
        writer.write_table(damage.rows())
    old, new, _, _ = damage.DAMAGES["offset far out"]
    damage.replace_once(offsets, old, new)

    in_text, in_offsets = (same_refusal(graph, f"Person={path}") for path in (text, offsets))

    assert "text.parquet:2: invalid UTF-8 in column 'name'" in str(in_text)
    assert "offsets.arrow:6: column 'name' is damaged: " in str(in_offsets)


@pytest.mark.case("engine", 387)
def test_tables_and_frames_are_validated_before_they_are_written(graph: Graph) -> None:
    ends = pa.py_buffer(np.array([0, 1, 2**30, 3], np.int32).tobytes())
    wild = pa.Array.from_buffers(pa.utf8(), 3, [None, ends, pa.py_buffer(b"abc")])
    invalid = pa.array([b"anna", b"\xff\xfe"], pa.binary()).view(pa.utf8())

    same_refusal(graph, {"Person": pa.table({"name": wild})})
    same_refusal(graph, {"Person": pa.table({"name": invalid})})
    frame = spark_session().sql("select cast(x'fffe' as string) as name")
    with pytest.raises(ValidationError, match="Person:1: invalid UTF-8 in column 'name'"):
        graph.load_tables({"Person": frame}, "append", index=False)


@pytest.mark.case("surfaces", 760)
def test_extension_types_are_refused_by_both_engines_alike(graph: Graph, tmp_path: Path) -> None:
    periods = pd.DataFrame({"name": ["ann", "bob"], "age": pd.period_range("2024-01", periods=2, freq="M")})
    file = tmp_path / "people.parquet"
    periods.to_parquet(file)

    for source in ({"Person": periods}, f"Person={file}"):
        assert "'age' for Person is of the extension type 'pandas.period'" in str(same_refusal(graph, source))
