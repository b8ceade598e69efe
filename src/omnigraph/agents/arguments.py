"""What a program or a model gives to an adapter: accepted, or refused with what is expected.

A text is a sequence of its letters, so one in place of a list of ids would name entities that nobody meant.
"""

from enum import Enum
from math import isfinite

from omnigraph.core.errors import BadRequest
from omnigraph.core.values import named
from omnigraph.graph.arguments import given_names


def listed_texts(name: str, given: object) -> list[str]:
    """Return the texts of a list that a call cannot do without.

    Raises:
        BadRequest: it is no list of texts; one text is none either.
    """
    texts = given_names(name, given)
    if texts is None:
        raise BadRequest(f"{name} must be a list of texts, not {named(given)}")
    return list(texts)


def listed_ids(name: str, given: object) -> list[str | None]:
    """Return the ids of a list, in which None stands for one that is still to be made.

    Raises:
        BadRequest: it is no list of texts.
    """
    if isinstance(given, list | tuple):
        given_names(name, [item for item in given if item is not None])
        return list(given)
    return [*listed_texts(name, given)]


def check_finite(where: str, value: object) -> None:
    """Make sure that every number in a value is one that a graph holds: JSON would have null in its place.

    Raises:
        BadRequest: one is infinite, or is no number.
    """
    match value:
        case float():
            if not isfinite(value):
                raise BadRequest(
                    f"{where}: {float(value)} is not a number that a graph holds: "
                    "give None where nothing is known"
                )
        case list() | tuple() | set() | frozenset():
            for item in value:
                if type(item) is not float or not isfinite(item):  # vectors are long
                    check_finite(where, item)
        case Enum():
            check_finite(where, value.value)
        case _ if type(value).__module__ == "numpy":
            plain = value.tolist()  # type: ignore[attr-defined] # a number, a time or an array
            if type(plain) is not type(value):
                check_finite(where, plain)
        case _:
            return
