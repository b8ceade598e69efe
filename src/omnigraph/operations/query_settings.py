"""Settings of queries from the environment; a malformed one is its default, with a warning."""

import os

from omnigraph.core.environment import number_setting, word_setting
from omnigraph.exec.settings import QuerySettings, TraversalMode

MEMORY_BYTES, TIMEOUT_MS = "OMNIGRAPH_QUERY_MEMORY_BYTES", "OMNIGRAPH_QUERY_TIMEOUT_MS"
FRONTIER_MAX, HOPS_MAX = "OMNIGRAPH_EXPAND_INDEXED_MAX_FRONTIER", "OMNIGRAPH_EXPAND_INDEXED_MAX_HOPS"
TRAVERSAL_MODE = "OMNIGRAPH_TRAVERSAL_MODE"
MEMORY_SHARE = 4  # of the machine's memory, a query may take one part in so many


def query_settings() -> QuerySettings:
    """Return the settings of this process, read now."""
    defaults = QuerySettings()
    return QuerySettings(
        memory_bytes=number_setting(MEMORY_BYTES, 0) or machine_memory() // MEMORY_SHARE,
        timeout_ms=number_setting(TIMEOUT_MS, 0) or None,
        indexed_frontier_max=number_setting(FRONTIER_MAX, defaults.indexed_frontier_max),
        indexed_hops_max=number_setting(HOPS_MAX, defaults.indexed_hops_max),
        traversal_mode=word_setting(TRAVERSAL_MODE, TraversalMode.AUTO),
    )


def machine_memory() -> int:
    """Return how many bytes of memory the machine has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
