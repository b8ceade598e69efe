"""What keeps the first second of a command short: nothing is imported or collected for nothing.

S1  Only the program does this, and only while it runs. As a library we hide no module from anybody's process.
S2  Whoever asks for pandas gets it. One module goes without, which would import it and never use it.
"""

import atexit
import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType

# As it is imported, this part of pyarrow asks whether its own constants are frames of pandas. That imports
# pandas, which is half of what importing Lance costs; pyarrow does without where pandas is not installed.
_ASKS_FOR_NOTHING = "pyarrow._dataset"
# New objects between two collections. Python's 700 are there hundreds of times while modules are imported,
# and what modules make is there to stay.
_OBJECTS_COLLECTED_AT = 50_000


class _NoPandasForNothing:
    """Says that there is no pandas, to one module, while that is imported (S2)."""

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None, _target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        """Leave every module to the other finders but this one, and this one, too, unless it is asked for."""
        if fullname == "pandas" and _is_being_imported(_ASKS_FOR_NOTHING):
            raise ModuleNotFoundError("pandas is imported when it is needed", name=fullname)
        return None


@contextmanager
def lean_imports() -> Iterator[None]:
    """Keep pandas out until it is needed, and collect garbage seldom; afterwards all is as it was (S1)."""
    thresholds = gc.get_threshold()
    gc.set_threshold(_OBJECTS_COLLECTED_AT, *thresholds[1:])
    sys.meta_path.insert(0, _NoPandasForNothing())
    try:
        yield
    finally:
        let_pandas_in()
        gc.set_threshold(*thresholds)


def end_at_once() -> None:
    """Let the process end without a last search for garbage, which is a sixth of what a short command takes.

    For a process that is the program and nobody else's (S1). What is left goes with the process; whatever has
    to be closed is closed by then, or by its own handler at exit: those come first.
    """
    atexit.register(gc.freeze)


def let_pandas_in() -> None:
    """End the hiding, for a command in which pyarrow has use for pandas.

    It makes Python values of moments with nanoseconds, which tables from elsewhere have, by means of pandas,
    and looks for it only once.
    """
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _NoPandasForNothing)]


def _is_being_imported(name: str) -> bool:
    spec = getattr(sys.modules.get(name), "__spec__", None)
    return bool(getattr(spec, "_initializing", False))
