"""One worker of a server, as `workers.py` starts it: `python -m omnigraph.server.worker NUMBER HANDLE`.

Its settings come through standard input, which stays open as long as the process that started it lives.
"""

import logging
import os
import pickle
import signal
import socket
import sys
import threading

from omnigraph.core.errors import OmnigraphError
from omnigraph.server.log import begin_log
from omnigraph.server.serve import serve_on
from omnigraph.server.serving import Serving
from omnigraph.server.settings import ServerSettings
from omnigraph.server.workers import READY, READY_END

_log = logging.getLogger("omnigraph.server")


def main(number: int, handle: int) -> int:
    """Serve on an address that is bound already, and return the exit code."""
    begin_log(worker=number)
    settings = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the process that started this one
    assert isinstance(settings, ServerSettings)
    threading.Thread(target=_end_with, args=[sys.stdin.fileno()], daemon=True).start()
    try:
        serving = Serving.begin(settings)
    except OmnigraphError as error:
        _log.error("cannot start: %s", error)
        return 1
    with socket.socket(fileno=handle) as listener:
        serve_on(serving, listener, ready=lambda: _tell_ready(serving))
    return 0


def _tell_ready(serving: Serving) -> None:
    said = READY + "\n".join(serving.quarantined).encode() + READY_END
    while said:
        said = said[os.write(sys.stdout.fileno(), said) :]


def _end_with(parent: int) -> None:
    """Stop in order when the process that started this one is gone.

    The descriptor is read and not the stream: a thread inside of that would keep the interpreter from ending.
    """
    while os.read(parent, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
