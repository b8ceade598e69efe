"""What a graph says about itself: rows, pins, HEADs, commits, audit rows and files."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import omnigraph
from omnigraph.commit.sidecar import RECOVERY_DIR
from omnigraph.graph.graph import Graph
from omnigraph.history.commits import RECOVERY_ACTOR
from tests.support.protocol import COLUMNS, Contents
from tests.support.seam import internals


@dataclass(frozen=True, slots=True)
class Recovery:
    """One row of the audit: how it ended, for whom, and where each table went."""

    kind: str
    writer_kind: str | None
    outcomes: tuple[tuple[str, int, int], ...]
    actor: str | None = None
    commit_id: str | None = None

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that recovery did something with."""
        return tuple(table_key for table_key, _, _ in self.outcomes)


@dataclass(frozen=True, slots=True)
class Books:
    """What a graph says about itself, read without touching it."""

    contents: Contents
    pins: Mapping[str, int]
    heads: Mapping[str, int]
    recoveries: tuple[Recovery, ...]
    recovery_commits: tuple[str, ...]
    commits: int
    files: tuple[str, ...]


def books(root: Path) -> Books:
    """Read everything through a handle of its own, oldest recoveries first."""
    with omnigraph.open(root, mode="ro") as graph:
        parts = internals(graph).parts
        entries = graph.snapshot().entries
        commits = graph.commits()
        return Books(
            contents=contents_of(graph),
            pins={key: entry.version for key, entry in entries.items()},
            heads={key: parts.store.latest_version(parts.address(entry)) for key, entry in entries.items()},
            recoveries=tuple(
                Recovery(
                    found.recovery_kind.value,
                    found.writer_kind,
                    tuple((o.table_key, o.from_version, o.to_version) for o in found.outcomes),
                    found.recovery_for_actor,
                    found.graph_commit_id,
                )
                for found in reversed(graph.recoveries())
            ),
            recovery_commits=tuple(c.graph_commit_id for c in commits if c.actor_id == RECOVERY_ACTOR),
            commits=len(commits),
            files=recovery_files(root),
        )


def contents_of(graph: Graph) -> Contents:
    """Return all rows; a row that is there twice is a mistake of the engine."""
    found = {}
    for name, columns in COLUMNS.items():
        rows = [tuple(row[column] for column in columns) for row in graph.table(name).to_pylist()]
        assert len(set(rows)) == len(rows), f"{name} has a row twice: {rows}"
        found[name] = frozenset(rows)
    return found


def recovery_files(root: Path) -> tuple[str, ...]:
    """Return the sidecars and lock files that are there."""
    folder = root / RECOVERY_DIR
    return tuple(sorted(path.name for path in folder.iterdir())) if folder.is_dir() else ()


def fingerprint(root: Path) -> dict[str, str]:
    """Return every file of the graph with what is in it."""
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def assert_settled(root: Path, contents: Contents, recoveries: int) -> Books:
    """Assert what holds after every recovery, and return the books for what is particular."""
    found = books(root)
    assert found.contents == contents
    assert found.heads == found.pins
    assert (len(found.recoveries), len(found.recovery_commits)) == (recoveries, recoveries), found
    assert {recovery.commit_id for recovery in found.recoveries} == set(found.recovery_commits)
    assert found.files == ()
    return found


def assert_reopening_changes_nothing(root: Path) -> None:
    """Open for writing once more: not a byte of the graph is another one."""
    before = fingerprint(root)
    omnigraph.open(root).close()
    assert fingerprint(root) == before
