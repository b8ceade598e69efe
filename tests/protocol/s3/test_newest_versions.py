"""Which version is the newest one in an object store, and what is published on it."""

import lance
import pyarrow as pa
import pytest

from omnigraph import INTERNAL_SCHEMA_VERSION
from omnigraph.commit.sidecar import RECOVERY_DIR
from omnigraph.core.clock import boot_clock
from omnigraph.core.errors import FormatVersionError, RecoveryRequired
from omnigraph.core.failpoint import failpoint
from omnigraph.graph.opening import open as open_graph
from omnigraph.history.manifest_rows import STAMP_KEY
from omnigraph.storage.control.object_store import ObjectStore
from omnigraph.storage.control.uri import GraphRoot
from omnigraph.storage.files.version_file import version_file_name
from omnigraph.storage.tables.table import TableAddress, TableStore
from omnigraph.storage.versions.newest import TRUSTED_S
from tests.support.proxy import StoreProxy, asked
from tests.support.s3 import new_root
from tests.support.seam import internals, patched
from tests.support.store_people import insert, persons

pytestmark = pytest.mark.slow  # starts a server


@pytest.mark.case("engine", 444)
def test_a_warm_handle_sees_every_commit_of_others(uri: str) -> None:
    with open_graph(uri, mode="ro") as reader, open_graph(uri) as writer:
        for number in range(3):
            insert(writer, f"p{number}")
            assert persons(reader) == 2 + number
        coordinator = internals(writer).parts.coordinator
        coordinator.manifest.compact(coordinator.address())
        assert persons(reader) == 4
        insert(writer, "folded")
        assert persons(reader) == 5


@pytest.mark.case("engine", 444)
def test_what_was_seen_long_ago_proves_nothing_in_a_store(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_graph(uri, mode="ro") as reader, open_graph(uri) as writer:
        assert persons(reader) == 1
        before = internals(reader).parts.coordinator.newest().version
        insert(writer, "bob")
        insert(writer, "cas")
        store = ObjectStore(GraphRoot.parse(uri))
        store.delete(f"__manifest/{version_file_name(before + 1)}")  # as a cleanup would, some time later
        later = boot_clock() + TRUSTED_S + 1
        patched(monkeypatch, "omnigraph.storage.versions.newest.boot_clock", lambda: later)

        assert persons(reader) == 3


@pytest.mark.case("engine", 444)
def test_versions_with_other_names_are_left_to_the_library(endpoint: str, proxy: StoreProxy) -> None:
    root = new_root(endpoint)
    address = TableAddress(root.child("nodes/old"))
    options = root.storage_options
    rows = pa.table({"x": [1]})
    lance.write_dataset(rows, address.uri, storage_options=options, enable_v2_manifest_paths=False)
    store = TableStore(options)
    assert store.open_head(address).version == 1

    lance.write_dataset(rows, address.uri, storage_options=options, mode="append")

    assert store.latest_version(address) == 2
    assert store.open_head(address).version == 2


def test_a_version_that_is_open_is_not_asked_for_again(endpoint: str, proxy: StoreProxy) -> None:
    root = new_root(endpoint)
    address = TableAddress(root.child("nodes/new"))
    lance.write_dataset(pa.table({"x": [1]}), address.uri, storage_options=root.storage_options)
    store = TableStore(root.storage_options)
    store.open_head(address)
    store.latest_version(address)

    found = asked(proxy, lambda: (store.latest_version(address), store.open_head(address)))

    assert [request.kind for request in found] == ["HEAD", "HEAD"]


@pytest.mark.case("engine", 447)
def test_a_publish_on_what_the_last_one_made_is_refused_behind_that_of_another(uri: str) -> None:
    with open_graph(uri) as one, open_graph(uri) as other:
        insert(one, "bob")
        rival = 'query m() { insert Filler { name: "rival" } }'
        rivals = [rival]

        def come_first() -> None:
            if rivals:  # the rival gets here too
                other.mutate(rivals.pop())

        with failpoint("write.post_finalize_pre_publisher", call=come_first):
            insert(one, "cid")

        assert persons(other) == 3
        assert other.table("Filler").num_rows == 1
        chain = [commit.graph_commit_id for commit in one.commits()]
        assert len(chain) == len(set(chain)) == 5
        parents = [commit.parent_commit_id for commit in one.commits()]
        assert parents[:-1] == chain[1:]


@pytest.mark.case("engine", 447)
def test_a_publish_above_the_stamp_of_a_newer_build_is_not_acknowledged(uri: str) -> None:
    with open_graph(uri) as graph, open_graph(uri, mode="ro") as other:
        insert(graph, "bob")
        migrated = internals(other).parts.coordinator

        def migrate() -> None:
            handle = migrated.manifest.open_fresh(migrated.address())
            migrated.manifest.stamp(handle, {STAMP_KEY: str(INTERNAL_SCHEMA_VERSION + 1)})

        with (
            failpoint("write.post_finalize_pre_publisher", call=migrate),
            pytest.raises(RecoveryRequired, match="format"),
        ):
            insert(graph, "cid")
        before = ObjectStore(GraphRoot.parse(uri)).list_dir(RECOVERY_DIR)

        with pytest.raises(FormatVersionError):
            graph.mutate('query m() { insert Filler { name: "next" } }')

        assert ObjectStore(GraphRoot.parse(uri)).list_dir(RECOVERY_DIR) == before
