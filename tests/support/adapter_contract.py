"""What every storage adapter promises, whatever it stands on."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from omnigraph.core.errors import BadRequest, StorageError
from omnigraph.storage.control.object_store import StorageAdapter

CREATORS = 8
SWAPS_EACH = 5


class AdapterContract:
    """Subclasses bring a fixture `adapter` that is empty for each test."""

    def test_a_text_comes_back_as_it_was_written(self, adapter: StorageAdapter) -> None:
        text = '{"name": "Zoë"}\r\n\n\x00 \U0001f9ec'

        adapter.write_text("a/b/c.json", text)

        assert adapter.read_text("a/b/c.json") == text
        assert adapter.read_text_if_exists("a/b/c.json") == text

    def test_a_missing_text_is_none_or_an_error_that_says_so(self, adapter: StorageAdapter) -> None:
        adapter.write_text("there.json", "x")

        assert adapter.read_text_if_exists("missing.json") is None
        assert adapter.read_texts(["missing.json", "there.json"]) == {"missing.json": None, "there.json": "x"}
        assert adapter.read_text_if_exists("no/such/folder.json") is None
        assert adapter.read_text_versioned("missing.json") is None
        with pytest.raises(StorageError, match=r"missing\.json") as raised:
            adapter.read_text("missing.json")
        assert raised.value.kind == "not_found"

    def test_a_write_replaces(self, adapter: StorageAdapter) -> None:
        adapter.write_text("a.json", "old and long")

        adapter.write_text("a.json", "new")

        assert adapter.read_text("a.json") == "new"

    def test_the_second_creator_is_told_and_changes_nothing(self, adapter: StorageAdapter) -> None:
        assert adapter.write_text_if_absent("dir/claim.json", "first")
        assert not adapter.write_text_if_absent("dir/claim.json", "second")

        assert adapter.read_text("dir/claim.json") == "first"

    def test_of_racing_creators_one_wins(self, adapter: StorageAdapter) -> None:
        barrier = threading.Barrier(CREATORS)

        def create(number: int) -> bool:
            barrier.wait()
            return adapter.write_text_if_absent("claim.json", str(number))

        with ThreadPoolExecutor(CREATORS) as pool:
            results = list(pool.map(create, range(CREATORS)))

        assert results.count(True) == 1
        assert adapter.read_text("claim.json") == str(results.index(True))

    def test_existence_is_that_of_an_object_store(self, adapter: StorageAdapter) -> None:
        adapter.write_text("folder/sub/file.json", "x")

        assert adapter.exists("folder/sub/file.json")
        assert adapter.exists("folder/sub")
        assert adapter.exists("folder")
        assert not adapter.exists("fold")
        assert not adapter.exists("folder/sub/file")
        assert not adapter.exists("other")

    def test_nothing_is_left_of_a_prefix_without_files(self, adapter: StorageAdapter) -> None:
        adapter.write_text("folder/file.json", "x")

        adapter.delete("folder/file.json")

        assert not adapter.exists("folder")

    def test_a_rename_replaces_its_target(self, adapter: StorageAdapter) -> None:
        adapter.write_text("new.staging", "new")
        adapter.write_text("current", "old")

        adapter.rename_text("new.staging", "current")

        assert adapter.read_text("current") == "new"
        assert not adapter.exists("new.staging")

    def test_renaming_what_is_missing_is_an_error(self, adapter: StorageAdapter) -> None:
        with pytest.raises(StorageError) as raised:
            adapter.rename_text("missing", "target")

        assert raised.value.kind == "not_found"
        assert not adapter.exists("target")

    def test_deleting_what_is_missing_is_a_success(self, adapter: StorageAdapter) -> None:
        adapter.write_text("a.json", "x")
        adapter.write_text("b.json", "x")

        adapter.delete("a.json")
        adapter.delete("a.json")
        adapter.discard("b.json")
        adapter.discard("b.json")
        adapter.delete("no/such/folder.json")

        assert not adapter.exists("a.json")
        assert not adapter.exists("b.json")

    def test_a_listing_has_the_base_names_of_direct_files(self, adapter: StorageAdapter) -> None:
        for name in ("dir/a.json", "dir/b.lock", "dir/sub/c.json", "dirty/d.json", "e.json"):
            adapter.write_text(name, "x")

        assert sorted(adapter.list_dir("dir")) == ["a.json", "b.lock"]
        assert adapter.list_dir("missing") == []

    def test_a_prefix_goes_with_all_below_it(self, adapter: StorageAdapter) -> None:
        for name in ("dir/a.json", "dir/sub/b.json", "dir/sub/deep/c.json", "dirty.json"):
            adapter.write_text(name, "x")

        adapter.delete_prefix("dir")
        adapter.delete_prefix("dir")

        assert not adapter.exists("dir")
        assert adapter.read_text("dirty.json") == "x"

    def test_a_swap_needs_the_version_that_was_read(self, adapter: StorageAdapter) -> None:
        adapter.write_text("state.json", "one")
        found = adapter.read_text_versioned("state.json")
        assert found is not None

        assert adapter.write_text_if_match("state.json", "two", found[1])
        assert not adapter.write_text_if_match("state.json", "three", found[1])

        assert adapter.read_text("state.json") == "two"
        assert not adapter.write_text_if_match("missing.json", "x", found[1])
        assert not adapter.write_text_if_match("no/such/folder.json", "x", found[1])
        assert not adapter.exists("missing.json")
        assert not adapter.exists("no")

    def test_no_swap_is_lost_in_a_race(self, adapter: StorageAdapter) -> None:
        adapter.write_text("counter", "0")

        def increment(_: int) -> None:
            for _ in range(SWAPS_EACH):
                while True:
                    found = adapter.read_text_versioned("counter")
                    assert found is not None
                    if adapter.write_text_if_match("counter", str(int(found[0]) + 1), found[1]):
                        break

        with ThreadPoolExecutor(CREATORS) as pool:
            list(pool.map(increment, range(CREATORS)))

        assert adapter.read_text("counter") == str(CREATORS * SWAPS_EACH)

    @pytest.mark.parametrize(
        "name", ["", "/a", "a/", "a//b", "../a", "a/../b", "./a", "a\0b", "a#1", "a#1/b"]
    )
    def test_a_name_stays_inside_the_graph(self, adapter: StorageAdapter, name: str) -> None:
        with pytest.raises(BadRequest):
            adapter.write_text(name, "x")
        with pytest.raises(BadRequest):
            adapter.exists(name)
