"""The indexes of a table: how they are asked for, what they are called, and how much they cover."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from omnigraph.storage.tables.handle import SnapshotHandle
from omnigraph.storage.tables.reading import reading

if TYPE_CHECKING:
    from lance.lance.indices import IndexDescription  # exists for type checkers only

IndexForm = Literal["btree", "fulltext", "vector"]
Coverage = Literal["indexed", "degraded"]

_SUFFIX: dict[IndexForm, str] = {"btree": "__btree", "fulltext": "__fts", "vector": "__vector"}
TEXT_SUFFIX, VECTOR_SUFFIX = _SUFFIX["fulltext"], _SUFFIX["vector"]

# Text analysis of the language specification, 3.9; the query side analyses with the same settings.
TEXT_ANALYSIS: dict[str, str | bool | int] = {
    "base_tokenizer": "simple",
    "language": "English",
    "lower_case": True,
    "ascii_folding": True,
    "remove_stop_words": True,
    "stem": True,
    # The library keeps tokens of *fewer* UTF-8 bytes than this. The specification keeps tokens of up to 40
    # characters, of up to four bytes each; the analysis of a query drops longer ones.
    "max_token_length": 4 * 40 + 1,
    "with_position": True,
}


@dataclass(frozen=True, slots=True)
class IndexRequest:
    """An index that a table should have."""

    column: str
    kind: IndexForm
    given_name: str | None = None  # where another column's index, older than its name, has the usual one

    @property
    def name(self) -> str:
        """The name under which it is asked for."""
        return f"{self.column}{_SUFFIX[self.kind]}"


@dataclass(frozen=True, slots=True)
class PendingColumn:
    """An index that cannot be built yet, and why."""

    column: str
    kind: IndexForm
    reason: str


def name_of(described: "IndexDescription") -> str:
    """Return the name under which an index is asked for: of its column, which may have been renamed."""
    (column, *_), suffix = described.field_names, f"__{described.name.rpartition('__')[2]}"
    return f"{column}{suffix}"


@dataclass(frozen=True, slots=True)
class IndexExtent:
    """How much of its table an index covers."""

    segments: int
    rows_uncovered: int
    is_whole: bool  # no fragment is without it

    @property
    def coverage(self) -> Coverage:
        """The same in one word."""
        return "indexed" if self.is_whole else "degraded"


def index_extents(handle: SnapshotHandle) -> dict[str, IndexExtent]:
    """Return, for each index by the name it is asked for, how much it covers; read from the metadata.

    Raises:
        StorageError: the store failed.
    """
    rows = {part.fragment_id: part.metadata.num_rows for part in handle._dataset.get_fragments()}
    with reading(handle, "indexes"):
        described = handle._dataset.describe_indices()
    extents = {}
    for item in described:
        covered = {number for segment in item.segments for number in segment.fragment_ids}
        uncovered = rows.keys() - covered
        extents[name_of(item)] = IndexExtent(
            len(item.segments), sum(rows[number] for number in uncovered), is_whole=not uncovered
        )
    return extents


def uncovered_rows(handle: SnapshotHandle) -> int:
    """Return how many rows a lookup has to look through: those that some B-tree does not cover, at most.

    Raises:
        StorageError: the store failed.
    """
    trees = (extent for name, extent in index_extents(handle).items() if name.endswith(_SUFFIX["btree"]))
    return max((extent.rows_uncovered for extent in trees), default=0)
