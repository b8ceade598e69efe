"""Remote providers, against a server on this machine."""

import gzip
import json
import logging
import math
import socket
import tracemalloc
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any, Protocol

import pytest

from omnigraph.core.errors import EmbeddingError, ExecutionError
from omnigraph.embedding.config import EmbeddingConfig
from omnigraph.embedding.provider import TEXTS_MAX, Role
from omnigraph.embedding.remote import GeminiProvider, OpenAiProvider
from tests.support.seam import patched
from tests.unit.embedding.stand_in import Answer, FakeTime, StandIn, stand_in

KEY = "sk-very-secret"


def data(*vectors: list[float]) -> dict[str, object]:
    """Return an answer as OpenAI gives it, not in order."""
    items = [{"index": place, "embedding": vector} for place, vector in enumerate(vectors)]
    return {"data": items[::-1]}


class Connect(Protocol):
    def __call__(self, server: StandIn, time: FakeTime | None = None, **settings: int) -> OpenAiProvider: ...


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Give providers of a server, all closed in the end."""
    with ExitStack() as opened:

        def openai(server: StandIn, time: FakeTime | None = None, **settings: int) -> OpenAiProvider:
            values: dict[str, Any] = {"base_url": server.url, "api_key": KEY, "model": "m"} | settings
            provider = OpenAiProvider(EmbeddingConfig(**values), (time or FakeTime()).timing())
            return opened.enter_context(closing(provider))

        yield openai


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENROUTER_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


# Requests


def test_one_request_embeds_many_texts_in_their_order(connect: Connect) -> None:
    with stand_in(Answer(data([3.0, 4.0], [0.0, 2.0]))) as server:
        provider = connect(server)

        vectors = provider.embed(["a", "b"], "document", 2)

    [asked] = server.asked
    assert vectors == [pytest.approx([0.6, 0.8]), [0.0, 1.0]]
    assert asked.path == "/v1/embeddings"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body == {"model": "m", "input": ["a", "b"], "dimensions": 2}


def test_more_texts_than_a_request_takes_are_sent_in_parts_over_one_connection(connect: Connect) -> None:
    full = data(*[[float(place + 1), 0.0] for place in range(TEXTS_MAX)])
    with stand_in(Answer(full), Answer(data([0.0, 1.0]))) as server:
        provider = connect(server)

        vectors = provider.embed(["x"] * (TEXTS_MAX + 1), "document", 2)

    assert [len(asked.body["input"]) for asked in server.asked] == [TEXTS_MAX, 1]
    assert len({asked.connection for asked in server.asked}) == 1
    assert vectors[-1] == [0.0, 1.0]


@pytest.mark.parametrize(("role", "task"), [("query", "RETRIEVAL_QUERY"), ("document", "RETRIEVAL_DOCUMENT")])
def test_gemini_is_told_the_role_and_the_dimension(role: Role, task: str) -> None:
    with stand_in(Answer({"embedding": {"values": [0, 5]}})) as server:
        config = EmbeddingConfig("gemini", base_url=server.url, api_key=KEY)
        with closing(GeminiProvider(config, FakeTime().timing())) as provider:
            vectors = provider.embed(["a", "b"], role, 2)

    assert vectors == [[0.0, 1.0]] * 2
    assert [asked.path for asked in server.asked] == ["/v1/models/gemini-embedding-2:embedContent"] * 2
    assert server.asked[0].headers["x-goog-api-key"] == KEY
    assert "authorization" not in server.asked[0].headers
    assert server.asked[1].body == {
        "content": {"parts": [{"text": "b"}]},
        "taskType": task,
        "outputDimensionality": 2,
    }


def test_no_texts_need_no_request(connect: Connect) -> None:
    with stand_in(Answer(data())) as server:
        provider = connect(server)
        assert provider.embed([], "query", 2) == []

    assert server.asked == []


def test_large_and_tiny_components_are_normalised_without_loss(connect: Connect) -> None:
    with stand_in(Answer(data([3e200, 4e200], [3e-200, 4e-200]))) as server:
        provider = connect(server)
        vectors = provider.embed(["a", "b"], "query", 2)

    assert vectors == [pytest.approx([0.6, 0.8])] * 2
    assert math.hypot(*vectors[0]) == pytest.approx(1.0)


# Bad answers


@pytest.mark.case("surfaces", 188)
@pytest.mark.parametrize(
    ("answer", "part"),
    [
        (Answer(data([1.0])), "vector of 2 numbers and returned 1"),
        (Answer(data([1.0, 2.0, 3.0])), "vector of 2 numbers and returned 3"),
        (Answer(data([0.0, 0.0])), "zeros"),
        (Answer(raw=b'{"data": [{"index": 0, "embedding": [NaN, 1.0]}]}'), "not finite"),
        (Answer(raw=b'{"data": [{"index": 0, "embedding": [1e999, 1.0]}]}'), "not finite"),
        (Answer({"data": [{"index": 0, "embedding": ["1", True]}]}), "not all numbers"),
        (Answer({"data": [{"index": 0, "embedding": None}]}), "returned none"),
        (Answer({"data": []}), "did not return one for each"),
        (Answer({"data": [{"index": 1, "embedding": [1.0, 2.0]}]}), "did not return one for each"),
        (Answer({"error": KEY}), "did not return one for each"),
        (Answer([1]), "did not return one for each"),
        (Answer(raw=b"<html>"), "not JSON"),
    ],
)
def test_an_answer_that_is_no_vector_is_an_error(connect: Connect, answer: Answer, part: str) -> None:
    with stand_in(answer) as server, pytest.raises(EmbeddingError, match=part) as caught:
        connect(server).embed(["a"], "query", 2)

    assert len(server.asked) == 1
    assert caught.value.provider == "openai-compatible"


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 422])
def test_a_refusal_is_not_tried_again_and_its_text_is_not_shown(
    connect: Connect, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with stand_in(Answer({"error": f"bad key {KEY}"}, status)) as server:
        provider = connect(server)
        with pytest.raises(EmbeddingError, match=f"at 127.0.0.1: status {status}") as caught:
            provider.embed(["a"], "query", 2)

    assert len(server.asked) == 1
    assert KEY not in f"{caught.value} {caught.value!r} {provider!r} {caplog.text}"
    assert (caught.value.code, caught.value.status) == ("internal", 500)
    assert isinstance(caught.value, ExecutionError)


# Tries again


@pytest.mark.parametrize(
    "first", [Answer(status=429), Answer(status=500), Answer(status=503), Answer(drops=True)]
)
def test_what_may_pass_is_tried_again(connect: Connect, first: Answer) -> None:
    time = FakeTime()
    with stand_in(first, Answer(data([0.0, 1.0]))) as server:
        provider = connect(server, time)
        assert provider.embed(["a"], "query", 2) == [[0.0, 1.0]]

    assert len(server.asked) == 2
    assert time.waits == [0.2]


def test_waits_double_and_the_attempts_end(connect: Connect) -> None:
    time = FakeTime()
    with (
        stand_in(Answer(status=503)) as server,
        pytest.raises(EmbeddingError, match="status 503 \\(4 attempts\\)"),
    ):
        connect(server, time).embed(["a"], "query", 2)

    assert len(server.asked) == 4
    assert time.waits == [0.2, 0.4, 0.8]


@pytest.mark.parametrize(
    ("header", "wait"), [("7", 7.0), ("Thu, 01 Jan 1970 00:00:00 GMT", 0.2), ("soon", 0.2)]
)
def test_a_provider_that_asks_to_wait_is_waited_for(connect: Connect, header: str, wait: float) -> None:
    time = FakeTime()
    busy = Answer(status=429, headers={"retry-after": header})
    with stand_in(busy, Answer(data([0.0, 1.0]))) as server:
        provider = connect(server, time)
        provider.embed(["a"], "query", 2)

    assert time.waits == [wait]


def test_one_attempt_is_all_where_the_setting_says_so(connect: Connect) -> None:
    time = FakeTime()
    with stand_in(Answer(status=500)) as server, pytest.raises(EmbeddingError):
        connect(server, time, retry_attempts=1).embed(["a"], "query", 2)

    assert (len(server.asked), time.waits) == (1, [])


# Time


@pytest.mark.case("surfaces", 188)
def test_a_wait_that_would_pass_the_deadline_is_not_begun(connect: Connect) -> None:
    time = FakeTime()
    busy = Answer(status=429, headers={"retry-after": "61"})
    with stand_in(busy) as server, pytest.raises(EmbeddingError, match="within 60000 ms \\(status 429\\)"):
        connect(server, time).embed(["a"], "query", 2)

    assert (len(server.asked), time.waits) == (1, [])


def test_without_a_deadline_every_wait_is_waited(connect: Connect) -> None:
    time = FakeTime()
    busy = Answer(status=429, headers={"retry-after": "3600"})
    with stand_in(busy, Answer(data([0.0, 1.0]))) as server:
        provider = connect(server, time, deadline_ms=0)
        provider.embed(["a"], "query", 2)

    assert time.waits == [3600.0]


@pytest.mark.case("surfaces", 188)
def test_a_provider_that_does_not_answer_is_given_up(connect: Connect) -> None:
    with stand_in(Answer(hangs=True)) as server:
        with pytest.raises(EmbeddingError, match="no answer in time \\(2 attempts\\)"):
            connect(server, timeout_ms=50, retry_attempts=2).embed(["a"], "query", 2)
        server.wait_for_requests(2)

    assert len(server.asked) == 2


def test_an_answer_that_drips_does_not_outlive_the_deadline(connect: Connect) -> None:
    with (
        stand_in(Answer(raw=b" ", drips=True)) as server,
        pytest.raises(EmbeddingError, match="still coming"),
    ):
        connect(server, FakeTime(step=40.0)).embed(["a"], "query", 2)


def test_nobody_listens(connect: Connect) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # so that nobody else gets the port
        server = StandIn(f"http://127.0.0.1:{nobody.getsockname()[1]}/v1", [])
        with pytest.raises(EmbeddingError, match=r"127.0.0.1: no connection, or a broken one \(4 attempts\)"):
            connect(server).embed(["a"], "query", 2)


def test_an_address_that_is_none_is_an_error_without_it() -> None:
    config = EmbeddingConfig(base_url=f"http://user:{KEY}@[", api_key=KEY)

    with (
        closing(OpenAiProvider(config, FakeTime().timing())) as provider,
        pytest.raises(EmbeddingError) as caught,
    ):
        provider.embed(["a"], "query", 2)

    assert KEY not in str(caught.value)


# Answers of somebody who means harm


def packed(data: bytes, times: int) -> bytes:
    for _ in range(times):
        data = gzip.compress(data, mtime=0)  # the same in every worker, which collects the tests by their ids
    return data


@pytest.mark.case("surfaces", 250)
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer({"data": [{"index": [], "embedding": [1.0, 0.0]}]}), "did not return one for each"),
        (Answer({"data": [{"index": {}, "embedding": [1.0, 0.0]}]}), "did not return one for each"),
        (Answer(data([10**400, 1.0])), "a component that is not finite"),
        (Answer(raw=b"[" * 100_000), "an answer that is not JSON"),
        (Answer(raw=b'{"data": ' + b"9" * 6_000 + b"}"), "an answer that is not JSON"),
        (Answer(raw=packed(b"{}", 2), headers={"content-encoding": "gzip, gzip"}), "not requested"),
        (Answer(raw=b"{}", headers={"content-encoding": "br"}), "not requested"),
        (Answer(raw=b"{}", headers={"content-encoding": "gzip"}), "an answer that cannot be read"),
        (Answer(status=429, headers={"retry-after": "9" * 400}), "no vector within"),
        (Answer(status=429, headers={"retry-after": "Fri, 31 Dec 9999 23:59:59 -2359"}), "status 429"),
        (Answer(status=429, headers={"retry-after": "Sat, 01 Jan 0001 00:00:00 +2359"}), "status 429"),
        (Answer(status=429, headers={"retry-after": f"Fri, 1 Jan {'9' * 30} 00:00:00 GMT"}), "status 429"),
    ],
    ids=lambda value: "" if isinstance(value, str) else str(value.raw or value.headers or value.body)[:40],
)
def test_an_answer_that_means_harm_is_an_error_of_the_provider(
    connect: Connect, answer: Answer, reason: str
) -> None:
    with stand_in(answer) as server, pytest.raises(EmbeddingError, match=reason):
        connect(server, retry_attempts=2).embed(["a"], "document", 2)


@pytest.mark.case("surfaces", 250)
def test_a_packed_answer_is_read_and_no_more_of_it_unpacked_than_allowed(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    patched(monkeypatch, "omnigraph.embedding.transport.REPLY_BYTES_MAX", 10_000)
    headers = {"content-encoding": "gzip"}
    small, large = json.dumps(data([3.0, 4.0])).encode(), b" " * 100_000_000
    tracemalloc.start()
    try:
        with stand_in(Answer(raw=packed(small, 1), headers=headers)) as server:
            assert connect(server).embed(["a"], "document", 2) == [pytest.approx([0.6, 0.8])]
        bomb = Answer(raw=packed(large, 1), headers=headers)
        del large
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        with stand_in(bomb) as server, pytest.raises(EmbeddingError, match="more than 10000 bytes"):
            connect(server).embed(["a"], "document", 2)
        assert tracemalloc.get_traced_memory()[1] - before < 10_000_000
    finally:
        tracemalloc.stop()
