"""The ids of small tables in memory: a lookup says what a scan would say, whoever commits."""

from pathlib import Path

import lance
import pytest

from omnigraph.core.errors import CommitConflict
from omnigraph.storage.tables.known_ids import ROWS_MAX
from omnigraph.storage.tables.stage import IndexRequest
from tests.support.tables import Workbench, names, rows


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    bench = Workbench(tmp_path)
    bench.append(rows(["a", "b", "c"], 1))
    return bench


def upsert(bench: Workbench, *ids: str) -> None:
    bench.upsert(rows([*ids]))


def test_one_write_after_the_other_looks_its_id_up_in_memory(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    upsert(bench, "d")

    with monkeypatch.context() as patches:
        patches.setattr(lance.LanceDataset, "scanner", lambda *_, **__: pytest.fail("it was scanned"))
        upsert(bench, "e")
        upsert(bench, "f")
        assert bench.store.existing_ids(bench.head(), ["a", "e", "f", "g"]) == {"a", "e", "f"}

    assert sorted(bench.ids()) == ["a", "b", "c", "d", "e", "f"]


def test_an_id_that_is_there_is_replaced_and_not_written_twice(bench: Workbench) -> None:
    upsert(bench, "d")
    upsert(bench, "d", "a", "e")
    upsert(bench, "e")

    assert sorted(bench.ids()) == ["a", "b", "c", "d", "e"]


def test_a_removed_id_is_new_again(bench: Workbench) -> None:
    upsert(bench, "d")
    bench.delete(["d", "a", "unheard of"])

    assert bench.store.existing_ids(bench.head(), ["a", "b", "d"]) == {"b"}
    upsert(bench, "a")

    assert sorted(bench.ids()) == ["a", "b", "c"]


def test_what_another_process_wrote_is_seen(bench: Workbench, tmp_path: Path) -> None:
    upsert(bench, "d")
    other = Workbench(tmp_path)
    upsert(other, "e")

    upsert(bench, "e", "f")

    assert sorted(bench.ids()) == ["a", "b", "c", "d", "e", "f"]


def test_a_version_of_the_past_is_asked_itself(bench: Workbench) -> None:
    before = bench.head()
    upsert(bench, "d")

    assert bench.store.existing_ids(before, ["a", "d"]) == {"a"}
    assert bench.store.existing_ids(bench.head(), ["a", "d"]) == {"a", "d"}


def test_a_write_that_says_nothing_of_its_ids_leaves_them_behind(bench: Workbench) -> None:
    upsert(bench, "d")
    bench.append(rows(["e"]))

    upsert(bench, "e")

    assert sorted(bench.ids()) == ["a", "b", "c", "d", "e"]


def test_an_index_changes_no_id(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    upsert(bench, "d")
    bench.index(IndexRequest("id", "btree"))

    with monkeypatch.context() as patches:
        patches.setattr(lance.LanceDataset, "scanner", lambda *_, **__: pytest.fail("it was scanned"))
        upsert(bench, "e")

    assert sorted(bench.ids()) == ["a", "b", "c", "d", "e"]


def test_a_refused_write_brings_no_id(bench: Workbench) -> None:
    upsert(bench, "d")
    stale = bench.stager.stage_upsert(bench.head(), rows(["x"]))
    upsert(bench, "e")
    with pytest.raises(CommitConflict):
        bench.commit(stale)

    assert bench.store.existing_ids(bench.head(), ["d", "e", "x"]) == {"d", "e"}


def test_a_large_table_is_asked_by_its_index(bench: Workbench) -> None:
    bench.append(rows(names(ROWS_MAX)))

    upsert(bench, "d")

    assert not bench.store.known_ids.covers(bench.head())


def test_a_table_that_outgrows_the_limit_is_forgotten(bench: Workbench) -> None:
    upsert(bench, "d")
    upsert(bench, *names(ROWS_MAX))
    upsert(bench, *(f"more-{name}" for name in names(ROWS_MAX)))

    assert bench.store.known_ids.present(bench.head(), ["d"]) is None
    assert bench.store.existing_ids(bench.head(), ["d"]) == {"d"}


def test_only_a_commit_onto_their_version_moves_them_on(bench: Workbench, tmp_path: Path) -> None:
    upsert(bench, "d")
    upsert(Workbench(tmp_path), "e")
    between = bench.head()
    bench.delete(["a"])

    assert bench.store.existing_ids(between, ["a", "e"]) == {"a", "e"}
    assert bench.store.existing_ids(bench.head(), ["a", "e"]) == {"e"}
