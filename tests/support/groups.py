"""Mutations that wait for one turn, in a known order, and are then let go together."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

from omnigraph.graph.graph import Graph
from omnigraph.operations.turns import Claim
from tests.support.seam import internals


class Waiting:
    """A line behind the turn that the test holds; `outcomes` has what became of each, in order."""

    def __init__(self, graph: Graph, pool: ThreadPoolExecutor) -> None:
        self.turns = internals(graph).turns
        self._pool = pool
        self._futures: list[Future[object]] = []

    def add(self, call: Callable[[], object]) -> None:
        """Let a thread make a call, and return when it is in line."""
        before = len(self.turns._line)
        self._futures.append(self._pool.submit(self._run, call))
        self.until(lambda: len(self.turns._line) > before)

    @staticmethod
    def _run(call: Callable[[], object]) -> object:
        try:
            return call()
        except Exception as error:  # noqa: BLE001 - the outcome is what the test looks at
            return error

    @staticmethod
    def until(condition: Callable[[], bool]) -> None:
        while not condition():
            threading.Event().wait(0.001)

    @property
    def outcomes(self) -> list[object]:
        return [future.result(120) for future in self._futures]


@contextmanager
def in_line(graph: Graph, *calls: Callable[[], object], threads: int = 80) -> Iterator[Waiting]:
    """Hold the turn of every table of main; at the end of the block all calls have ended."""
    with ThreadPoolExecutor(threads) as pool:
        waiting = Waiting(graph, pool)
        with waiting.turns.turn(Claim("main", None)):
            for call in calls:
                waiting.add(call)
            yield waiting
        waiting.outcomes  # noqa: B018 - waits for all of them


def together_in_line(graph: Graph, *calls: Callable[[], object]) -> list[object]:
    """Make calls that wait for each other in this order, and return what each gave or raised."""
    with in_line(graph, *calls) as waiting:
        pass
    return waiting.outcomes
