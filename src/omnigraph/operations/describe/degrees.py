"""How many edges of a type the nodes at one of its ends have."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Degrees:
    """The edges of each node of a type, nodes without any included; without nodes there are only zeros."""

    nodes: int
    nodes_without: int
    minimum: int
    median: float
    mean: float
    maximum: int


def degrees(edges: pa.Table, end: str, nodes: int) -> Degrees:
    """Return the numbers of edges of so many nodes, from the column that names one end of all edges."""
    counts = edges.group_by(end).aggregate([(end, "count")])[f"{end}_count"].to_numpy()
    without = max(nodes - len(counts), 0)
    every = np.concatenate([np.zeros(without, np.int64), counts])
    if not len(every):
        return Degrees(nodes, 0, 0, 0.0, 0.0, 0)
    return Degrees(
        nodes,
        without,
        int(every.min()),
        float(np.median(every)),
        float(every.mean()),
        int(every.max()),
    )
