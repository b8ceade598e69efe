"""Search in one table: words, near words, vectors, and the fusion of two rankings."""

from omnigraph.exec.search.fusion import fuse
from omnigraph.exec.search.matching import fuzzy_matching, matching, tokens
from omnigraph.exec.search.ranked import Ranked
from omnigraph.exec.search.relevance import bm25
from omnigraph.exec.search.vectors import FEW_ROWS, nearest, nearest_in_memory

__all__ = [
    "FEW_ROWS",
    "Ranked",
    "bm25",
    "fuse",
    "fuzzy_matching",
    "matching",
    "nearest",
    "nearest_in_memory",
    "tokens",
]
