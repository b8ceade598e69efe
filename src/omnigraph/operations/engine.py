"""Where bulk work (loads, vectors, exports, columns) is done: in this process, or by the tasks of Spark."""

from collections.abc import Callable, Collection, Iterable
from typing import Literal

from omnigraph.bulk.connect.jobs import Jobs
from omnigraph.bulk.connect.progress import ProgressCallback, silent
from omnigraph.bulk.connect.session import open_session, settings_from
from omnigraph.catalog.arrow_schema import arrow_schema
from omnigraph.catalog.model import EdgeType, NodeType
from omnigraph.commit.parts import Parts
from omnigraph.core.errors import BadRequest, InvariantViolation, StorageError
from omnigraph.core.values import shown
from omnigraph.history.fold import TableEntry
from omnigraph.operations.context import OpenGraph
from omnigraph.operations.settings import environment
from omnigraph.storage.control.durability import Durability
from omnigraph.storage.tables.fragments import FragmentMode, TaskTable
from omnigraph.storage.tables.task_notes import TaskNotes

Engine = Literal["auto", "spark", "local"]
ENGINES: tuple[Engine, ...] = ("auto", "spark", "local")
ChosenEngine = Literal["spark", "local"]


def check_engine(engine: object) -> None:
    """Refuse a word that does not name an engine.

    Raises:
        BadRequest: it does not.
    """
    if not isinstance(engine, str) or engine not in ENGINES:
        raise BadRequest(f"engine {shown(engine)} is not one of {', '.join(ENGINES)}")


def choose_engine(asked: Engine, master: str | None, is_large: Callable[[], bool]) -> ChosenEngine:
    """Return where work is done: where the caller says, else on Spark if it is set up or the work is large.

    Raises:
        SparkUnavailable: the settings of Spark are malformed.
    """
    if asked != "auto":
        return asked
    is_set_up = settings_from(environment(), master=master).is_given
    return "spark" if is_set_up or is_large() else "local"


def start_spark(graph: OpenGraph, master: str | None, progress: ProgressCallback = silent) -> Jobs:
    """Return the jobs of a new operation in the session of this process, which is started if necessary.

    Raises:
        SparkUnavailable: there is no Java, or Spark did not start.
    """
    session = open_session(settings_from(environment(), master=master))
    return Jobs(session, graph.parts.new_id(), progress)


def discard_task_files(
    parts: Parts, notes: TaskNotes, *, known: Iterable[str], handed: Collection[str]
) -> None:
    """Remove the files of tasks that no commit has, when their operation ends; best effort.

    Those that the driver knows of are removed even if it is unknown what else tasks wrote.
    """
    paths = set(known)
    try:
        notes.stop(waits=not handed)  # what has landed does not wait for an attempt that lost
        paths |= notes.files()
    except (StorageError, InvariantViolation) as error:
        parts.warn(f"files of tasks may be left behind: {error}")
    root = parts.root.uri.rstrip("/") + "/"
    for path in sorted(paths - set(handed)):
        try:
            parts.adapter.discard(path.removeprefix(root))
        except StorageError as error:
            parts.warn(f"a file of a task was left behind: {error}")


def task_table(
    graph: OpenGraph,
    type_: NodeType | EdgeType,
    entry: TableEntry,
    mode: FragmentMode,
    notes: TaskNotes | None = None,
) -> TaskTable:
    """Return what a task is told to write rows of a table."""
    parts = graph.parts
    return TaskTable(
        parts.pinned(entry),
        parts.root.uri,
        arrow_schema(type_).serialize().to_pybytes(),
        mode,
        Durability.FULL if parts.syncer.is_active else Durability.PROCESS,
        notes,
        parts.summer.is_active,
    )
