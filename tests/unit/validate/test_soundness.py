"""What counts as sound among arrays that Arrow takes at their word."""

import pyarrow as pa

from omnigraph.validate.soundness import sound_rows
from omnigraph.validate.violations import ViolationLog
from tests.unit.validate.memory_view import type_named


def test_nulls_among_items_that_are_said_to_have_none_are_for_the_value_checks() -> None:
    type_ = pa.list_(pa.field("item", pa.utf8(), nullable=False))
    lists = pa.ListArray.from_arrays(pa.array([0, 2], pa.int32()), pa.array(["a", None]), type=type_)
    table = pa.table({"words": lists})

    found, lines = sound_rows(table, type_named("Note"), file=0, file_name=None, log=ViolationLog())

    assert found is table
    assert lines.tolist() == [1]
