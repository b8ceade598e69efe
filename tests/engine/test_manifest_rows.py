"""Rows that are foreign, malformed or unknown, and files that are not ours."""

import os
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from omnigraph.core.errors import (
    BadRequest,
    InvariantViolation,
    SchemaContractConflict,
    StorageError,
)
from omnigraph.graph.graph import Graph
from omnigraph.history.identity import TableIdentity
from omnigraph.history.manifest_rows import (
    MANIFEST_DIR,
    SCHEMA_OF_MANIFEST,
    ManifestRow,
    pin_row,
    registration_row,
    rows_table,
)
from omnigraph.storage.tables.handle import TableAddress
from omnigraph.storage.tables.manifest_table import ManifestTable
from omnigraph.storage.tables.table import TableStore
from tests.support.engine import (
    Publisher,
    assert_settled,
    contents,
    ids,
    manifest_rows,
    pin,
    reopen,
)
from tests.support.queries import mutation
from tests.support.seam import internals
from tests.support.system import unprivileged
from tests.support.tables import put_rows

PRIMARY_KEY = b"lance-schema:unenforced-primary-key"
ANN = mutation('insert Person { name: "ann" }')


# The manifest's rows


def _manifest(graph: Graph) -> lance.LanceDataset:
    return lance.dataset(f"{graph.uri}/{MANIFEST_DIR}")


def _write(graph: Graph, rows: list[ManifestRow]) -> None:
    manifest = ManifestTable(TableStore())
    address = TableAddress(f"{graph.uri}/{MANIFEST_DIR}")
    put_rows(manifest, manifest.open_fresh(address), rows_table(rows))


def _tombstone(identity: TableIdentity, at: int) -> ManifestRow:
    row = pin_row(identity, "node:Person", pin(2), at=at)
    return row | {
        "object_id": f"table_tombstone:{identity.object_part}:{2}",
        "object_type": "table_tombstone",
    }


def _row(**values: object) -> ManifestRow:
    return dict.fromkeys(SCHEMA_OF_MANIFEST.names) | {"table_key": "", **values}


@pytest.mark.case("engine", 16)
def test_a_foreign_table_under_a_known_name_stops_the_open(graph: Graph) -> None:
    entry = graph.snapshot().entry("node:Person")
    foreign = TableIdentity(entry.identity.stable_table_id, entry.identity.table_incarnation_id + 90)
    version = _manifest(graph).latest_version + 1
    _write(
        graph,
        [
            _tombstone(entry.identity, version),
            registration_row(foreign, "node:Person", at=version),
            pin_row(foreign, "node:Person", pin(1), at=version),
        ],
    )

    with pytest.raises(SchemaContractConflict, match="node:Person"):
        reopen(graph)


@pytest.mark.case("engine", 18)
@pytest.mark.parametrize(
    "broken",
    [
        {"stable_table_id": None},
        {"table_incarnation_id": None},
        {"published_at": None},
        {"table_version": None},
        {"metadata": None},
        {"object_id": "table_version:bad:1:9"},
    ],
)
def test_a_malformed_row_is_named_loudly(graph: Graph, broken: ManifestRow) -> None:
    entry = graph.snapshot().entry("node:Person")
    good = pin_row(entry.identity, "node:Person", pin(9), at=_manifest(graph).latest_version + 1)
    row = good | broken
    _write(graph, [row])

    with pytest.raises(InvariantViolation) as caught:
        reopen(graph)

    assert repr(row["object_id"]) in str(caught.value)


@pytest.mark.case("engine", 19)
def test_rows_of_an_unknown_kind_are_passed_over(graph: Graph) -> None:
    before = contents(graph)
    unknown = _row(object_id="hologram:1", object_type="hologram", metadata="not even json", published_at=2)
    _write(graph, [unknown])

    opened = reopen(graph)

    assert contents(opened) == before
    opened.mutate(ANN)
    graph.mutate(mutation('insert Person { name: "bob" }'))
    Publisher(graph).publish()
    assert ids(reopen(graph), "Person") == ["ann", "bob"]
    assert any(row["object_id"] == "hologram:1" for row in manifest_rows(graph))


# Files


@pytest.mark.case("engine", 20)
def test_temporary_residue_is_invisible_and_has_no_address(graph: Graph) -> None:
    folder = Path(graph.uri) / "__recovery"
    folder.mkdir(exist_ok=True)
    residue = folder / "01ARZ3NDEKTSV4RRFFQ69G5FAV.json#123"
    residue.write_text("half a sidecar")
    opened = reopen(graph)
    adapter = internals(opened).parts.adapter

    opened.mutate(ANN)

    assert not any("#" in name for name in adapter.list_dir("__recovery"))
    with pytest.raises(BadRequest):
        adapter.read_text(f"__recovery/{residue.name}")
    assert residue.exists()


@pytest.mark.case("engine", 21)
@pytest.mark.case("engine", 22)
def test_missing_and_forbidden_are_told_apart(graph: Graph) -> None:
    root = Path(graph.uri)
    adapter = internals(graph).parts.adapter
    (root / "empty").mkdir()
    closed = root / "closed"
    closed.mkdir()
    (closed / "file").write_text("secret")

    assert adapter.exists("empty") is False
    assert adapter.read_text_if_exists("nothing.json") is None
    closed.chmod(0)
    _open_the_way_to(root)
    try:
        with unprivileged():
            with pytest.raises(StorageError):
                adapter.exists("closed")
            with pytest.raises(StorageError):
                adapter.read_text_if_exists("closed/file")
    finally:
        closed.chmod(0o755)


def _open_the_way_to(root: Path) -> None:
    """Let everybody pass through the folders above, which pytest keeps to itself."""
    if os.geteuid() == 0:
        for folder in root.parents:
            if folder.is_relative_to(root.anchor + "tmp") and folder != Path(root.anchor + "tmp"):
                folder.chmod(0o755)


def test_an_open_graph_is_settled(graph: Graph) -> None:
    assert_settled(graph)
    assert isinstance(graph.table("Person"), pa.Table)
