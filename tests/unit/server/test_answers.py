"""Errors as answers: what is told, and what is not."""

import json

import pytest

from omnigraph.core.access_errors import AuthenticationError, RateLimited
from omnigraph.core.errors import BadRequest, EmbeddingError, ResourceLimit, SidecarCorrupt, StorageError
from omnigraph.server.answers import error_answer
from omnigraph.server.refusal import too_slow

PLACE = "/srv/graphs/atlas.omni"


def body(error: BaseException) -> dict[str, object]:
    answer = error_answer(error, request_id="id-1", hidden={PLACE: "graph 'atlas'"})
    document: dict[str, object] = json.loads(bytes(answer.body))
    return {**document, "status": answer.status_code}


def test_an_error_of_the_store_says_its_kind_and_no_place() -> None:
    failed = body(StorageError(f"cannot read s3://bucket/x and {PLACE}", kind="transient"))
    corrupt = body(SidecarCorrupt(f"{PLACE}/__recovery/x", "nonsense"))

    assert failed["status"] == corrupt["status"] == 500
    assert failed["code"] == corrupt["code"] == "internal"
    assert "storage request failed (transient)" in str(failed["error"])
    for told in (failed, corrupt):
        assert "id-1" in str(told["error"])
        assert not {word for word in ("bucket", PLACE, "__recovery", "nonsense") if word in str(told)}


def test_a_missing_key_is_told() -> None:
    told = body(EmbeddingError("GEMINI_API_KEY is needed", provider="gemini"))

    assert "GEMINI_API_KEY" in str(told["error"])


def test_a_mistake_names_no_place() -> None:
    assert body(BadRequest(f"{PLACE} is busy"))["error"] == "graph 'atlas' is busy"


@pytest.mark.parametrize(
    ("error", "header", "value"),
    [
        (RateLimited("enough", retry_after_s=60), "retry-after", "60"),
        (AuthenticationError("missing"), "www-authenticate", "Bearer"),
        (too_slow(2.0), "connection", "close"),
    ],
)
def test_refusals_carry_their_headers(error: Exception, header: str, value: str) -> None:
    assert error_answer(error, request_id="id-1").headers[header] == value


@pytest.mark.case("surfaces", 342)
def test_an_error_is_written_whatever_it_repeats() -> None:
    told = body(ResourceLimit(resource="changes", limit=5, actual=10**30))
    half = body(BadRequest("half a pair: \ud800"))

    assert told["status"] == 413
    assert told["resource_limit"] == {"resource": "changes", "limit": 5, "actual": str(10**30)}
    assert half["error"] == "half a pair: ?"
