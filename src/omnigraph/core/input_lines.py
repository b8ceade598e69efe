"""A part of the input of a load, by its lines."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class InputLines:
    """Lines of one file of the input, the first and the last included."""

    file: int
    first: int
    last: int
