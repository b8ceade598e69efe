"""How queries are run, as the operator of a process chooses it."""

from dataclasses import dataclass
from enum import StrEnum


class TraversalMode(StrEnum):
    """Whether hops go through indexes or through adjacency arrays."""

    AUTO = "auto"
    INDEXED = "indexed"
    CSR = "csr"


@dataclass(frozen=True, slots=True)
class QuerySettings:
    """Limits and choices of every query of a handle; `None` is unlimited."""

    memory_bytes: int | None = None
    timeout_ms: int | None = None
    indexed_frontier_max: int = 1_024
    indexed_hops_max: int = 6
    traversal_mode: TraversalMode = TraversalMode.AUTO
