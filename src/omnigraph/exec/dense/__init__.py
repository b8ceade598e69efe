"""Dense ids, adjacency and columns: what queries derive from pinned tables."""

from omnigraph.exec.dense.adjacency import Adjacency
from omnigraph.exec.dense.derived import Derived
from omnigraph.exec.dense.disk import CacheSettings
from omnigraph.exec.dense.ids import IdIndex
from omnigraph.exec.dense.resident import DerivedCounts
from omnigraph.exec.dense.slots import OpenTable, Slots

__all__ = ["Adjacency", "CacheSettings", "Derived", "DerivedCounts", "IdIndex", "OpenTable", "Slots"]
