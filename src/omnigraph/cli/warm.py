"""Warm servers from the command line: run one, start one, look at it, stop it.

What opens a graph is imported by the process that does so, and by no other.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from omnigraph.cli.printing import tell
from omnigraph.client.scope import GraphAddress
from omnigraph.client.warm.link import PeerGone
from omnigraph.client.warm.place import WarmPlace
from omnigraph.client.warm.reach import Met, meet
from omnigraph.core.errors import BadRequest
from omnigraph.storage.control.uri import GraphRoot

IDLE = "OMNIGRAPH_WARM_IDLE_S"
IDLE_S = 900
STATE_HOME = "XDG_STATE_HOME"
_STOP_LOOKS_S = 0.02  # between two looks whether a server has ended
_WHY = {
    "version": "it is another version of omnigraph",
    "settings": "its environment has other settings than this one",
    "graph": "it serves another graph",
    "busy": "it has enough to do, or is ending",
}


@dataclass(frozen=True, slots=True)
class Done:
    """What to print: a document, or its text for people."""

    document: dict[str, Any]
    text: str


def run(target: GraphAddress, idle: timedelta | None, *, ready: Callable[[WarmPlace], object]) -> None:
    """Be the warm server of a graph, until the end."""
    from omnigraph.core.environment import number_setting
    from omnigraph.server.log import begin_log
    from omnigraph.server.warm.serve import WarmSettings, serve_warm

    begin_log()
    root = GraphRoot.parse(target.uri)
    place = WarmPlace.of(root.uri)
    idle_s = number_setting(IDLE, IDLE_S, least=1) if idle is None else idle.total_seconds()
    serve_warm(WarmSettings(root, place, idle_s), lambda: ready(place))


def start(target: GraphAddress, idle: timedelta | None) -> Done:
    """Start a warm server that outlives this process, unless one runs that does.

    Raises:
        BadRequest: one runs that does not do, or the new one did not start.
    """
    place = _place(target)
    running = _meet(place, "status")
    if running is not None:
        running.link.close()
        reason = running.words.get("refusal")
        if reason is not None:
            raise BadRequest(
                f"process {running.pid} is the warm server of {place.root}, and commands given here do not"
                f" use it: {_WHY.get(str(reason), reason)}; stop it with omnigraph serve --stop"
            )
        return _described(place, running, "serves already")
    log = _log_file(place)
    words = [] if idle is None else ["--idle", f"{int(idle.total_seconds())}s"]
    with log.open("wb") as told:
        process = subprocess.Popen(  # noqa: S603 - this program
            [sys.executable, "-P", "-m", "omnigraph", "serve", place.root, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=told,
            start_new_session=True,
        )
    assert process.stdout is not None, "it is a pipe"
    with process.stdout as output:
        is_ready = bool(output.readline())
    if not is_ready:
        process.wait()
        tell(log.read_text(encoding="utf-8", errors="replace").rstrip())
        raise BadRequest(f"the warm server of {place.root} did not start")
    process.returncode = 0  # it is meant to outlive this process
    found = _meet(place, "status")
    if found is None:
        raise BadRequest(f"the warm server of {place.root} has ended again: its log is {log}")
    found.link.close()
    return _described(place, found, "serves")


def stop(target: GraphAddress) -> Done:
    """Let a warm server end, and wait for that."""
    place = _place(target)
    met = _meet(place, "stop")
    if met is None:
        return Done({"root": place.root, "pid": None}, f"no warm server of {place.root} runs")
    met.link.close()
    while place.is_held():
        time.sleep(_STOP_LOOKS_S)
    return Done({"root": place.root, "pid": met.pid}, f"process {met.pid} has ended")


def status(target: GraphAddress) -> Done:
    """Say whether a warm server runs, and whether commands given here use it."""
    place = _place(target)
    reason: str | None = None
    with suppress(FileNotFoundError):
        reason = place.distrust(os.geteuid())
    met = None if reason is not None else _meet(place, "status")
    if met is None:
        text = f"no warm server of {place.root} runs" if reason is None else f"not used: {reason}"
        return Done({"root": place.root, "pid": None, "is_used": False, "reason": reason}, text)
    met.link.close()
    return _described(place, met, "serves")


def _described(place: WarmPlace, met: Met, verb: str) -> Done:
    reason = met.words.get("refusal")
    why = None if reason is None else _WHY.get(str(reason), str(reason))
    document = {
        "root": place.root,
        "pid": met.pid,
        "socket": str(place.socket),
        "log": str(_log_path(place)),
        "version": met.words.get("version"),
        "began_at": met.words.get("began_at"),
        "idle_s": met.words.get("idle_s"),
        "commands": met.words.get("commands"),
        "is_used": why is None,
        "reason": why,
    }
    text = f"process {met.pid} {verb} {place.root} to your commands, on {place.socket}"
    return Done(document, text if why is None else f"{text}\nnot used by commands given here: {why}")


def _place(target: GraphAddress) -> WarmPlace:
    return WarmPlace.of(GraphRoot.parse(target.uri).uri)


def _meet(place: WarmPlace, ask: str) -> Met | None:
    try:
        return meet(place, ask)
    except (OSError, PeerGone):
        return None


def _log_path(place: WarmPlace) -> Path:
    home = os.environ.get(STATE_HOME)
    base = Path(home) if home else Path("~/.local/state").expanduser()
    return base / "omnigraph" / f"warm-{place.name}.log"


def _log_file(place: WarmPlace) -> Path:
    """Return the file that a server in the background writes its log to, made anew; only its user reads it.

    Raises:
        BadRequest: it cannot be made.
    """
    path = _log_path(place)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            path.unlink()
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise BadRequest(f"{path} cannot be made: {error.strerror}") from error
    return path
