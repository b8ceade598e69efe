"""What the two syntax trees share."""

from dataclasses import dataclass, field

from omnigraph.core.span import Span


def span_field() -> Span:
    """Return a field for the position of a tree; comparisons of trees ignore it."""
    place: Span = field(compare=False, repr=False)
    return place


@dataclass(frozen=True, slots=True)
class Name:
    """A name where it is written."""

    text: str
    span: Span = span_field()
