"""Columns of Arrow's extension types, whose numbers and texts mean something else than they say."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph.core.errors import ValidationError
from omnigraph.graph.graph import Graph

SCHEMA = """\
node Month {
    k: String @key
    t: DateTime?
    n: I64?
    s: String?
    many: [I64]?
    v: Vector(2)?
}
"""
NAMES = pa.array(["a", "b"])
UUIDS = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"a" * 16, b"b" * 16], pa.binary(16)))
PERIODS: Any = pa.Table.from_pandas(pd.DataFrame({"t": pd.period_range("2024-01", periods=2, freq="M")}))["t"]
UNKNOWN = {b"ARROW:extension:name": b"somebody.months"}
COLUMNS: dict[str, tuple[str, Any, str]] = {
    "moments": ("t", PERIODS, "pandas.period"),
    "numbers": ("n", PERIODS, "pandas.period"),
    "texts": ("s", UUIDS, "arrow.uuid"),
    "truth values": ("n", pa.array([1, 0], pa.int8()).cast(pa.bool8()), "arrow.bool8"),
    "lists": (
        "many",
        pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), PERIODS.combine_chunks()),
        "pandas.period",
    ),
}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return omnigraph.init(tmp_path_factory.mktemp("months") / "graph", SCHEMA, durability="process")


def as_parquet(table: pa.Table, folder: Path) -> str:
    pq.write_table(table, folder / "m.parquet")
    return f"Month={folder / 'm.parquet'}"


def as_arrow(table: pa.Table, folder: Path) -> str:
    with pa.ipc.new_file(str(folder / "m.arrow"), table.schema) as writer:
        writer.write_table(table)
    return f"Month={folder / 'm.arrow'}"


@pytest.mark.case("surfaces", 760)
@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("written", [None, as_parquet, as_arrow], ids=["table", "parquet", "arrow"])
def test_an_extension_type_is_refused_by_its_name(
    graph: Graph, tmp_path: Path, kind: str, written: Callable[[pa.Table, Path], str] | None
) -> None:
    name, column, type_name = COLUMNS[kind]
    table = pa.table({"k": NAMES, name: column})
    source: Any = {"Month": table} if written is None else written(table, tmp_path)

    with pytest.raises(ValidationError, match=f"'{name}' for Month is of the extension type '{type_name}'"):
        graph.load(source, "append", index=False)

    assert graph.table("Month").num_rows == 0


@pytest.mark.case("surfaces", 760)
def test_a_frame_of_pandas_with_periods_is_refused(graph: Graph) -> None:
    frame = pd.DataFrame({"k": ["a", "b"], "t": pd.period_range("2024-01", periods=2, freq="M")})

    with pytest.raises(ValidationError, match=r"'t' for Month is of the extension type 'pandas\.period'"):
        graph.load_tables({"Month": frame}, "append", index=False)


@pytest.mark.case("surfaces", 760)
def test_a_type_that_this_process_does_not_know_is_refused(graph: Graph, tmp_path: Path) -> None:
    fields = [pa.field("k", pa.utf8()), pa.field("s", pa.string_view(), metadata=UNKNOWN)]
    table = pa.table([NAMES, pa.array(["1", "2"], pa.string_view())], schema=pa.schema(fields))
    message = r"'s' for Month is of the extension type 'somebody\.months'"

    with pytest.raises(ValidationError, match=message):
        graph.load_tables({"Month": table}, "append", index=False)
    skipped = graph.load_tables({"Month": table}, "append", on_error="skip", index=False, dry_run=True)
    assert skipped.tables == ()
    with pytest.raises(ValidationError, match=message):
        graph.load(as_arrow(table, tmp_path), "append", index=False)


@pytest.mark.case("surfaces", 760)
def test_a_file_of_periods_is_refused_where_pandas_was_never_imported(graph: Graph, tmp_path: Path) -> None:
    source = as_parquet(pa.table({"k": NAMES, "n": PERIODS}), tmp_path)
    program = (
        "import sys, omnigraph\n"
        "assert 'pandas' not in sys.modules\n"
        "try: omnigraph.open(sys.argv[1]).load(sys.argv[2], 'append')\n"
        "except omnigraph.ValidationError as error: print(error)\n"
    )

    run = subprocess.run(
        [sys.executable, "-c", program, str(graph.uri), source], capture_output=True, text=True, check=True
    )

    assert "'n' for Month is of the extension type 'pandas.period'" in run.stdout


@pytest.mark.case("surfaces", 760)
def test_a_mapping_does_not_hide_an_extension_type(graph: Graph, tmp_path: Path) -> None:
    pq.write_table(pa.table({"who": NAMES, "month": PERIODS}), tmp_path / "m.parquet")
    mapping = tmp_path / "map.yaml"
    mapping.write_text(
        "sources:\n  - path: m.parquet\n    type: Month\n    columns: {k: who, n: month}\n", encoding="utf-8"
    )

    with pytest.raises(ValidationError, match=r"'month' for Month is of the extension type 'pandas\.period'"):
        graph.load([], "append", mapping=mapping, index=False)


@pytest.mark.case("surfaces", 760)
def test_types_that_mean_what_they_store_are_taken(graph: Graph) -> None:
    vectors = pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32(), 2))
    tensors = pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.float32(), [2]), vectors)
    texts = pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}", "[1]"]))

    graph.load_tables({"Month": pa.table({"k": NAMES, "v": tensors, "s": texts})}, "overwrite", index=False)

    found = graph.table("Month").sort_by("k")
    assert found["s"].to_pylist() == ["{}", "[1]"]
    assert found["v"].to_pylist() == [[1.0, 2.0], [3.0, 4.0]]
