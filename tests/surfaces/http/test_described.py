"""Requests generated from the description of a server: no failure of it, and every answer as described."""

from collections.abc import Iterator
from typing import Any

import orjson
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
)
from schemathesis.core.result import Ok

from omnigraph.graph.stored_files import DeclaredQueries
from tests.support.atlas import place_atlas
from tests.support.commands import write
from tests.support.http_app import serving_app, settings_for
from tests.support.seeds import fixed_seed, fresh_seed

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
CASES_MIN = 5_000
QUERIES = "query crafts($code: String?) { match { $c: Craft } return { $c.code } }"
ENDLESS = "/events"  # answers until the caller goes, and has tests of its own


@schemathesis.serializer("application/x-ndjson", "application/vnd.apache.arrow.stream")
def as_bytes(_context: schemathesis.SerializationContext, value: object) -> bytes:
    """Send whatever is generated for a raw body: texts as they are, anything else as JSON."""
    if isinstance(value, bytes):
        return value
    return value.encode(errors="replace") if isinstance(value, str) else orjson.dumps(value, default=str)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An open server, which may be written as generated requests like."""
    folder = tmp_path_factory.mktemp("described")
    stored = DeclaredQueries(files=(write(folder, "stored.gq", QUERIES),))
    with serving_app(settings_for(place_atlas(folder), queries=stored)) as client:
        yield str(client.base_url)


def send_generated(url: str, *, examples: int, seed_of_run: int, is_nested_left_out: bool = False) -> int:
    """Send requests to every operation, as described and otherwise, and return how many they were."""
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    sent = 0
    with requests.Session() as session:
        for found in schema.get_all_operations():
            assert isinstance(found, Ok), found
            operation = found.ok()
            is_nested = operation.path.startswith("/graphs/")
            if operation.path.endswith(ENDLESS) or (is_nested and is_nested_left_out):
                continue
            for mode in GenerationMode:

                @seed(seed_of_run)
                @settings(
                    max_examples=examples,
                    deadline=None,
                    database=None,
                    phases=[Phase.generate],
                    suppress_health_check=list(HealthCheck),
                )
                @given(case=operation.as_strategy(generation_mode=mode))
                def check(case: schemathesis.Case[Any]) -> None:
                    nonlocal sent
                    sent += 1
                    case.call_and_validate(session=session, checks=CHECKS, timeout=60)

                try:
                    check()
                except Unsatisfiable:
                    continue  # nothing can be wrong with a request that takes nothing
    return sent


@pytest.mark.slow
@pytest.mark.case("surfaces", 388)
def test_generated_requests_are_answered_as_described(url: str) -> None:
    chosen = fixed_seed("HTTP_SEED")
    assert send_generated(url, examples=2, seed_of_run=chosen, is_nested_left_out=True) > 50


@pytest.mark.fuzz
def test_thousands_of_generated_requests_are_answered_as_described(url: str) -> None:
    chosen, sent = fresh_seed("HTTP_SEED"), 0
    while sent < CASES_MIN:
        sent += send_generated(url, examples=60, seed_of_run=chosen + sent)
    assert sent >= CASES_MIN
