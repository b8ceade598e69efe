"""What an upsert clears in existing rows: it replaces whole rows, so what its input lacks becomes null.

A property with a default becomes that instead. It is not counted as cleared, but strict columns refuse it: a
value that nobody mentions must not be lost to a default.

C1  A property counts for a row that has a value for it before the load and none afterwards, however that came
    about. Both engines count alike.
C2  Strict columns refuse only what was left unsaid: a property that some record of the type does not mention.
    An explicit null in the input is what its author wants. Of a property with a default every existing row
    counts that has a value and is replaced.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from omnigraph.catalog.model import Catalog
from omnigraph.core.cleared_property import ClearedProperty
from omnigraph.core.errors import ColumnsLeftOut
from omnigraph.operations.load.model import LoadOptions

CountCleared = Callable[[str, Sequence[str]], Mapping[str, int]]


def cleared_properties(
    options: LoadOptions,
    nulls: Mapping[str, Iterable[str]],
    left_out: Mapping[str, frozenset[str]],
    *,
    count: CountCleared,
    count_replaced: CountCleared,
    catalog: Catalog,
) -> tuple[ClearedProperty, ...]:
    """Return what a load clears, by table and property; `nulls` are the properties it writes as null (C1).

    Raises:
        ColumnsLeftOut: the options ask for all columns, and one that existing rows have was left out (C2).
    """
    if options.mode != "merge":
        return ()
    found = _counted(nulls, count)
    if options.has_strict_columns:
        replaced = _counted(_with_default(left_out, catalog), count_replaced)
        unsaid = {
            (item.table_key, item.property): item
            for item in (*found, *replaced)
            if item.property in left_out.get(item.table_key, frozenset())
        }
        if unsaid:
            raise ColumnsLeftOut([item for _, item in sorted(unsaid.items())])
    return found


def _counted(names: Mapping[str, Iterable[str]], count: CountCleared) -> tuple[ClearedProperty, ...]:
    return tuple(
        ClearedProperty(table_key, name, rows)
        for table_key, properties in sorted(names.items())
        for name, rows in sorted(count(table_key, sorted(properties)).items())
    )


def _with_default(left_out: Mapping[str, frozenset[str]], catalog: Catalog) -> dict[str, list[str]]:
    return {
        key: [name for name in names if catalog.type_of(key).properties[name].default is not None]
        for key, names in left_out.items()
    }
