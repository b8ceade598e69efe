"""Which ids changed between two points of a table, whatever lies between them."""

import random
from pathlib import Path

import lance
import numpy as np
import pytest

from omnigraph.changes.changed_ids import _without_moved, changed_ids, images, shared_version
from omnigraph.core.errors import HistoricalVersionReclaimed
from omnigraph.storage.tables.refs import RefStore
from omnigraph.storage.tables.table import RefInfo, TableAddress, TableStore
from omnigraph.storage.versions.difference import UNKNOWN_VERSION, FragmentRows, OwnRows
from tests.engine.changes.points import History, array_of, ranked, texts
from tests.support.seam import patched

PROGRAMS = 10
STEPS = 12


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_random_histories_of_forks_rollbacks_and_compactions_are_told_exactly(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    history = History.begin(tmp_path, 40)

    for step in range(STEPS):
        _step(history, chance, step)

    count = len(history.points)
    for _ in range(12):
        history.compare(chance.randrange(count), chance.randrange(count))


def _step(history: History, chance: random.Random, step: int) -> None:
    address = chance.choice(history.refs)
    bench = history.on(address)
    ids = sorted(bench.ids())
    versions = [p.version for p in history.points if p.address == address]
    match chance.choice(
        ["upsert", "upsert", "delete", "insert", "compact", "roll_back", "overwrite", "fork"]
    ):
        case "delete" if ids:
            bench.delete(chance.sample(ids, chance.randint(1, min(8, len(ids)))))
        case "insert":
            bench.append(ranked([f"m{step:02d}{number}" for number in range(chance.randint(1, 5))], step))
        case "compact":
            history.compact(address)
        case "roll_back" if versions:
            history.roll_back(address, chance.choice(versions))
        case "overwrite":
            history.overwrite(address, ranked(chance.sample(ids, len(ids) // 2), chance.choice([0, step])))
        case "fork" if len(history.refs) < 4:
            point = chance.choice(history.points)
            history.mark(history.fork(point, f"ref-{step}"))
            return
        case _:
            known = chance.sample(ids, min(len(ids), chance.randint(1, 6)))
            bench.upsert(ranked([*known, f"u{step:02d}"], chance.choice([0, step])))
    history.mark(address)


def test_only_changed_rows_are_read_however_large_the_table(tmp_path: Path) -> None:
    read = {}
    for size in (100, 2_000):
        history = History.begin(tmp_path / str(size), size, fragment_rows=size // 4)
        bench = history.bench
        bench.upsert(ranked(["n0003", "n0040", "n0099"], 1))
        bench.delete(["n0007"])
        bench.append(ranked(["x1", "x2"], 2))
        history.mark(bench.address)
        read[size] = history.compare(0, 1).rows_read

    assert read[100] == read[2_000] == 9  # 4 old places, 3 new versions, 2 new rows


def test_many_commits_cost_no_more_rows_than_one(tmp_path: Path) -> None:
    history = History.begin(tmp_path, 40)
    for rank in range(1, 31):
        history.bench.upsert(ranked(["n0001"], rank))
    history.mark(history.bench.address)

    found = history.compare(0, 1)

    assert found.updated.to_pylist() == ["n0001"]
    assert found.rows_read == 2


def test_rows_that_only_moved_are_not_reported(tmp_path: Path) -> None:
    history = History.begin(tmp_path, 40)
    history.bench.upsert(ranked(["n0005"], 1))
    history.compact(history.bench.address)
    history.mark(history.bench.address)

    found = history.compare(0, 1)

    assert found.updated.to_pylist() == ["n0005"]
    assert len(found) == 1


@pytest.mark.case("engine", 274)
@pytest.mark.parametrize("form", ["inverse", "restore"])
def test_a_rollback_between_two_points_hides_nothing(tmp_path: Path, form: str) -> None:
    history = History.begin(tmp_path, 40)
    old = history.points[0].version
    history.bench.upsert(ranked(["n0001"], 1))
    history.bench.delete(["n0002"])
    if form == "restore":
        history.compact(history.bench.address)
    history.mark(history.bench.address)
    assert history.roll_back(history.bench.address, old) == form
    history.mark(history.bench.address)

    backwards = history.compare(1, 2)
    across = history.compare(0, 2)

    assert backwards.updated.to_pylist() == ["n0001"]
    assert backwards.inserted.to_pylist() == ["n0002"]
    assert len(across) == 0


def test_a_rollback_that_was_followed_by_other_writes_is_told_exactly(tmp_path: Path) -> None:
    history = History.begin(tmp_path, 40)
    old = history.points[0].version
    history.bench.upsert(ranked(["n0001"], 1))
    history.mark(history.bench.address)
    history.roll_back(history.bench.address, old)
    history.bench.upsert(ranked(["n0003"], 3))
    history.compact(history.bench.address)
    history.mark(history.bench.address)

    found = history.compare(1, 2)

    assert found.updated.to_pylist() == ["n0001", "n0003"]


@pytest.mark.case("engine", 274)
def test_two_forks_of_one_point_reuse_row_ids_and_are_told_apart(tmp_path: Path) -> None:
    history = History.begin(tmp_path, 40)
    for name in ("one", "two"):
        ref = history.fork(history.points[0], name)
        history.on(ref).append(ranked([f"{name}-{number}" for number in range(3)], 1))
        history.on(ref).upsert(ranked(["n0001"], 1))
        history.mark(ref)

    found = history.compare(1, 2)

    assert found.inserted.to_pylist() == ["two-0", "two-1", "two-2"]
    assert found.deleted.to_pylist() == ["one-0", "one-1", "one-2"]
    assert found.rows_read == 8  # as many as the two refs wrote, and not the rows they share


def test_a_table_that_appears_or_vanishes_is_inserts_or_deletes(tmp_path: Path) -> None:
    history = History.begin(tmp_path, 3)
    store, point = history.bench.store, history.points[0]

    come, gone = changed_ids(store, None, point), changed_ids(store, point, None)

    assert come.inserted.to_pylist() == gone.deleted.to_pylist() == ["n0000", "n0001", "n0002"]
    assert len(come) == len(gone) == 3
    assert len(changed_ids(store, None, None)) == len(changed_ids(store, point, point)) == 0


def test_images_leave_out_what_is_not_there(tmp_path: Path) -> None:
    history = History.begin(tmp_path, 5)
    store, point = history.bench.store, history.points[0]
    wanted = array_of(["zz", "n0003", "n0001"])

    found = images(store, point, wanted)

    assert found["id"].to_pylist() == ["n0001", "n0003"]
    assert images(store, point, array_of([])).num_rows == 0


def test_a_version_that_was_cleaned_up_is_said_to_be(tmp_path: Path) -> None:
    history = History.begin(tmp_path, 5)
    history.bench.upsert(ranked(["n0001"], 1))
    history.mark(history.bench.address)
    reopened = History(history.bench.__class__(tmp_path))
    version = history.points[0].version
    for file in (tmp_path / "table" / "_versions").iterdir():
        if file.name == f"{2**64 - 1 - version:020d}.manifest":
            file.unlink()

    with pytest.raises(HistoricalVersionReclaimed) as raised:
        changed_ids(reopened.bench.store, history.points[0], history.points[1])

    assert (raised.value.table_key, raised.value.version) == ("node:N", version)


def test_the_shared_history_of_refs_ends_where_they_were_forked(tmp_path: Path) -> None:
    history = History.begin(tmp_path, 5)
    main, first = history.bench.address, history.points[0]
    one = history.fork(first, "one")
    history.on(one).upsert(ranked(["n0001"], 1))
    later = history.mark(one)
    two = history.fork(later, "two")
    other = history.fork(first, "other")
    store, start = history.bench.store, first.version

    assert shared_version(store, main, one) == start
    assert shared_version(store, one, two) == later.version
    assert shared_version(store, main, two) == shared_version(store, two, other) == start
    assert shared_version(store, one, one) > 10**9
    assert shared_version(store, one, TableAddress(main.uri, "never-made")) == 0


def test_rows_whose_versions_were_not_looked_up_are_never_taken_for_moved(tmp_path: Path) -> None:
    none = FragmentRows(History.begin(tmp_path, 1).bench.head(), [])
    unknown = OwnRows(none, np.array([7]), np.array([UNKNOWN_VERSION]), np.array([0]))
    known = OwnRows(none, np.array([7]), np.array([3]), np.array([0]))

    def left(one: OwnRows, other: OwnRows, shared: int) -> tuple[int, int]:
        at_was, at_now = _without_moved(one, other, shared)
        return len(at_was), len(at_now)

    assert left(unknown, unknown, 9) == (1, 1)
    assert left(unknown, known, 9) == (1, 1)
    assert left(known, known, 9) == (0, 0)
    assert left(known, known, 2) == (1, 1)


@pytest.mark.parametrize("along", [65_536, 0])
def test_ids_of_large_additions_are_scanned_or_fetched_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, along: int
) -> None:
    patched(monkeypatch, "omnigraph.storage.versions.difference.ALONG_ROWS_MAX", along)
    history = History.begin(tmp_path, 200, fragment_rows=100)
    bench = history.bench
    bench.append(ranked([f"a{number:03d}" for number in range(150)], 1))
    bench.delete(["n0001", "n0150", "a003"])
    history.mark(bench.address)
    history.compact(bench.address)
    bench.upsert(ranked(["n0002"], 2))
    history.mark(bench.address)

    assert len(history.compare(0, 1)) == 151
    assert len(history.compare(1, 2)) == 1
    assert len(history.compare(0, 2)) == 152
    assert len(history.compare(2, 0)) == 152


def test_few_new_rows_are_read_with_the_scan_that_finds_them(tmp_path: Path) -> None:
    history = History.begin(tmp_path, 40)
    history.bench.upsert(ranked(["n0001", "x1"], 1))
    history.mark(history.bench.address)
    history.bench.delete(["n0001"])
    history.mark(history.bench.address)
    points, store = history.points, history.bench.store

    written = changed_ids(store, points[0], points[1], with_images=True)
    undone = changed_ids(store, points[2], points[1], with_images=True)

    assert written.images is not None
    assert written.images["id"].to_pylist() == ["x1", "n0001"]
    assert undone.inserted.to_pylist() == ["n0001"]
    assert undone.images is None  # the fragment is there at both points: its row would have to be fetched


def test_where_a_ref_starts_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = History.begin(tmp_path, 10)
    one, main = history.fork(history.points[0], "one"), history.bench.address
    start = history.points[0].version
    store = TableStore()  # as another process has it, which did not make the ref
    asked: list[str] = []
    listed = TableStore.list_refs

    def counted(self: TableStore, address: TableAddress) -> tuple[RefInfo, ...]:
        asked.append(address.uri)
        return listed(self, address)

    patched(monkeypatch, "omnigraph.storage.tables.table.TableStore.list_refs", counted)

    assert [shared_version(store, main, one) for _ in range(3)] == [start] * 3
    assert len(asked) == 1
    assert shared_version(history.bench.store, main, one) == start  # who made it knows
    assert len(asked) == 1
    RefStore(store).drop(one)
    assert shared_version(store, main, one) == 0
    assert len(asked) == 2


def test_rows_with_another_column_have_changed_wherever_they_lie(tmp_path: Path) -> None:
    """A new column leaves the version of a row as it is; the row is not the same for that."""
    history = History.begin(tmp_path, 20)
    address = history.bench.address
    lance.dataset(address.open_uri).add_columns({"double": "rank * 2"})
    history.mark(address)

    found = changed_ids(history.bench.store, *history.points)

    assert texts(found.updated) == sorted(history.contents[0])
    assert (len(found.inserted), len(found.deleted)) == (0, 0)
