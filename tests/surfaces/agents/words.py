"""Vectors with a meaning that a reader can check: how often a text has each of a few words."""

import math

VOCABULARY = ("cat", "dog", "bird", "sea", "hill", "rain")


def vector_of(text: str) -> list[float]:
    """Return the vector of a text; one without any of the words points nowhere in particular."""
    counts = [float(text.lower().split().count(word)) for word in VOCABULARY]
    length = math.hypot(*counts)
    return [count / length for count in counts] if length else [1 / math.sqrt(len(counts))] * len(counts)
