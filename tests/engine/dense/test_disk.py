"""Cache files: a restart reads them, and nothing that is wrong with them changes an answer."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from omnigraph.catalog.bound import Direction
from omnigraph.exec.dense import CacheSettings, Derived, DerivedCounts
from omnigraph.exec.dense.disk import DiskCache
from omnigraph.graph.graph import Graph
from tests.engine.dense.graphs import SCHEMA, check, derived_of, pinned, reader
from tests.engine.dense.writes import Writer
from tests.support.engine import copy_of, files, ids, new_graph, reopen
from tests.support.seam import internals, patched


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph with rows in every table."""
    place = tmp_path_factory.mktemp("disk") / "graph"
    with new_graph(place, SCHEMA) as graph:
        writer = Writer(graph, random.Random(2))
        for _ in range(3):
            writer.load_many()
    return place


@pytest.fixture
def graph(root: Path, tmp_path: Path) -> Graph:
    return reopen(copy_of(root, tmp_path / "graph"))


def filled(graph: Graph, directory: Path) -> Derived:
    """Derive everything and wait for the files."""
    derived = derived_of(graph, directory)
    check(reader(graph, derived))
    derived.close()
    return derived


def restarted(graph: Graph, directory: Path) -> DerivedCounts:
    """Derive everything as a new process would, and return how."""
    derived = derived_of(graph, directory)
    check(reader(graph, derived))
    derived.close()
    return derived.counts


def test_a_restart_loads_slots_ids_and_adjacency(graph: Graph, tmp_path: Path) -> None:
    filled(graph, tmp_path / "cache")

    counts = restarted(graph, tmp_path / "cache")

    assert (counts.slot_loads, counts.id_loads, counts.csr_loads) == (4, 4, 4)
    assert (counts.slot_rebuilds, counts.id_builds, counts.csr_builds) == (0, 0, 0)


def test_files_of_an_older_version_are_brought_forward(graph: Graph, tmp_path: Path) -> None:
    filled(graph, tmp_path / "cache")
    writer = Writer(graph, random.Random(4), people=ids(graph, "Person"), count=900)
    for _ in range(3):
        writer.insert_person()
        writer.insert_edge()
        writer.update_person()
        writer.reinsert()

    counts = restarted(graph, tmp_path / "cache")

    assert (counts.slot_rebuilds, counts.id_builds, counts.csr_builds) == (0, 0, 0)
    assert counts.csr_loads == 4
    assert counts.csr_overlays > 0


def test_nothing_is_written_into_the_graph(graph: Graph, tmp_path: Path) -> None:
    before = files(Path(graph.uri))

    filled(graph, tmp_path / "cache")

    assert files(Path(graph.uri)) == before
    assert list((tmp_path / "cache").glob("*/*"))


def _cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def _flip_header(content: bytes) -> bytes:
    return content[:60] + bytes([content[60] ^ 1]) + content[61:]


def _flip_data(content: bytes) -> bytes:
    at = content.index(b"}", content.rindex(b"digest"))
    body = bytearray(content)
    filled_at = [place for place in range(at + 64, len(body)) if body[place]]
    for place in filled_at[:1]:
        body[place] ^= 0x40
    return bytes(body)


def _grow(content: bytes) -> bytes:
    return content + bytes(64)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "cut": _cut,
    "header": _flip_header,
    "data": _flip_data,
    "longer": _grow,
    "zeros": lambda content: bytes(len(content)),
    "other": lambda _: json.dumps({"format": 1}).encode(),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_as_good_as_none(graph: Graph, tmp_path: Path, damage: str) -> None:
    filled(graph, tmp_path / "cache")
    for path in (tmp_path / "cache").glob("*/*"):
        path.write_bytes(DAMAGES[damage](path.read_bytes()))

    counts = restarted(graph, tmp_path / "cache")

    loads = counts.slot_loads + counts.id_loads + counts.csr_loads
    # Slots of contiguous row ids have no data to damage.
    assert loads == (4 if damage == "data" and counts.slot_loads == 4 else 0)
    assert restarted(graph, tmp_path / "cache").csr_loads == 4


def test_a_file_under_another_name_is_not_taken(graph: Graph, tmp_path: Path) -> None:
    filled(graph, tmp_path / "cache")
    paths = sorted((tmp_path / "cache").glob("*/*"))
    contents = [path.read_bytes() for path in paths]
    for path, content in zip(paths, [*contents[1:], contents[0]], strict=True):
        path.write_bytes(content)

    counts = restarted(graph, tmp_path / "cache")

    assert counts.slot_loads + counts.id_loads + counts.csr_loads == 0


def test_files_of_another_table_with_equal_numbers_are_not_taken(tmp_path: Path) -> None:
    """A backup that was restored, or a graph made again: the transaction tells it apart."""
    cache = tmp_path / "cache"
    for number in range(2):
        with new_graph(tmp_path / f"graph{number}", SCHEMA) as graph:
            writer = Writer(graph, random.Random(number))
            writer.load_many()
            if number:
                writer.insert_person()  # later than the file, so that it would be brought forward

            counts = restarted(graph, cache)

            assert counts.slot_loads + counts.id_loads + counts.csr_loads == 0


