"""Settings of queries from the environment; a malformed one is its default, with a warning."""

import logging
import os

from omnigraph.exec.settings import QuerySettings, TraversalMode

MEMORY_BYTES, TIMEOUT_MS = "OMNIGRAPH_QUERY_MEMORY_BYTES", "OMNIGRAPH_QUERY_TIMEOUT_MS"
FRONTIER_MAX, HOPS_MAX = "OMNIGRAPH_EXPAND_INDEXED_MAX_FRONTIER", "OMNIGRAPH_EXPAND_INDEXED_MAX_HOPS"
TRAVERSAL_MODE = "OMNIGRAPH_TRAVERSAL_MODE"
MEMORY_SHARE = 4  # of the machine's memory, a query may take one part in so many
_log = logging.getLogger("omnigraph")


def query_settings() -> QuerySettings:
    """Return the settings of this process, read now."""
    defaults = QuerySettings()
    frontier, hops = _number(FRONTIER_MAX), _number(HOPS_MAX)
    return QuerySettings(
        memory_bytes=_number(MEMORY_BYTES) or machine_memory() // MEMORY_SHARE,
        timeout_ms=_number(TIMEOUT_MS) or None,
        indexed_frontier_max=defaults.indexed_frontier_max if frontier is None else frontier,
        indexed_hops_max=defaults.indexed_hops_max if hops is None else hops,
        traversal_mode=_mode(),
    )


def machine_memory() -> int:
    """Return how many bytes of memory the machine has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _mode() -> TraversalMode:
    raw = os.environ.get(TRAVERSAL_MODE, "")
    if raw and raw not in list(TraversalMode):
        _log.warning("%s=%r is neither indexed nor csr: the default is used", TRAVERSAL_MODE, raw)
        raw = ""
    return TraversalMode(raw or "auto")


def _number(name: str) -> int | None:
    """Return a setting, or none where it is not given or no number."""
    raw = os.environ.get(name, "")
    if raw and not raw.isdecimal():
        _log.warning("%s=%r is not a number: the default is used", name, raw)
    return int(raw) if raw.isdecimal() else None
