"""Documents of a server that are not what this API answers with.

Whatever answers at an address may be something else, or hostile: what cannot be read is one typed error.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from omnigraph.core.access_errors import TransportError

if TYPE_CHECKING:
    from omnigraph.wire.responses import WireDocument

NOT_OF_THIS_API = "the server's answer is not one of this API"
_NOT_AS_EXPECTED = (
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    StopIteration,
    ArithmeticError,  # a time that no calendar has
    RecursionError,
)


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


def check_document(document: object, *shapes: "type[WireDocument]") -> dict[str, Any]:
    """Return a document that has one of these shapes; members that they do not name are a newer server's.

    Raises:
        TransportError: it has none of them.
    """
    for shape in shapes:
        with suppress(ValueError):
            shape.model_validate(document, strict=True, extra="ignore")
            assert isinstance(document, dict), "shapes are those of objects"
            return document
    raise TransportError(NOT_OF_THIS_API)
