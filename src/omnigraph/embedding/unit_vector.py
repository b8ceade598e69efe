"""Checking what a provider answered."""

import math
from collections.abc import Sequence
from typing import cast

from omnigraph.core.errors import EmbeddingError


def unit_vector(reply: object, dimension: int, provider: str) -> list[float]:
    """Return a reply as a vector of length 1.

    Raises:
        EmbeddingError: it is not that many numbers, one of them is not finite, or all are zero.
    """
    if not isinstance(reply, list) or len(reply) != dimension:
        length = len(reply) if isinstance(reply, list) else "none"
        raise EmbeddingError(
            f"{provider} was asked for a vector of {dimension} numbers and returned {length}",
            provider=provider,
        )
    if not all(isinstance(item, int | float) and not isinstance(item, bool) for item in reply):
        raise EmbeddingError(f"{provider} returned a vector that is not all numbers", provider=provider)
    numbers = cast("Sequence[float]", reply)
    if not all(map(_is_finite, numbers)):
        raise EmbeddingError(
            f"{provider} returned a vector with a component that is not finite", provider=provider
        )
    return normalised(numbers, provider)


def _is_finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:  # an integer that no float can hold
        return False


def normalised(numbers: Sequence[float], provider: str) -> list[float]:
    """Return a vector with the same direction and length 1.

    Raises:
        EmbeddingError: it is the zero vector, which has no direction.
    """
    greatest = max(abs(item) for item in numbers)
    if greatest == 0:
        raise EmbeddingError(f"{provider} returned a vector of zeros", provider=provider)
    scaled = [item / greatest for item in numbers]  # so that no square overflows or vanishes
    length = math.hypot(*scaled)
    return [item / length for item in scaled]
