"""Warm servers as real processes, in a runtime directory of their own."""

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

import pytest

from omnigraph.client.warm.place import RUNTIME_HOME, WarmPlace
from omnigraph.client.warm.reach import meet
from tests.support.atlas import GRAPH
from tests.support.in_process import document

STATE_HOME = "XDG_STATE_HOME"


@dataclass(frozen=True, slots=True)
class RunningWarm:
    """A warm server, and the folder that its graph is in."""

    folder: Path
    pid: int
    place: WarmPlace
    log: Path

    @property
    def commands(self) -> int:
        """How many commands it has answered."""
        met = meet(self.place, "status")
        met.link.close()
        return int(met.words["commands"])


@contextmanager
def own_runtime() -> Iterator[Path]:
    """Have a runtime directory for this process and its children, with a path that a socket can have."""
    folder = Path(mkdtemp(prefix="warm-"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(RUNTIME_HOME, str(folder))
        patch.setenv(STATE_HOME, str(folder / "state"))
        patch.delenv("OMNIGRAPH_NO_WARM", raising=False)
        try:
            yield folder
        finally:
            shutil.rmtree(folder)


@contextmanager
def warm_server(folder: Path, *arguments: str, graph: str = GRAPH) -> Iterator[RunningWarm]:
    """Start a warm server of the graph in a folder, in the background, and stop it at the end."""
    told = document("serve", graph, "--background", *arguments, cwd=folder)
    try:
        yield RunningWarm(folder, told["pid"], WarmPlace.of(told["root"]), Path(told["log"]))
        document("serve", graph, "--stop", cwd=folder)
    finally:
        with suppress(ProcessLookupError):
            os.kill(told["pid"], signal.SIGKILL)
