"""A small graph, every writer there is, and processes that die or stop inside them.

A writer runs in this process, or in one of its own: `killed` ends it at a failpoint, `stopped` lets it wait
there with its lock held. What a graph says afterwards is read by `tests.support.books`.
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import omnigraph
from omnigraph.commit.publish import UPKEEP_INTERVAL
from omnigraph.commit.sidecar import RECOVERY_DIR
from omnigraph.core.errors import RecoveryRequired
from omnigraph.core.failpoint import ENVIRONMENT, EXIT_STATUS, failpoint
from omnigraph.graph.graph import Graph
from tests.support.forked import Forked

SCHEMA = """\
node Person {
    name: String @key
    age: I32?
}

node Company {
    name: String @key
    city: String?
}

edge Knows: Person -> Person {
    since: I32?
}

edge WorksAt: Person -> Company
"""
EVOLVED = SCHEMA.replace("age: I32?", "age: I32?\n    email: String?").replace(
    "since: I32?", "since: I32?\n    until: I32?"
)
COLUMNS = {
    "Person": ("name", "age"),
    "Company": ("name", "city"),
    "Knows": ("src", "dst", "since"),
    "WorksAt": ("src", "dst"),
}
TABLE_KEYS = ("edge:Knows", "edge:WorksAt", "node:Company", "node:Person")
Contents = Mapping[str, frozenset[tuple[object, ...]]]
BEFORE: Contents = {
    "Person": frozenset({("ann", 30), ("bob", 40), ("cid", None)}),
    "Company": frozenset({("acme", "Bonn"), ("ibex", None)}),
    "Knows": frozenset({("ann", "bob", 2001), ("bob", "cid", 2002)}),
    "WorksAt": frozenset({("ann", "acme"), ("bob", "acme")}),
}


def records(contents: Contents) -> bytes:
    """Return contents as the lines of a load."""
    lines: list[dict[str, object]] = []
    for name, rows in contents.items():
        for row in sorted(rows, key=str):
            if name in {"Person", "Company"}:
                lines.append({"type": name, "data": dict(zip(COLUMNS[name], row, strict=True))})
            else:
                data = dict(zip(COLUMNS[name][2:], row[2:], strict=True))
                lines.append({"edge": name, "from": row[0], "to": row[1], "data": data})
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def new_graph(root: Path) -> Graph:
    """Create a graph with the rows of `BEFORE` and no index."""
    graph = omnigraph.init(root, SCHEMA)
    graph.load(records(BEFORE), "append", index=False)
    return graph


def new_due_graph(root: Path) -> None:
    """Create the same graph with a table of people that the next commit makes due for upkeep."""
    new_graph(root).close()
    with omnigraph.open(root, durability="process") as graph:  # what is copied need not be synced
        while graph.snapshot().entry("node:Person").version < UPKEEP_INTERVAL - 1:
            graph.mutate('query touch() { update Person set { age: 30 } where name = "ann" }')


def new_branched_graph(root: Path) -> None:
    """Create the same graph with a branch `june` that added, changed and removed rows."""
    with new_graph(root) as graph:
        graph.create_branch("june")
        graph.load(records(_JUNE), "merge", index=False, branch="june")
        graph.mutate('query leave() { delete Person where name = "cid" }', branch="june")


def new_untidy_graph(root: Path) -> None:
    """Create a graph with the rows of `BEFORE`, in many files, and indexes that cover the first."""
    lines = records(BEFORE).splitlines(keepends=True)
    nodes = [line for line in lines if b'"type"' in line]
    edges = [line for line in lines if b'"edge"' in line]
    with omnigraph.init(root, SCHEMA) as graph:
        graph.load(b"".join(nodes), "append")
        graph.load(edges[0] + edges[2], "append")
        for line in (edges[1], edges[3]):
            graph.load(line, "append", index=False)
        for line in nodes:  # the same values, in another file
            graph.load(line, "merge", index=False)


# Writers


@dataclass(frozen=True, slots=True)
class Writer:
    """What a writer does, and which traces it leaves.

    `tables` are the tables it commits, in that order. `lands_first` is whether its rows are committed before
    the sidecar that a test is about is written: upkeep follows a write. `settles_all` is whether the other
    tables go on when one of them fails.
    """

    name: str
    kind: str
    run: Callable[[Graph], object]
    tables: tuple[str, ...]
    after: Contents
    points: Mapping[str, str]
    lands_first: bool = False
    needs_restore: bool = False
    settles_all: bool = False

    def __str__(self) -> str:
        return self.name


_WRITE_POINTS = {
    "P0": "write.post_gate_pre_sidecar=",
    "P1": "write.post_sidecar_pre_commit=",
    "P2": "write.post_table_commit=",
    "P3": "write.post_finalize_pre_publisher=",
    "P5": "write.post_publish_pre_sidecar_delete=",
    "P6": "recovery.sidecar_delete=",
    "P7": "lock.post_sidecar_delete_pre_unlink=",
}
_INDEX_POINTS = {
    "P0": "ensure_indices.post_stage_pre_commit=",
    "P1": "ensure_indices.post_sidecar_pre_commit=",
    "P2": "ensure_indices.post_table_commit=",
    "P3": "ensure_indices.post_phase_b_pre_manifest_commit=",
    "P5": "ensure_indices.post_publish_pre_sidecar_delete=",
    "P6": "recovery.sidecar_delete=",
    "P7": "lock.post_sidecar_delete_pre_unlink=",
}
_MERGE_POINTS = {
    "P0": "branch_merge.post_capture=",
    "P1": "branch_merge.post_sidecar_pre_commit=",
    "P2": "branch_merge.post_table=",
    "P3": "branch_merge.post_phase_b_pre_manifest_commit=",
    "P5": "branch_merge.post_publish_pre_sidecar_delete=",
    "P6": "recovery.sidecar_delete=",
    "P7": "lock.post_sidecar_delete_pre_unlink=",
}
_SCHEMA_POINTS = {
    "P0": "schema_apply.post_stage_pre_gate=",
    "P1": "schema_apply.post_sidecar_pre_commit=",
    "P2": "schema_apply.post_table_commit=",
    "P3": "schema_apply.before_manifest_commit=",
    "P5": "schema_apply.after_manifest_commit=",
    "P6": "recovery.sidecar_delete=",
    "P7": "lock.post_sidecar_delete_pre_unlink=",
}
_UPKEEP_POINTS = {  # the write before passes the last two as well
    "P0": "upkeep.post_write_pre_plan=",
    "P1": "upkeep.post_sidecar_pre_compact=",
    "P2": "upkeep.post_compact_pre_index=",
    "P3": "upkeep.post_phase_b_pre_manifest_commit=",
    "P5": "upkeep.post_publish_pre_sidecar_delete=",
    "P6": "recovery.sidecar_delete=skip:1,",
    "P7": "lock.post_sidecar_delete_pre_unlink=skip:1,",
}
_OPTIMIZE_POINTS = {
    "P0": "optimize.post_recovery_check_pre_gates=",
    "P1": "optimize.post_sidecar_pre_compact=",
    "P2": "optimize.post_table=",
    "P3": "optimize.post_phase_b_pre_manifest_commit=",
    "P5": "optimize.post_publish_pre_sidecar_delete=",
    "P6": "recovery.sidecar_delete=",
    "P7": "lock.post_sidecar_delete_pre_unlink=",
}
POINTS = tuple(_WRITE_POINTS)


def _changed(**rows: Iterable[tuple[object, ...]]) -> Contents:
    return {**BEFORE, **{name: frozenset(found) for name, found in rows.items()}}


_INSERT = """
query insert() {
    insert Person { name: "dan", age: 50 }
    insert Knows { from: "dan", to: "ann", since: 2003 }
}
"""
_UPDATE = """
query update() {
    update Person set { age: 31 } where name = "ann"
    update Company set { city: "Graz" } where name = "acme"
}
"""
_DELETE = 'query delete() { delete Person where name = "ann" }'
_TOUCH = 'query touch() { insert Person { name: "dan", age: 50 } }'
_APPENDED: Contents = {
    "Person": frozenset({("dan", 50)}),
    "Knows": frozenset({("dan", "ann", 2003)}),
}
_MERGED: Contents = {
    "Person": frozenset({("ann", 31), ("dan", 50)}),
    "Company": frozenset({("acme", "Graz")}),
}
_OVERWRITTEN: Contents = {
    "Person": frozenset({("ann", 31), ("bob", 41)}),
    "Knows": frozenset({("bob", "ann", 2004)}),
}

_JUNE: Contents = {
    "Person": frozenset({("ann", 31), ("dan", 50)}),
    "Knows": frozenset({("dan", "ann", 2003)}),
}

WRITERS = {
    writer.name: writer
    for writer in (
        Writer(
            "insert",
            "Mutation",
            lambda graph: graph.mutate(_INSERT, actor="writer"),
            ("edge:Knows", "node:Person"),
            _changed(
                Person=BEFORE["Person"] | _APPENDED["Person"], Knows=BEFORE["Knows"] | _APPENDED["Knows"]
            ),
            _WRITE_POINTS,
        ),
        Writer(
            "update",
            "Mutation",
            lambda graph: graph.mutate(_UPDATE, actor="writer"),
            ("node:Company", "node:Person"),
            _changed(
                Person=[("ann", 31), ("bob", 40), ("cid", None)], Company=[("acme", "Graz"), ("ibex", None)]
            ),
            _WRITE_POINTS,
        ),
        Writer(
            "delete",
            "Mutation",
            lambda graph: graph.mutate(_DELETE, actor="writer"),
            ("edge:Knows", "edge:WorksAt", "node:Person"),
            _changed(
                Person=[("bob", 40), ("cid", None)], Knows=[("bob", "cid", 2002)], WorksAt=[("bob", "acme")]
            ),
            _WRITE_POINTS,
        ),
        Writer(
            "append",
            "Load",
            lambda graph: graph.load(records(_APPENDED), "append", index=False, actor="writer"),
            ("edge:Knows", "node:Person"),
            _changed(
                Person=BEFORE["Person"] | _APPENDED["Person"], Knows=BEFORE["Knows"] | _APPENDED["Knows"]
            ),
            _WRITE_POINTS,
        ),
        Writer(
            "merge",
            "Load",
            lambda graph: graph.load(records(_MERGED), "merge", index=False, actor="writer"),
            ("node:Company", "node:Person"),
            _changed(
                Person=[("ann", 31), ("bob", 40), ("cid", None), ("dan", 50)],
                Company=[("acme", "Graz"), ("ibex", None)],
            ),
            _WRITE_POINTS,
        ),
        Writer(
            "overwrite",
            "Load",
            lambda graph: graph.load(records(_OVERWRITTEN), "overwrite", index=False, actor="writer"),
            ("edge:Knows", "node:Person"),
            _changed(**_OVERWRITTEN),
            _WRITE_POINTS,
            needs_restore=True,
        ),
        Writer(
            "branch_merge",
            "BranchMerge",
            lambda graph: graph.merge("june", actor="writer"),
            ("edge:Knows", "node:Person"),
            _changed(
                Person=[("ann", 31), ("bob", 40), ("dan", 50)],
                Knows=[("ann", "bob", 2001), ("dan", "ann", 2003)],
            ),
            _MERGE_POINTS,
        ),
        Writer(
            "schema_apply",
            "SchemaApply",
            lambda graph: graph.apply_schema(EVOLVED, index=False, actor="writer"),
            ("edge:Knows", "node:Person"),
            BEFORE,
            _SCHEMA_POINTS,
            needs_restore=True,
        ),
        Writer(
            "ensure_indices",
            "EnsureIndices",
            lambda graph: graph.ensure_indices(),
            TABLE_KEYS,
            BEFORE,
            _INDEX_POINTS,
        ),
        Writer(
            "upkeep",
            "Optimize",
            lambda graph: graph.mutate(_TOUCH, actor="writer"),
            ("node:Person",),
            _changed(Person=BEFORE["Person"] | {("dan", 50)}),
            _UPKEEP_POINTS,
            lands_first=True,
        ),
        Writer(
            "optimize",
            "Optimize",
            lambda graph: graph.optimize(),
            TABLE_KEYS,
            BEFORE,
            _OPTIMIZE_POINTS,
            settles_all=True,
        ),
    )
}
EXTRA: Contents = {
    "Person": frozenset({("zed", 70)}),
    "Company": frozenset({("zeta", "Zug")}),
    "Knows": frozenset({("zed", "bob", 2009)}),
    "WorksAt": frozenset({("zed", "zeta")}),
}


def write_everywhere(graph: Graph) -> None:
    """Add a row to every table: it succeeds only where all of them stand at their pins."""
    graph.load(records(EXTRA), "merge", index=False, retry=0)


def with_extra(contents: Contents) -> Contents:
    """Return contents after `write_everywhere`."""
    return {name: contents[name] | EXTRA[name] for name in contents}


# Processes

_PROGRAM = """
import sys
from tests.support.protocol import act
act(*sys.argv[1:])
"""


def act(root: str, writer: str, pause_at: str = "", action: str = "call") -> None:
    """Be a writer process: open, write, and say so; wait for a line of input at the place given."""
    with omnigraph.open(root) as graph, paused_at(pause_at, action, tell_and_wait):
        WRITERS[writer].run(graph)
    say("done")


@contextmanager
def paused_at(name: str, action: str, call: Callable[[], None]) -> Iterator[None]:
    """Call something the first time that a place is passed; no name, no place."""
    if not name:
        yield
        return
    called: list[bool] = []

    def once() -> None:
        if not called:
            called.append(True)
            call()

    with failpoint(name, action, once):
        yield


def killed(root: Path, writer: str, point: str) -> None:
    """Run a writer in a process that ends at a place, at once, as `kill -9` would end it."""
    with Forked(_PROGRAM, root, writer, **{ENVIRONMENT: f"{point}exit"}) as script:
        assert script.wait() == EXIT_STATUS, f"{writer} did not come to {point}"


def give_up(root: Path, writer: str, point: str) -> None:
    """Run a writer in this process until it fails at a point, and leave what it leaves."""
    name, _, skip = WRITERS[writer].points[point].partition("=")
    with omnigraph.open(root) as graph, failpoint(name, f"{skip}raise"), suppress(RecoveryRequired):
        WRITERS[writer].run(graph)
    assert sidecars(root), f"{writer} left no sidecar at {point}"


@contextmanager
def stopped(root: Path, writer: str, point: str, **environment: str) -> Iterator[Forked]:
    """Run a writer in a process that waits at a place until `go_on`, or until it is killed."""
    name, _, skip = point.partition("=")
    with Forked(_PROGRAM, root, writer, name, f"{skip}call", **environment) as script:
        assert script.read_line() == "paused", f"{writer} did not come to {point}"
        yield script


_WARM_PROGRAM = """
import json, sys
from tests.support.protocol import act
while line := sys.stdin.readline():
    act(*json.loads(line))
