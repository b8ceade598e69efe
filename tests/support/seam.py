"""The one way from a test to what lies below the public verbs.

A test that needs more than a `Graph` shows comes through here: `internals` gives what the verbs work on, and
`patched` replaces one of the names listed below. The list says which names of the engine tests depend on.
"""

import importlib

import pytest

from omnigraph.graph.graph import Graph
from omnigraph.operations.context import OpenGraph

# Limits that are too large to be reached in a test.
LIMITS = frozenset(
    {
        "omnigraph.bulk.export.sort.BLOCK_BYTES",
        "omnigraph.bulk.export.sort.RUNS_MAX",
        "omnigraph.bulk.load.tasks.MAX_FRAGMENT_ROWS",
        "omnigraph.changes.table_changes.CHUNK_BYTES",
        "omnigraph.client.http.DOCUMENT_BYTES_MAX",
        "omnigraph.commit.multi_step.MAX_FRAGMENT_ROWS",
        "omnigraph.commit.multi_step.MERGE_CHUNK_BYTES",
        "omnigraph.commit.publish.FRAGMENTS_MAX",
        "omnigraph.commit.recovery.quiet.WAIT_S",
        "omnigraph.commit.table_locks.TABLE_LOCK_WAIT_S",
        "omnigraph.embedding.transport.REPLY_BYTES_MAX",
        "omnigraph.exec.dense.columns.PATCHES_MAX",
        "omnigraph.exec.dense.derived.SMALL_TABLE",
        "omnigraph.exec.dense.ids.TAIL_FREE",
        "omnigraph.exec.dense.ids.TAIL_MAX_SHARE",
        "omnigraph.exec.dense.columns.NUMBERS_MAX",
        "omnigraph.exec.dense.vectors.PATCHES_MAX",
        "omnigraph.exec.operators.condition.ROWS_AT_ONCE",
        "omnigraph.exec.operators.scan.TAKE_SHARE",
        "omnigraph.exec.search.vectors.FIXED_PARTITIONS",
        "omnigraph.merge.rows.MERGE_CHUNK_ROWS",
        "omnigraph.operations.group.GROUP_MEMBERS_MAX",
        "omnigraph.operations.group.GROUP_ROWS_MAX",
        "omnigraph.operations.background.SMALL_FRAGMENTS_MAX",
        "omnigraph.operations.clone.clone.ATTEMPTS_MAX",
        "omnigraph.operations.index_building.SESSION_ROWS_MIN",
        "omnigraph.operations.layout.COMPACTION_TARGET_ROWS",
        "omnigraph.operations.load.spark.SLICE_BYTES_MAX",
        "omnigraph.operations.load.spark.SLICE_BYTES_MIN",
        "omnigraph.operations.upkeep.UNCOVERED_ROWS_MAX",
        "omnigraph.operations.verify.indexes.FEW_VALUES",
        "omnigraph.operations.verify.indexes.LOOKUPS_MAX",
        "omnigraph.operations.verify.rows.BATCH_ROWS",
        "omnigraph.operations.upkeep.UPKEEP_INTERVAL",
        "omnigraph.server.events.POLL_S",
        "omnigraph.server.events.RECENT_MAX",
        "omnigraph.server.events.STREAMS_MAX",
        "omnigraph.storage.control.object_store.CONTROL_BYTES_MAX",
        "omnigraph.storage.control.object_store.RETRIES_MAX",
        "omnigraph.storage.tables.carried.INLINE_ROW_IDS_BYTES_MAX",
        "omnigraph.storage.tables.layout.COMPACTION_TARGET_ROWS",
        "omnigraph.storage.tables.layout.MAX_FRAGMENT_ROWS",
        "omnigraph.storage.tables.recent_publishes.BYTES_MAX",
        "omnigraph.storage.tables.recent_publishes.FILES_MAX",
        "omnigraph.storage.tables.recent_publishes.FILE_BYTES_MAX",
        "omnigraph.storage.tables.recent_publishes.ROWS_MAX",
        "omnigraph.storage.tables.rows.FEW_VALUES",
        "omnigraph.storage.tables.rows.LIST_VALUES_MAX",
        "omnigraph.storage.tables.residual.SMALL_FRAGMENT_ROWS",
        "omnigraph.storage.tables.shapes.MAX_FRAGMENT_ROWS",
        "omnigraph.storage.tables.table.HANDLES_MAX",
        "omnigraph.storage.tables.task_notes.WAIT_S",
        "omnigraph.storage.versions.difference.ALONG_ROWS_MAX",
        "omnigraph.storage.versions.difference.TRANSACTIONS_MAX",
        "omnigraph.validate.records.BLOCK_BYTES",
        "omnigraph.validate.table_questions.KEYS_MAX",
    }
)
# Time as the engine sees it.
CLOCKS = frozenset(
    {
        "omnigraph.exec.rows.monotonic",
        "omnigraph.operations.retry.boot_clock",
        "omnigraph.storage.versions.newest.boot_clock",
        "omnigraph.commit.recovery.sweep._pause",
        "omnigraph.commit.recovery.sweep.boot_clock",
    }
)
# Calls that a test counts, refuses or interrupts, where no failpoint is.
CALLS = frozenset(
    {
        "omnigraph.bulk.connect.java._bundled_java",
        "omnigraph.catalog.arrow_schema.UNCOMPRESSED",
        "omnigraph.catalog.identity._kept_fill",
        "omnigraph.client.warm.place.peer_uid",
        "omnigraph.client.warm.reach.__version__",
        "omnigraph.core.cancellation.Cancellation.ask",
        "omnigraph.exec.rows.Budget.check",
        "omnigraph.bulk.indexes.parts_wanted",
        "omnigraph.operations.index_building.build_on_executors",
        "omnigraph.operations.index_building.start_spark",
        "omnigraph.operations.schema.spark.start_spark",
        "omnigraph.exec.dense.derived.Derived.cached_column",
        "omnigraph.exec.dense.ids.hash_strings",
        "omnigraph.exec.dense.ids.hash_text",
        "omnigraph.exec.operators.scan._pushed",
        "omnigraph.graph.graph.Graph.schema",
        "omnigraph.history.branch_copies._control_of",
        "omnigraph.history.branches.Branches.all",
        "omnigraph.history.commits._decode",
        "omnigraph.history.lineage.metadata_members",
        "omnigraph.merge.rows.RowReader.fetch",
        "omnigraph.merge.rows.take_rows",
        "omnigraph.merge.three_way.lie_alike",
        "omnigraph.operations.branches.mint_ref",
        "omnigraph.operations.member.MutationCall.prepare",
        "omnigraph.operations.optimize.plan_table",
        "omnigraph.server.arrow_answer.arrow_pieces",
        "omnigraph.server.route.read_json_body",
        "omnigraph.server.routes.events.missed_commits",
        "omnigraph.storage.control.local_files.LocalFiles.delete",
        "omnigraph.storage.control.local_files.LocalFiles.read_text_if_exists",
        "omnigraph.storage.control.object_store.ObjectStore.write_text_if_absent",
        "omnigraph.storage.search.analysis._batches",
        "omnigraph.storage.tables.cell.data_file_name",
        "omnigraph.storage.tables.manifest_table.ManifestTable.open_fresh",
        "omnigraph.storage.tables.manifest_table.ManifestTable.read",
        "omnigraph.storage.tables.table.TableStore.exists",
        "omnigraph.storage.tables.table.TableStore.latest_version",
        "omnigraph.storage.tables.table.TableStore.latest_versions",
        "omnigraph.storage.tables.table.TableStore.list_refs",
        "omnigraph.storage.versions.newest._walk",
        "omnigraph.validate.records._parse",
    }
)


def internals(graph: Graph) -> OpenGraph:
    """Return what the verbs of a graph work on: its parts, its publisher, its states."""
    return graph._graph


def patched(patch: pytest.MonkeyPatch, name: str, value: object) -> None:
    """Replace a listed name of the engine until the patch is undone."""
    assert name in LIMITS | CLOCKS | CALLS, f"{name} is not listed in tests/support/seam.py"
    patch.setattr(name, value)


def present(name: str) -> bool:
    """Return whether the engine has a name: an attribute of a module, or of a class in one."""
    module, _, attribute = name.rpartition(".")
    try:
        holder = importlib.import_module(module)
    except ModuleNotFoundError:
        outer, _, class_name = module.rpartition(".")
        holder = getattr(importlib.import_module(outer), class_name)
    return hasattr(holder, attribute)
