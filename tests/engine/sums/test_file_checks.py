"""What an open compares, and what is compared on reading where that is asked for."""

from pathlib import Path

import pytest

from omnigraph.core.damage import GraphDamaged
from omnigraph.core.errors import StorageError
from omnigraph.graph.opening import open as open_graph
from omnigraph.operations.open import FRAGMENTS_COMPARED_MAX, TABLES_COMPARED_MAX
from tests.support.engine import copy_of, ids, ndjson, new_graph, node

INSERT = "query m($n: String) { insert Person { name: $n } }"
NAMES = "query q() { match { $p: Person } return { $p.name } order { $p.name } }"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two persons, one of them on a branch, in files of their own."""
    place = tmp_path_factory.mktemp("checks") / "graph"
    with new_graph(place) as graph:
        graph.load(ndjson([node("Person", name="ann")]), "append", index=False)
        graph.create_branch("review")
        graph.mutate(INSERT, params={"n": "bob"}, branch="review")
    return place


@pytest.fixture
def root(template: Path, tmp_path: Path) -> Path:
    """A copy of the graph."""
    return copy_of(template, tmp_path / "graph")


def data_file(root: Path) -> Path:
    """Return the file of the rows on main."""
    (found,) = root.glob("nodes/*/data/*.lance")
    return found


@pytest.mark.parametrize("mode", ["rw", "ro"])
@pytest.mark.case("engine", 395)
@pytest.mark.parametrize("damage", ["cut", "gone"])
def test_an_open_names_a_file_that_is_cut_or_gone(root: Path, mode: str, damage: str) -> None:
    victim = data_file(root)
    content = victim.read_bytes()
    victim.unlink()
    if damage == "cut":
        victim.write_bytes(content[:-1])

    with pytest.raises(GraphDamaged) as raised:
        open_graph(root, mode=mode)  # type: ignore[arg-type]  # both modes

    assert raised.value.file == str(victim.relative_to(root))
    assert "omnigraph verify" in str(raised.value)
    victim.write_bytes(content)
    with open_graph(root) as graph:
        assert ids(graph, "Person") == ["ann"]


@pytest.mark.case("engine", 395)
def test_a_graph_with_a_damaged_file_opens_where_nothing_is_compared(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data_file(root).unlink()
    monkeypatch.setenv("OMNIGRAPH_VERIFY", "off")

    with open_graph(root, mode="ro") as graph:
        assert ids(graph, "Company") == []
        with pytest.raises(StorageError):
            ids(graph, "Person")


def test_a_setting_that_is_none_is_a_warning_and_lengths(
    root: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    data_file(root).unlink()
    monkeypatch.setenv("OMNIGRAPH_VERIFY", "all")

    with pytest.raises(GraphDamaged):
        open_graph(root)

    assert "OMNIGRAPH_VERIFY='all'" in caplog.text


@pytest.mark.case("engine", 395)
def test_an_open_looks_at_a_fixed_number_of_files(tmp_path: Path) -> None:
    with new_graph(tmp_path / "graph") as graph:
        for number in range(FRAGMENTS_COMPARED_MAX + 1):
            graph.load(ndjson([node("Person", name=f"p{number}")]), "append", index=False)
    oldest = min((tmp_path / "graph").glob("nodes/*/data/*.lance"), key=lambda path: path.stat().st_mtime_ns)
    oldest.write_bytes(oldest.read_bytes() + b"\0")

    with open_graph(tmp_path / "graph") as graph:
        assert [file.path for file in graph.verify().damaged] == [str(oldest.relative_to(graph.uri))]


@pytest.mark.case("engine", 395)
def test_an_open_looks_at_the_newest_of_many_tables(tmp_path: Path) -> None:
    schema = "".join(f"node T{number} {{ name: String @key }}\n" for number in range(TABLES_COMPARED_MAX + 1))
    with new_graph(tmp_path / "graph", schema) as graph:
        graph.load(ndjson([node("T3", name="newest")]), "append", index=False)
    victim = data_file(tmp_path / "graph")
    victim.write_bytes(victim.read_bytes() + b"\0")

    with pytest.raises(GraphDamaged) as raised:
        open_graph(tmp_path / "graph")

    assert raised.value.file == str(victim.relative_to(tmp_path / "graph"))


def flip(file: Path) -> None:
    """Change one bit in the middle of a file."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


@pytest.mark.case("engine", 396)
@pytest.mark.parametrize("branch", [None, "review"])
def test_a_flipped_bit_is_found_before_anything_is_read_where_checksums_are_compared(
    root: Path, monkeypatch: pytest.MonkeyPatch, branch: str | None
) -> None:
    monkeypatch.setenv("OMNIGRAPH_VERIFY", "checksums")
    victim = data_file(root)  # the branch shares it
    flip(victim)

    with open_graph(root) as graph, pytest.raises(GraphDamaged) as raised:
        graph.query(NAMES, branch=branch)

    assert raised.value.file == str(victim.relative_to(root))


def test_a_whole_graph_is_read_and_written_as_ever_where_checksums_are_compared(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_VERIFY", "checksums")

    with open_graph(root) as graph:
        graph.mutate(INSERT, params={"n": "cid"})
        graph.mutate(INSERT, params={"n": "dan"}, branch="review")

        assert [row["p.name"] for row in graph.query(NAMES).to_pylist()] == ["ann", "cid"]
        branch = graph.query(NAMES, branch="review").to_pylist()
        assert [row["p.name"] for row in branch] == ["ann", "bob", "dan"]


@pytest.mark.case("engine", 396)
def test_a_file_that_another_handle_added_is_compared_too(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_VERIFY", "checksums")
    with open_graph(root) as graph:
        graph.query(NAMES)
        before = set(root.glob("nodes/*/data/*.lance"))
        with open_graph(root) as other:
            other.mutate(INSERT, params={"n": "cid"})
        (added,) = set(root.glob("nodes/*/data/*.lance")) - before
        flip(added)

        with pytest.raises(GraphDamaged) as raised:
            graph.query(NAMES)

    assert raised.value.file == str(added.relative_to(root))
