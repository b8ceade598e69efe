"""Full-text and vector search of one version of a table, as the library does it.

F1  Every call names its column, its metric and its restriction: nothing is left to a default that depends on
    which indexes there are.
F2  Rows are named by their row ids; a restriction (`row_set.allowed_rows`) holds only rows that exist.
"""

import math
from dataclasses import dataclass
from typing import Any, cast
from weakref import WeakKeyDictionary

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from lance.query import MatchQuery

from omnigraph.core.arrays import Floats, RowIds
from omnigraph.storage.tables.handle import SnapshotHandle
from omnigraph.storage.tables.index import TEXT_ANALYSIS, TEXT_SUFFIX, VECTOR_SUFFIX, name_of
from omnigraph.storage.tables.reading import reading

TOKEN_CHARACTERS_MAX = 40  # of the language specification, 3.9; longer ones are not words
FUZZY_EDITS_MAX = 2  # of the library's automaton; more edits are looked for by a scan
PASS_SHARE = 10  # from one row in this many, ids are read in one pass over the column
EXPANSIONS_MAX = 1_000_000  # terms that one fuzzy term may stand for: all of them; the default cuts at 50

ANALYSIS: dict[str, Any] = {k: v for k, v in TEXT_ANALYSIS.items() if k != "with_position"}
_SPLIT = ANALYSIS | {
    "lower_case": False,
    "ascii_folding": False,
    "remove_stop_words": False,
    "stem": False,
    "max_token_length": None,
}


@dataclass(frozen=True, slots=True)
class IndexCover:
    """Which fragments an index of a column covers; `rows` counts those of the covered ones."""

    covered: frozenset[int]
    uncovered: tuple[int, ...]
    rows: int


@dataclass(frozen=True, slots=True, eq=False)
class NearRows:
    """Rows that a vector search found; every one of them has a vector."""

    row_ids: RowIds
    distances: Floats
    vectors: npt.NDArray[np.float32]


_COVERS: "WeakKeyDictionary[SnapshotHandle, dict[str, IndexCover | None]]" = WeakKeyDictionary()


def analyse(text: str) -> list[str]:
    """Return the tokens of a stored text, as an index has them: lower-case, stemmed, then without accents."""
    return [token.text for token in lance.tokenize(text, **ANALYSIS)]


def analyse_query(text: str) -> list[str]:
    """Return the tokens of a query: as `analyse`, without those longer than a word may be."""
    return analyse(short_words(text))


def short_words(text: str) -> str:
    """Return the words of a text that are short enough to be tokens, not yet analysed."""
    words = (token.text for token in lance.tokenize(text, **_SPLIT))
    return " ".join(word for word in words if len(word) <= TOKEN_CHARACTERS_MAX)


def analyse_words(text: str) -> list[tuple[str, str]]:
    """Return the tokens of a query, each with the word that it was made of."""
    words = ["0", *short_words(text).split()]  # places count from the first token: this one is always there
    found = lance.tokenize(" ".join(words), **ANALYSIS)
    return [(token.text, words[token.position]) for token in found[1:]]


def text_cover(handle: SnapshotHandle, column: str) -> IndexCover | None:
    """Return what the full-text index of a column covers, or `None` if it covers nothing."""
    return _cover(handle, f"{column}{TEXT_SUFFIX}")


def vector_cover(handle: SnapshotHandle, column: str) -> IndexCover | None:
    """Return what the vector index of a column covers, or `None` if it covers nothing."""
    return _cover(handle, f"{column}{VECTOR_SUFFIX}")


def search_text(
    handle: SnapshotHandle, column: str, query: str, *, allowed: bytes, limit: int | None
) -> tuple[RowIds, Floats]:
    """Return rows with any token of the query and their scores, best first; all of them or the best.

    For a column with an index, which decides the analysis, also of rows that it does not cover.
    """
    return _text_rows(handle, MatchQuery(query, column), allowed=allowed, limit=limit)


def search_fuzzy(handle: SnapshotHandle, column: str, token: str, *, edits: int, allowed: bytes) -> RowIds:
    """Return covered rows with a token within this many edits, at least one, of an analysed one."""
    assert 1 <= edits <= FUZZY_EDITS_MAX
    query = MatchQuery(token, column, fuzziness=edits, max_expansions=EXPANSIONS_MAX)
    return _text_rows(handle, query, allowed=allowed, limit=None)[0]


