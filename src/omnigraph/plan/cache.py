"""Plans made earlier, kept for reuse.

C1  What depends on the text and the schema is keyed by these; what depends on data, by the pins as well.
    Parameters are in no key.
C2  A cached plan is determined by its key: nothing needs to be invalidated, old entries are only evicted.
C3  Thread-safe. No thread waits while a plan is made; two may make the same one, and both use the first.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TypeVar, cast

from omnigraph.core.recent import Recent
from omnigraph.plan.physical import PhysicalPlan

PLANS_MAX = 512  # of each kind: an application has tens of queries, a console makes new ones all day
CACHED_TEXT_MAX = 65_536  # characters: larger texts are generated, rarely twice, and would fill memory

Cached = TypeVar("Cached")


@dataclass(frozen=True, slots=True)
class PhysicalKey:
    """What decides a physical plan; `pins` are those of the tables that the query reads."""

    text: str
    name: str | None
    schema_hash: str
    pins: Hashable


class PlanCache:
    """The plans of one process; the least recently used is evicted first."""

    def __init__(self, plans_max: int = PLANS_MAX) -> None:
        self._logical: Recent[tuple[str, str | None, str], object] = Recent(plans_max)
        self._physical: Recent[PhysicalKey, PhysicalPlan] = Recent(plans_max)

    def logical(self, text: str, name: str | None, schema_hash: str, make: Callable[[], Cached]) -> Cached:
        """Return what was made from a query's text under a schema, making it if it is not cached.

        An error from `make` is raised and not remembered. One cache holds one kind of value.
        """
        if len(text) > CACHED_TEXT_MAX:
            return make()
        return cast("Cached", self._logical.made((text, name, schema_hash), make))

    def physical(self, key: PhysicalKey, make: Callable[[], PhysicalPlan]) -> PhysicalPlan:
        """Return the plan of a query for pinned versions, making it if it is not cached.

        An error from `make` is raised and not remembered.
        """
        if len(key.text) > CACHED_TEXT_MAX:
            return make()
        return self._physical.made(key, make)
