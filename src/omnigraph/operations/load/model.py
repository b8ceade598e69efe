"""What goes into a load, and what comes out of it."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypedDict

import pyarrow as pa

from omnigraph.bulk.connect.progress import ProgressCallback, silent
from omnigraph.bulk.sources.sources import SourceInput
from omnigraph.core.cleared_property import ClearedProperty
from omnigraph.core.errors import BadRequest
from omnigraph.core.values import shown
from omnigraph.history.commits import GraphCommit
from omnigraph.operations.engine import ChosenEngine, Engine, check_engine
from omnigraph.operations.ensure_indices import PendingIndex
from omnigraph.validate.violations import Violation

LoadMode = Literal["append", "merge", "overwrite"]
MODES: tuple[LoadMode, ...] = ("append", "merge", "overwrite")
OnError = Literal["fail", "skip"]
ON_ERROR: tuple[OnError, ...] = ("fail", "skip")


@dataclass(frozen=True, slots=True)
class RecordInput:
    """The NDJSON text of one input, with its name in errors."""

    data: bytes
    name: str | None = None


@dataclass(frozen=True, slots=True)
class TableInput:
    """A table of one type."""

    table_key: str
    table: pa.Table
    name: str | None = None


@dataclass(frozen=True, slots=True)
class FrameInput:
    """A Spark DataFrame of one type; its rows stay where they are."""

    table_key: str
    frame: Any
    name: str | None = None


LoadInput = RecordInput | TableInput | SourceInput | FrameInput


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """How a load is done.

    `rejects` is a file for all violations, which names inputs by `input_names`. A dry run writes nothing.
    `has_strict_columns` refuses an upsert that would clear properties of existing rows because its
    input leaves their columns out. `makes_vectors` fills the `@embed` properties that rows lack.
    """

    mode: LoadMode
    engine: Engine = "auto"
    master: str | None = None
    is_dry_run: bool = False
    on_error: OnError = "fail"
    rejects: Path | None = None
    progress: ProgressCallback = silent
    has_strict_columns: bool = False
    makes_vectors: bool = False
    input_names: tuple[str | None, ...] = ()

    def __post_init__(self) -> None:
        """Refuse unknown words.

        Raises:
            BadRequest: the mode, the engine or what to do on errors is unknown.
        """
        if not isinstance(self.mode, str) or self.mode not in MODES:
            raise BadRequest(f"mode {shown(self.mode)} is not one of {', '.join(MODES)}")
        check_engine(self.engine)
        if not isinstance(self.on_error, str) or self.on_error not in ON_ERROR:
            raise BadRequest(f"on_error {shown(self.on_error)} is not one of {', '.join(ON_ERROR)}")

    @property
    def needs_all_violations(self) -> bool:
        """Whether the first violations are not enough: a file takes all, and they name the rows to skip."""
        return self.rejects is not None or self.on_error == "skip"


class SentKeywords(TypedDict, total=False):
    """The keyword arguments of a load that a server takes, too."""

    branch: str | None
    from_: str | None
    message: str | None
    index: bool
    dry_run: bool
    strict_columns: bool


class LoadKeywords(SentKeywords, total=False):
    """The keyword arguments of a load, whatever it reads."""

    actor: str | None
    engine: Engine
    master: str | None
    on_error: OnError
    rejects: str | Path | None
    progress: ProgressCallback
    embed: bool
    retry: float | None


@dataclass(frozen=True, slots=True)
class LoadResult:
    """What a load did. `commit` is its own; indexes are built in a second one.

    `rejected_rows` were left out because of `violations`, of which the first are listed. `cleared` are
    properties of existing rows: an upsert replaces whole rows. `vectors` is how many were made from texts.
    """

    branch: str | None
    mode: LoadMode
    tables: tuple[tuple[str, int], ...]
    commit: GraphCommit | None
    index_commit: GraphCommit | None = None
    pending_indexes: tuple[PendingIndex, ...] = ()
    warnings: tuple[str, ...] = ()
    engine: ChosenEngine = "local"
    is_dry_run: bool = False
    rejected_rows: int = 0
    violations: tuple[Violation, ...] = field(default=(), repr=False)
    base_branch: str | None = None  # what the branch was created from, if this load created it
    branch_created: bool = False
    cleared: tuple[ClearedProperty, ...] = ()
    vectors: int = 0
