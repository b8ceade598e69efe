"""A provider that is not asked for the same vector twice."""

import hashlib
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from omnigraph.embedding.provider import Provider, Role

REMEMBERED_BYTES_MAX = 256 * 1024 * 1024  # 20,000 vectors of 3,072 numbers
_Digest = bytes


class RememberingProvider:
    """Asks another provider, and keeps its vectors within a memory limit.

    Texts repeat, and a write that met another one is prepared again: neither should be paid for twice.
    Vectors have the precision that tables have. `told` is called with how many vectors each `embed` returned.
    """

    def __init__(
        self,
        provider: Provider,
        *,
        bytes_max: int = REMEMBERED_BYTES_MAX,
        told: Callable[[int], None] | None = None,
    ) -> None:
        """Take the provider to ask."""
        self.model = provider.model
        self._provider, self._told = provider, told
        self._known: dict[tuple[_Digest, Role, int], npt.NDArray[np.float32]] = {}
        self._room = bytes_max

    def embed(self, texts: Sequence[str], role: Role, dimension: int) -> list[list[float]]:
        """Return one vector per text, in order; each unknown text is requested once.

        Raises:
            EmbeddingError: the key is missing, or the provider fails or gives an invalid answer.
        """
        keys = [(_digest(text), role, dimension) for text in texts]
        asked = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._known}
        made: list[list[float]] = []
        if asked:
            made = self._provider.embed(list(asked.values()), role, dimension)
        fresh = {key: np.array(vector, dtype=np.float32) for key, vector in zip(asked, made, strict=True)}
        vectors = [(fresh[key] if key in fresh else self._known[key]).tolist() for key in keys]
        for key, vector in fresh.items():
            if vector.nbytes <= self._room:
                self._room -= vector.nbytes
                self._known[key] = vector
        if self._told is not None:
            self._told(len(vectors))
        return vectors

    def close(self) -> None:
        """Close the connections and forget all vectors."""
        self._known.clear()
        self._provider.close()


def _digest(text: str) -> _Digest:
    return hashlib.blake2b(text.encode(), digest_size=20).digest()
