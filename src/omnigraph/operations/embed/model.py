"""What goes into a run of `embed` inside a graph, and what comes out of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from omnigraph.bulk.connect.progress import ProgressCallback, silent
from omnigraph.bulk.embed import VectorColumn
from omnigraph.catalog.model import NodeType
from omnigraph.core.errors import BadRequest
from omnigraph.embedding.provider import TEXTS_MAX
from omnigraph.history.commits import GraphCommit
from omnigraph.operations.embed.select import EmbedMode, Selector, mode_of, parse_selector
from omnigraph.operations.engine import ChosenEngine, Engine, check_engine
from omnigraph.operations.ensure_indices import PendingIndex
from omnigraph.storage.tables.filter import RowFilter

BATCH_DEFAULT = TEXTS_MAX  # one request of a remote provider


@dataclass(frozen=True, slots=True)
class EmbedOptions:
    """What is embedded, and how.

    `types` are names of node types, or `Type.property` for one of several vectors. Without selectors only
    missing vectors are computed; with them, or with `reembed_all`, existing ones are recomputed too. `batch`
    is how many texts the provider is given at a time.
    """

    types: tuple[str, ...] = ()
    selectors: tuple[Selector, ...] = ()
    reembed_all: bool = False
    batch: int = BATCH_DEFAULT
    engine: Engine = "auto"
    master: str | None = None
    progress: ProgressCallback = silent

    def __post_init__(self) -> None:
        """Refuse values that make no sense.

        Raises:
            BadRequest: the engine is unknown, or a batch is empty.
        """
        check_engine(self.engine)
        if self.batch < 1:
            raise BadRequest(f"a batch must have at least one text, not {self.batch}")

    @property
    def mode(self) -> EmbedMode:
        """What is done to existing vectors."""
        return mode_of(reembed_all=self.reembed_all, selectors=self.selectors)

    @property
    def is_again(self) -> bool:
        """Whether existing vectors are recomputed."""
        return self.reembed_all or bool(self.selectors)


class EmbedKeywords(TypedDict, total=False):
    """The keyword arguments of `Graph.embed`, besides what it embeds."""

    reembed_all: bool
    branch: str | None
    actor: str | None
    message: str | None
    index: bool
    batch: int
    engine: Engine
    master: str | None
    progress: ProgressCallback


@dataclass(frozen=True, slots=True)
class EmbeddedTable:
    """How many rows of a table got vectors, and how many vectors those are."""

    table_key: str
    rows: int
    vectors: int


@dataclass(frozen=True, slots=True)
class EmbedResult:
    """What a run did; without a commit there was nothing to embed. Indexes are built in a second commit."""

    branch: str | None
    mode: EmbedMode
    model: str
    tables: tuple[EmbeddedTable, ...]
    commit: GraphCommit | None
    engine: ChosenEngine = "local"
    index_commit: GraphCommit | None = None
    pending_indexes: tuple[PendingIndex, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EmbedTarget:
    """The vectors of one type to fill, and the rows that lack them or get new ones."""

    type: NodeType
    columns: tuple[VectorColumn, ...]
    where: RowFilter


def embed_options(
    type: str | Sequence[str] | None, select: str | Sequence[str] | None, options: EmbedKeywords
) -> EmbedOptions:
    """Return the options of a call from Python.

    Raises:
        BadRequest: a selector, the engine or the batch is invalid.
    """
    types = (type,) if isinstance(type, str) else tuple(type or ())
    selectors = (select,) if isinstance(select, str) else tuple(select or ())
    return EmbedOptions(
        types,
        tuple(parse_selector(text) for text in selectors),
        options.get("reembed_all", False),
        options.get("batch", BATCH_DEFAULT),
        options.get("engine", "auto"),
        options.get("master"),
        options.get("progress", silent),
    )
