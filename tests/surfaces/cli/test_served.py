"""One journey over both transports: a graph's storage, and a server on a copy of it, print the same."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.atlas import GRAPH, MUTATIONS, craft, lines, place_atlas
from tests.support.commands import Outcome, write
from tests.support.http_server import running_server
from tests.support.in_process import invoke

pytestmark = pytest.mark.slow

EVERY_CRAFT = (
    "query q() { match { $c: Craft } return { $c.code, $c.mass_kg, $c.launched } order { $c.code } }"
)
VARYING = [
    (re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b"), "ID"),
    (re.compile(r'("(?:created|authored)_at": )\d+'), r"\1TIME"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}Z"), "TIME"),
    (re.compile(r'(cursor"?:? "?)[A-Za-z0-9_=-]{30,}'), r"\1TOKEN"),
    (re.compile(r'(next_page_token": ")[A-Za-z0-9_=-]{30,}'), r"\1TOKEN"),
    (re.compile(r'("id": ")[0-9a-f]{32}"'), r'\1TYPE"'),
    (re.compile(r"http://127\.0\.0\.1:\d+|/\S*/g\.omni|\bg\.omni\b"), "GRAPH"),
    (re.compile(r"\((?:served|direct, local)\)"), "(ACCESS)"),
]
MUTATE = ["mutate", "--query", "atlas.gq", "--quiet"]
JOURNEY: list[list[str]] = [
    ["query", "-e", EVERY_CRAFT],
    ["query", "-e", EVERY_CRAFT, "--format", "csv"],
    ["query", "-e", EVERY_CRAFT, "--json"],
    ["branch", "list", "--json"],
    ["branch", "create", "june"],
    ["branch", "create", "june", "--json"],
    ["branch", "create", "review/july", "--from", "june", "--json"],
    [*MUTATE, "add_craft", "--branch", "june", "--params", '{"code": "CAS-1", "name": "Cassini"}'],
    [*MUTATE, "retire", "--params", '{"code": "NONE"}', "--json"],
    [*MUTATE, "rename", "--params", '{"code": "VGR-1"}'],
    [*MUTATE, "rename", "--params", '{"code": "VGR-1", "name": "Main"}', "--message", "a note", "--json"],
    [
        *MUTATE,
        "rename",
        "--params",
        '{"code": "VGR-1", "name": "X"}',
        "--if-commit",
        "01ARZ3NDEKTSV4RRFFQ69G5FAV",
    ],
    ["mutate", "-e", "query broken( {"],
    ["query", "-e", EVERY_CRAFT, "--branch", "nowhere", "--json"],
    ["load", "--data", "more.jsonl", "--mode", "append", "--json"],
    ["load", "--data", "more.jsonl", "--mode", "append", "--json"],
    ["load", "--data", "more.jsonl", "--mode", "merge", "--branch", "loaded", "--from", "june", "--no-index"],
    ["snapshot", "--branch", "june"],
    ["snapshot", "--json"],
    ["commit", "list"],
    ["commit", "list", "--json", "--filter", "actor=act-seed"],
    ["commit", "list", "--json", "--filter", "branch=june", "--limit", "1"],
    ["commit", "show", "01ARZ3NDEKTSV4RRFFQ69G5FAV"],
    ["changes", "poll", "--start", "beginning", "--limit", "3"],
    ["changes", "poll", "--start", "beginning", "--json"],
    ["diff", "june", "main"],
    ["diff", "june", "--stat", "--json"],
    ["schema", "show", "--branch", "june"],
    ["schema", "apply", "--schema", "wider.pg", "--json"],
    ["schema", "apply", "--schema", "wider.pg"],
    ["branch", "merge", "june", "--dry-run", "--json"],
    ["branch", "merge", "june", "--json"],
    [*MUTATE, "rename", "--branch", "review/july", "--params", '{"code": "VGR-1", "name": "July"}'],
    ["branch", "merge", "review/july", "--json"],
    ["export", "--type", "Craft"],
    ["import", "--data", "more.jsonl", "--branch", "loaded", "--yes", "--json"],
    ["branch", "delete", "loaded", "--yes", "--json"],
    ["branch", "delete", "main", "--yes"],
    ["branch", "list"],
]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path, str]]:
    """A folder with the graph, one with a copy, and the address of a server on the copy."""
    direct, served = tmp_path_factory.mktemp("direct"), tmp_path_factory.mktemp("served")
    for folder in (direct, served):
        graph = place_atlas(folder)
        write(folder, "atlas.gq", MUTATIONS)
        write(folder, "more.jsonl", lines(craft("MSL-1", mass_kg=900.0), craft("INS-1")))
        write(
            folder,
            "wider.pg",
            (folder / "atlas.pg").read_text().replace("seat: I32?", "seat: I32?\n    row: I32?"),
        )
    with running_server(graph, log=served / "log") as server:
        yield direct, served, server.url


def told(outcome: Outcome) -> Outcome:
    """Return what a command printed without ids, times and places."""
    stdout, stderr = outcome.stdout, outcome.stderr
    for pattern, word in VARYING:
        stdout, stderr = pattern.sub(word, stdout), pattern.sub(word, stderr)
    return Outcome(outcome.code, stdout, stderr)


@pytest.mark.case("surfaces", 406)
def test_both_transports_print_the_same(places: tuple[Path, Path, str]) -> None:
    direct, served, url = places

    differing = []
    for words in JOURNEY:
        here = told(invoke(*words, "--store", GRAPH, cwd=direct))
        there = told(invoke(*words, "--server", url, cwd=served))
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


@pytest.mark.parametrize("flag", ["--engine=local", "--dry-run", "--strict-columns", "--retry=0"])
def test_what_only_storage_can_do_is_refused_by_name(flag: str, places: tuple[Path, Path, str]) -> None:
    _, served, url = places

    outcome = invoke("load", "--uri", url, "--data", "more.jsonl", "--mode", "merge", flag, cwd=served)

    assert (outcome.code, outcome.stdout) == (2, "")
    assert f"{flag.partition('=')[0]} is for loads into storage" in outcome.stderr


def test_a_served_write_has_no_author_of_the_callers_choice(places: tuple[Path, Path, str]) -> None:
    _, served, url = places

    outcome = invoke("branch", "create", "other", "--uri", url, "--as", "act-mira", cwd=served)

    assert (outcome.code, outcome.stdout) == (2, "")
    assert "--as does not apply to a served graph" in outcome.stderr
