"""Whether a file can be imported: a whole export, in which all records of a type have the same shape.

An import replaces what a graph holds. A file that was put together from several sources, of which one
lacks properties that another has, would replace rows by poorer ones; it is refused before anything is read
into the graph. What is wrong with single lines is the load's to report.
"""

from collections.abc import Iterable
from typing import BinaryIO

import orjson

from omnigraph.bulk.sources.names import resolve_name
from omnigraph.bulk.sources.sources import WHOLE, Format, plan_slices
from omnigraph.bulk.sources.text import read_blocks
from omnigraph.catalog.model import Catalog
from omnigraph.core.errors import BadRequest
from omnigraph.core.values import shown
from omnigraph.operations.load.inputs import STDIN, read_all
from omnigraph.operations.load.model import LoadInput, RecordInput
from omnigraph.operations.settings import read_limits


def whole_export(name: str, catalog: Catalog, stdin: BinaryIO) -> LoadInput:
    """Return the file of a whole export, or standard input for `-`, checked.

    Raises:
        BadRequest: it is not one file of NDJSON, cannot be read, or has a type in two shapes.
        ResourceLimit: a line, or what the file unpacks to, is above a limit.
    """
    if name == STDIN:
        data = read_all(stdin, None)
        require_one_shape([(1, data)])
        return RecordInput(data)
    found = list(resolve_name(name, catalog))
    if len(found) != 1 or found[0].format is not Format.NDJSON:
        raise BadRequest(f"{name} is not one file of NDJSON, as export prints it: load others with load")
    limits = read_limits()
    slices = plan_slices(found, target_bytes=WHOLE, limits=limits)
    require_one_shape(block for slice_ in slices for block in read_blocks(slice_, limits=limits))
    return found[0]


def require_one_shape(blocks: Iterable[tuple[int, bytes]]) -> None:
    """Refuse records of one type that differ in the members of their data; blocks come with their first line.

    Raises:
        BadRequest: two records differ.
    """
    shapes: dict[tuple[str, str], tuple[list[str], int]] = {}
    for first, block in blocks:
        for number, line in enumerate(block.split(b"\n"), first):
            found = _shape(line)
            if found is None:
                continue
            type_, members = found
            known, at = shapes.setdefault(type_, (members, number))
            if members != known and set(members) != set(known):
                differing = ", ".join(sorted(set(members) ^ set(known)))
                raise BadRequest(
                    f"line {number}: this record of {shown(type_[1])} and that of line {at} differ in "
                    f"{shown(differing)}, so the file is no whole export; load --mode overwrite takes it"
                )


def _shape(line: bytes) -> tuple[tuple[str, str], list[str]] | None:
    """Return type and members of a record, or nothing where the load will say what is wrong."""
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(record, dict):
        return None
    kind = "type" if "type" in record else "edge"
    name, data = record.get(kind), record.get("data", {})
    if not isinstance(name, str) or not isinstance(data, dict):
        return None
    # Edge types are matched without regard to case, so they are here.
    return (kind, name if kind == "type" else name.lower()), list(data)
