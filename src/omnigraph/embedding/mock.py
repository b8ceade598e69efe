"""The offline provider: unit vectors that depend only on the text."""

from collections.abc import Sequence

import numpy as np

from omnigraph.embedding.provider import Role
from omnigraph.embedding.unit_vector import normalised

_MASK = 2**64 - 1
_FNV_OFFSET, _FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3


class MockProvider:
    """Embeds without a model: the same text always gives the same vector, in every role."""

    def __init__(self, model: str) -> None:
        """Take the name to compare with recorded ones."""
        self.model = model

    def embed(self, texts: Sequence[str], role: Role, dimension: int) -> list[list[float]]:  # noqa: ARG002
        """Return one vector per text."""
        return [_vector(text, dimension) for text in texts]

    def close(self) -> None:
        """There is nothing to close."""


def _vector(text: str, dimension: int) -> list[float]:
    state = _fnv1a(text.encode())
    components: list[float] = []
    for _ in range(dimension):
        state = _xorshift(state)
        share = np.float32(state) / np.float32(_MASK)
        components.append(float(np.float32(2) * share - np.float32(1)))
    return normalised(components, "mock")


def _fnv1a(data: bytes) -> int:
    state = _FNV_OFFSET
    for byte in data:
        state = (state ^ byte) * _FNV_PRIME & _MASK
    return state


def _xorshift(state: int) -> int:
    state ^= state << 13 & _MASK
    state ^= state >> 7
    return state ^ (state << 17 & _MASK)
