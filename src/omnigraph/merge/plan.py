"""Which tables a merge must look at, and in which of two ways the target adopts what it takes.

N1  A table that the source did not change, or that both sides show alike, costs a comparison of two pins.
N2  The target never comes to depend on the source's storage: it adopts rows, or a version on main's own
    storage, which outlives every branch.
N3  Main is never repointed: its pin is its HEAD.
"""

from collections.abc import Iterable, Iterator, Mapping

from omnigraph.catalog.model import Catalog
from omnigraph.history.identity import BranchIdentity, TableIdentity
from omnigraph.history.state import Snapshot
from omnigraph.merge.base import Base, PinnedOf, table_base
from omnigraph.merge.three_way import Points


def tables_to_merge(
    base: Base,
    source: Snapshot,
    target: Snapshot,
    pinned: PinnedOf,
    names: Mapping[TableIdentity, str],
) -> Iterator[Points]:
    """Yield the tables of both sides that the source may have changed, by the names that they will have (N1).

    Tables that only one side has come and go with the schema.
    """
    theirs = {entry.identity: entry for entry in target.entries.values()}
    for ours in sorted(source.entries.values(), key=lambda entry: names.get(entry.identity, "")):
        entry, table_key = theirs.get(ours.identity), names.get(ours.identity)
        if entry is None or table_key is None or ours.pin.names_same(entry.pin):
            continue
        known = table_base(base, ours.identity, pinned)
        if known != pinned(ours):
            yield Points(table_key, known, pinned(ours), pinned(entry))


def can_repoint(points: Points, target: BranchIdentity) -> bool:
    """Return whether the target can show exactly the source's version (N2, N3)."""
    return not target.is_main and points.is_target_unchanged and points.source.address.ref is None


def tables_read(catalog: Catalog, changed: Iterable[str], losing: Iterable[str]) -> frozenset[str]:
    """Return the tables that a merge relies on besides those it changes: ends of edges, edges of lost nodes.

    `losing` are the tables that may lose rows.
    """
    keys, lost = set(changed), set(losing)
    read: set[str] = set()
    for edge in catalog.edges.values():
        ends = {f"node:{edge.source}", f"node:{edge.target}"}
        if edge.table_key in keys:
            read |= ends
        if ends & lost:
            read.add(edge.table_key)
    return frozenset(read - keys)
