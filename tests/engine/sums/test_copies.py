"""A copy of the folder of a graph that somebody writes to shows one commit, or says why it does not open."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import permutations
from pathlib import Path

import pytest

from omnigraph.core.damage import GraphDamaged
from omnigraph.core.errors import OmnigraphError
from omnigraph.graph.graph import Graph
from omnigraph.graph.opening import open as open_graph
from omnigraph.storage.versions.newest import MARK
from tests.support.engine import copy_of, ids, new_graph, reopen

SCHEMA = "node Person { name: String @key }\nedge Knows: Person -> Person\n"
FIRST = 'query m() { insert Person { name: "p0" } }'
NEXT = "query m($n: String, $p: String) { insert Person { name: $n } insert Knows { from: $n, to: $p } }"


def _is_version(path: Path) -> bool:
    """Return whether a file tells which versions there are."""
    return "_versions" in path.parts or path.name == MARK


PARTS: dict[str, Callable[[Path], bool]] = {
    "manifest rows": lambda path: path.parts[0] == "__manifest" and not _is_version(path),
    "manifest versions": lambda path: path.parts[0] == "__manifest" and _is_version(path),
    "table rows": lambda path: path.parts[0] in {"nodes", "edges"} and "_versions" not in path.parts,
    "table versions": lambda path: path.parts[0] in {"nodes", "edges"} and "_versions" in path.parts,
}


def write_next(graph: Graph, number: int) -> None:
    """Add a person who knows the one before, as one commit of two tables."""
    graph.mutate(NEXT, params={"n": f"p{number}", "p": f"p{number - 1}"})


def copy_files(source: Path, target: Path, is_chosen: Callable[[Path], bool]) -> None:
    """Copy the files of a graph that are chosen by their path inside it."""
    for path in sorted(source.rglob("*")):
        inside = path.relative_to(source)
        if path.is_file() and is_chosen(inside):
            (target / inside).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target / inside)


def persons_shown(root: Path, mode: str) -> int:
    """Return how many persons a graph shows; it must be the state of one commit."""
    with open_graph(root, mode=mode) as graph:  # type: ignore[arg-type]  # both modes
        names, edges = ids(graph, "Person"), ids(graph, "Knows")
    assert sorted(names) == sorted(f"p{number}" for number in range(len(names)))
    assert len(edges) == len(names) - 1
    return len(names)


def _marks(order: tuple[str, ...]) -> list[pytest.MarkDecorator]:
    """Return that an order is slow, unless it is one of the four that begin with each part in turn."""
    is_quick = list(order) in [[*PARTS][start:] + [*PARTS][:start] for start in range(len(PARTS))]
    return [] if is_quick else [pytest.mark.slow]


@pytest.fixture(scope="module")
def young(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph of one person."""
    root = tmp_path_factory.mktemp("copies") / "graph"
    with new_graph(root, SCHEMA) as graph:
        graph.mutate(FIRST)
    return root


def copied_in(order: tuple[str, ...], young: Path, folder: Path) -> Path:
    """Copy a graph part by part, with a commit after each of them."""
    root, copy = copy_of(young, folder / "graph"), folder / "copy"
    copy_files(root, copy, lambda path: path.parts[0] not in {"__manifest", "nodes", "edges"})
    with reopen(root) as graph:
        for number, part in enumerate(order, start=1):
            copy_files(root, copy, PARTS[part])
            write_next(graph, number)
    return copy


@pytest.mark.case("engine", 414)
@pytest.mark.parametrize(
    "order", [pytest.param(order, marks=_marks(order)) for order in permutations(PARTS)], ids="-".join
)
def test_a_copy_made_in_the_middle_of_commits_shows_one_of_them_or_says_why_not(
    young: Path, tmp_path: Path, order: tuple[str, ...]
) -> None:
    copy = copied_in(order, young, tmp_path)

    for mode in ("ro", "rw"):
        try:
            shown = persons_shown(copy, mode)
        except OmnigraphError:
            continue  # it says why not; anything untyped fails here
        assert 1 <= shown <= len(PARTS)


@pytest.mark.case("engine", 414)
def test_tables_copied_before_the_manifest_are_named_as_what_is_missing(young: Path, tmp_path: Path) -> None:
    order = ("table versions", "table rows", "manifest versions", "manifest rows")
    copy = copied_in(order, young, tmp_path)

    with pytest.raises(GraphDamaged, match="copy of a graph") as raised:
        open_graph(copy, mode="ro")

    assert raised.value.file.startswith(("nodes/", "edges/"))


@pytest.mark.case("engine", 414)
def test_a_manifest_copied_before_its_tables_shows_the_commit_of_its_time(
    young: Path, tmp_path: Path
) -> None:
    order = ("manifest versions", "manifest rows", "table versions", "table rows")
    copy = copied_in(order, young, tmp_path)

    assert persons_shown(copy, "ro") == 1


WRITER = """
import sys
from pathlib import Path
from omnigraph.graph.opening import open as open_graph
from tests.engine.sums.test_copies import write_next
root = Path(sys.argv[1])
with open_graph(root) as graph:
    number = 0
    while not (root.parent / "stop").exists():
        number += 1
        write_next(graph, number)
        print(number, flush=True)
"""


@pytest.fixture
def busy(tmp_path: Path) -> Iterator[Path]:
    """A graph that another process writes to all the time."""
    root = tmp_path / "graph"
    with new_graph(root, SCHEMA) as graph:
        graph.mutate(FIRST)
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(root)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[3],
    )
    assert writer.stdout is not None
    assert writer.stdout.readline() == "1\n"
    yield root
    (tmp_path / "stop").touch()
    writer.communicate()
    assert writer.returncode == 0


@pytest.mark.slow
@pytest.mark.case("engine", 414)
def test_thirty_copies_beside_a_writer_open_or_say_why_not(busy: Path, tmp_path: Path) -> None:
    opened = 0
    for number in range(30):
        copy = tmp_path / f"copy-{number}"
        shutil.copytree(busy, copy, ignore_dangling_symlinks=True, copy_function=_copy_if_there)
        try:
            persons_shown(copy, "rw")
        except OmnigraphError:
            continue
        opened += 1

    assert opened  # the folders are small: some copy falls between two commits


def _copy_if_there(source: str, target: str) -> None:
    """Copy a file as `cp` does, which only complains of one that went away meanwhile."""
    try:
        shutil.copy2(source, target)
    except FileNotFoundError:
        return
