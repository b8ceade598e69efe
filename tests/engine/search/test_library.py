"""The searches of the conformance list, one level below queries: on the library, with and without indexes."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from omnigraph.core.errors import ExecutionError
from omnigraph.exec.search import Ranked, bm25, fuse, fuzzy_matching, matching, nearest
from omnigraph.graph.opening import init
from omnigraph.storage.tables.handle import SnapshotHandle
from omnigraph.storage.tables.table import TableStore
from tests.support.engine import LIBRARY, ndjson
from tests.support.library import LIB
from tests.support.seam import internals

WEST, NOWHERE = [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]


@dataclass
class Books:
    store: TableStore
    handle: SnapshotHandle
    by_row: dict[int, str]

    def codes(self, row_ids: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> list[str]:
        return [self.by_row[row_id] for row_id in row_ids.tolist()]

    def rows(self, *codes: str) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
        return np.array([row_id for row_id, code in self.by_row.items() if code in codes], np.int64)


@pytest.fixture(scope="module", params=["no index", "index", "small table"])
def books(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Books]:
    root: Path = tmp_path_factory.mktemp("books") / "graph"
    with init(root, LIB, durability="process") as graph:
        graph.load(ndjson(LIBRARY), "append", index=request.param != "no index")
        parts = internals(graph).parts
        entry = graph.snapshot().entry("node:Book")
        handle = parts.open(entry)
        parts.store.analyses.small_rows = 100 if request.param == "small table" else 0
        found = parts.store.scan(handle, columns=["id"], with_row_id=True)
        by_row = {row["_rowid"]: row["id"] for row in found.to_pylist()}
        yield Books(parts.store, handle, by_row)


@pytest.mark.case("languages", 174)
@pytest.mark.parametrize(
    ("query", "within", "expected"),
    [
        ("MACHINE", None, {"AA-2", "BB-2"}),
        ("the and of", None, set()),
        ("", None, set()),
        (".*[", None, set()),
        ("rivers", ["BB-2"], {"BB-2"}),
        ("rivers", [], set()),
    ],
)
def test_search(books: Books, query: str, within: list[str] | None, expected: set[str]) -> None:
    rows = None if within is None else books.rows(*within)

    assert set(books.codes(matching(books.store, books.handle, "blurb", query, rows))) == expected


@pytest.mark.case("languages", 175)
@pytest.mark.case("languages", 224)
@pytest.mark.parametrize(
    ("field", "query", "edits", "expected"),
    [
        ("title", "Qviet", 1, {"AA-2"}),
        ("title", "Qviet", 0, set()),
        ("blurb", "machines", 0, {"AA-2", "BB-2"}),
        ("blurb", "machynes", 1, {"AA-2", "BB-2"}),
        ("blurb", "the", 2, set()),
        ("blurb", "q", 1_000, {"AA-1", "AA-2", "BB-2"}),
    ],
)
def test_fuzzy(books: Books, field: str, query: str, edits: int, expected: set[str]) -> None:
    found = fuzzy_matching(books.store, books.handle, field, query, edits, None)

    assert set(books.codes(found)) == expected


@pytest.mark.case("languages", 175)
def test_match_text(books: Books) -> None:
    found = matching(books.store, books.handle, "blurb", "machines silent")

    assert set(books.codes(found)) == {"AA-2", "BB-2"}


@pytest.mark.case("languages", 176)
def test_bm25_prefers_the_shorter_text(books: Books) -> None:
    ranked = bm25(books.store, books.handle, "blurb", "rivers", None, None)

    assert books.codes(ranked.row_ids) == ["BB-2", "AA-1"]
    assert books.codes(bm25(books.store, books.handle, "blurb", "rivers", None, 1).row_ids) == ["BB-2"]
    assert len(bm25(books.store, books.handle, "blurb", "rivers", None, 0).row_ids) == 0


@pytest.mark.case("languages", 177)
@pytest.mark.case("languages", 178)
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(
    ("limit", "within", "expected"),
    [
        (10, None, ["AA-1", "BB-2", "AA-2"]),
        (2, None, ["AA-1", "BB-2"]),
        (1, ["AA-2", "BB-1"], ["AA-2"]),
        (5, ["AA-2"], ["AA-2"]),
        (5, ["BB-1"], []),
        (0, None, []),
    ],
)
def test_nearest(
    books: Books, limit: int, within: list[str] | None, expected: list[str], exact: bool
) -> None:
    rows = None if within is None else books.rows(*within)

    ranked = nearest(books.store, books.handle, "embedding", WEST, rows, limit, exact)

    assert books.codes(ranked.row_ids) == expected


@pytest.mark.case("languages", 221)
def test_distances_are_euclidean_and_ties_go_by_id(books: Books) -> None:
    ranked = nearest(books.store, books.handle, "embedding", NOWHERE, None, 3, False)

    assert books.codes(ranked.row_ids) == ["BB-2", "AA-1", "AA-2"]
    assert ranked.scores.tolist() == pytest.approx([0.82**0.5, 1.0, 1.0])


@pytest.mark.case("languages", 179)
def test_a_tie_of_a_fusion_goes_to_the_first_arm(books: Books) -> None:
    close = nearest(books.store, books.handle, "embedding", WEST, None, 3, False)
    relevant = bm25(books.store, books.handle, "blurb", "rivers", None, None)

    assert books.codes(fuse(close, relevant, 60, 3).row_ids) == ["AA-1", "BB-2", "AA-2"]
    assert books.codes(fuse(relevant, close, 60, 3).row_ids) == ["BB-2", "AA-1", "AA-2"]


@pytest.mark.parametrize(
    "vector", [[1.0], [1.0] * 5, [], [float("nan")] * 4, [float("inf"), 0.0, 0.0, 0.0], [1e39, 0.0, 0.0, 0.0]]
)
def test_a_vector_that_fits_no_property_is_refused(books: Books, vector: list[float]) -> None:
    with pytest.raises(ExecutionError, match="embedding"):
        nearest(books.store, books.handle, "embedding", vector, None, 3, False)


def ranked(*row_ids: int) -> Ranked:
    return Ranked(np.array(row_ids, np.int64), np.zeros(len(row_ids)))


def test_a_fusion_adds_up_the_shares_of_both_arms() -> None:
    fused = fuse(ranked(7, 5, 3), ranked(5, 9), 1, 10)

    assert fused.row_ids.tolist() == [5, 7, 9, 3]
    assert fused.scores.tolist() == pytest.approx([1 / 3 + 1 / 2, 1 / 2, 1 / 3, 1 / 4])
    assert fuse(ranked(7, 5, 3), ranked(5, 9), 1, 2).row_ids.tolist() == [5, 7]
    assert fuse(ranked(), ranked(), 60, 5).row_ids.tolist() == []
