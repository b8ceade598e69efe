"""Which provider embeds, and how patiently; from the caller or from the environment."""

import logging
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from omnigraph.core.environment import number_setting

PROVIDER, BASE_URL, MODEL = "OMNIGRAPH_EMBED_PROVIDER", "OMNIGRAPH_EMBED_BASE_URL", "OMNIGRAPH_EMBED_MODEL"
TIMEOUT_MS, DEADLINE_MS = "OMNIGRAPH_EMBED_TIMEOUT_MS", "OMNIGRAPH_EMBED_DEADLINE_MS"
RETRY_ATTEMPTS, RETRY_BACKOFF_MS = "OMNIGRAPH_EMBED_RETRY_ATTEMPTS", "OMNIGRAPH_EMBED_RETRY_BACKOFF_MS"
FORCE_MOCK = "OMNIGRAPH_EMBEDDINGS_MOCK"

_TRUTHY = frozenset({"1", "true", "yes", "on"})
_log = logging.getLogger("omnigraph")


@dataclass(frozen=True, slots=True)
class ProviderDefaults:
    """What a kind of provider uses where the configuration says nothing."""

    key_variables: tuple[str, ...]
    base_url: str
    model: str


DEFAULT_KIND, MOCK = "openai-compatible", "mock"
DEFAULTS: Mapping[str, ProviderDefaults] = {
    DEFAULT_KIND: ProviderDefaults(
        ("OPENROUTER_API_KEY", "OPENAI_API_KEY"),
        "https://openrouter.ai/api/v1",
        "openai/text-embedding-3-large",
    ),
    "openai": ProviderDefaults(("OPENAI_API_KEY",), "https://api.openai.com/v1", "text-embedding-3-large"),
    "gemini": ProviderDefaults(
        ("GEMINI_API_KEY",), "https://generativelanguage.googleapis.com/v1beta", "gemini-embedding-2"
    ),
    MOCK: ProviderDefaults((), "", ""),
}


@dataclass(frozen=True, slots=True)
class EmbeddingConfig:
    """A provider and its settings; a setting that is `None` has the default of the provider's kind.

    Without `api_key` the key is looked up in the environment when a text is embedded. A deadline of zero is
    no deadline. Nothing is checked before it is needed: a graph that never embeds needs no provider.
    """

    kind: str = DEFAULT_KIND
    model: str | None = None
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    timeout_ms: int = 30_000
    deadline_ms: int = 60_000  # for all attempts together
    retry_attempts: int = 4  # attempts in total, including the first
    retry_backoff_ms: int = 200  # before the second attempt; doubled before each later one

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> "EmbeddingConfig":
        """Return what the variables say; a malformed number gets its default, with a warning."""
        given = os.environ if environment is None else environment
        kind = given.get(PROVIDER, "") or DEFAULT_KIND
        if given.get(FORCE_MOCK, "").strip().lower() in _TRUTHY:
            if given.get(PROVIDER, "") not in {"", MOCK}:
                _log.warning("%s is set: the mock provider replaces %s", FORCE_MOCK, kind)
            kind = MOCK
        return cls(
            kind=kind,
            model=given.get(MODEL) or None,
            base_url=given.get(BASE_URL) or None,
            timeout_ms=number_setting(TIMEOUT_MS, cls(kind).timeout_ms, least=1, given=given),
            deadline_ms=number_setting(DEADLINE_MS, cls(kind).deadline_ms, least=0, given=given),
            retry_attempts=number_setting(RETRY_ATTEMPTS, cls(kind).retry_attempts, least=1, given=given),
            retry_backoff_ms=number_setting(
                RETRY_BACKOFF_MS, cls(kind).retry_backoff_ms, least=0, given=given
            ),
        )

    @property
    def model_name(self) -> str:
        """The model to use."""
        return DEFAULTS[self.kind].model if self.model is None else self.model

    @property
    def endpoint(self) -> str:
        """The provider's address, without a trailing slash."""
        return (self.base_url or DEFAULTS[self.kind].base_url).rstrip("/")

    @property
    def deadline_s(self) -> float:
        """How long all attempts of one request may take together."""
        return self.deadline_ms / 1_000 if self.deadline_ms else math.inf

    def find_key(self, environment: Mapping[str, str] | None = None) -> str | None:
        """Return the given key, else the first one in the environment, or `None` if there is none."""
        given = os.environ if environment is None else environment
        found = (given.get(name, "").strip() for name in DEFAULTS[self.kind].key_variables)
        return self.api_key or next((key for key in found if key), None)
