"""Engines in processes of their own, asked in turns.

Each has its own process because two of the peers cannot share one. Times are taken inside, so that handing
questions over costs nothing. A turn is a burst of the same question with different values: one answer alone
would show how long a processor takes to come back to a process.
"""

import multiprocessing
import resource
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter
from typing import Protocol

import pyarrow as pa

from bench.support.questions import Values
from bench.support.social import Social

Rows = list[tuple[object, ...]]
DIGITS = 9  # of a mean that is compared
BURST_MS = 50.0  # after which a turn ends, whatever is left of it


class Engine(Protocol):
    """What can be asked."""

    name: str

    def load(self, folder: Path, data: Social) -> None:
        """Store the data, indexes included."""

    def close(self) -> None:
        """Let go of everything."""

    def ask(self, question: str, values: Values) -> Callable[[], object] | None:
        """Return what gives the answer, or none if the engine cannot."""


class Turns:
    """One engine in its process."""

    def __init__(self, name: str, make: Callable[[], Engine]) -> None:
        """Start the process."""
        self.name = name
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, make), daemon=True)
        self._process.start()
        theirs.close()

    def load(self, folder: Path, data: Path) -> float:
        """Store the data; return the seconds it took."""
        seconds = self._request(("load", folder, data))
        assert isinstance(seconds, float)
        return seconds

    def rows(self, question: str, values: Values) -> Rows | None:
        """Return the answer, or none if the engine cannot give one."""
        rows = self._request(("rows", question, values))
        assert rows is None or isinstance(rows, list)
        return rows

    def times(self, question: str, burst: Sequence[Values]) -> list[float]:
        """Return how many milliseconds the first of the answers took, as many as belong to one turn."""
        times = self._request(("times", question, burst))
        assert isinstance(times, list)
        return times

    def close(self) -> float:
        """End the process; return the most memory it had, in megabytes."""
        peak = self._request(("close",))
        self._process.join()
        assert isinstance(peak, float)
        return peak

    def _request(self, message: tuple[object, ...]) -> object:
        self._pipe.send(message)
        is_answer, content = self._pipe.recv()
        if not is_answer:
            raise RuntimeError(f"{self.name}: {content}")
        return content


def _serve(pipe: Connection, make: Callable[[], Engine]) -> None:
    engine = make()
    message: tuple[object, ...] = ()
    while message[:1] != ("close",):
        message = pipe.recv()
        try:
            pipe.send((True, _respond(engine, *message)))
        except Exception:  # noqa: BLE001 - the other process raises it again
            pipe.send((False, traceback.format_exc()))


def _respond(engine: Engine, kind: object, *arguments: object) -> object:
    match kind, arguments:
        case "load", (Path() as folder, Path() as data):
            social = Social.read(data)
            started = perf_counter()
            engine.load(folder, social)
            return perf_counter() - started
        case "rows", (str() as question, dict() as values):
            answer = engine.ask(question, values)
            return None if answer is None else _rows(answer())
        case "times", (str() as question, list() as burst):
            return _times(engine, question, burst)
        case "close", ():
            engine.close()
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        case _:
            raise AssertionError(kind)


def _times(engine: Engine, question: str, burst: Sequence[Values]) -> list[float]:
    times: list[float] = []
    for values in burst:
        answer = engine.ask(question, values)
        assert answer is not None
        started = perf_counter()
        answer()
        times.append((perf_counter() - started) * 1_000)
        if sum(times) > BURST_MS:
            break
    return times


def _rows(answer: object) -> Rows:
    """Return an answer in the one form in which answers are compared."""
    if isinstance(answer, pa.Table):
        rows = list(zip(*(column.to_pylist() for column in answer.columns), strict=True))
    else:
        assert isinstance(answer, list)
        rows = [tuple(row) for row in answer]
    return [
        tuple(round(value, DIGITS) if isinstance(value, float) else value for value in row) for row in rows
    ]
