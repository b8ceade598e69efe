"""What a write asks of the disk, counted call by call."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, replace
from time import perf_counter, process_time
from unittest import mock

from lance import LanceDataset

from omnigraph.graph.graph import Graph
from omnigraph.storage.control.local_files import LocalFiles
from omnigraph.storage.control.object_store import StorageAdapter
from omnigraph.storage.tables.handle import TableAddress
from omnigraph.storage.tables.table import TableStore

_READS = ("read_text", "read_text_if_exists", "read_texts", "read_text_versioned", "exists")
_WRITES = (
    "write_text",
    "write_text_if_absent",
    "write_text_if_match",
    "rename_text",
    "delete",
    "discard",
    "delete_prefix",
)
_LISTS = ("list_dir",)


@dataclass(frozen=True, slots=True)
class Counts:
    """Requests of one piece of work: Lance's and those on control files."""

    reads: int = 0
    writes: int = 0
    lists: int = 0
    fsyncs: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def __sub__(self, other: "Counts") -> "Counts":
        return Counts(*(getattr(self, f.name) - getattr(other, f.name) for f in fields(self)))

    @property
    def total(self) -> int:
        """All requests together."""
        return self.reads + self.writes + self.lists + self.fsyncs


@dataclass(frozen=True, slots=True)
class Sample:
    """One commit: how long it took by the clock and on the processors, and what it asked for."""

    wall_ms: float
    cpu_ms: float
    counts: Counts


class Counter:
    """Counts the requests of one open graph, for good: it is wrapped around the graph's parts.

    A look for the newest version of a dataset is a list, whether Lance lists or follows its hint.
    """

    def __init__(self, graph: Graph) -> None:
        """Take over the control files of a graph."""
        self._parts = graph._graph.parts
        self._calls = dict.fromkeys(("reads", "writes", "lists"), 0)
        graph._graph.parts = replace(self._parts, adapter=_counting(self._parts.adapter, self._calls))

    def measure(self, work: Callable[[], object]) -> Sample:
        """Do a piece of work and say what it cost."""
        before = self._now()
        wall, cpu = perf_counter(), process_time()
        with self._counting_lists():
            work()
        wall_ms, cpu_ms = (perf_counter() - wall) * 1_000, (process_time() - cpu) * 1_000
        return Sample(wall_ms, cpu_ms, self._now() - before)

    def _now(self) -> Counts:
        lance = self._parts.store.io_stats()
        adapter, syncer = self._parts.adapter, self._parts.syncer
        control_fsyncs = adapter.fsyncs if isinstance(adapter, LocalFiles) else 0
        return Counts(
            reads=lance.reads + self._calls["reads"],
            writes=lance.writes + self._calls["writes"],
            lists=self._calls["lists"],
            fsyncs=syncer.fsyncs + syncer.syncfs + control_fsyncs,
        )

    @contextmanager
    def _counting_lists(self) -> Iterator[None]:
        calls = self._calls
        real_open, real_probe = TableStore._open, TableStore.latest_version

        def open_(store: TableStore, address: TableAddress, version: int | None) -> LanceDataset:
            calls["lists"] += version is None
            return real_open(store, address, version)

        def probe(store: TableStore, address: TableAddress) -> int:
            calls["lists"] += 1
            return real_probe(store, address)

        with ExitStack() as stack:
            stack.enter_context(mock.patch.object(TableStore, "_open", open_))
            stack.enter_context(mock.patch.object(TableStore, "latest_version", probe))
            yield


def _counting(adapter: StorageAdapter, calls: dict[str, int]) -> StorageAdapter:
    """Return the control files of a graph, with a count of the calls."""
    counted = mock.create_autospec(adapter, instance=True)
    for kind, names in (("reads", _READS), ("writes", _WRITES), ("lists", _LISTS)):
        for name in names:
            getattr(counted, name).side_effect = _counted(getattr(adapter, name), kind, calls)
    stand_in: StorageAdapter = counted
    return stand_in


def _counted(method: Callable[..., object], kind: str, calls: dict[str, int]) -> Callable[..., object]:
    def call(*arguments: object, **keywords: object) -> object:
        calls[kind] += 1
        return method(*arguments, **keywords)

    return call
