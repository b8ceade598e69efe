"""What embeds the texts of one open graph.

G1  One provider, with one client, for as long as the graph is open; made when the first text is embedded.
G2  A text is embedded only by the model that its property was embedded with, where that is recorded.
"""

import threading
from collections.abc import Sequence

from omnigraph.core.errors import EmbeddingError, EmbeddingModelMismatch
from omnigraph.embedding.config import DEFAULTS, MOCK, EmbeddingConfig
from omnigraph.embedding.provider import Provider, Role


class Embedder:
    """Embeds texts with the configured provider; safe to share between threads."""

    def __init__(self, config: EmbeddingConfig | None = None) -> None:
        """Take a configuration; without one the environment decides, when the first text is embedded."""
        self._config = config
        self._lock = threading.Lock()
        self._provider: Provider | None = None

    def embed_query(self, text: str, dimension: int, recorded_model: str | None, where: str) -> list[float]:
        """Return the vector of the text given to a search of the property `where`.

        Raises:
            EmbeddingModelMismatch: the property records another model (G2).
            EmbeddingError: there is no such provider, its key is missing, or it fails.
        """
        provider = self._opened()
        if recorded_model is not None and recorded_model != provider.model:
            raise EmbeddingModelMismatch(property=where, recorded=recorded_model, actual=provider.model)
        return provider.embed([text], "query", dimension)[0]

    def embed(self, texts: Sequence[str], role: Role, dimension: int) -> list[list[float]]:
        """Return one vector per text, in order.

        Raises:
            EmbeddingError: there is no such provider, its key is missing, or it fails.
        """
        return self._opened().embed(texts, role, dimension)

    def close(self) -> None:
        """Close the connections; the next text would be embedded by a new provider."""
        with self._lock:
            provider, self._provider = self._provider, None
        if provider is not None:
            provider.close()

    def _opened(self) -> Provider:
        with self._lock:
            if self._provider is None:
                self._provider = open_provider(self._config or EmbeddingConfig.from_environment())
            return self._provider


def open_provider(config: EmbeddingConfig) -> Provider:
    """Return the provider that a configuration names; nothing is connected yet.

    Raises:
        EmbeddingError: there is no provider of that kind.
    """
    if config.kind == MOCK:
        from omnigraph.embedding.mock import MockProvider

        return MockProvider(config.model_name)
    if config.kind not in DEFAULTS:
        known = ", ".join(DEFAULTS)
        raise EmbeddingError(
            f"there is no embedding provider {config.kind!r}: use one of {known}", provider=config.kind
        )
    from omnigraph.embedding.remote import GeminiProvider, OpenAiProvider

    return GeminiProvider(config) if config.kind == "gemini" else OpenAiProvider(config)
