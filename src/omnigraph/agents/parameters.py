"""The parameters of a query that is put together: every value gets a name, and travels beside it (A1)."""

from omnigraph.core.errors import BadRequest
from omnigraph.core.values import is_count, shown


class QueryParameters:
    """Values, and the types with which the query declares them."""

    def __init__(self) -> None:
        """Begin without any."""
        self.values: dict[str, object] = {}
        self._types: list[str] = []

    def add(self, value: object, type_: str) -> str:
        """Take a value and return the word that stands for it in the text."""
        name = f"p{len(self._types)}"
        self._types.append(type_)
        self.values[name] = value
        return f"${name}"

    def query(self, body: str) -> str:
        """Return the text of a query that declares them all."""
        declared = ", ".join(f"$p{place}: {type_}" for place, type_ in enumerate(self._types))
        return f"query asked({declared}) {{\n{body}\n}}"


def row_limit(name: str, count: object) -> int:
    """Return how many rows are wanted: a limit is written into the text, so it must be a number.

    Raises:
        BadRequest: it is none, or below zero.
    """
    if not is_count(count):
        raise BadRequest(f"{name} must be a whole number from 0 on, not {shown(count)}")
    assert isinstance(count, int)
    return count
