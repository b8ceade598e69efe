"""What one run of the program knows about itself, for the edge that reports errors."""

from dataclasses import dataclass


@dataclass(slots=True)
class Invocation:
    """One run; a command that prints a document says so here, and its errors become documents too."""

    is_json: bool = False
