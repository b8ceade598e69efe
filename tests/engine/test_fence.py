"""The fence of the manifest: of two publishes on one version that share a key, one lands.

Four conditions hold it up, and each of them can be lost without a word. Here each is broken on a real graph,
to show that the guard would notice.
"""

import datetime as dt
from collections.abc import Callable, Sequence
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from omnigraph.core.errors import RowLevelCasContention
from omnigraph.graph.graph import Graph
from omnigraph.history.manifest_rows import head_row, rows_table
from omnigraph.storage.tables.handle import TableAddress
from omnigraph.storage.tables.manifest_table import ManifestTable
from omnigraph.storage.tables.table import TableStore
from tests.support.engine import chain, manifest_path, reopen
from tests.support.queries import mutation

pytestmark = pytest.mark.case("engine", 288)

KEY = "graph_head:probe"


def publish(graph: Graph, count: int) -> None:
    """Publish a number of commits, each with a fragment of its own."""
    for number in range(count):
        graph.mutate(mutation(f'insert Person {{ name: "p{number}" }}'))


def probe_rows(commit_id: str, like: pa.Schema) -> pa.Table:
    """Return one head row, as a publish on a branch of its own would write it."""
    return rows_table([head_row("probe", commit_id, None)]).cast(like)


def engine_merge(path: Path, base: int, commit_id: str) -> None:
    """Publish as the engine does, on a handle of some version."""
    table, address = ManifestTable(TableStore()), TableAddress(str(path))
    handle = table.open_fresh(address)
    object.__setattr__(handle, "version", base)
    table.merge(handle, probe_rows(commit_id, handle._dataset.schema))


def heads(path: Path) -> list[str]:
    """Return the probe's head rows: two of them, and the fence was down."""
    found: Sequence[object] = lance.dataset(str(path)).to_table()["object_id"].to_pylist()
    return [str(key) for key in found if key == KEY]


def is_fenced(path: Path, merge: Callable[[Path, int, str], None] = engine_merge) -> bool:
    """The guard: publish one key twice on one version, and see whether the second is refused."""
    base = lance.dataset(str(path)).version
    merge(path, base, "first")
    try:
        merge(path, base, "second")
    except (RowLevelCasContention, OSError):
        assert heads(path) == [KEY]
        return True
    assert heads(path) == [KEY, KEY]
    return False


def raw_merge(on: str | list[str], *, use_index: bool) -> Callable[[Path, int, str], None]:
    """Return a publish that leaves out something the engine's has."""

    def merge(path: Path, base: int, commit_id: str) -> None:
        dataset = lance.dataset(str(path), version=base)
        builder = dataset.merge_insert(on).when_matched_update_all().when_not_matched_insert_all()
        builder.use_index(use_index).conflict_retries(0).execute(probe_rows(commit_id, dataset.schema))

    return merge


def test_the_fence_holds_on_a_fresh_graph(graph: Graph) -> None:
    assert is_fenced(manifest_path(graph))


def test_the_fence_holds_after_publishes_and_a_compaction(graph: Graph) -> None:
    publish(graph, 70)
    path = manifest_path(graph)
    assert len(lance.dataset(str(path)).get_fragments()) < 70

    assert is_fenced(path)
    assert len(chain(reopen(graph))) > 70


def test_without_the_annotation_of_the_key_the_guard_fails(graph: Graph) -> None:
    path = manifest_path(graph)
    rows = lance.dataset(str(path)).to_table()
    bare = pa.schema([field.remove_metadata() for field in rows.schema])
    lance.write_dataset(rows.cast(bare), str(path), mode="overwrite")

    assert not is_fenced(path)


def test_with_another_merge_key_the_guard_fails(graph: Graph) -> None:
    assert not is_fenced(manifest_path(graph), raw_merge(["object_id", "object_type"], use_index=False))


def test_with_an_index_that_is_used_the_guard_fails(graph: Graph) -> None:
    path = manifest_path(graph)
    lance.dataset(str(path)).create_scalar_index("object_id", "BTREE")

    assert not is_fenced(path, raw_merge("object_id", use_index=True))


@pytest.mark.case("engine", 341)
def test_with_a_version_trimmed_between_handle_and_head_the_guard_fails(graph: Graph) -> None:
    publish(graph, 3)
    path = manifest_path(graph)
    store = ManifestTable(TableStore())
    stale = store.open_fresh(TableAddress(str(path)))
    engine_merge(path, stale.version, "first")
    publish(reopen(graph), 2)
    lance.dataset(str(path)).cleanup_old_versions(older_than=dt.timedelta(0), retain_versions=1)

    dataset = stale._dataset
    builder = dataset.merge_insert("object_id").when_matched_update_all().when_not_matched_insert_all()
    builder.use_index(False).conflict_retries(0).execute(probe_rows("second", dataset.schema))

    assert heads(path) == [KEY, KEY]
