"""How many files of the package a read and a write go through, counted in a process of their own.

A file counts when one of its functions is entered while the step runs; what runs only because a module is
imported does not count. The graph is a small one with two node types and an edge, and the query follows that
edge. Only public names are used, so an older commit can be measured by the same file:

    PYTHONPATH=<its src> python bench/walks.py

`python bench/walks.py files` prints the files as well, in the order in which they are first entered.
"""

import inspect
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omnigraph import Graph

SCHEMA = """\
node Person {
    name: String @key
    born: Date?
}

node Book {
    title: String @key
    year: I32? @index
}

edge Wrote: Person -> Book
"""
SEED = """\
query seed() {
    insert Person { name: "ada" }
    insert Person { name: "grace" }
    insert Book { title: "Notes", year: 1843 }
    insert Wrote { from: "ada", to: "Notes" }
}
"""
READ = """\
query books($name: String) {
    match {
        $p: Person { name: $name }
        $p wrote $b
    }
    return {
        $b.title
        $b.year
    }
}
"""
WRITE = 'query rename($year: I32) { update Book set { year: $year } where title = "Notes" }\n'
STEPS = ("read", "read, opened for writing", "query alone", "mutation", "mutation with open")


class Walk:
    """The files whose functions are entered: each once (`files`), and again after every other (`steps`)."""

    def __init__(self, package: Path) -> None:
        """Take the folder whose files count."""
        self.files: list[str] = []
        self.steps: list[str] = []
        self._folder = f"{package}/"
        self._seen = set[str]()
        self._imports = 0  # modules that are being executed right now

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch what this thread calls."""
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, _given: object) -> None:
        code = frame.f_code
        if code.co_name == "<module>" and event in {"call", "return"}:
            self._imports += 1 if event == "call" else -1
        is_function = code.co_flags & inspect.CO_OPTIMIZED  # the body of a class is none
        if (
            event != "call"
            or self._imports
            or not is_function
            or not code.co_filename.startswith(self._folder)
        ):
            return
        file = code.co_filename.removeprefix(self._folder)
        if file not in self._seen:
            self._seen.add(file)
            self.files.append(file)
        if not self.steps or self.steps[-1] != file:
            self.steps.append(file)


def main() -> None:
    """Run each step in its own process, on a graph of its own, and print what it went through."""
    if len(sys.argv) > 2:
        return _child(sys.argv[1], sys.argv[2])
    with_files = sys.argv[1:] == ["files"]
    for number, step in enumerate(STEPS):
        with TemporaryDirectory() as folder:
            place = str(Path(folder) / f"{number}.omni")
            _run("make", place)
            loaded, *files = _run(step, place).split()
        print(f"{step:<26} {len(files):>4} files entered, {loaded:>4} modules loaded")
        if with_files:
            print("".join(f"    {file}\n" for file in files), end="")
    return None


def _run(step: str, place: str) -> str:
    command = [sys.executable, __file__, step, place]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _child(step: str, place: str) -> None:
    import omnigraph

    if step == "make":
        with omnigraph.init(place, SCHEMA) as graph:
            graph.mutate(SEED, "seed")
        return
    walk = Walk(Path(omnigraph.__file__).parent)
    if step.endswith(("alone", "mutation")):
        with omnigraph.open(place) as graph, walk.watching():
            _act(step, graph)
    else:
        with walk.watching(), omnigraph.open(place, mode="ro" if step == "read" else "rw") as graph:
            _act(step, graph)
    loaded = [name for name in sys.modules if name.partition(".")[0] == "omnigraph"]
    print(len(loaded), *walk.files)


def _act(step: str, graph: "Graph") -> None:
    if step.startswith("mutation"):
        graph.mutate(WRITE, "rename", {"year": 1844})
    else:
        assert graph.query(READ, "books", {"name": "ada"}).to_arrow().num_rows == 1


if __name__ == "__main__":
    main()
