"""Which arrays of slots, id indexes and adjacencies are kept in files, and how they are restored.

A file names the lineage, generation and pin of every table it was made from. When restored, each must be of
the generation in use; that its pin is a version of this very table is checked by the transaction's uuid.
"""

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.core.arrays import Positions, SlotArray, Values
from omnigraph.exec.dense.adjacency import NO_OVERLAY, Adjacency, Csr
from omnigraph.exec.dense.columns import DenseColumn
from omnigraph.exec.dense.disk import Arrays, Stored
from omnigraph.exec.dense.ids import ID, Hashes, HashTable, IdIndex, restored
from omnigraph.exec.dense.slots import RowIds, SlotBase, Slots, TableLineage, TablePin, empty_slots, words
from omnigraph.storage.versions.difference import FragmentState, Layout


def file_name(kind: str, *lineages: TableLineage) -> str:
    """Return the name of a file: one for each structure of a lineage, whatever its version."""
    parts = [f"{lineage.identity.object_part}@{lineage.ref or ''}" for lineage in lineages]
    return f"{kind}-{'-'.join(parts)}"


def slots_file(slots: Slots) -> tuple[dict[str, Any], Arrays]:
    """Return what a file of slots holds: the base, at its own version."""
    base = slots.base
    about = {"slots": _view(slots), "first": base.first, "count": base.count}
    return about, {} if base.row_ids is None else {"row_ids": base.row_ids}


def slots_from(stored: Stored) -> Slots:
    """Return the view that a file of slots holds."""
    about = stored.about
    pin, generation, size, layout = _unview(about["slots"])
    row_ids = cast("RowIds | None", stored.arrays.get("row_ids"))
    base = SlotBase(generation, about["first"], about["count"], row_ids)
    return Slots(pin, base, size=size, dead=empty_slots(), layout=layout)


def ids_file(index: IdIndex) -> tuple[dict[str, Any], Arrays]:
    """Return what a file of ids holds."""
    column, offsets, data = index.column, *_strings(index.column.base)
    about = {"slots": _view(column.slots), "is_large": pa.types.is_large_string(column.base.type)}
    dead = column.slots.dead
    return about, {
        "hashes": index.base.hashes,
        "slots": index.base.slots,
        "offsets": offsets,
        "data": data,
        "dead": dead,
    }


def ids_from(stored: Stored, current: Slots) -> IdIndex | None:
    """Return the index that a file holds, or `None` if it was made for other slots."""
    arrays = stored.arrays
    slots = _slots(stored.about["slots"], cast("SlotArray", arrays["dead"]), current)
    if slots is None:
        return None
    offsets, data = arrays["offsets"], arrays["data"]
    type_ = pa.large_utf8() if stored.about["is_large"] else pa.utf8()
    buffers = [None, pa.py_buffer(offsets.data), pa.py_buffer(data.data)]
    ids = cast("Values", pa.Array.from_buffers(type_, len(offsets) - 1, buffers))
    column = DenseColumn(slots.pin, ID, ids, empty_slots(), ids.slice(0, 0), slots.layout, slots)
    table = HashTable(cast("Hashes", arrays["hashes"]), cast("SlotArray", arrays["slots"]))
    return restored(column, table)


def adjacency_file(adjacency: Adjacency) -> tuple[dict[str, Any], Arrays]:
    """Return what a file of an adjacency without overlay holds."""
    views = {"edges": adjacency.edges, "sources": adjacency.sources, "targets": adjacency.targets}
    base = adjacency.base
    about = {**{key: _view(slots) for key, slots in views.items()}, "dangling": base.dangling}
    return about, {
        "indptr": base.indptr,
        "neighbours": base.neighbours,
        "edges": base.edges,
        **{f"dead_{key}": slots.dead for key, slots in views.items()},
    }


def adjacency_from(stored: Stored, *, edges: Slots, sources: Slots, targets: Slots) -> Adjacency | None:
    """Return the adjacency that a file holds, or `None` if it was made for other slots."""
    about, arrays = stored.about, stored.arrays
    current = {"edges": edges, "sources": sources, "targets": targets}
    views = {
        key: _slots(about[key], cast("SlotArray", arrays[f"dead_{key}"]), slots)
        for key, slots in current.items()
    }
    found = [views[key] for key in ("edges", "sources", "targets")]
    if any(slots is None for slots in found):
        return None
    made_edges, made_sources, made_targets = cast("list[Slots]", found)
    base = Csr(
        cast("Positions", arrays["indptr"]),
        cast("SlotArray", arrays["neighbours"]),
        cast("SlotArray", arrays["edges"]),
        made_edges.size,
        about["dangling"],
    )
    return Adjacency(
        base,
        NO_OVERLAY,
        edges=made_edges,
        sources=made_sources,
        targets=made_targets,
        dangling=base.dangling,
    )


def is_of_generation(view: Mapping[str, Any], slots: Slots) -> bool:
    """Say whether a part of a file was made for the slots in use."""
    return _unview(view)[1] == slots.generation


def _view(slots: Slots) -> dict[str, Any]:
    return {
        "version": slots.pin.version,
        "uuid": slots.pin.uuid,
        "generation": [slots.generation.version, slots.generation.uuid],
        "size": slots.size,
        "layout": {
            str(number): [list(part.files), part.deletion, part.rows, part.deleted]
            for number, part in slots.layout.items()
        },
    }


def _unview(view: Mapping[str, Any]) -> tuple[TablePin, TablePin, int, Layout]:
    layout = {
        int(number): FragmentState(tuple(files), deletion, rows, deleted)
        for number, (files, deletion, rows, deleted) in view["layout"].items()
    }
    return TablePin(view["version"], view["uuid"]), TablePin(*view["generation"]), view["size"], layout


def _slots(view: Mapping[str, Any], dead: SlotArray, current: Slots) -> Slots | None:
    pin, generation, size, layout = _unview(view)
    if generation != current.generation:
        return None
    return Slots(pin, current.base, size=size, dead=dead, layout=layout)


def _strings(ids: Values) -> tuple[npt.NDArray[Any], npt.NDArray[np.uint8]]:
    """Return offsets and bytes of strings, starting from zero."""
    dtype = np.dtype(np.int64 if pa.types.is_large_string(ids.type) else np.int32)
    if not len(ids):
        return np.zeros(1, dtype), np.empty(0, np.uint8)
    _, offset_buffer, data_buffer = ids.buffers()
    offsets = words(offset_buffer, dtype)[ids.offset : ids.offset + len(ids) + 1]
    content = words(data_buffer, np.dtype(np.uint8))
    return offsets - offsets[0], content[int(offsets[0]) : int(offsets[-1])]
