"""What a merge takes away from existing rows: it replaces whole rows, so what its input lacks becomes null.

C1  A property counts for a row that has a value of it before the load and none afterwards, however that came
    about. Both engines count alike.
C2  Strict columns refuse only what was not said: a property that some record of the type does not mention. A
    null that stands in the input is what its author wants.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from omnigraph.core.cleared_property import ClearedProperty
from omnigraph.core.errors import ColumnsLeftOut
from omnigraph.operations.load.model import LoadOptions

CountCleared = Callable[[str, Sequence[str]], Mapping[str, int]]


def cleared_properties(
    options: LoadOptions,
    nulls: Mapping[str, Iterable[str]],
    left_out: Mapping[str, frozenset[str]],
    count: CountCleared,
) -> tuple[ClearedProperty, ...]:
    """Return what a load clears, by table and property; `nulls` are the properties that it writes null (C1).

    Raises:
        ColumnsLeftOut: the options ask for all columns, and one was left out that existing rows have (C2).
    """
    if options.mode != "merge":
        return ()
    found = tuple(
        ClearedProperty(table_key, name, rows)
        for table_key, names in sorted(nulls.items())
        for name, rows in sorted(count(table_key, sorted(names)).items())
    )
    unsaid = [item for item in found if item.property in left_out.get(item.table_key, frozenset())]
    if options.has_strict_columns and unsaid:
        raise ColumnsLeftOut(unsaid)
    return found
