"""The engine against the oracle: random graphs, random queries, equal answers.

Every query runs three ways (`ways.py`) and twice. `ORACLE_SEED` repeats a graph of either test; the fuzz test
goes on from there.
"""

import os
import random
import tempfile
from pathlib import Path

import pytest

import omnigraph
from tests.models.query.compare import ask, difference
from tests.models.query.generate import Asked, Case, random_case
from tests.models.query.oracle import Oracle, TooManyRows
from tests.models.query.render import ndjson, parameters_json, query_text, schema_text
from tests.models.query.shape import Data, Query
from tests.models.query.shrink import shrink_data, shrink_query
from tests.models.query.ways import WAYS, open_ways

GRAPHS = 8
QUERIES = 40  # for each graph: 320 pairs
QUERIES_FUZZ = 50
PAIRS_FUZZ = 20_000
SHRINK_SECONDS = 20.0


@pytest.mark.parametrize(
    "seed", [int(os.environ["ORACLE_SEED"])] if "ORACLE_SEED" in os.environ else range(GRAPHS)
)
def test_the_engine_agrees_with_the_oracle(tmp_path: Path, seed: int) -> None:
    assert_agreement(random_case(seed, QUERIES), tmp_path)


@pytest.mark.fuzz
def test_the_engine_agrees_with_the_oracle_for_long() -> None:
    first = int(os.environ.get("ORACLE_SEED", random.randrange(10**9)))
    print(f"ORACLE_SEED={first}")  # noqa: T201 - how to repeat the run
    for seed in range(first, first + PAIRS_FUZZ // QUERIES_FUZZ):
        with tempfile.TemporaryDirectory() as folder:
            assert_agreement(random_case(seed, QUERIES_FUZZ), Path(folder))


def assert_agreement(case: Case, folder: Path) -> None:
    """Ask every query of a case in every way, and report the first that is answered wrongly."""
    with open_ways(folder, case.schema, case.data, case.seed) as graphs:
        for asked in case.asked:
            for way in WAYS:
                if failure := failure_of(graphs[way], asked.query, Oracle(case.schema, case.data)):
                    pytest.fail(report(case, asked, way, failure, graphs[way]), pytrace=False)


def failure_of(graph: omnigraph.Graph, query: Query, oracle: Oracle) -> str | None:
    """Return how an engine fails at a query: its error, what is wrong, or that it differs from itself."""
    expected = oracle.answer(query)
    try:
        told, again = ask(graph, query), ask(graph, query)
    except Exception as error:  # noqa: BLE001 - whatever the engine raises is the finding
        return f"{type(error).__name__}: {error}"
    if wrong := difference(query, expected, told):
        return f"differs: {wrong}"
    return None if told.text == again.text else f"unstable: {told.text}\n{again.text}"


def report(case: Case, asked: Asked, way: str, failure: str, graph: omnigraph.Graph) -> str:
    """Return all that is needed to see a failure again, as small as it could be made."""
    kind = failure.split(":", maxsplit=1)[0]

    def still_fails(graph: omnigraph.Graph, data: Data, query: Query) -> str | None:
        try:
            found = failure_of(graph, query, Oracle(case.schema, data))
        except (TooManyRows, KeyError):  # a candidate that uses what it lacks means nothing
            return None
        return found if found and found.split(":")[0] == kind else None

    def fails_rebuilt(data: Data) -> str | None:
        with (
            tempfile.TemporaryDirectory() as folder,
            open_ways(Path(folder), case.schema, data, case.seed, only=way) as graphs,
        ):
            return still_fails(graphs[way], data, query)

    query = shrink_query(
        asked.query, lambda each: bool(still_fails(graph, case.data, each)), seconds=SHRINK_SECONDS
    )
    data = shrink_data(case.schema, case.data, lambda each: bool(fails_rebuilt(each)), seconds=SHRINK_SECONDS)
    found = fails_rebuilt(data) or f"{failure} (only before it was made smaller)"
    answer = Oracle(case.schema, data).answer(query)
    return "\n".join(
        [
            f"The {way} graph of ORACLE_SEED={case.seed} fails at query {asked.seed}: {found}",
            f"-- expected {answer.columns}, before the limit:",
            *(f"   {row}" for row in answer.rows[:30]),
            "-- query:",
            query_text(query),
            f"-- parameters: {parameters_json(query)}",
            f"-- the query before it was made smaller:\n{query_text(asked.query)}",
            f"-- data:\n{ndjson(case.schema, data).decode()}",
            f"-- schema:\n{schema_text(case.schema)}",
        ]
    )
