"""Libraries that come with extras of the package; a program imports them when it asks for their shape."""

import importlib
from typing import Any

from omnigraph.core.errors import UnsupportedError


def extra(library: str, name: str | None = None) -> Any:  # noqa: ANN401 - it is optional, and so are its types
    """Return a library that an extra installs, which has the same name unless another one is given.

    Raises:
        UnsupportedError: it is not installed.
    """
    try:
        return importlib.import_module(library)
    except ImportError as error:
        raise UnsupportedError(
            f"{library} is not installed: pip install 'omnigraph[{name or library}]'"
        ) from error
