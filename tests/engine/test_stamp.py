"""Which formats this build serves: the stamp is looked at wherever a manifest is read or written."""

import inspect
import subprocess
import sys
from collections.abc import Callable

import pytest

from omnigraph import INTERNAL_SCHEMA_VERSION
from omnigraph.core.errors import FormatVersionError
from omnigraph.graph.graph import Graph
from omnigraph.history import stamp as stamp_module
from omnigraph.history.manifest_rows import STAMP_KEY
from omnigraph.history.stamp import MIN_SUPPORTED_INTERNAL_SCHEMA_VERSION, refuse_if_stamp_unsupported
from tests.support.engine import Publisher, reopen
from tests.support.queries import mutation
from tests.support.seam import internals

ANN = mutation('insert Person { name: "ann" }')
WAYS_IN: dict[str, Callable[[Graph], object]] = {
    "read-write open": reopen,
    "read-only open": lambda graph: reopen(graph, mode="ro"),
    "publish": lambda graph: Publisher(graph).publish(),
    "mutation": lambda graph: graph.mutate(ANN),
    "read": lambda graph: graph.snapshot(),
}


def force_stamp(graph: Graph, stamp: str, branch: str = "main") -> None:
    """Give a branch's manifest a stamp, as another build would."""
    coordinator = internals(graph).parts.coordinator
    ref = internals(graph).state(branch).ref
    coordinator.manifest.stamp(coordinator.manifest.open_fresh(coordinator.address(ref)), {STAMP_KEY: stamp})


def newest(graph: Graph) -> int:
    """Return the newest version of the manifest."""
    coordinator = internals(graph).parts.coordinator
    return coordinator.manifest.latest_version(coordinator.address())


@pytest.mark.case("engine", 23)
@pytest.mark.parametrize("way_in", WAYS_IN)
def test_a_newer_format_is_refused_everywhere(graph: Graph, way_in: str) -> None:
    force_stamp(graph, "5")
    before = newest(graph)

    with pytest.raises(FormatVersionError, match=r"graph format 5.*upgrade omnigraph") as caught:
        WAYS_IN[way_in](graph)

    assert (caught.value.found, caught.value.floor, caught.value.ceiling) == (5, 1, 4)
    assert newest(graph) == before


@pytest.mark.case("engine", 24)
@pytest.mark.parametrize("way_in", ["read-write open", "read-only open"])
def test_a_format_below_the_floor_is_refused_with_the_way_to_rebuild(graph: Graph, way_in: str) -> None:
    force_stamp(graph, "0")

    with pytest.raises(FormatVersionError, match=r"graph format 0.*export.*init.*load"):
        WAYS_IN[way_in](graph)


@pytest.mark.case("engine", 25)
def test_the_guard_accepts_what_lies_between_floor_and_ceiling() -> None:
    def is_accepted(stamp: int) -> bool:
        try:
            refuse_if_stamp_unsupported(stamp)
        except FormatVersionError:
            return False
        return True

    accepted = [stamp for stamp in range(-1, 20) if is_accepted(stamp)]

    assert accepted == list(range(MIN_SUPPORTED_INTERNAL_SCHEMA_VERSION, INTERNAL_SCHEMA_VERSION + 1))


@pytest.mark.case("engine", 26)
@pytest.mark.parametrize(
    ("way_in", "stamp"),
    [*((way_in, "abc") for way_in in WAYS_IN), ("read", ""), ("read", "4.0"), ("read", "-4")],
)
def test_a_stamp_that_is_no_number_is_quoted(graph: Graph, way_in: str, stamp: str) -> None:
    force_stamp(graph, stamp)

    with pytest.raises(FormatVersionError, match=f"'{stamp}' is not a number") as caught:
        WAYS_IN[way_in](graph)

    assert caught.value.found == stamp


@pytest.mark.case("engine", 28)
@pytest.mark.parametrize("floor", [1, 2, 4])
def test_a_build_whose_floor_is_not_its_lowest_step_cannot_start(floor: int) -> None:
    source = inspect.getsource(stamp_module)
    line = f"MIN_SUPPORTED_INTERNAL_SCHEMA_VERSION = {MIN_SUPPORTED_INTERNAL_SCHEMA_VERSION}"
    assert line in source
    program = source.replace(line, f"MIN_SUPPORTED_INTERNAL_SCHEMA_VERSION = {floor}")

    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    is_whole = floor == MIN_SUPPORTED_INTERNAL_SCHEMA_VERSION
    assert (ended.returncode == 0) == is_whole
    assert ("AssertionError: floor and steps go together" in ended.stderr) != is_whole


@pytest.mark.parametrize("ceiling", [3, 4, 5])
def test_a_build_whose_steps_do_not_reach_its_ceiling_cannot_start(ceiling: int) -> None:
    imported = "import omnigraph.history.coordinator"
    program = f"import omnigraph; omnigraph.INTERNAL_SCHEMA_VERSION = {ceiling}; {imported}"

    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    is_whole = ceiling == INTERNAL_SCHEMA_VERSION
    assert (ended.returncode == 0) == is_whole
    assert ("AssertionError: floor and steps go together" in ended.stderr) != is_whole


def test_every_step_that_is_named_is_there() -> None:
    from omnigraph.history import migrations

    assert {source: step.__name__ for source, step in migrations._STEPS.items()} == stamp_module.STEPS


@pytest.mark.case("engine", 44)
def test_a_branch_of_a_newer_format_is_refused_and_main_is_read(graph: Graph) -> None:
    graph.create_branch("june")
    force_stamp(graph, "5", "june")

    for handle in (graph, reopen(graph), reopen(graph, mode="ro")):
        for read in (
            handle.snapshot,
            handle.commits,
            lambda branch, of=handle: of.table("Person", branch=branch),
        ):
            with pytest.raises(FormatVersionError, match=r"graph format 5.*upgrade"):
                read(branch="june")
        assert handle.snapshot().entries
    with pytest.raises(FormatVersionError, match=r"graph format 5.*upgrade"):
        graph.mutate(ANN, branch="june")
    graph.mutate(ANN)
