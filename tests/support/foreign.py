"""Something other than Omnigraph that commits to the tables of a graph, with Lance alone."""

from pathlib import Path
from typing import Any, cast

import lance
import pyarrow as pa
from lance import LanceDataset, LanceOperation

from omnigraph.graph.graph import Graph
from omnigraph.storage.files.version_file import version_file_name
from omnigraph.storage.tables.handle import ref_path


def foreign(graph: Graph, table_key: str, branch: str = "main") -> LanceDataset:
    """Return a table as another program opens it, at its newest version."""
    entry = graph.snapshot(branch).entry(table_key)
    return lance.dataset(f"{graph.uri}/{ref_path(entry.location, entry.owner)}")


def add_rows(dataset: LanceDataset, **columns: list[object]) -> None:
    """Append rows; columns that are not given are null."""
    count = len(next(iter(columns.values())))
    arrays = [pa.array(columns.get(field.name, [None] * count), field.type) for field in dataset.schema]
    rows = pa.Table.from_arrays(arrays, schema=dataset.schema)
    lance.write_dataset(rows, dataset.uri, mode="append")


def compact(dataset: LanceDataset) -> None:
    """Rewrite small fragments as one; no row changes."""
    dataset.optimize.compact_files()


def claim_everything(dataset: LanceDataset, name: str) -> None:
    """Commit an index that says it covers every fragment, and was built over the first one alone."""
    first, *_ = (fragment.fragment_id for fragment in dataset.get_fragments())
    column = name.partition("__")[0]
    index = dataset.create_index_uncommitted(column, "BTREE", name=name, fragment_ids=[first])
    index.fragment_ids = cast("Any", {fragment.fragment_id for fragment in dataset.get_fragments()})
    operation = LanceOperation.CreateIndex([index], [])
    LanceDataset.commit(dataset, operation, read_version=dataset.version)


def remove_version(graph: Graph, table_key: str, version: int) -> None:
    """Remove the file of one version of a table."""
    (Path(graph.uri) / graph.snapshot().entry(table_key).location / version_file_name(version)).unlink()


def alter_column(dataset: LanceDataset, path: str, **changes: object) -> None:
    """Change the type of a column, or whether it may be null."""
    alteration: Any = {"path": path, **changes}
    dataset.alter_columns(alteration)
