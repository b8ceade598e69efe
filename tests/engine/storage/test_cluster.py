"""Rows rewritten in the order of a column: nothing about a row changes, and nobody's commit is lost."""

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from omnigraph.core.errors import CommitConflict, StaleCommit
from omnigraph.storage.tables.layout import layout_for_maintenance
from omnigraph.storage.tables.residual import InlineCommitResidual
from omnigraph.storage.tables.stage import IndexRequest
from omnigraph.storage.versions.difference import Along, own_rows
from tests.support.seam import patched
from tests.support.tables import Workbench, table_schema

EDGES = table_schema(
    pa.field("src", pa.utf8(), nullable=False),
    pa.field("dst", pa.utf8(), nullable=False),
    pa.field("weights", pa.list_(pa.field("item", pa.float32(), nullable=True), 2)),
)
INDEXES = [IndexRequest(column, "btree") for column in ("id", "src", "dst")]
TOLD = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
NODES = 40


def edges(numbers: list[int], random: Random) -> pa.Table:
    """Return edges between random nodes."""
    return pa.table(
        {
            "id": [f"e{number:05d}" for number in numbers],
            "src": [f"n{random.randrange(NODES):02d}" for _ in numbers],
            "dst": [f"n{random.randrange(NODES):02d}" for _ in numbers],
            "weights": [None if number % 3 else [float(number), 0.5] for number in numbers],
        },
        schema=EDGES,
    )


def everything(bench: Workbench) -> list[dict[str, object]]:
    """Return all rows by id, with what the version says of each."""
    columns = [*EDGES.names, *TOLD]
    return bench.store.scan(bench.head(), columns=columns).sort_by("id").to_pylist()


def assert_lookups_tell_the_truth(bench: Workbench) -> None:
    """Compare what the index on `src` says with a pass over the rows."""
    head = bench.head()
    by_node: dict[str, set[str]] = {}
    for row in bench.store.scan(head, columns=["id", "src"]).to_pylist():
        by_node.setdefault(row["src"], set()).add(row["id"])
    for node, expected in by_node.items():
        found = bench.store.values_in(head, "src", [node], ["id"])["id"].to_pylist()
        assert (set(found), len(found)) == (expected, len(expected)), node


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    """A table that was loaded, indexed, and then written many times."""
    random = Random(5)
    bench = Workbench(tmp_path, EDGES)
    bench.append(edges(list(range(600)), random))
    bench.index(*INDEXES)
    for number in range(20):
        bench.upsert(edges([*random.sample(range(600), 4), 600 + number], random))
    bench.delete([f"e{number:05d}" for number in range(0, 300, 5)])
    return bench


def cluster(bench: Workbench) -> int:
    """Write everything that is due in the order of `src`; return the version."""
    head = bench.head()
    return bench.commit(
        bench.stager.stage_cluster(head, "src", layout_for_maintenance(head).clusterable)
    ).version


@pytest.mark.case("engine", 490)
def test_every_row_keeps_its_id_and_both_of_its_versions(bench: Workbench) -> None:
    before = everything(bench)

    version = cluster(bench)
    InlineCommitResidual(bench.store).optimize_indices(bench.address, merge_segments=True)

    head = bench.head()
    order = [row["src"] for row in bench.store.scan(head, columns=["src"]).to_pylist()]
    assert order == sorted(order)
    assert everything(bench) == before
    assert bench.store.transaction_info(bench.address, version).operation == "rewrite"
    assert_lookups_tell_the_truth(bench)
    assert set(bench.store.index_coverage(head).values()) == {"indexed"}
    assert layout_for_maintenance(head).clusterable == ()


