"""The shapes of staged writes, by name, for tests that set one against another."""

from collections.abc import Callable

from omnigraph.storage.tables.stage import StagedWrite, TableStager
from omnigraph.storage.tables.table import SnapshotHandle
from tests.support.tables import SCHEMA, names, rows


def _delete(stager: TableStager, handle: SnapshotHandle, mark: str) -> StagedWrite:
    staged = stager.stage_delete(handle, ["a"])
    assert staged is not None, mark
    return staged


# Each takes the name of its writer, so that a table tells whose rows it has.
SHAPES: dict[str, Callable[[TableStager, SnapshotHandle, str], StagedWrite]] = {
    "append": lambda stager, handle, mark: stager.stage_append(handle, rows([f"append-{mark}"])),
    "upsert": lambda stager, handle, mark: stager.stage_upsert(handle, rows(["a", f"upsert-{mark}"], 2)),
    "insert": lambda stager, handle, mark: stager.stage_upsert(handle, rows([f"insert-{mark}"], 3)),
    "delete": _delete,
    "overwrite": lambda stager, handle, mark: stager.stage_overwrite(
        handle, SCHEMA, rows(["a", f"overwrite-{mark}"])
    ),
}
LARGE_UPSERT = "large upsert"
ALL_SHAPES = SHAPES | {
    LARGE_UPSERT: lambda stager, handle, mark: stager.stage_upsert(
        handle, rows(["a", *names(1_001, f"large-{mark}-")], 4)
    )
}
# What a table without rows takes: there is nothing to delete.
EMPTY_SHAPES = [name for name in ALL_SHAPES if name != "delete"]
