"""Tables and the manifest on an object store: the same outcomes, and no files to sync."""

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from moto.server import ThreadedMotoServer

from omnigraph.core.errors import AlreadyExistsError, CommitConflict, RowLevelCasContention, StorageError
from omnigraph.storage.control.durability import Durability
from omnigraph.storage.control.object_store import open_adapter
from omnigraph.storage.control.uri import GraphRoot
from omnigraph.storage.files.dataset_file import remove_transactions
from omnigraph.storage.tables.manifest_table import ManifestTable
from omnigraph.storage.tables.residual import InlineCommitResidual
from omnigraph.storage.tables.stage import IndexRequest, TableStager
from omnigraph.storage.tables.table import TableAddress, TableStore
from tests.support.s3 import new_root, settings_of
from tests.support.tables import SCHEMA, names, put_rows, rows

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

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
        "config",
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


def keyed(*keys: str) -> pa.Table:
    """Return rows of a manifest."""
    return rows(keys).rename_columns(["object_id", "rank"])


def test_the_manifest_is_fenced(root: GraphRoot) -> None:
    manifest = ManifestTable(TableStore(root.storage_options))
    address = TableAddress(f"{root.uri}/__manifest")
    head = keyed("head")
    manifest.create(address, head, {"stamp": "4"})
    first, second = manifest.open_fresh(address), manifest.open_fresh(address)
    version = put_rows(manifest, first, head)

    with pytest.raises(RowLevelCasContention):
        put_rows(manifest, second, head)
    with pytest.raises(AlreadyExistsError):
        manifest.create(address, head, {})

    assert version == manifest.latest_version(address) == 2
    assert manifest.files_of(address, 2) == ()


class Requests:
    """What a server is asked, by kind; it stands between the server and its application."""

    def __init__(self, application: "WSGIApplication") -> None:
        self._application, self._made = application, Counter[str]()

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        kind = "LIST" if method == "GET" and "list-type" in environ["QUERY_STRING"] else method
        self._made[f"{kind} {'data' if '/data/' in path else 'rest'}"] += 1
        return self._application(environ, start_response)

    def taken(self) -> dict[str, int]:
        """Return the requests since the last call."""
        made, self._made = self._made, Counter[str]()
        return dict(made)


@pytest.mark.case("engine", 435)
def test_a_publish_asks_the_same_of_a_store_at_any_number_of_fragments(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    for name, value in settings_of(endpoint).items():
        monkeypatch.setenv(name, value)
    root = new_root(endpoint)
    manifest, address = (
        ManifestTable(TableStore(root.storage_options)),
        TableAddress(f"{root.uri}/__manifest"),
    )
    manifest.create(address, keyed("head", "genesis"), {"stamp": "4"})
    place = 0
    requests = server._server.app = Requests(server._server.app)  # type: ignore[union-attr]
    asked = []
    for number in range(32):
        handle = manifest.open_fresh(address)
        assert len(handle.fragment_ids) == number + 1
        requests.taken()
        rows = keyed("head", f"row {number}")
        made = manifest.publish(handle, rows, commit_id=f"{number}", replaced=[place])
        asked.append(requests.taken())
        place = max(made.fragment_ids) << 32
    server.stop()

    # Rows, deletion, transaction and version; one look for versions in between.
    assert asked == [{"PUT data": 1, "PUT rest": 3, "LIST rest": 1}] * 32


@pytest.mark.case("engine", 451)
@pytest.mark.case("engine", 455)
def test_long_row_ids_are_objects_and_old_transactions_go(root: GraphRoot) -> None:
    bench = Bench(root)
    bench.commit(bench.stager.stage_append(bench.store.open_head(bench.address), rows(names(4_000))))
    for first in (0, 3):
        source = rows(names(4_000)[first::7], first + 1)
        bench.commit(bench.stager.stage_upsert(bench.store.open_head(bench.address), source))
    InlineCommitResidual(bench.store).compact_files(bench.address, target_rows=2_000)

    head = TableStore(root.storage_options).open_head(bench.address)
    remove_transactions(head, below=4)

    content = head._dataset.to_table(columns=["id", "_rowid", "_row_created_at_version"]).sort_by("id")
    assert content["_rowid"].to_pylist() == list(range(4_000))
    assert set(content["_row_created_at_version"].to_pylist()) == {2}
    kept = [part.metadata.to_json()["row_id_meta"] for part in head._dataset.get_fragments()]
    assert kept[1:] == ["Column"]
    left = open_adapter(root, Durability.PROCESS).list_dir("nodes/table/_transactions")
    assert min(int(name.partition("-")[0]) for name in left) == 4
    operations = [bench.store.transaction_info(bench.address, number).operation for number in range(1, 5)]
    assert operations == ["overwrite", "merge", "update", "update"]
