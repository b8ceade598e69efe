"""Writers of one graph on an object store, each a process of its own with a lifetime of one second.

A host does what it is told, line by line, and can be stopped where a test says: at a failpoint, just after it
has made sure that it is a writer, or wherever it happens to be. With a name of its own it is on another host
than everybody else: that it was killed shows only by its silence.
"""

import json
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from typing import Self

from tests.support.forked import Forked

LEASE_S = 1.0

_PROGRAM = """
import contextlib, json, os, signal, socket, sys, threading
from omnigraph.core.errors import ConflictError, OmnigraphError, RecoveryRequired, WriterLeaseHeld
from omnigraph.core.failpoint import failpoint
from omnigraph.graph.graph import Graph
from omnigraph.operations.open import Writers, open_graph
from omnigraph.storage.control.lease import WriterLease
from tests.support.seam import internals

lease_s, graph = float(sys.argv[1]), None
if sys.argv[2]:
    socket.gethostname = lambda: sys.argv[2]


def freeze():
    os.kill(os.getpid(), signal.SIGSTOP)


@contextlib.contextmanager
def stopping_after_check(number):
    writer = internals(graph).parts.writer
    check, made = writer.check, iter(range(1, 1_000_000))

    def checked():
        check()
        if next(made) == number:
            freeze()

    writer.check = checked
    try:
        yield
    finally:
        writer.check = check


def stopping(spec):
    if not spec:
        return contextlib.nullcontext()
    if "check" in spec:
        return stopping_after_check(spec["check"])
    return failpoint(spec["point"], call=freeze)


def become_writer(uri, writers):
    # A lease that is held is asked for again: nobody else tells when its holder has gone. One that was taken
    # and lost again before the open had ended is an answer.
    taken, take = [], WriterLease.take

    def noted(*arguments, **keywords):
        taken.append(take(*arguments, **keywords))
        return taken[-1]

    WriterLease.take = noted
    try:
        while True:
            try:
                return Graph(open_graph(uri, writers=Writers(writers), lifetime_s=lease_s))
            except WriterLeaseHeld:
                if taken:
                    raise
                threading.Event().wait(lease_s / 20)
    finally:
        WriterLease.take = take


def run(command):
    global graph
    match command["do"]:
        case "open":
            with stopping(command.get("stop")):
                graph = become_writer(command["uri"], command.get("writers", "many"))
            return {"writer": internals(graph).parts.writer.writer_id}
        case "close":
            if graph is not None:
                graph.close()
            return {}
        case "mutate":
            with stopping(command.get("stop")):
                done = graph.mutate(
                    command["query"], branch=command.get("branch"), actor=command.get("actor")
                )
            return {"commit": done.commit and done.commit.graph_commit_id}
        case "load":
            with stopping(command.get("stop")):
                done = graph.load(
                    command["data"].encode(), command["mode"], branch=command.get("branch"),
                    actor=command.get("actor"), index=command.get("index", False)
                )
            return {"commit": done.commit and done.commit.graph_commit_id}
        case "index":
            with stopping(command.get("stop")):
                return {"commit": graph.ensure_indices(branch=command.get("branch")).commit is not None}
        case "merge":
            with stopping(command.get("stop")):
                done = graph.merge(
                    command["source"], command["into"], actor=command.get("actor"),
                    delete_branch=command.get("delete", False)
                )
            return {"commit": done.commit and done.commit.graph_commit_id, "deleted": done.branch_deleted}
        case "create_branch":
            graph.create_branch(command["branch"])
            return {}
        case "delete_branch":
            with stopping(command.get("stop")):
                graph.delete_branch(command["branch"])
            return {}


print(json.dumps({"ready": True}), flush=True)
for line in sys.stdin:
    command = json.loads(line)
    try:
        answer = run(command)
    except OmnigraphError as error:
        answer = {"error": type(error).__name__, "text": str(error)}
    print(json.dumps(answer), flush=True)
"""
Answer = Mapping[str, object]


class Host:
    """One process that may become the writer of a graph, of one after another."""

    def __init__(self, settings: Mapping[str, str], *, name: str = "", lifetime_s: float = LEASE_S) -> None:
        """Start it; it opens nothing before it is told to, and runs no lost race again by itself."""
        self._script = Forked(_PROGRAM, lifetime_s, name, **{"OMNIGRAPH_WRITE_RETRY": "0", **settings})
        self._is_ready = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        with suppress(ProcessLookupError):
            self.resume()
        self._script.__exit__(None, None, None)

    @property
    def pipe(self) -> int:
        """What can be waited on for the next answer."""
        return self._script.fileno()

    def tell(self, do: str, **options: object) -> None:
        """Ask for something and go on."""
        if not self._is_ready:
            assert self.answer() == {"ready": True}
            self._is_ready = True
        self._script.write_line(json.dumps({"do": do, **options}))

    def answer(self) -> Answer:
        """Wait for what became of it."""
        line = self._script.read_line()
        assert line, "the host died"
        answer = json.loads(line)
        assert isinstance(answer, dict)
        return answer

    def ask(self, do: str, **options: object) -> Answer:
        """Ask for something and wait for what became of it."""
        self.tell(do, **options)
        return self.answer()

    def stop_inside(self, do: str, **options: object) -> None:
        """Ask for something that stops the process on the way, and wait until it has."""
        self.tell(do, **options)
        self._script.wait_until_stopped()

    def kill(self) -> None:
        """End it as a power switch would."""
        self._script.kill()

    def stop(self) -> None:
        """Suspend it wherever it is."""
        self._script.stop()

    def resume(self) -> None:
        """Let it go on."""
        os.kill(self._script.pid, signal.SIGCONT)
