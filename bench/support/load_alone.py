"""Work in a process of its own: what it measures is its own doing, and what it held is gone afterwards."""

import multiprocessing
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import TypeVar

Result = TypeVar("Result")


def alone(work: Callable[..., Result], *arguments: object) -> Result:
    """Return what a function makes of its arguments in a new process.

    Raises:
        RuntimeError: with the traceback of what went wrong there.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, work, arguments))
    process.start()
    theirs.close()
    try:
        is_answer, content = ours.recv()
    except EOFError:
        process.join()
        raise RuntimeError(f"a process ended with code {process.exitcode}") from None
    process.join()
    if not is_answer:
        raise RuntimeError(content)
    found: Result = content
    return found


def _serve(pipe: Connection, work: Callable[..., object], arguments: tuple[object, ...]) -> None:
    try:
        pipe.send((True, work(*arguments)))
    except Exception:  # noqa: BLE001 - the other process raises it again
        pipe.send((False, traceback.format_exc()))
