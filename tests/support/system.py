"""Real processes and real permissions."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

NOBODY = 65534


class Script:
    """A Python program in a process of its own, that a test talks to line by line.

    Reading a line waits until the program has come that far, so no test needs to sleep.
    """

    def __init__(self, program: str, *arguments: object, **environment: str) -> None:
        """Start it; `environment` is added to that of the test."""
        self._process = subprocess.Popen(
            [sys.executable, "-c", program, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **environment},
        )
        self.pid = self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        """Kill it if it still runs, and let go of it."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()

    def read_line(self) -> str:
        """Wait for the next line; empty at the end of the output."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().rstrip("\n")

    def write_line(self, text: str = "") -> None:
        """Answer a program that reads its input."""
        assert self._process.stdin is not None
        self._process.stdin.write(text + "\n")
        self._process.stdin.flush()

    def fileno(self) -> int:
        """Return what can be waited on for the next line."""
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def stop(self) -> None:
        """Suspend it, as a debugger does, and wait until it is."""
        os.kill(self.pid, signal.SIGSTOP)
        os.waitpid(self.pid, os.WUNTRACED)

    def kill(self) -> None:
        """End it as a power switch would, and wait until it is gone."""
        self._process.kill()
        self._process.wait()

    def wait(self) -> int:
        """Wait for its end and return its status."""
        return self._process.wait()


@contextmanager
def unprivileged() -> Iterator[None]:
    """Let permissions count for a while, which they do not for the superuser."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
