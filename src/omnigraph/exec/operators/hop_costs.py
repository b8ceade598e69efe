"""What hops through indexes have cost so far, so that arrays are built once they would have been cheaper.

The rule is that of renting skis: rent until the rent paid has reached a share of the price. A few queries
never pay for arrays; with many, what was spent on hops before is small in comparison.
"""

import threading

BUILD_MS_PER_EDGE = 0.000_2
BUILD_MS_PER_EDGE_LARGE = 0.000_4  # once the ids of the nodes no longer fit the processor's caches
PATIENCE = 0.25  # the share: sessions in between are rare, people look once or stay
LARGE_NODE_TABLE = 500_000
CostKey = tuple[object, ...]


def predicted_ms(frontier: int) -> float:
    """Return what one hop through an index will take."""
    return 1 + 0.35 * min(frontier, 100) + 0.07 * max(0, frontier - 100)


def build_ms(edges: int, nodes: int) -> float:
    """Return what building the arrays will take."""
    return edges * (BUILD_MS_PER_EDGE_LARGE if nodes > LARGE_NODE_TABLE else BUILD_MS_PER_EDGE)


class HopCosts:
    """Milliseconds spent per edge table; safe to share between threads."""

    def __init__(self) -> None:
        """Start with nothing spent."""
        self._lock = threading.Lock()
        self._spent: dict[CostKey, float] = {}

    def is_worth_building(self, lineage: CostKey, next_ms: float, price_ms: float) -> bool:
        """Return whether the next hop would bring what was spent above the share of the price."""
        with self._lock:
            return self._spent.get(lineage, 0.0) + next_ms > price_ms * PATIENCE

    def spend(self, lineage: CostKey, ms: float) -> None:
        """Add what a hop took."""
        with self._lock:
            self._spent[lineage] = self._spent.get(lineage, 0.0) + ms