"""


class WarmWriter:
    """A writer process for many graphs in turn: it stops and goes on, and starts once."""

    def __init__(self) -> None:
        self._script: Forked | None = None

    @contextmanager
    def stopped(self, root: Path, writer: str, point: str) -> Iterator[None]:
        """Let it write and wait at a place; at the end of the block it goes on, and is waited for."""
        name, _, skip = point.partition("=")
        script, self._script = self._script or Forked(_WARM_PROGRAM), None
        try:
            script.write_line(json.dumps([str(root), writer, name, f"{skip}call"]))
            assert script.read_line() == "paused", f"{writer} did not come to {point}"
            yield
            script.write_line()
            assert script.read_line() == "done"
        except BaseException:
            script.end()
            raise
        self._script = script

    def close(self) -> None:
        """End the process."""
        if self._script is not None:
            self._script.end()


def go_on(script: Forked) -> None:
    """Let a stopped writer finish, and wait until it has."""
    script.write_line()
    assert script.read_line() == "done"
    assert script.wait() == 0


def tell_and_wait() -> None:
    """Say where this process is, and wait for a line of input."""
    say("paused")
    assert input() == ""


def say(line: str) -> None:
    """Write a line for the test that reads this process's output."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def sidecars(root: Path) -> tuple[Path, ...]:
    """Return the sidecars that are there, oldest first."""
    return tuple(sorted((root / RECOVERY_DIR).glob("*.json")))
