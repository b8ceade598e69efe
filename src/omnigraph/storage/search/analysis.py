"""The words of a text column, analysed here: for rows that no index covers, and for tables that need none.

A1  The analysis is the index's own: both find the same rows and count the same words.
A2  What was analysed belongs to a data file, which never changes: a later version reads new fragments only.
"""

import secrets
from collections.abc import Iterable, Iterator
from typing import cast

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from lance import FieldStatistics
from lance.fragment import LanceFragment

from omnigraph.core.arrays import RowIds
from omnigraph.storage.search.search import ANALYSIS
from omnigraph.storage.search.words import AnalysedRows, AnalysisCache
from omnigraph.storage.tables.handle import SnapshotHandle
from omnigraph.storage.tables.reading import reading

BATCH_CHARACTERS = 1_000_000  # of one call of the analyser, so that its tokens stay within some tens of MB


def analysed(
    cache: AnalysisCache, handle: SnapshotHandle, column: str, fragments: Iterable[int] | None
) -> Iterator[AnalysedRows]:
    """Yield the words of a column by fragment, of all fragments or those given; only rows of this version."""
    chosen = None if fragments is None else set(fragments)
    for fragment in handle._dataset.get_fragments():
        if chosen is None or fragment.fragment_id in chosen:
            with reading(handle, "text"):
                yield _of_fragment(cache, handle, column, fragment)


def column_bytes(handle: SnapshotHandle, column: str) -> int:
    """Return how many bytes a column takes on disk, deleted rows included."""
    with reading(handle, "size"):
        fields = {field.name(): field.id() for field in handle._dataset.lance_schema.fields()}
        statistics = handle._dataset.stats.data_stats()
    described = cast("list[FieldStatistics]", statistics.fields)  # typed as a single one by the library
    return int(next(found.bytes_on_disk for found in described if found.id == fields[column]))


def _of_fragment(
    cache: AnalysisCache, handle: SnapshotHandle, column: str, fragment: LanceFragment
) -> AnalysedRows:
    metadata = fragment.metadata
    key = ("words", handle.address.uri, column, *(file.path for file in metadata.files))
    found = metadata.deletion_file  # its text would only say how many rows it hides
    deletions = "" if found is None else f"{found.read_version}-{found.id}-{found.base_id}"
    kept = cache.get(key)
    known = kept if isinstance(kept, AnalysedRows) else None
    if known is None or known.deletions != deletions:
        known = _refreshed(handle, column, fragment, known, deletions)
        cache.put(key, known)
    return known


def _refreshed(
    handle: SnapshotHandle, column: str, fragment: LanceFragment, kept: AnalysedRows | None, deletions: str
) -> AnalysedRows:
    """Return the words of the rows that are left; only what was never read is analysed (A2)."""
    if kept is not None:
        scanned = handle._dataset.scanner(columns=["_rowid"], fragments=[fragment]).to_table()
        live = scanned["_rowid"].to_numpy().astype(np.int64)
        if np.isin(live, kept.row_ids, assume_unique=True).all():
            return _only(kept, np.isin(kept.row_ids, live, assume_unique=True), deletions)
    scanned = handle._dataset.scanner(columns=[column, "_rowid"], fragments=[fragment]).to_table()
    row_ids = scanned["_rowid"].to_numpy().astype(np.int64)
    return _analyse_rows(row_ids, cast("list[str | None]", scanned[column].to_pylist()), deletions)


def _only(kept: AnalysedRows, is_live: npt.NDArray[np.bool_], deletions: str) -> AnalysedRows:
    renumbered = np.cumsum(is_live, dtype=np.int32) - 1
    stays = is_live[kept.places]
    before = np.concatenate([[0], np.cumsum(stays)])
    return AnalysedRows(
        kept.row_ids[is_live],
        kept.lengths[is_live],
        kept.words,
        before[kept.starts].astype(np.int64),
        renumbered[kept.places[stays]].astype(np.int32),
        kept.counts[stays],
        deletions,
    )


def _analyse_rows(row_ids: RowIds, texts: list[str | None], deletions: str) -> AnalysedRows:
    places: list[npt.NDArray[np.int64]] = []
    words: list[pa.Array[pa.StringScalar]] = []
    for start, batch in _batches(texts):
        place, found = _analyse_batch(batch)
        places.append(place + start)
        words.append(found)
    all_words = pa.concat_arrays([pa.array([], pa.utf8()), *words])
    encoded = all_words.dictionary_encode()
    numbers = encoded.indices.to_numpy().astype(np.int64)
    all_places = np.concatenate(places or [np.empty(0, np.int64)])
    width = max(len(texts), 1)
    pairs, counts = np.unique(numbers * width + all_places, return_counts=True)
    dictionary = cast("list[str]", encoded.dictionary.to_pylist())
    return AnalysedRows(
        row_ids,
        np.bincount(all_places, minlength=len(texts)).astype(np.int32),
        {word: number for number, word in enumerate(dictionary)},
        np.searchsorted(pairs, np.arange(len(dictionary) + 1) * width).astype(np.int64),
        (pairs % width).astype(np.int32),
        counts.astype(np.int32),
        deletions,
    )


def _batches(texts: list[str | None]) -> Iterator[tuple[int, list[str]]]:
    """Yield runs of texts, each for about one call of the analyser, with the place of its first text."""
    start, size, batch = 0, 0, list[str]()
    for place, text in enumerate(texts):
        batch.append(text or "")
        size += len(text or "")
        if size >= BATCH_CHARACTERS:
            yield start, batch
            start, size, batch = place + 1, 0, []
    if batch:
        yield start, batch


def _analyse_batch(texts: list[str]) -> tuple[npt.NDArray[np.int64], "pa.Array[pa.StringScalar]"]:
    """Return all words of some texts, each with the place of its text.

    One call analyses them all: a word that none of them has separates the texts.
    """
    border = ""
    while not border or any(border in text for text in texts):
        border = str(secrets.randbits(100))  # the stemmer leaves digits alone
    joined = f" {border} ".join(texts)
    words = pa.array([token.text for token in lance.tokenize(joined, **ANALYSIS)], pa.utf8())
    is_border = np.asarray(pc.equal(words, pa.scalar(border)))
    places = np.cumsum(is_border)
    return places[~is_border], words.filter(pa.array(~is_border))
