"""From the columns of one input to rows with ids: the last step, which all readers share."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.arrow_schema import arrow_schema
from omnigraph.catalog.model import EdgeType, NodeType
from omnigraph.core.arrays import Mask
from omnigraph.validate.columns import Column, TypedRows, charge, to_mask, true_positions
from omnigraph.validate.defaults import fill_unsaid
from omnigraph.validate.ids import derive_ids
from omnigraph.validate.new_ids import made_ids
from omnigraph.validate.values import quote
from omnigraph.validate.violations import ViolationKind, ViolationLog

Flaw = tuple[int, str, str]  # row, property, message


@dataclass(frozen=True, slots=True)
class Converted:
    """The columns of one type from one input, with the values that could not be converted.

    `columns` are the properties, and `src` and `dst` of edges. `given_ids` has a null for a row without an
    id, or is `None` when no row has one. `left_out` are the properties that some record did not mention;
    `unsaid` marks those records for each of them that has a default.
    """

    type: NodeType | EdgeType
    columns: Mapping[str, Column]
    flaws: Sequence[Flaw]
    given_ids: Column | None
    lines: npt.NDArray[np.int64]
    left_out: frozenset[str] = frozenset()
    unsaid: Mapping[str, Mask] = field(default_factory=dict)


def assemble(converted: Converted, *, file: int, make_id: Callable[[], str], log: ViolationLog) -> TypedRows:
    """Return the rows with their ids and the defaults they take, and report the flaws.

    A keyed node whose given id does not match its key is a violation of its record; the record goes no
    further.
    """
    type_, count = converted.type, len(converted.lines)
    if isinstance(type_, NodeType) and type_.key is not None:
        ids = derive_ids(type_, converted.columns)
        is_fresh = False
    else:
        ids, is_fresh = _given_or_made(converted.given_ids, count, make_id)
    schema = arrow_schema(type_)
    given = dict(converted.columns)
    for name, unsaid in converted.unsaid.items():
        given[name] = fill_unsaid(given[name], type_.properties[name], unsaid)
    table = pa.Table.from_arrays([ids, *(given[name] for name in schema.names[1:])], schema=schema)
    files = np.full(count, file, dtype=np.int32)
    masks = _masks(converted.flaws, count)
    rows = TypedRows(type_, table, files, converted.lines, masks, is_fresh, converted.left_out)
    wrong = _wrong_ids(rows, converted, log)
    _report_flaws(rows, converted.flaws, wrong, log)
    return rows.filter(~wrong)


def _given_or_made(given: Column | None, count: int, make_id: Callable[[], str]) -> tuple[Column, bool]:
    if given is None:
        return made_ids(make_id, count), True
    if given.null_count == 0:
        return given, False
    absent = to_mask(given.is_null())
    whole = given.combine_chunks() if isinstance(given, pa.ChunkedArray) else given
    return pc.replace_with_mask(whole, pa.array(absent), made_ids(make_id, int(absent.sum()))), False


def _masks(flaws: Sequence[Flaw], count: int) -> dict[str, Mask]:
    masks = {name: np.zeros(count, dtype=np.bool_) for name in {name for _, name, _ in flaws}}
    for row, name, _ in flaws:
        masks[name][row] = True
    return masks


def _wrong_ids(rows: TypedRows, converted: Converted, log: ViolationLog) -> Mask:
    given = converted.given_ids
    wrong = np.zeros(rows.count, dtype=np.bool_)
    if given is None or not isinstance(rows.type, NodeType) or rows.type.key is None:
        return wrong
    positions = true_positions(pc.not_equal(given, rows.ids))
    wrong[positions] = True
    key = ", ".join(rows.type.key)
    charge(
        rows,
        positions,
        log,
        kind=ViolationKind.RECORD,
        message=lambda row: (
            f"{rows.type.name} has id {quote(given[row])}, but its key ({key}) gives {quote(rows.ids[row])}"
        ),
    )
    return wrong


def _report_flaws(rows: TypedRows, flaws: Sequence[Flaw], wrong: Mask, log: ViolationLog) -> None:
    constraints = {name: position for position, name in enumerate(rows.type.properties)}
    texts: dict[str, dict[int, str]] = {}
    for row, name, message in flaws:
        if not wrong[row]:
            texts.setdefault(name, {})[row] = message
    for name, messages in texts.items():
        positions = np.fromiter(messages, dtype=np.int64, count=len(messages))
        charge(
            rows,
            positions,
            log,
            kind=ViolationKind.TYPE,
            message=messages.__getitem__,
            constraint=constraints[name],
        )
