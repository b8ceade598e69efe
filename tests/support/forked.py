"""Programs in processes of their own, without the second that importing the engine takes.

A server imports everything once and opens nothing. A process that is forked from it has its own memory,
threads, locks and signals, and is killed, stopped and waited for as any other. Where the start of an
interpreter is part of what a test shows, it takes `tests.support.system.Script`.
"""

import atexit
import os
import signal
import sys
from functools import cache
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from multiprocessing.forkserver import ensure_running
from pathlib import Path
from time import sleep
from typing import Self


@cache
def server() -> ForkServerContext:
    """Start the process that others are forked from."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["tests.support.preloaded"])
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))  # the server looks nowhere else
    try:
        ensure_running()
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before
    return context


class Forked:
    """A Python program that a test talks to line by line: a `Script` that has imported the engine."""

    def __init__(self, program: str, *arguments: object, **environment: str) -> None:
        """Start it; `environment` is added to that of the test."""
        context = server()
        stdin, to_it = context.Pipe(duplex=False)
        from_it, stdout = context.Pipe(duplex=False)
        stderr = Connection(os.dup(2), readable=False)
        self._process = context.Process(
            target=_run,
            args=(program, [str(a) for a in arguments], {**os.environ, **environment}, str(Path.cwd())),
            kwargs={"streams": (stdin, stdout, stderr)},
            daemon=True,
        )
        self._process.start()
        for theirs in (stdin, stdout, stderr):
            theirs.close()
        self._input = os.fdopen(os.dup(to_it.fileno()), "w")
        self._output = os.fdopen(os.dup(from_it.fileno()))
        to_it.close()
        from_it.close()
        assert self._process.pid is not None
        self.pid: int = self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.end()

    def end(self) -> None:
        """Kill it if it still runs, and let go of it."""
        self.kill()
        self._input.close()
        self._output.close()

    def read_line(self) -> str:
        """Wait for the next line; empty at the end of the output."""
        return self._output.readline().rstrip("\n")

    def write_line(self, text: str = "") -> None:
        """Answer a program that reads its input."""
        self._input.write(text + "\n")
        self._input.flush()

    def fileno(self) -> int:
        """Return what can be waited on for the next line."""
        return self._output.fileno()

    def stop(self) -> None:
        """Suspend it, as a debugger does, and wait until it is."""
        os.kill(self.pid, signal.SIGSTOP)
        self.wait_until_stopped()

    def wait_until_stopped(self) -> None:
        """Wait until it is suspended; it is no child of this process, so that nobody tells."""
        while (state := _state(self.pid)) != "T":
            assert state not in {"Z", None}, "it ended instead of stopping"
            sleep(0.002)

    def kill(self) -> None:
        """End it as a power switch would, and wait until it is gone."""
        if self._process.exitcode is None:
            self._process.kill()
        self._process.join()

    def wait(self) -> int:
        """Wait for its end and return its status."""
        self._process.join()
        assert self._process.exitcode is not None
        return self._process.exitcode


def _state(pid: int) -> str | None:
    """Return how a process is: a letter, or nothing if there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return None


def _run(
    program: str,
    arguments: list[str],
    environment: dict[str, str],
    folder: str,
    *,
    streams: tuple[Connection, Connection, Connection],
) -> None:
    """Be the program, in the new process."""
    from omnigraph.core.failpoint import arm_from_environment

    for number, stream in enumerate(streams):
        os.dup2(stream.fileno(), number)
        stream.close()
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    sys.argv = ["-c", *arguments]
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    arm_from_environment()
    try:
        exec(compile(program, "<string>", "exec"), {"__name__": "__main__"})
    finally:
        atexit._run_exitfuncs()  # a process that is forked ends without them
        sys.stdout.flush()
