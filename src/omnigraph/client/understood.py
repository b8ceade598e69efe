"""Documents of a server that are not what this API answers with.

Whatever answers at an address may be something else, or hostile: what cannot be read is one typed error.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from omnigraph.core.access_errors import TransportError

NOT_OF_THIS_API = "the server's answer is not one of this API"
_NOT_AS_EXPECTED = (LookupError, TypeError, ValueError, AttributeError, StopIteration)


@contextmanager
def understood() -> Iterator[None]:
    """Read a document inside of this.

    Raises:
        TransportError: it lacks what it must have, or has it as another kind of value.
    """
    try:
        yield
    except _NOT_AS_EXPECTED as error:
        raise TransportError(NOT_OF_THIS_API) from error