def search_vector(
    handle: SnapshotHandle,
    column: str,
    vector: npt.NDArray[np.float32],
    *,
    allowed: bytes,
    limit: int,
    probes: int | None,
) -> "NearRows":
    """Return the nearest rows with their vectors and squared distances, in single precision, closest first.

    With `probes`, at least that many partitions of an index are searched, and rows outside it exactly;
    without, every row is compared.
    """
    nearest: dict[str, object] = {"column": column, "q": vector, "k": limit, "metric": "l2"}
    nearest |= {"use_index": False} if probes is None else {"minimum_nprobes": probes}
    with reading(handle, "vector search"):
        scanner = handle._dataset.scanner(
            columns=["_rowid", "_distance", column],
            nearest=nearest,
            prefilter=True,
            row_addr_allowlist=allowed,
        )
        found = scanner.to_table()
    row_ids, distances = _ranked(found, "_distance")
    return NearRows(row_ids, distances, _matrix(handle, column, found)[1])


def vectors_of(
    handle: SnapshotHandle, column: str, row_ids: RowIds | None
) -> tuple[RowIds, npt.NDArray[np.float32]]:
    """Return the rows among these, or among all, that have a vector, and a matrix of the vectors."""
    with reading(handle, "vectors"):
        if row_ids is None:
            found = handle._dataset.scanner(columns=[column, "_rowid"]).to_table()
        else:
            found = handle._dataset._take_rows(pa.array(row_ids, pa.uint64()), columns=[column, "_rowid"])
    has_vector, vectors = _matrix(handle, column, found)
    found_ids = found["_rowid"].to_numpy().astype(np.int64)
    return found_ids[has_vector], vectors


def _matrix(
    handle: SnapshotHandle, column: str, found: pa.Table
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.float32]]:
    """Return which rows have a vector, and a matrix of the vectors that there are."""
    column_type = cast("pa.FixedSizeListType[Any]", handle.schema.field(column).type)
    vectors = found[column].combine_chunks()
    has_vector = np.asarray(vectors.is_valid())
    flat = (
        cast("pa.FixedSizeListArray[Any]", vectors).flatten().to_numpy(zero_copy_only=False)
    )  # leaves nulls out
    return has_vector, flat.astype(np.float32, copy=False).reshape(-1, column_type.list_size)


def id_order(handle: SnapshotHandle, row_ids: RowIds) -> RowIds:
    """Return each row's place in the order of their ids, for rows that the version has."""
    dataset = handle._dataset
    with reading(handle, "ids"):
        if len(row_ids) * PASS_SHARE <= handle.row_count:
            ids = dataset._take_rows(pa.array(row_ids, pa.uint64()), columns=["id"])["id"]
        else:
            found = dataset.scanner(columns=["id", "_rowid"]).to_table()
            found_ids = found["_rowid"].to_numpy().astype(np.int64)
            by_row = np.argsort(found_ids)
            ids = found["id"].take(by_row[np.searchsorted(found_ids[by_row], row_ids)])
    places = np.empty(len(row_ids), np.int64)
    places[pc.sort_indices(ids).to_numpy()] = np.arange(len(row_ids))
    return places


def partitions(cover: IndexCover) -> int:
    """Return about how many partitions a vector index has, rather too many than too few (`storage.index`)."""
    return max(1, math.isqrt(cover.rows) + 1)


def _cover(handle: SnapshotHandle, name: str) -> IndexCover | None:
    """Return what an index covers; a handle is one version for good, so once is enough."""
    known = _COVERS.setdefault(handle, {})
    if name not in known:
        known[name] = _described_cover(handle, name)
    return known[name]


def _described_cover(handle: SnapshotHandle, name: str) -> IndexCover | None:
    with reading(handle, "indexes"):
        described = [item for item in handle._dataset.describe_indices() if name_of(item) == name]
    if not described:
        return None
    fragments = {part.fragment_id: part for part in handle._dataset.get_fragments()}
    listed = {number for segment in described[0].segments for number in segment.fragment_ids}
    covered = frozenset(listed & fragments.keys())
    if not covered:
        return None
    rows = sum(fragments[number].physical_rows for number in covered)
    return IndexCover(covered, tuple(sorted(fragments.keys() - covered)), rows)


def _text_rows(
    handle: SnapshotHandle, query: MatchQuery, *, allowed: bytes, limit: int | None
) -> tuple[RowIds, Floats]:
    with reading(handle, "text search"):
        scanner = handle._dataset.scanner(
            columns=["_rowid", "_score"],
            full_text_query=query,
            prefilter=True,
            limit=limit,
            row_addr_allowlist=allowed,
        )
        return _ranked(scanner.to_table(), "_score")


def _ranked(found: pa.Table, column: str) -> tuple[RowIds, Floats]:
    row_ids = found["_rowid"].to_numpy().astype(np.int64)
    return row_ids, found[column].to_numpy().astype(np.float64)
