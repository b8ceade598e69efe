"""What every provider of embeddings offers."""

from collections.abc import Sequence
from typing import Literal, Protocol

Role = Literal["query", "document"]
TEXTS_MAX = 256  # of one request; providers refuse some thousands


class Provider(Protocol):
    """Makes vectors of texts.

    E1  A vector that a provider returns has the dimension asked for, is finite and has the length 1.
    E2  No message, no log line and no representation of a provider holds a key.
    """

    @property
    def model(self) -> str:
        """The name of the model, which recorded names are compared with."""

    def embed(self, texts: Sequence[str], role: Role, dimension: int) -> list[list[float]]:
        """Return one vector per text, in order.

        Raises:
            EmbeddingError: the key is missing, or the provider fails or answers nonsense.
        """

    def close(self) -> None:
        """Let go of connections."""
