"""What the environment says about embedding, and what is missing only when it is needed."""

import logging

import pytest

from omnigraph.core.errors import EmbeddingError, EmbeddingModelMismatch
from omnigraph.embedding import Embedder, EmbeddingConfig
from omnigraph.embedding.config import DEFAULTS
from tests.unit.embedding.stand_in import Answer, stand_in

VARIABLES = [
    *("OMNIGRAPH_EMBED_PROVIDER", "OMNIGRAPH_EMBED_BASE_URL", "OMNIGRAPH_EMBED_MODEL"),
    *("OMNIGRAPH_EMBED_TIMEOUT_MS", "OMNIGRAPH_EMBED_DEADLINE_MS", "OMNIGRAPH_EMBED_RETRY_ATTEMPTS"),
    *("OMNIGRAPH_EMBED_RETRY_BACKOFF_MS", "OMNIGRAPH_EMBEDDINGS_MOCK"),
    *("OPENROUTER_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"),
]


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def test_without_variables_the_defaults_hold() -> None:
    config = EmbeddingConfig.from_environment({})

    assert config == EmbeddingConfig()
    assert (config.kind, config.model_name) == ("openai-compatible", "openai/text-embedding-3-large")
    assert config.endpoint == "https://openrouter.ai/api/v1"
    assert (config.timeout_ms, config.deadline_ms) == (30_000, 60_000)
    assert (config.retry_attempts, config.retry_backoff_ms) == (4, 200)


def test_every_variable_is_read() -> None:
    config = EmbeddingConfig.from_environment(
        {
            "OMNIGRAPH_EMBED_PROVIDER": "gemini",
            "OMNIGRAPH_EMBED_BASE_URL": "http://here/v9/",
            "OMNIGRAPH_EMBED_MODEL": "m",
            "OMNIGRAPH_EMBED_TIMEOUT_MS": "1",
            "OMNIGRAPH_EMBED_DEADLINE_MS": "0",
            "OMNIGRAPH_EMBED_RETRY_ATTEMPTS": "2",
            "OMNIGRAPH_EMBED_RETRY_BACKOFF_MS": "3",
        }
    )

    assert config == EmbeddingConfig("gemini", "m", "http://here/v9/", None, 1, 0, 2, 3)
    assert (config.endpoint, config.deadline_s) == ("http://here/v9", float("inf"))


@pytest.mark.parametrize("raw", ["soon", "-1", "1.5", "0"])
def test_a_malformed_number_is_its_default_with_a_warning(raw: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    config = EmbeddingConfig.from_environment({"OMNIGRAPH_EMBED_TIMEOUT_MS": raw})

    assert config.timeout_ms == 30_000
    assert "OMNIGRAPH_EMBED_TIMEOUT_MS" in caplog.text


@pytest.mark.parametrize(
    ("value", "kind"), [("1", "mock"), ("TRUE", "mock"), ("0", "gemini"), ("", "gemini")]
)
def test_mock_can_be_forced_and_says_whom_it_replaces(
    value: str, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    config = EmbeddingConfig.from_environment(
        {"OMNIGRAPH_EMBED_PROVIDER": "gemini", "OMNIGRAPH_EMBEDDINGS_MOCK": value}
    )

    assert config.kind == kind
    assert ("replaces gemini" in caplog.text) is (kind == "mock")


def test_forcing_mock_over_nothing_warns_of_nothing(caplog: pytest.LogCaptureFixture) -> None:
    assert EmbeddingConfig.from_environment({"OMNIGRAPH_EMBEDDINGS_MOCK": "yes"}).kind == "mock"
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("kind", "keys", "expected"),
    [
        ("openai-compatible", {"OPENROUTER_API_KEY": "r", "OPENAI_API_KEY": "o"}, "r"),
        ("openai-compatible", {"OPENROUTER_API_KEY": " ", "OPENAI_API_KEY": "o"}, "o"),
        ("openai", {"OPENROUTER_API_KEY": "r", "OPENAI_API_KEY": "o"}, "o"),
        ("gemini", {"OPENAI_API_KEY": "o", "GEMINI_API_KEY": "g"}, "g"),
        ("gemini", {"OPENAI_API_KEY": "o"}, None),
    ],
)
def test_each_kind_has_its_own_keys(kind: str, keys: dict[str, str], expected: str | None) -> None:
    assert EmbeddingConfig(kind).find_key(keys) == expected
    assert EmbeddingConfig(kind, api_key="given").find_key(keys) == "given"


def test_a_configuration_does_not_show_its_key() -> None:
    assert "secret" not in repr(EmbeddingConfig(api_key="secret"))


@pytest.mark.case("surfaces", 184)
@pytest.mark.case("languages", 180)
@pytest.mark.parametrize("kind", ["openai-compatible", "openai", "gemini"])
def test_a_missing_key_is_an_error_only_when_a_text_is_embedded(kind: str) -> None:
    embedder = Embedder(EmbeddingConfig(kind))

    with pytest.raises(EmbeddingError) as caught:
        embedder.embed_query("rivers", 4, None, "Book.embedding")

    assert all(name in str(caught.value) for name in DEFAULTS[kind].key_variables)
    assert str(caught.value).startswith("execution error: ")


def test_an_unknown_provider_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(EmbeddingError, match=r"'oracle'.*openai-compatible, openai, gemini, mock"):
        Embedder(EmbeddingConfig("oracle")).embed(["a"], "document", 2)


@pytest.mark.case("surfaces", 184)
@pytest.mark.case("languages", 180)
def test_another_model_than_the_recorded_one_is_refused_before_anything_is_sent() -> None:
    embedder = Embedder(EmbeddingConfig("openai", model="other"))

    with pytest.raises(EmbeddingModelMismatch, match=r"Book.embedding.*'lab/mini-4'.*'other'") as caught:
        embedder.embed_query("rivers", 4, "lab/mini-4", "Book.embedding")

    assert (caught.value.recorded, caught.value.actual) == ("lab/mini-4", "other")
    assert caught.value.status == 400


def test_the_recorded_model_runs() -> None:
    embedder = Embedder(EmbeddingConfig("mock", model="lab/mini-4"))

    assert len(embedder.embed_query("rivers", 4, "lab/mini-4", "Book.embedding")) == 4


def test_the_environment_decides_when_the_first_text_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = Embedder()
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")

    first = embedder.embed_query("rivers", 4, None, "Book.embedding")

    assert first == embedder.embed(["rivers"], "document", 4)[0]


def test_one_connection_serves_an_open_graph() -> None:
    with stand_in(Answer({"data": [{"index": 0, "embedding": [0.0, 1.0]}]})) as server:
        embedder = Embedder(EmbeddingConfig(base_url=server.url, api_key="k"))
        for _ in range(3):
            embedder.embed_query("rivers", 2, None, "Book.embedding")
        embedder.close()
        embedder.close()

    assert len({asked.connection for asked in server.asked}) == 1
