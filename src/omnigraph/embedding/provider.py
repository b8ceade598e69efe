"""What every provider of embeddings offers."""

from collections.abc import Sequence
from typing import Literal, Protocol

Role = Literal["query", "document"]
TEXTS_MAX = 256  # per request; providers refuse a few thousand


class Provider(Protocol):
    """Makes vectors from texts.

    E1  A vector that a provider returns has the requested dimension, is finite and has length 1.
    E2  No message, log line or representation of a provider contains a key.
    """

    @property
    def model(self) -> str:
        """The name of the model, to compare with recorded names."""

    def embed(self, texts: Sequence[str], role: Role, dimension: int) -> list[list[float]]:
        """Return one vector per text, in order.

        Raises:
            EmbeddingError: the key is missing, or the provider fails or gives an invalid answer.
        """

    def close(self) -> None:
        """Close the connections."""
