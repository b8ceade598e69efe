"""Tables and the manifest on an object store: the same outcomes, and no files to sync."""

import pytest

from omnigraph.core.errors import AlreadyExistsError, CommitConflict, RowLevelCasContention, StorageError
from omnigraph.storage.control.uri import GraphRoot
from omnigraph.storage.tables.manifest_table import ManifestTable
from omnigraph.storage.tables.residual import InlineCommitResidual
from omnigraph.storage.tables.stage import IndexRequest, TableStager
from omnigraph.storage.tables.table import TableAddress, TableStore
from tests.support.tables import SCHEMA, rows

pytestmark = pytest.mark.slow


class Bench:
    """A table on the store."""

    def __init__(self, root: GraphRoot) -> None:
        self.store = TableStore(root.storage_options)
        self.stager = TableStager(self.store)
        self.address = TableAddress(f"{root.uri}/nodes/table")
        self.commit(self.stager.stage_create_table(self.address, SCHEMA))

    def commit(self, staged: object) -> int:
        committed = self.stager.commit_staged(staged, operation_id="O", writer_kind="load")  # type: ignore[arg-type]
        assert committed.files == ()
        return committed.version


def test_a_table_is_written_read_and_looked_after(root: GraphRoot) -> None:
    bench = Bench(root)
    for key in ["a", "b", "c"]:
        staged = bench.stager.stage_append(bench.store.open_head(bench.address), rows([key]))
        assert staged.files == ()
        bench.commit(staged)
    index, _ = bench.stager.stage_create_indices(
        bench.store.open_head(bench.address), [IndexRequest("id", "btree")]
    )
    bench.commit(index)
    bench.commit(bench.stager.stage_upsert(bench.store.open_head(bench.address), rows(["a", "d"], 7)))

    outcome = InlineCommitResidual(bench.store).compact_files(bench.address, target_rows=100)

    head = bench.store.open_head(bench.address)
    assert outcome.files == ()
    assert bench.store.existing_ids(head, ["a", "d", "x"]) == {"a", "d"}
    versions = range(1, head.version + 1)
    operations = [bench.store.transaction_info(bench.address, version).operation for version in versions]
    assert operations == [
        "overwrite",
        "merge",
        "update",
        "update",
        "create_index",
        "update",
        "reserve",
        "rewrite",
    ]


def test_a_stale_write_is_refused(root: GraphRoot) -> None:
    bench = Bench(root)
    base = bench.store.open_head(bench.address)
    first, second = (bench.stager.stage_append(base, rows([key])) for key in "xy")
    bench.commit(first)

    with pytest.raises(CommitConflict):
        bench.commit(second)
    with pytest.raises(StorageError) as missing:
        bench.store.open_at(bench.address, 9)

    assert missing.value.kind == "not_found"


def test_the_manifest_is_fenced(root: GraphRoot) -> None:
    manifest = ManifestTable(TableStore(root.storage_options))
    address = TableAddress(f"{root.uri}/__manifest")
    keyed = rows(["head"]).rename_columns(["object_id", "rank"])
    manifest.create(address, keyed, {"stamp": "4"})
    first, second = manifest.open_fresh(address), manifest.open_fresh(address)
    version = manifest.merge(first, keyed)

    with pytest.raises(RowLevelCasContention):
        manifest.merge(second, keyed)
    with pytest.raises(AlreadyExistsError):
        manifest.create(address, keyed, {})

    assert version == manifest.latest_version(address) == 2
    assert manifest.files_of(address, 2) == ()
