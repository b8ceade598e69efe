"""The streams that a run is given: one that is closed, full or broken fails in words, in every command.

Z1  What cannot be written to standard output is an `OutputLost`, not an `OSError`, which code on the way up
    could take for a failure of its own file. A reader that has gone stays a `BrokenPipeError`.
Z2  After a failure nothing more is written: also not what is left in the buffer when the process ends.
Z3  A stream that was closed by whoever started the program is one that reads nothing and takes nothing. Its
    descriptor is occupied, so that no file of a graph gets it.
"""

import io
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_STREAMS = 3  # standard input, output and error
_OUTPUT = 1


class OutputLost(Exception):
    """Standard output takes nothing: the disk is full, or it was closed."""


class _Output(io.RawIOBase):
    """Standard output, without a buffer."""

    is_lost = False

    def writable(self) -> bool:
        """Say that this is for writing."""
        return True

    def fileno(self) -> int:
        """Return its descriptor."""
        return _OUTPUT

    def isatty(self) -> bool:
        """Say whether this is a terminal."""
        return os.isatty(_OUTPUT)

    def write(self, data: "ReadableBuffer", /) -> int | None:
        """Write, or say that nothing can be written (Z1, Z2)."""
        if self.is_lost:
            return memoryview(data).nbytes
        try:
            return os.write(_OUTPUT, data)
        except OSError as error:
            self.is_lost = True
            if isinstance(error, BrokenPipeError):
                raise
            raise OutputLost(f"cannot write to standard output: {error.strerror}") from error


def prepare_streams() -> None:
    """Take the streams of the process; only for a process that runs nothing but the program."""
    while (number := os.open(os.devnull, os.O_RDONLY)) < _STREAMS:
        pass  # Z3: writing to what was opened for reading fails
    os.close(number)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - it stays open
    if sys.stderr is None:
        sys.stderr = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    given = sys.stdout
    if given is not sys.__stdout__:
        return  # redirected inside of the process
    is_terminal = os.isatty(_OUTPUT)
    encoding, errors = ("utf-8", "strict") if given is None else (given.encoding, given.errors)
    output = io.BufferedWriter(_Output())
    sys.stdout = io.TextIOWrapper(output, encoding, errors, line_buffering=is_terminal)
