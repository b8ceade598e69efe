"""Arrow and Parquet that stand for far more than they hold: refused by size before the memory is taken."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph.bulk.sources.sources import Format, SourceInput, plan_slices, read_slice
from omnigraph.bulk.sources.tables import PackedTexts, packed_texts
from omnigraph.core.errors import BadRequest, ResourceLimit
from omnigraph.graph.graph import Graph
from omnigraph.operations.settings import read_limits
from omnigraph.validate.expansion import expanded_bytes, within_memory
from omnigraph.validate.records import EXPANSION_FLOOR_SETTING
from omnigraph.validate.violations import ViolationLog

SCHEMA = """\
node Person {
    name: String @key
    age: I64?
    group: String?
    tags: [String]?
}
node Loose { text: String? }
"""
MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return omnigraph.init(tmp_path_factory.mktemp("expansion") / "graph", SCHEMA, durability="process")


def repeated(rows: int, text: "pa.Array[Any]", index: Any = None) -> Any:  # noqa: ANN401 - any types
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows), index or pa.int32()), text)


def names(rows: int) -> "pa.Array[Any]":
    return pa.array([str(number) for number in range(rows)])


def nulls(rows: int) -> Any:  # noqa: ANN401 - as above
    return pa.Array.from_buffers(pa.null(), rows, [None])


LIST_VIEWS: Any = pa.ListViewArray  # whose stubs lack an argument
LONG = pa.array(["x" * MEGABYTE])
ARROWS: dict[str, Callable[[], Any]] = {
    "dictionary": lambda: repeated(600, LONG),
    "dictionary of views": lambda: repeated(600, LONG.cast(pa.string_view())),
    "runs": lambda: pa.RunEndEncodedArray.from_arrays(pa.array([600], pa.int32()), LONG),
    "views": lambda: one_view(600),
    "list of a dictionary": lambda: pa.ListArray.from_arrays(
        pa.array(np.arange(601), pa.int32()), repeated(600, LONG)
    ),
    "list view": lambda: LIST_VIEWS.from_arrays(
        pa.array(np.zeros(600), pa.int32()), pa.array(np.ones(600), pa.int32()), LONG
    ),
}


def one_view(rows: int) -> Any:  # noqa: ANN401 - a type that the stubs do not know
    """Return views that all show one text."""
    one = pa.array(["x" * MEGABYTE], pa.string_view())
    validity, views, *data = one.buffers()
    assert views is not None
    return pa.Array.from_buffers(
        pa.string_view(), rows, [validity and None, pa.py_buffer(views.to_pybytes()[:16] * rows), *data]
    )


def write_arrow(path: Path, batch: pa.RecordBatch) -> None:
    options = pa.ipc.IpcWriteOptions(allow_64bit=True)
    with pa.ipc.new_file(str(path), batch.schema, options=options) as writer:
        writer.write_batch(batch)


def refuse(graph: Graph, source: str) -> ResourceLimit:
    with pytest.raises(ResourceLimit) as caught:
        graph.load(source, "append", index=False, engine="local")
    assert source.partition("=")[2] in str(caught.value)
    assert EXPANSION_FLOOR_SETTING in str(caught.value)
    return caught.value


@pytest.mark.case("surfaces", 247)
def test_a_number_of_nulls_is_refused_before_any_row_is_made(graph: Graph, tmp_path: Path) -> None:
    path = tmp_path / "nulls.arrow"
    write_arrow(path, pa.record_batch([nulls(10**10)], names=["text"]))

    assert refuse(graph, f"Loose={path}").actual >= 10**10


@pytest.mark.case("surfaces", 247)
@pytest.mark.parametrize("kind", ARROWS)
def test_values_that_stand_once_and_count_often_are_refused_before_they_are_copied(
    graph: Graph, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "people.arrow"
    column = ARROWS[kind]()
    name = "tags" if "list" in kind else "group"
    write_arrow(path, pa.record_batch([names(600), column], names=["name", name]))
    taken = pa.total_allocated_bytes()

    error = refuse(graph, f"Person={path}")

    assert error.actual >= 600 * MEGABYTE
    assert pa.total_allocated_bytes() - taken < 20 * MEGABYTE


@pytest.mark.case("surfaces", 247)
@pytest.mark.parametrize("store_schema", [True, False])
def test_parquet_that_repeats_a_text_is_refused(graph: Graph, tmp_path: Path, store_schema: bool) -> None:
    path = tmp_path / "people.parquet"
    table = pa.table({"name": names(600), "group": repeated(600, LONG)})
    pq.write_table(table, path, compression="zstd", store_schema=store_schema)

    assert refuse(graph, f"Person={path}").actual >= 600 * MEGABYTE


@pytest.mark.case("surfaces", 247)
@pytest.mark.parametrize("kind", ["delta", "list", "runs"])
def test_parquet_is_counted_by_what_it_holds_and_not_by_what_its_foot_says(
    graph: Graph, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(EXPANSION_FLOOR_SETTING, "5000000")
    path = tmp_path / "people.parquet"
    text = "x" * 100_000
    if kind == "runs":
        table = pa.table(
            {"age": pa.array(np.zeros(MEGABYTE, dtype=np.int64)), "name": repeated(MEGABYTE, names(1))}
        )
    else:
        values = [[text]] * 200 if kind == "list" else [text] * 200
        table = pa.table({"name": names(200), "tags" if kind == "list" else "group": values})
    encodings = {"group": "DELTA_BYTE_ARRAY", "name": "PLAIN"} if kind == "delta" else None
    pq.write_table(
        table, path, use_dictionary=encodings is None, column_encoding=encodings, compression="zstd"
    )
    foot = pq.read_metadata(path)
    assert foot.row_group(0).total_byte_size < 5_000_000

    assert refuse(graph, f"Person={path}").limit == 5_000_000


@pytest.mark.case("surfaces", 247)
def test_the_tasks_of_a_cluster_count_in_the_same_way(graph: Graph, tmp_path: Path) -> None:
    path = tmp_path / "people.arrow"
    write_arrow(path, pa.record_batch([names(600), repeated(600, LONG)], names=["name", "group"]))
    source = SourceInput(str(path), Format.ARROW, table_key="node:Person")
    limits = read_limits()
    (slice_,) = plan_slices([source], target_bytes=2**40, limits=limits)

    with pytest.raises(ResourceLimit):
        list(read_slice(slice_, graph.catalog, make_id=lambda: "x", log=ViolationLog(), limits=limits))


def test_texts_that_could_grow_are_kept_as_dictionaries_or_read_in_small_batches(tmp_path: Path) -> None:
    def reading(**columns: Any) -> PackedTexts:  # noqa: ANN401 - any columns
        path = tmp_path / "x.parquet"
        pq.write_table(pa.table(columns), path)
        return packed_texts(SourceInput(str(path), Format.PARQUET), [0])

    rows = 70_000
    long = pa.array(["x" * 9_000])
    lists = pa.ListArray.from_arrays(pa.array(np.arange(rows + 1), pa.int32()), repeated(rows, long))
    assert reading(name=names(rows)) == PackedTexts()
    assert reading(name=names(10), group=repeated(10, long)) == PackedTexts()
    assert reading(name=names(rows), group=repeated(rows, long)) == PackedTexts(("group",))
    assert reading(name=names(rows), tags=lists).batch_rows == 64


def test_dictionaries_of_parquet_are_loaded_as_texts(graph: Graph, tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    groups = ["red", "blue", None, ""] * 3_000
    pq.write_table(pa.table({"name": names(12_000), "group": groups}), path)

    graph.load(f"Person={path}", "overwrite", index=False)

    table = graph.table("Person")
    found = dict(zip(table["name"].to_pylist(), table["group"].to_pylist(), strict=True))
    assert found == dict(zip(names(12_000).to_pylist(), groups, strict=True))


@pytest.mark.case("surfaces", 247)
@pytest.mark.parametrize("error", [MemoryError, pa.ArrowMemoryError])
def test_memory_that_runs_out_is_an_error_of_the_input(error: type[Exception]) -> None:
    said = pytest.raises(BadRequest, match=r"people\.arrow takes more memory than there is")

    with said, within_memory("people.arrow"):
        raise error


@pytest.mark.case("surfaces", 247)
def test_a_table_in_memory_that_has_no_place_is_an_error_of_the_input(graph: Graph) -> None:
    with pytest.raises(BadRequest, match="takes more memory than there is"):
        graph.load({"Loose": pa.table({"text": nulls(2**60)})}, "append", index=False)


def test_plain_values_count_as_what_they_are() -> None:
    table = pa.table({"a": pa.array([1, 2, 3], pa.int64()), "b": ["x", "yy", None]})

    assert expanded_bytes(table) == 3 * 8 + table.nbytes
