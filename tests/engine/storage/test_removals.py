"""Every place that removes something, and what allows it to: a new one is written down here, or fails.

What a durable record may name is removed in three ways only: by an attempt that owns it (it was never handed
over, or came back with a proof that nothing happened), by recovery or cleanup, which decide from manifest and
sidecars, or with the branch that somebody asked to delete.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph.commit import outcome, section

PACKAGE = Path(omnigraph.__file__).parent
REMOVING = frozenset(
    {
        "discard",
        "delete",
        "delete_prefix",
        "drop",
        "drop_refs",
        "drop_unpublished_forks",
        "move_to_quarantine",
        "remove",
        "rmdir",
        "rmtree",
        "unlink",
    }
)
# Calls of these names that remove nothing from a disk or a store.
IN_MEMORY = frozenset(
    {
        "agents/langchain/vector_store.py OmnigraphVectorStore.delete",
        "agents/llamaindex/chat_store.py OmnigraphChatStore.delete_message",
        "agents/llamaindex/vector_store.py OmnigraphNodeStore._delete",
        "bulk/load/questions.py SparkQuestions._folded",
        "bulk/load/questions.py SparkQuestions._later",
        "changes/changed_ids.py _without_moved",
        "changes/changed_ids.py _paired",
        "commit/recovery/pending.py running",
        "exec/mutation.py execute_mutation",
        "operations/embed/run.py EmbedRun.attempt",
        "operations/group.py WriteGroup._lose",
        "operations/turns.py Turns._end",
        "core/cancellation.py Cancellation.waking",
        "plan/choose.py _Arrangement.follow",
        "plan/frontier.py Frontier.bind",
        "plan/frontier.py Frontier.take_closing",
        "plan/frontier.py Frontier.take_keys",
        "plan/frontier.py Frontier.take_negation",
        "plan/frontier.py Frontier.take_tests",
        "storage/control/locks.py _Descriptor.close",
    }
)
ALLOWED = {
    # What an attempt made and never handed over, or has back with a `NoEffect`.
    "commit/write.py _drop": "forks that are the attempt's own",
    "operations/engine.py discard_task_files": "files less those that were handed over",
    "operations/index_building.py _remove_used": "parts of indexes that were put together",
    "operations/embed/run.py EmbedRun.discard": "files less those that were handed over",
    "operations/embed/embed.py embed": "calls the one above, behind the run",
    # The sidecar, by its writer: on a proof, or behind the publish.
    "commit/section.py _Section.phases": "proved without effect, or published",
    "commit/section.py _Section.withdraw": "proved without effect, and no healer's any more",
    "commit/section.py _Section.write": "the file that could not be written",
    "commit/section.py _Section.delete": "carries it out",
    # Recovery and cleanup, from manifest and sidecars.
    "commit/recovery/outcome.py complete": "published and recorded",
    "commit/recovery/outcome.py _reached_by_rival": "published by a rival, and recorded",
    "commit/recovery/sweep.py _process": "calls what records a branch that is gone",
    "commit/recovery/quarantine.py _move": "moves, and removes nothing",
    "commit/reclaim.py drop_unpublished_forks": "named by no pin and no other sidecar",
    "commit/reclaim.py reclaim_orphaned_forks": "named by nothing, and old",
    "commit/reclaim.py drop_refs": "carries it out for the callers named here",
    "commit/reclaim.py drop_made_tables": "tables that an attempt made, and no branch knew",
    # A copy, which is no graph before it is whole.
    "operations/clone/clone.py _copied": "the journal of a copy that is whole",
    "operations/clone/clone.py _end_others": "the journal of a copy that is whole",
    "operations/clone/clone.py _ended_before": "the journal of a copy that is whole",
    "operations/clone/clone.py _take": "the claim of an init that lost its place",
    "storage/control/file_copy.py _Disk.write": "a temporary file",
    "commit/schema_lock.py _release": "its own lock",
    "history/migrations.py v2_to_v3": "staging branches of runs, which no build uses any more",
    "operations/cleanup/tables.py _remove": "refs that nothing names and that are old, noted versions",
    "operations/cleanup/tables.py _clean_folder": "a table that no branch has, all of it old and noted",
    "operations/cleanup/cleanup.py _drop_manifest_refs": "refs that nothing names and that are old",
    "operations/cleanup/litter.py clean_litter": "what an age or a format long gone proves to be litter",
    "operations/cleanup/litter.py remove_dead_loads": "of a load silent for the grace period",
    # A branch, on request; and one whose creation has failed.
    "operations/branches.py create_branch": "a branch that nobody was told of",
    "operations/branches.py _end": "calls what ends it",
    "commit/recovery/ending.py _has_ended": "asked for, and fenced against publishes",
    "operations/branches.py _let_go": "what the deleted branch alone had",
    "operations/merge/merge.py _delete_source": "asked for",
    "history/branches.py Branches.delete": "carries it out",
    "history/branches.py Branches.delete_unreadable": "carries it out",
    "storage/damage/restored_version.py _put": "a temporary file",
    "commit/recovery/restore.py restore_quarantined": "what was put back",
    # An init that did not come to a manifest.
    "operations/init.py _create": "the claim of this init",
    "operations/init.py _write_contract": "what this init wrote, before there is a manifest",
    # Files that no graph names: temporary ones, locks, caches, probes, notes of dead processes.
    "storage/control/writers.py Writer.close": "its own sign of life",
    "storage/control/writers.py _make_on_probation": "the sign of life of a writer whose store was refused",
    "storage/control/writers.py Writer._keep_alive": "the same, without the lease",
    "storage/control/writers.py Watch.tidy": "signs of life of writers that have ended",
    "core/regular_file.py write_new": "what stands in the place of a temporary file",
    "bulk/export/sort.py _Runs.add": "runs of an export that have become one",
    "bulk/files.py remove_folder": "a folder of temporary files",
    "bulk/files.py _whole_path": "a temporary file",
    "bulk/connect/java.py _shim": "a temporary file",
    "bulk/connect/session.py _remove_scratch": "a folder of temporary files",
    "bulk/connect/leftovers.py living_token": "the token of this process",
    "bulk/connect/leftovers.py _remove_folder": "what a dead driver left",
    "cli/commands/fmt.py _replace": "a temporary file",
    "server/spool.py SpooledBody.remove": "a temporary file",
    "server/spool.py spooled": "a temporary file",
    "cli/warm.py _log_file": "the log of a warm server that has ended",
    "commit/table_locks.py remove_table_locks": "lock files of a deleted branch",
    "config/credentials.py _replace": "a temporary file",
    "exec/dense/disk.py _remove": "a cache",
    "storage/control/locks.py FileLock._unlink": "a lock file",
    "storage/control/locks.py WriterLock._discard": "a lock file",
    "storage/control/locks.py probe_flock": "a probe",
    "storage/control/probe.py probe_store": "a probe",
    "storage/files/dataset_file.py remove_transactions": "copies of what version files hold",
    "storage/files/dataset_file.py _remove_objects": "the same, on an object store",
    # The stores themselves.
    "server/warm/serve.py _WarmServer.run": "its own socket",
    "storage/control/local_files.py LocalFiles.delete": "carries it out",
    "storage/control/local_files.py LocalFiles.delete_if_match": "carries it out",
    "storage/control/local_files.py LocalFiles.discard": "carries it out",
    "storage/control/local_files.py LocalFiles._staged": "a temporary file",
    "storage/control/local_files.py _remove_tree": "carries it out",
    "storage/control/object_store.py ObjectStore.delete": "carries it out",
    "storage/control/object_store.py ObjectStore.discard": "carries it out",
    "storage/control/object_store.py ObjectStore.delete_prefix": "carries it out",
    "storage/control/object_store.py remove_objects": "carries it out for cleanup",
    "storage/control/stored_files.py remove_files": "carries it out for cleanup",
    "storage/control/stored_files.py remove_emptied": "folders that cleanup has emptied",
    "storage/tables/refs.py RefStore.drop": "carries it out",
    "storage/tables/refs.py _remove_stray_folder": "an empty folder that the library made beside the graph",
}


@pytest.mark.case("engine", 369)
def test_every_removal_is_one_that_is_written_down() -> None:
    found = {place for path in PACKAGE.rglob("*.py") for place in _places(path)} - IN_MEMORY

    assert found - ALLOWED.keys() == set(), "a new place removes something: what allows it to?"
    assert ALLOWED.keys() - found == set(), "these are gone: take them off the list"


@pytest.mark.case("engine", 369)
def test_only_the_commit_section_says_that_nothing_happened() -> None:
    made = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and _name(node) == outcome.NoEffect.__name__
    }

    assert made == {str(Path(section.__file__).relative_to(PACKAGE))}


def _places(path: Path) -> Iterator[str]:
    file = path.relative_to(PACKAGE)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for qualified, node in _calls(tree, ""):
        if _name(node) in REMOVING:
            yield f"{file} {qualified}"


def _calls(node: ast.AST, qualified: str) -> Iterator[tuple[str, ast.Call]]:
    for child in ast.iter_child_nodes(node):
        within = qualified
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            within = f"{qualified}.{child.name}" if qualified else child.name
        if isinstance(child, ast.Call):
            yield within, child
        yield from _calls(child, within)


def _name(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
