"""Interrupting one call at one place, and what must hold afterwards."""

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn

from omnigraph.core.failpoint import CATALOG, failpoint
from omnigraph.graph.graph import Graph
from tests.protocol.interrupts.scenes import Scene, Seen, look, new_graph, open_graph, write_everywhere

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a signal arrives: the n-th time, from 0, that a call comes by a failpoint."""

    failpoint: str
    visit: int


@dataclass(frozen=True, slots=True)
class Stage:
    """A scene that is set: the folder to copy, what it shows before and after, and where the call passes."""

    scene: Scene
    template: Path
    before: Seen
    after: Seen
    places: tuple[Place, ...]


def stage(scene: Scene, folder: Path) -> Stage:
    """Set a scene, and let its call run undisturbed on a copy."""
    template, copy = folder / f"{scene}-template", folder / f"{scene}-undisturbed"
    with new_graph(template) as graph:
        scene.prepare(graph)
    shutil.copytree(template, copy)
    visits: dict[str, int] = {}
    with open_graph(copy) as graph:
        before = look(graph)
        with _counted(visits):
            scene.act(graph)
        after = look(graph)
    shutil.rmtree(copy)
    places = [Place(name, visit) for name, count in visits.items() for visit in sorted({0, count - 1})]
    return Stage(scene, template, before, after, tuple(places))


def interrupted(stage: Stage, place: Place, number: signal.Signals, root: Path) -> bool:
    """Run the call with a signal at a place, check everything, and return whether the write landed.

    The handle that was interrupted goes on; then another one opens the graph.
    """
    shutil.copytree(stage.template, root)
    with open_graph(root) as graph:
        error = _run(stage, place, number, graph)
        _is_whole(stage, look(graph), error)
        seen = _with_another_handle(stage, root, error)
        with_extra = _written(graph)
    with open_graph(root) as graph:
        assert look(graph).rows == with_extra.rows
    assert not list((root / "__recovery").glob("*")), "recovery left something"
    shutil.rmtree(root)
    return seen.rows == stage.after.rows and seen.rows != stage.before.rows


def _run(stage: Stage, place: Place, number: signal.Signals, graph: Graph) -> BaseException | None:
    visits: dict[str, int] = {}

    def arrive() -> None:
        visits[place.failpoint] = visits.get(place.failpoint, -1) + 1
        if visits[place.failpoint] == place.visit:
            os.kill(os.getpid(), number)

    with _terminating(), failpoint(place.failpoint, call=arrive):
        try:
            stage.scene.act(graph)
        except (KeyboardInterrupt, SystemExit) as error:
            return error
    raise AssertionError(f"{number.name} at {place} was lost")


def _is_whole(stage: Stage, seen: Seen, error: BaseException | None) -> None:
    assert seen.rows in (stage.before.rows, stage.after.rows), "half of a write is visible"
    notes = getattr(error, "__notes__", [])
    if any("had already landed" in note for note in notes):
        assert seen.rows == stage.after.rows, "what was said to have landed is not there"


def _with_another_handle(stage: Stage, root: Path, error: BaseException | None) -> Seen:
    with open_graph(root) as graph:
        seen = look(graph)
        _is_whole(stage, seen, error)
        return seen


def _written(graph: Graph) -> Seen:
    write_everywhere(graph)
    return look(graph)


@contextmanager
def _terminating() -> Iterator[None]:
    """Let SIGTERM end the process the way that a careful program ends: by an exception."""

    def leave(number: int, _frame: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _counted(visits: dict[str, int]) -> Iterator[None]:
    def count(name: str) -> None:
        visits[name] = visits.get(name, 0) + 1

    with ExitStack() as armed:
        for name in sorted(CATALOG):
            armed.enter_context(failpoint(name, call=lambda name=name: count(name)))  # type: ignore[misc] # a default argument
        yield
