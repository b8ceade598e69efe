"""Points of one table, as snapshots would pin them, and what a plain comparison says of two of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from omnigraph.changes.changed_ids import (
    ChangedIds,
    changed_ids,
    images,
    images_at,
    touched_rows,
)
from omnigraph.storage.tables.pinned import PinnedTable
from omnigraph.storage.tables.refs import RefStore
from omnigraph.storage.tables.residual import InlineCommitResidual
from omnigraph.storage.tables.rows import row_addresses
from omnigraph.storage.tables.table import TableAddress
from omnigraph.storage.tables.undo import TableUndo
from tests.support.tables import SCHEMA, Workbench

Content = dict[str, int | None]


@dataclass
class History:
    """One table with its refs: steps move one ref, and each leaves a point."""

    bench: Workbench
    refs: list[TableAddress] = field(default_factory=list)
    points: list[PinnedTable] = field(default_factory=list)
    contents: list[Content] = field(default_factory=list)

    @staticmethod
    def begin(folder: Path, count: int, *, fragment_rows: int = 10) -> "History":
        bench = Workbench(folder)
        history = History(bench, [bench.address])
        for start in range(0, count, fragment_rows):
            ids = [f"n{number:04d}" for number in range(start, min(count, start + fragment_rows))]
            bench.append(ranked(ids, 0))
        history.mark(bench.address)
        return history

    def on(self, address: TableAddress) -> Workbench:
        """Return the workbench of one ref."""
        bench = Workbench.__new__(Workbench)
        bench.address, bench.store, bench.stager = address, self.bench.store, self.bench.stager
        return bench

    def mark(self, address: TableAddress) -> PinnedTable:
        """Remember where a ref stands now."""
        handle = self.on(address).head()
        point = PinnedTable(address, handle.version, "node:N")
        self.points.append(point)
        table = self.bench.store.scan(handle, columns=["id", "rank"])
        ranks = table["rank"].to_pylist()
        self.contents.append(
            {str(key): rank for key, rank in zip(table["id"].to_pylist(), ranks, strict=True)}
        )
        return point

    def fork(self, point: PinnedTable, name: str) -> TableAddress:
        """Make a ref that begins at a point."""
        address = RefStore(self.bench.store).create(point.address, point.version, name)
        self.refs.append(address)
        return address

    def compact(self, address: TableAddress) -> None:
        """Fold small fragments, and rewrite those with deletions."""
        residual = InlineCommitResidual(self.bench.store)
        residual.compact_files(address, target_rows=10_000, rewrite_deletions=True)

    def roll_back(self, address: TableAddress, version: int) -> str:
        """Bring a ref's content back to that of a version of it."""
        bench = self.on(address)
        staged, form = TableUndo(bench.store).stage_rollback(
            bench.head(), bench.store.open_at(address, version)
        )
        bench.commit(staged)
        return form

    def overwrite(self, address: TableAddress, table: pa.Table) -> None:
        """Replace a ref's content."""
        bench = self.on(address)
        bench.commit(bench.stager.stage_overwrite(bench.head(), SCHEMA, table))

    def compare(self, before: int, after: int) -> ChangedIds:
        """Find the changes between two marks and check them against a plain comparison of contents."""
        was, now = self.contents[before], self.contents[after]
        found = changed_ids(self.bench.store, self.points[before], self.points[after])
        assert found.inserted.to_pylist() == sorted(now.keys() - was.keys())
        assert found.deleted.to_pylist() == sorted(was.keys() - now.keys())
        updated = texts(found.updated)
        assert updated == sorted(set(updated))
        assert {key for key in was.keys() & now.keys() if was[key] != now[key]} <= set(updated)
        assert set(updated) <= was.keys() & now.keys()
        self._check_images(found, before, after)
        self._check_places(found, before)
        self._check_touched(found, before, after)
        return found

    def _check_places(self, found: ChangedIds, before: int) -> None:
        """Check where the updated rows are said to lie."""
        older = self.points[before].open(self.bench.store)
        row_ids = found.rows_before[: len(found.updated)]
        addresses = row_addresses(older, row_ids) if len(row_ids) else row_ids
        assert found.addresses.tolist() == addresses.tolist()

    def _check_touched(self, found: ChangedIds, before: int, after: int) -> None:
        """Check that the quicker answer names the same entities."""
        touched = touched_rows(self.bench.store, self.points[before], self.points[after])
        by_row = images_at(self.bench.store, self.points[before], touched.rows)
        named = {*texts(found.inserted), *texts(found.updated), *texts(found.deleted)}
        assert {*texts(touched.ids), *(key for key, _ in pairs(by_row))} == named

    def _check_images(self, found: ChangedIds, before: int, after: int) -> None:
        sides = (
            (before, [*texts(found.updated), *texts(found.deleted)], found.rows_before),
            (after, [*texts(found.inserted), *texts(found.updated)], found.rows_after),
        )
        for side, ids, row_ids in sides:
            expected = [(key, self.contents[side][key]) for key in ids]
            by_row = images_at(self.bench.store, self.points[side], row_ids)
            assert pairs(by_row) == expected
            by_id = images(self.bench.store, self.points[side], array_of(ids))
            assert pairs(by_id) == sorted(expected)
        seen = changed_ids(self.bench.store, self.points[before], self.points[after], with_images=True)
        assert seen.rows_after.tolist() == found.rows_after.tolist()
        if seen.images is not None:
            assert pairs(seen.images) == expected


def pairs(table: pa.Table) -> list[tuple[str, int | None]]:
    """Return ids and ranks."""
    ids = [str(key) for key in table["id"].to_pylist()]
    return list(zip(ids, table["rank"].to_pylist(), strict=True))


def texts(ids: pa.StringArray) -> list[str]:
    """Return ids as texts."""
    return [str(key) for key in ids.to_pylist()]


def array_of(ids: Sequence[str]) -> pa.StringArray:
    """Return ids as an array."""
    return pa.array(ids, pa.utf8())


def ranked(ids: Sequence[str], rank: int | None) -> pa.Table:
    """Return rows of one rank."""
    return pa.table({"id": list(ids), "rank": [rank] * len(ids)}, schema=SCHEMA)
