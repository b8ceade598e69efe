"""Lance itself, without the storage package in between: for the tests of what Lance does."""

from collections.abc import Sequence
from pathlib import Path

import lance
import pyarrow as pa
from lance import LanceDataset, LanceOperation, Transaction
from lance.fragment import FragmentMetadata, write_fragments

from tests.support.tables import rows


def new_dataset(directory: Path, ids: Sequence[str] = ("a", "b"), *, name: str = "raw") -> LanceDataset:
    """Return a dataset with some rows and the physical rules of the engine."""
    return lance.write_dataset(rows(ids), str(directory / name), enable_stable_row_ids=True)


def reopened(dataset: LanceDataset, version: int | None = None) -> LanceDataset:
    """Return an independent handle, at the newest version unless one is given."""
    return lance.dataset(dataset.uri, version=version)


def fragments_of(dataset: LanceDataset, table: pa.Table) -> list[FragmentMetadata]:
    """Write rows as fragments that nobody sees yet."""
    written = write_fragments(table, dataset)
    assert isinstance(written, list)
    return written


def anchored(dataset: LanceDataset, ids: Sequence[str], *, uuid: str | None = None) -> Transaction:
    """Return an update that adds rows and lists the first fragment as changed."""
    operation = LanceOperation.Update(
        removed_fragment_ids=[],
        updated_fragments=[dataset.get_fragments()[0].metadata],
        new_fragments=fragments_of(dataset, rows(ids)),
        update_mode="rewrite_rows",
    )
    transaction = Transaction(dataset.version, operation)
    if uuid is not None:
        transaction.uuid = uuid
    return transaction


def append(dataset: LanceDataset, ids: Sequence[str]) -> LanceDataset:
    """Commit a plain append, which rebases over anything compatible."""
    operation = LanceOperation.Append(fragments_of(dataset, rows(ids)))
    return LanceDataset.commit(dataset, operation, read_version=dataset.version, max_retries=0)


def publish(dataset: LanceDataset, table: pa.Table) -> None:
    """Do the fenced merge-insert of the manifest; it advances the handle."""
    (
        dataset.merge_insert("id")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .use_index(False)
        .conflict_retries(0)
        .execute(table)
    )


def ids_of(dataset: LanceDataset) -> list[str]:
    """Return the ids of all rows, sorted."""
    return sorted(str(value) for value in dataset.to_table(columns=["id"])["id"].to_pylist())
