"""A program on a real terminal: what it shows is read, and keys are typed."""

import os
import pty
import select
import struct
import subprocess
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import ioctl
from pathlib import Path
from time import monotonic

from tests.support.commands import PROGRAM

WAIT_S = 60.0  # for what certainly comes, on a machine that is busy
LINES, COLUMNS = 40, 120


class Terminal:
    """The person in front of a program."""

    def __init__(self, process: "subprocess.Popen[bytes]", descriptor: int) -> None:
        self.process = process
        self._descriptor = descriptor
        self.shown = ""
        self._seen = 0

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._descriptor, text.encode())

    def wait_for(self, text: str) -> str:
        """Return what is shown from the last thing waited for until this text, with it."""
        deadline = monotonic() + WAIT_S
        while (found := self.shown.find(text, self._seen)) < 0:
            if not self._read(deadline - monotonic()):
                raise AssertionError(f"{text!r} did not appear after {self.shown[self._seen :]!r}")
        start, self._seen = self._seen, found + len(text)
        return self.shown[start : self._seen]

    def wait_for_end(self) -> int:
        """Return the exit code, with everything that is shown until then."""
        deadline = monotonic() + WAIT_S
        while self._read(deadline - monotonic()):
            pass
        return self.process.wait(timeout=WAIT_S)

    def _read(self, wait_s: float) -> bool:
        ready, _, _ = select.select([self._descriptor], [], [], max(wait_s, 0))
        try:
            data = os.read(self._descriptor, 1 << 16) if ready else b""
        except OSError:  # how a terminal says that the other side has gone
            data = b""
        self.shown += data.decode(errors="replace")
        return bool(data)


@contextmanager
def on_terminal(*arguments: str, cwd: Path, **variables: str) -> Iterator[Terminal]:
    """Run the installed program on a terminal of its own."""
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    # In a session of its own the terminal becomes the controlling one: keys like Ctrl-C are signals.
    become = (
        "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
        " os.execv(sys.argv[1], sys.argv[1:])"
    )
    environment = os.environ | {"LC_ALL": "C.UTF-8", "PYTHONUTF8": "1", "TERM": "xterm"} | variables
    process = subprocess.Popen(
        [str(PROGRAM.with_name("python")), "-c", become, str(PROGRAM), *arguments],
        cwd=cwd,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        yield Terminal(process, ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
