"""What makes a command start quickly: nothing is imported or collected needlessly.

S1  Only the program does this, and only while it runs. As a library we hide no module from the host process.
S2  Code that asks for pandas gets it. One module goes without: it would import pandas and never use it.
"""

import atexit
import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType

# On import, this part of pyarrow checks whether its own constants are data frames of pandas. That imports
# pandas, which is half the cost of importing Lance; pyarrow does without where pandas is not installed.
_ASKS_FOR_NOTHING = "pyarrow._dataset"
# New objects between two collections. Importing modules passes Python's default of 700 hundreds of times,
# and what modules create stays alive anyway.
_OBJECTS_COLLECTED_AT = 50_000


class _NoPandasForNothing:
    """Tells one module, while it is imported, that there is no pandas (S2)."""

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None, _target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        """Leave every module to the other finders, except pandas while that one module is imported."""
        if fullname == "pandas" and _is_being_imported(_ASKS_FOR_NOTHING):
            raise ModuleNotFoundError("pandas is imported when it is needed", name=fullname)
        return None


@contextmanager
def lean_imports() -> Iterator[None]:
    """Keep pandas out until it is needed, and collect garbage rarely; both are undone at the end (S1)."""
    thresholds = gc.get_threshold()
    gc.set_threshold(_OBJECTS_COLLECTED_AT, *thresholds[1:])
    sys.meta_path.insert(0, _NoPandasForNothing())
    try:
        yield
    finally:
        let_pandas_in()
        gc.set_threshold(*thresholds)


def end_at_once() -> None:
    """Let the process end without a last garbage collection, a sixth of the time of a short command.

    Only for a process that runs nothing but the program (S1). What is left goes with the process; whatever
    must be closed is already closed, or is closed by its own exit handler: those run first.
    """
    atexit.register(gc.freeze)


def let_pandas_in() -> None:
    """Stop hiding pandas, for a command in which pyarrow needs it.

    pyarrow uses it to turn timestamps with nanoseconds, found in tables from elsewhere, into Python values,
    and looks for it only once.
    """
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _NoPandasForNothing)]


def _is_being_imported(name: str) -> bool:
    spec = getattr(sys.modules.get(name), "__spec__", None)
    return bool(getattr(spec, "_initializing", False))
