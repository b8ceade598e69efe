"""One journey over both transports: a graph's storage, and a server on a copy of it, print the same."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.atlas import GRAPH
from tests.support.http_server import running_server
from tests.support.in_process import invoke
from tests.support.journey import place_aliases, place_journey, steps, told

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path, str]]:
    """A folder with the graph, one with a copy, and the address of a server on the copy."""
    direct, served = tmp_path_factory.mktemp("direct"), tmp_path_factory.mktemp("served")
    for folder in (direct, served):
        graph = place_journey(folder)
    with running_server(graph, log=served / "log") as server:
        place_aliases(served, server.url)
        yield direct, served, server.url


@pytest.mark.case("surfaces", 406)
def test_both_transports_print_the_same(places: tuple[Path, Path, str]) -> None:
    direct, served, url = places

    differing = []
    both = zip(steps(direct, "--store", GRAPH), steps(served, "--server", url), strict=True)
    for words, remote in both:
        here = told(invoke(*words, cwd=direct))
        there = told(invoke(*remote, cwd=served))
        if here != there:
            differing.append((words, here, there))

    assert differing == []


def test_an_error_of_a_text_is_the_same_document_and_its_first_line(places: tuple[Path, Path, str]) -> None:
    direct, served, url = places
    words = ["query", "-e", "query q() { match { $c: Nothing } return { $c } }", "--json"]

    here = invoke(*words, "--store", GRAPH, cwd=direct)
    there = invoke(*words, "--server", url, cwd=served)

    assert (here.code, here.stdout) == (there.code, there.stdout)
    assert there.stderr.startswith("type error: T1: unknown node type 'Nothing'")


@pytest.mark.case("surfaces", 62)
def test_a_served_branch_is_not_deleted_without_consent(places: tuple[Path, Path, str]) -> None:
    _, served, url = places
    invoke("branch", "create", "kept", "--uri", url, cwd=served)

    outcome = invoke("branch", "delete", "kept", "--uri", url, cwd=served)

    assert (outcome.code, outcome.stdout) == (1, "")
    assert "confirm with --yes" in outcome.stderr
    assert "kept" in invoke("branch", "list", "--uri", url, cwd=served).stdout


@pytest.mark.parametrize("flag", ["--engine=local", "--on-error=skip", "--rejects=r.ndjson", "--retry=0"])
def test_what_only_storage_can_do_is_refused_by_name(flag: str, places: tuple[Path, Path, str]) -> None:
    _, served, url = places

    outcome = invoke("load", "--uri", url, "--data", "more.jsonl", "--mode", "merge", flag, cwd=served)

    assert (outcome.code, outcome.stdout) == (2, "")
    assert f"{flag.partition('=')[0]} is for loads into storage" in outcome.stderr


@pytest.mark.case("surfaces", 668)
def test_a_served_load_makes_no_vectors_and_says_what_to_do(places: tuple[Path, Path, str]) -> None:
    _, served, url = places

    outcome = invoke("load", "--uri", url, "--data", "more.jsonl", "--mode", "merge", "--embed", cwd=served)

    assert (outcome.code, outcome.stdout) == (2, "")
    assert "--embed is for loads into storage: a server makes no vectors" in outcome.stderr
    assert "run omnigraph embed on the storage" in outcome.stderr


def test_a_served_write_has_no_author_of_the_callers_choice(places: tuple[Path, Path, str]) -> None:
    _, served, url = places

    outcome = invoke("branch", "create", "other", "--uri", url, "--as", "act-mira", cwd=served)

    assert (outcome.code, outcome.stdout) == (2, "")
    assert "--as does not apply to a served graph" in outcome.stderr
