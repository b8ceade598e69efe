"""What an upsert clears in existing rows: it replaces whole rows, so what its input lacks becomes null.

C1  A property counts for a row that has a value for it before the load and none afterwards, however that came
    about. Both engines count alike.
C2  Strict columns refuse only what was left unsaid: a property that some record of the type does not mention.
    An explicit null in the input is what its author wants.
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
    """Return what a load clears, by table and property; `nulls` are the properties it writes as null (C1).

    Raises:
        ColumnsLeftOut: the options ask for all columns, and one that existing rows have was left out (C2).
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
