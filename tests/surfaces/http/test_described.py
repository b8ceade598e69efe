"""Requests generated from the description of a server: no failure of it, and every answer as described."""

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from time import monotonic
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
from omnigraph.policy.model import Policy
from omnigraph.server.settings import ServerSettings
from omnigraph.server.tokens import TokenDigests
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
CASES_MIN = 5_000  # of each long run
QUICK = ("/snapshot", "/query", "/commits", "/diff", "/schema/plan")
TOKENS = {"ann": "token-of-ann-0123456789"}
POLICY = """\
version: 1
groups: { some: [ann] }
protected_branches: [main]
rules:
  - { id: reads, allow: { actors: { group: some }, actions: [read, invoke_query] } }
  - { id: writes, allow: { actors: { group: some }, actions: [change, export], branch_scope: unprotected } }
  - id: branches
    allow: { actors: { group: some }, actions: [branch_create], target_branch_scope: unprotected }
"""
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
    with serving_app(placed(tmp_path_factory.mktemp("described"))) as client:
        yield str(client.base_url)


@pytest.fixture(scope="module")
def guarded_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with a policy, which lets the one actor with a token do some things and others not."""
    settings = placed(tmp_path_factory.mktemp("guarded"))
    (graph,) = settings.graphs
    guarded = replace(graph, policy=Policy.parse(POLICY))
    tokens = TokenDigests.of(TOKENS.items())
    with serving_app(replace(settings, graphs=(guarded,), tokens=tokens, is_unauthenticated=False)) as client:
        yield str(client.base_url)


def placed(folder: Path) -> ServerSettings:
    """Put a graph and stored queries into a folder, and return the settings of an open server of them."""
    stored = DeclaredQueries(files=(write(folder, "stored.gq", QUERIES),))
    return settings_for(place_atlas(folder), queries=stored)


def send_generated(
    url: str,
    *,
    examples: int,
    seed_of_run: int,
    token: str | None = None,
    is_wanted: Callable[[str], bool] = lambda _: True,
) -> Counter[int]:
    """Send requests to every operation whose path is wanted, as described and otherwise.

    Returns:
        How many got each status.
    """
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    statuses = Counter[int]()
    with requests.Session() as session:
        if token is not None:
            session.headers["Authorization"] = f"Bearer {token}"
        for found in schema.get_all_operations():
            assert isinstance(found, Ok), found
            operation = found.ok()
            if operation.path.endswith(ENDLESS) or not is_wanted(operation.path):
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
                    answer = case.call_and_validate(session=session, checks=CHECKS, timeout=60)
                    statuses[answer.status_code] += 1

                try:
                    check()
                except Unsatisfiable:
                    continue  # nothing can be wrong with a request that takes nothing
    return statuses


@pytest.mark.case("surfaces", 388)
def test_a_few_generated_requests_are_answered_as_described(url: str) -> None:
    chosen = fixed_seed("HTTP_SEED")

    statuses = send_generated(url, examples=1, seed_of_run=chosen, is_wanted=QUICK.__contains__)

    assert statuses.total() > len(QUICK)


@pytest.mark.slow
@pytest.mark.case("surfaces", 388)
def test_generated_requests_are_answered_as_described(url: str) -> None:
    chosen = fixed_seed("HTTP_SEED")

    statuses = send_generated(
        url, examples=2, seed_of_run=chosen, is_wanted=lambda path: not path.startswith("/graphs/")
    )

    assert statuses.total() > 50


@pytest.mark.fuzz
@pytest.mark.case("surfaces", 388)
@pytest.mark.parametrize("token", [None, TOKENS["ann"]], ids=["open", "with a token"])
def test_thousands_of_generated_requests_are_answered_as_described(
    token: str | None, request: pytest.FixtureRequest
) -> None:
    url: str = request.getfixturevalue("url" if token is None else "guarded_url")
    chosen, statuses, began = fresh_seed("HTTP_SEED"), Counter[int](), monotonic()

    while statuses.total() < CASES_MIN:
        seed_of_run = chosen + statuses.total()
        statuses += send_generated(url, examples=60, seed_of_run=seed_of_run, token=token)

    told = ", ".join(f"{status}: {count}" for status, count in sorted(statuses.items()))
    sys.stdout.write(f"\n{statuses.total()} generated requests in {monotonic() - began:.0f} s ({told})\n")
    assert statuses[200] > 0
    assert token is None or statuses[403] > 0  # an open server refuses to list graphs, and nothing else
