"""Every kind of file below a graph's root is damaged: nothing acknowledged goes without a word."""

import shutil
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import omnigraph
from omnigraph.core.errors import OmnigraphError, RecoveryRequired
from tests.protocol.damage.cases import DAMAGES, Case, cases, one_of_each
from tests.protocol.damage.graph import View, build, insert, look, reset
from tests.support.hollow import quiet

NEW = "written after the damage"


@dataclass(slots=True)
class Bench:
    """A graph that is damaged again and again, and what it must show."""

    root: Path
    pristine: Path
    expected: View
    tally: Counter[str] = field(default_factory=Counter)

    @staticmethod
    def make(folder: Path, *, is_unfinished: bool) -> "Bench":
        """Build the graph, and read what it shows as long as nothing is damaged."""
        root, pristine = folder / "graph", folder / "pristine"
        build(root, is_unfinished=is_unfinished)
        shutil.copytree(root, pristine)
        with omnigraph.open(root, mode="ro") as graph:
            expected = look(graph)
        assert not expected.errors
        return Bench(root, pristine, expected)

    def try_case(self, case: Case) -> None:
        """Damage one file, use the graph, put the file back, and use it again."""
        reset(self.root, self.pristine)
        path = self.root / case.file
        whole = path.read_bytes()
        DAMAGES[case.damage](path)
        damaged = path.read_bytes() if path.exists() else None
        self.tally["combinations"] += 1
        is_loud = self.use(case, "ro")
        written: list[str] = []
        is_loud |= self.use(case, "rw", written)
        self.tally["loud" if is_loud else "without effect"] += 1
        if (path.read_bytes() if path.exists() else None) == damaged:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(whole)
        self.check_mended(case, written)

    def use(self, case: Case, mode: str, written: list[str] | None = None) -> bool:
        """Open, read everything and, in a writable handle, write a row; return whether anything was loud."""
        try:
            with omnigraph.open(self.root, mode=mode, durability="full") as graph:  # type: ignore[arg-type]
                is_loud = self.compare(case, graph)
                return is_loud if written is None else self.write(case, graph, written) or is_loud
        except OmnigraphError as error:
            self.tally[f"error {type(error).__name__}"] += 1
            return True

    def compare(self, case: Case, graph: omnigraph.Graph) -> bool:
        found = look(graph)
        wrong = [name for name, thing in found.things.items() if not holds(thing, self.expected.things[name])]
        for error in found.errors.values():
            self.tally[f"error {type(error).__name__}"] += 1
        if not wrong:
            return bool(found.errors)
        assert case.may_be_silent, f"{case}: {wrong} changed without a word"
        assert not graph.verify().is_whole, f"{case}: {wrong} changed, and verify has seen nothing"
        self.tally["silent until verified"] += 1
        return bool(found.errors)

    def write(self, case: Case, graph: omnigraph.Graph, written: list[str]) -> bool:
        is_loud = False
        for branch in ("main", "june"):
            try:
                insert(graph, NEW, branch)
            except OmnigraphError as error:
                self.tally[f"error {type(error).__name__}"] += 1
                is_loud = True
                if isinstance(error, RecoveryRequired):
                    written.append(f"{branch}, perhaps")  # it is unknown whether it landed
            else:
                written.append(branch)
        if not is_loud:
            self.compare(case, graph)
        return is_loud

    def check_mended(self, case: Case, written: list[str]) -> None:
        """With the file put back everything is there again, and what was written meanwhile."""
        with omnigraph.open(self.root, durability="full") as graph:
            found = look(graph)
            assert not found.errors, f"{case}: {found.errors} although the file was put back"
            for name, thing in self.expected.things.items():
                assert holds(found.things[name], thing), f"{case}: {name} is not what it was"
            for branch in ("main", "june"):
                is_there = NEW in str(found.things[f"{branch}:Person"])
                if f"{branch}, perhaps" not in written:
                    assert is_there == (branch in written), f"{case}: the write on {branch}"
            insert(graph, f"{NEW}, and put back")


def holds(found: object, expected: object) -> bool:
    """Return whether a thing shows at least all that it showed; branches and rows that came are fine."""
    if isinstance(found, list) and isinstance(expected, list):
        return not Counter(expected) - Counter(found)
    return found == expected


def report(bench: Bench) -> None:
    told = ", ".join(f"{count} {name}" for name, count in sorted(bench.tally.items()))
    sys.stdout.write(f"\ndamage: {told}; 0 acknowledged rows or commits lost without a word\n")


@pytest.fixture(scope="module")
def at_rest(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench.make(tmp_path_factory.mktemp("rest"), is_unfinished=False)


@pytest.mark.case("engine", 413)
def test_one_of_each_kind_of_file(at_rest: Bench) -> None:
    found = list(cases(at_rest.pristine))
    with quiet():
        for case in one_of_each(found, damages=1):
            at_rest.try_case(case)
    report(at_rest)


@pytest.mark.damage
@pytest.mark.parametrize("is_unfinished", [False, True], ids=["at rest", "with an unfinished write"])
def test_every_file_in_every_way(tmp_path: Path, is_unfinished: bool) -> None:
    bench = Bench.make(tmp_path, is_unfinished=is_unfinished)
    failures: list[str] = []
    with quiet():
        for case in cases(bench.pristine):
            try:
                bench.try_case(case)
            except AssertionError as error:
                failures.append(str(error))
    report(bench)
    assert not failures, "\n".join(failures)
    assert bench.tally["combinations"] >= 500