@pytest.mark.case("engine", 490)
def test_what_is_sorted_piece_by_piece_leaves_one_short_fragment(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = everything(bench)
    for module in ("cluster", "shapes", "layout"):
        patched(monkeypatch, f"omnigraph.storage.tables.{module}.MAX_FRAGMENT_ROWS", 100)
    patched(monkeypatch, "omnigraph.storage.tables.cluster.SORTED_ROWS_MAX", 150)

    cluster(bench)

    fragments = [part.count_rows() for part in bench.head()._dataset.get_fragments()]
    assert [count for count in fragments if count != 100] == [len(before) % 100]
    assert everything(bench) == before
    assert layout_for_maintenance(bench.head()).clusterable == ()


@pytest.mark.case("engine", 490)
def test_a_difference_across_it_shows_no_row(bench: Workbench) -> None:
    older = bench.head()
    before = {row["id"]: (row["_rowid"], row[TOLD[2]]) for row in everything(bench)}

    cluster(bench)

    gone, new = own_rows(older, bench.head(), Along.IDS, bench.store.row_sequences)
    assert sorted(gone.row_ids.tolist()) == sorted(new.row_ids.tolist())
    ids = new.ids_of(pa.array(range(len(new))).to_numpy()).to_pylist()
    told = zip(new.row_ids.tolist(), new.updated_at.tolist(), strict=True)
    assert dict(zip(ids, told, strict=True)) == before


def test_rows_are_written_and_folded_on_top_of_it(bench: Workbench) -> None:
    cluster(bench)
    kept = {row["id"]: row for row in everything(bench)}
    random = Random(6)

    bench.upsert(edges([1, 2, 9_000], random))
    bench.delete(["e00003"])
    InlineCommitResidual(bench.store).optimize_indices(bench.address)
    InlineCommitResidual(bench.store).compact_files(bench.address, target_rows=1_000, rewrite_deletions=True)

    found = {row["id"]: row for row in everything(bench)}
    changed = {"e00001", "e00002"}
    assert found.keys() == (kept.keys() | {"e09000"}) - {"e00003"}
    assert all(found[key] == kept[key] for key in kept.keys() & found.keys() - changed)
    assert all(found[key]["_rowid"] == kept[key]["_rowid"] for key in changed)
    assert_lookups_tell_the_truth(bench)


@pytest.mark.case("engine", 491)
def test_a_row_changed_meanwhile_refuses_it_and_the_other_way_round(bench: Workbench) -> None:
    head = bench.head()
    fragments = layout_for_maintenance(head).clusterable
    staged = bench.stager.stage_cluster(head, "src", fragments)
    late = bench.stager.stage_upsert(head, edges([1], Random(7)))

    bench.upsert(edges([2], Random(8)))
    with pytest.raises(CommitConflict):
        bench.commit(staged)
    before = everything(bench)

    cluster(bench)
    with pytest.raises(CommitConflict):
        bench.commit(late)
    assert everything(bench) == before


@pytest.mark.case("engine", 491)
def test_a_commit_beside_its_fragments_is_seen_in_the_version(bench: Workbench) -> None:
    """The anchor is not rewritten: Lance lets both land, and numbers no fragment twice."""
    head = bench.head()
    anchor, *others = sorted(layout_for_maintenance(head).fragments)
    assert anchor == 0
    staged = bench.stager.stage_cluster(head, "src", others)

    bench.append(edges([7_000], Random(9)))
    before = everything(bench)
    with pytest.raises(StaleCommit):
        bench.commit(staged)

    assert everything(bench) == before
    numbers = [part.fragment_id for part in bench.head()._dataset.get_fragments()]
    assert len(numbers) == len(set(numbers))
    assert_lookups_tell_the_truth(bench)


@pytest.mark.case("engine", 263)
def test_what_would_remove_versions_is_unset_by_a_commit_of_ours(bench: Workbench) -> None:
    bench.store.open_unshared(bench.address).update_config(
        {"lance.auto_cleanup.interval": "20", "lance.auto_cleanup.older_than": "1h", "other": "stays"}
    )
    keys = layout_for_maintenance(bench.head()).auto_cleanup
    assert sorted(keys) == ["lance.auto_cleanup.interval", "lance.auto_cleanup.older_than"]

    made = bench.commit(bench.stager.stage_unset(bench.head(), keys))

    assert bench.head()._dataset.config() == {"other": "stays"}
    assert layout_for_maintenance(bench.head()).auto_cleanup == ()
    assert bench.store.transaction_info(bench.address, made.version).operation == "config"
