"""Names and ids as parts of an address: what would change the address is in no graph, and is not sent."""

from collections.abc import Callable
from urllib.parse import quote

from omnigraph.core.errors import BadRequest, OmnigraphError
from omnigraph.core.values import is_text, named

# On the way, `.` and `..` are steps in the address, escaped or not; without a name, it is another address.
_STEPS = {"", ".", ".."}


def path_part(what: str, text: object, absent: Callable[[str], OmnigraphError]) -> str:
    """Return a text as one part of the path of an address.

    Raises:
        BadRequest: it is no text.
        OmnigraphError: what `absent` makes of a text that nothing can be called.
    """
    if not isinstance(text, str):
        raise BadRequest(f"{what} must be a text, not {named(text)}")
    if text in _STEPS or not is_text(text):
        raise absent(text)
    return quote(text, safe="")