def test_no_directory_means_no_files(graph: Graph, tmp_path: Path) -> None:
    assert restarted(graph, tmp_path / "cache").csr_builds == 4
    derived = derived_of(graph, None)
    check(reader(graph, derived))
    derived.close()

    assert derived.counts.csr_loads == 0


def test_a_directory_that_cannot_be_written_changes_nothing(graph: Graph, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")

    for directory in (blocked, blocked / "below", Path("/dev/full/cache"), Path("/proc/none")):
        assert restarted(graph, directory).csr_builds == 4

    assert blocked.read_text() == "not a directory"


def test_a_full_disk_leaves_no_partial_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = DiskCache(tmp_path, "g", 1 << 20)

    def fail(_: Path, __: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    cache.save("a", {}, {"numbers": np.arange(10)})
    cache.close()

    assert list(tmp_path.rglob("*")) == [tmp_path / next(tmp_path.iterdir()).name]


def test_the_least_recently_used_file_goes_first(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, "g", 30_000)
    arrays = {"numbers": np.zeros(1_000)}
    for name in ("a", "b", "c"):
        cache.save(name, {"name": name}, arrays)
        cache.close()
    assert cache.load("a") is not None

    cache.save("d", {}, arrays)
    cache.close()

    assert cache.load("b") is None
    assert cache.load("a") is not None
    assert cache.load("d") is not None
    assert cache.about("a") == {"name": "a"}


def test_a_file_above_the_limit_is_not_written(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, "g", 1_000)
    cache.save("a", {}, {"numbers": np.zeros(1_000)})
    cache.close()

    assert cache.load("a") is None
    assert not list(tmp_path.rglob("*"))


def test_adjacency_is_cheap_when_it_is_in_memory_or_on_disk(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patched(monkeypatch, "omnigraph.exec.dense.derived.SMALL_TABLE", 0)
    cold = derived_of(graph, tmp_path / "cache")
    ends = reader(graph, cold).ends("Knows")
    assert not cold.adjacency_is_cheap(*ends, Direction.OUT)
    cold.adjacency(*ends, Direction.OUT)
    assert cold.adjacency_is_cheap(*ends, Direction.OUT)
    assert not cold.adjacency_is_cheap(*ends, Direction.IN)
    cold.close()

    again = derived_of(graph, tmp_path / "cache")

    assert again.adjacency_is_cheap(*ends, Direction.OUT)
    assert not again.adjacency_is_cheap(*ends, Direction.IN)


def test_small_tables_and_versions_of_the_past_get_no_file(graph: Graph, tmp_path: Path) -> None:
    past = graph.snapshot()
    Writer(graph, random.Random(1), count=900).insert_person()
    small = derived_of(graph, tmp_path / "small", disk_rows_min=1_000_000)
    check(reader(graph, small))
    small.close()
    assert not (tmp_path / "small").exists()

    derived = derived_of(graph, tmp_path / "cache")
    table = pinned(graph, "node:Person")
    derived.slots(table)
    derived.ids(pinned(graph, "node:Person", past))
    derived.close()

    names = [path.name for path in (tmp_path / "cache").glob("*/*")]
    assert len(names) == 1
    assert names[0].startswith("slots")


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OMNIGRAPH_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("OMNIGRAPH_CACHE_BYTES", "77")
    monkeypatch.setenv("OMNIGRAPH_GRAPH_CACHE", "3")
    settings = CacheSettings.from_environment()
    assert (settings.directory, settings.disk_bytes, settings.views_max) == (tmp_path, 77, 3)

    monkeypatch.setenv("OMNIGRAPH_CACHE_DIR", "")
    monkeypatch.setenv("OMNIGRAPH_CACHE_BYTES", "lots")
    settings = CacheSettings.from_environment()
    assert settings.directory is None
    assert settings.disk_bytes == CacheSettings().disk_bytes

    monkeypatch.delenv("OMNIGRAPH_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setattr("sys.platform", "linux")
    assert CacheSettings.from_environment().directory == tmp_path / "xdg" / "omnigraph"


def test_a_read_only_handle_uses_the_cache(graph: Graph, tmp_path: Path) -> None:
    filled(graph, tmp_path / "cache")
    with reopen(graph, mode="ro") as other:
        assert restarted(other, tmp_path / "cache").csr_loads == 4
    assert internals(graph).is_writable


def test_a_file_whose_words_changed_places_counts_as_absent(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, "graph", 10_000_000)
    cache.save("numbers", {}, {"numbers": np.arange(20_000, dtype=np.uint64)})
    cache.close()
    (file,) = tmp_path.glob("*/*")
    content = bytearray(file.read_bytes())
    start = len(content) - 8 * 20_000
    words = bytes(content[start : start + 8]), bytes(content[start + 8 : start + 16])
    assert cache.load("numbers") is not None

    content[start : start + 16] = words[1] + words[0]
    file.write_bytes(content)

    assert cache.load("numbers") is None
