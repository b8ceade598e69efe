"""A writer in a process of its own: it does what it is told, and says so before and after.

What it says crosses a pipe, so that everything said before a SIGKILL is still read by the parent.
"""

import json
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from tests.models.dag.steps import Step, branch_of
from tests.models.histories.branching import On
from tests.models.histories.operations import Operation
from tests.support.forked import server

if TYPE_CHECKING:
    from omnigraph.graph.graph import Graph
    from omnigraph.history.commits import GraphCommit

_BEFORE_DELETE = (
    "write.post_publish_pre_sidecar_delete",
    "branch_merge.post_publish_pre_sidecar_delete",
    "ensure_indices.post_publish_pre_sidecar_delete",
    "upkeep.post_publish_pre_sidecar_delete",
    "optimize.post_publish_pre_sidecar_delete",
)
NEWEST = 20  # commits that a step with all its upkeep stays below


@dataclass(frozen=True, slots=True)
class Request:
    """One write to do; its name becomes the actor of its commit.

    `failpoint` is a place and an action, if the writer is to die on its way.
    """

    name: str
    operation: Operation
    failpoint: tuple[str, str] | None = None
    branch: str | None = None


@dataclass(frozen=True, slots=True)
class StepRequest:
    """One step of a history of branches to do; its name becomes the actor of its commit."""

    name: str
    step: Step | On
    failpoint: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Ready:
    """Everything is imported; the graph is not open yet."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The graph is open."""


@dataclass(frozen=True, slots=True)
class Started:
    """The write begins now."""

    name: str


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """The write has succeeded; without a commit there was nothing to do.

    Of a step of several branches, `newest` are the last commits of its branch after it, the newest first.
    """

    name: str
    commit_id: str | None
    newest: "tuple[GraphCommit, ...]" = ()


@dataclass(frozen=True, slots=True)
class Failed:
    """The write has raised."""

    name: str
    error: str
    message: str
    is_conflict: bool


@dataclass(frozen=True, slots=True)
class Touched:
    """Somebody has touched the sidecar of this live writer."""

    what: str


def branch_written(step: Step | On) -> str | None:
    """Return the branch that a step commits to, if it is one that commits."""
    return step.branch if isinstance(step, On) else branch_of(step)


Message = Ready | Opened | Started | Acknowledged | Failed | Touched


class WriterProcess:
    """The parent's end of a writer; it waits for `begin` before it opens the graph."""

    def __init__(self, root: Path, *, durability: str = "full") -> None:
        context = server()
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(target=_run, args=(theirs, str(root), durability), daemon=True)
        self._process.start()
        theirs.close()
        assert self._process.pid is not None
        self.pid: int = self._process.pid

    def begin(self, failpoint: tuple[str, str] | None = None) -> None:
        """Let it open the graph, and perhaps die of a failpoint in doing so."""
        assert self.receive(60) == Ready()
        self.pipe.send(failpoint)

    def ask(self, request: Request | StepRequest) -> None:
        """Ask for a write; it is started at once."""
        self.pipe.send(request)

    def receive(self, timeout_s: float) -> Message | None:
        """Return the next message; none if it takes too long, or if the writer is dead."""
        try:
            if not self.pipe.poll(max(timeout_s, 0)):
                return None
            message: Message = self.pipe.recv()
        except (EOFError, ConnectionResetError):
            return None
        return message

    def receive_until(self, deadline: float) -> Message | None:
        """Return the next message; none when the time has come."""
        return self.receive(deadline - monotonic())

    def has_died(self) -> bool:
        """Return whether it has ended at a failpoint; call it when nothing more is received."""
        from omnigraph.core.failpoint import EXIT_STATUS

        self._process.join(timeout=60)
        return self._process.exitcode == EXIT_STATUS

    def kill(self) -> list[Message]:
        """End it as a power switch would, and return what it had said before."""
        self._process.kill()
        self._process.join()
        said = []
        while (message := self.receive(0)) is not None:
            said.append(message)
        self.pipe.close()
        self._process.close()
        return said


def _run(pipe: Connection, root: str, durability: str) -> None:
    import omnigraph
    from omnigraph.core.errors import ConflictError, OmnigraphError

    pipe.send(Ready())
    with _armed(pipe.recv()):
        graph = omnigraph.open(root, durability=durability)
    pipe.send(Opened())
    with _watched(pipe, Path(root, "__recovery")):
        while True:
            request: Request | StepRequest = pipe.recv()
            pipe.send(Started(request.name))
            try:
                with _armed(request.failpoint):
                    answer = _answer(graph, request)
            except OmnigraphError as error:
                is_conflict = isinstance(error, ConflictError)
                name = type(error).__name__
                pipe.send(Failed(request.name, name, str(error), is_conflict))
            else:
                pipe.send(answer)


def _answer(graph: "Graph", request: Request | StepRequest) -> Acknowledged:
    from tests.models.dag.steps import perform as perform_step
    from tests.models.histories.operations import perform

    if isinstance(request, Request):
        made = perform(graph, request.operation, actor=request.name, branch=request.branch)
        return Acknowledged(request.name, made)
    step = request.step
    if isinstance(step, On):
        made = perform(graph, step.operation, actor=request.name, branch=step.branch)
    else:
        commit = perform_step(graph, step, actor=request.name).commit
        made = None if commit is None else commit.graph_commit_id
    branch = branch_written(step)
    newest = () if branch is None else tuple(graph.commits(branch=branch, limit=NEWEST))
    return Acknowledged(request.name, made, newest)


def _armed(failpoint: tuple[str, str] | None) -> AbstractContextManager[None]:
    from omnigraph.core import failpoint as failpoints

    return nullcontext() if failpoint is None else failpoints.failpoint(*failpoint)


@contextmanager
def _watched(pipe: Connection, folder: Path) -> Iterator[None]:
    """Look, each time before the writer deletes its sidecar, whether it is as the writer left it."""

    from omnigraph.storage.control.locks import is_taken

    def look() -> None:
        # A write that this process gave up may lie there too, with its lock free or in a healer's hands.
        found = [(path, json.loads(path.read_text())) for path in folder.glob("*.json") if path.exists()]
        mine = [path for path, side in found if side["pid"] == os.getpid() and side["recovery_plan"] is None]
        if not any(is_taken(path.with_suffix(".lock")) for path in mine):
            pipe.send(Touched(f"no sidecar of this process is as it was, of {len(found)} that are there"))

    from omnigraph.core.failpoint import failpoint

    with ExitStack() as stack:
        for name in _BEFORE_DELETE:
            stack.enter_context(failpoint(name, "call", look))
        yield
