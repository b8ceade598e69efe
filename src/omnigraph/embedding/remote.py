"""The remote providers: one that speaks OpenAI's protocol, and Gemini."""

from collections.abc import Sequence
from urllib.parse import quote

from omnigraph.core.errors import EmbeddingError
from omnigraph.embedding.config import DEFAULTS, EmbeddingConfig
from omnigraph.embedding.provider import TEXTS_MAX, Role
from omnigraph.embedding.transport import Timing, Transport
from omnigraph.embedding.unit_vector import unit_vector

_TASKS: dict[Role, str] = {"query": "RETRIEVAL_QUERY", "document": "RETRIEVAL_DOCUMENT"}


class _RemoteProvider:
    """A provider behind a connection."""

    def __init__(self, config: EmbeddingConfig, timing: Timing | None = None) -> None:
        """Take the settings; the key is looked up when a text is embedded."""
        self.model = config.model_name
        self._config = config
        self._transport = Transport(config, timing)

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()


class OpenAiProvider(_RemoteProvider):
    """`POST {base}/embeddings` with a bearer key; many texts per request. It has no roles."""

    def embed(self, texts: Sequence[str], role: Role, dimension: int) -> list[list[float]]:  # noqa: ARG002
        """Return one vector per text, in order.

        Raises:
            EmbeddingError: the key is missing, or the provider fails or gives an invalid answer.
        """
        headers = {"authorization": f"Bearer {required_key(self._config)}"}
        vectors: list[list[float]] = []
        for start in range(0, len(texts), TEXTS_MAX):
            part = list(texts[start : start + TEXTS_MAX])
            body = {"model": self.model, "input": part, "dimensions": dimension}
            reply = self._transport.post(f"{self._config.endpoint}/embeddings", body, headers)
            found = _in_order(reply, len(part), self._config.kind)
            vectors += [unit_vector(item, dimension, self._config.kind) for item in found]
        return vectors


class GeminiProvider(_RemoteProvider):
    """`POST {base}/models/{model}:embedContent` with the key in its own header; one text per request."""

    def embed(self, texts: Sequence[str], role: Role, dimension: int) -> list[list[float]]:
        """Return one vector per text, in order.

        Raises:
            EmbeddingError: the key is missing, or the provider fails or gives an invalid answer.
        """
        kind = self._config.kind
        headers = {"x-goog-api-key": required_key(self._config)}
        url = f"{self._config.endpoint}/models/{quote(self.model, safe='', errors='replace')}:embedContent"
        vectors: list[list[float]] = []
        for text in texts:
            body = {
                "content": {"parts": [{"text": text}]},
                "taskType": _TASKS[role],
                "outputDimensionality": dimension,
            }
            reply = self._transport.post(url, body, headers)
            vectors.append(unit_vector(_member(_member(reply, "embedding"), "values"), dimension, kind))
        return vectors


def required_key(config: EmbeddingConfig) -> str:
    """Return the key of a provider.

    Raises:
        EmbeddingError: there is none, naming the variables that may hold one, or it cannot be sent.
    """
    key = config.find_key()
    if key is None:
        names = " or ".join(DEFAULTS[config.kind].key_variables)
        raise EmbeddingError(f"{names} is needed to embed a text with {config.kind}", provider=config.kind)
    if not key.isascii() or not key.isprintable():
        raise EmbeddingError(
            f"the key for {config.kind} has a character that keys cannot have: give it again",
            provider=config.kind,
        )
    return key


def _in_order(reply: object, count: int, provider: str) -> list[object]:
    """Return the vectors of a reply by the index of their text."""
    data = _member(reply, "data")
    items = data if isinstance(data, list) else []
    by_index = {
        index: _member(item, "embedding")
        for item in items
        if isinstance(index := _member(item, "index"), int)
    }
    if len(items) != count or by_index.keys() != set(range(count)):
        raise EmbeddingError(
            f"{provider} was asked for {count} vectors and did not return one for each", provider=provider
        )
    return [by_index[place] for place in range(count)]


def _member(value: object, name: str) -> object:
    return value.get(name) if isinstance(value, dict) else None
