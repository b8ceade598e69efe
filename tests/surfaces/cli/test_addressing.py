"""How a command finds its graph: one address, given in one way, before or behind the command."""

from pathlib import Path

import pytest

from omnigraph.storage.control.uri import STORES
from tests.support.atlas import GRAPH, place_atlas
from tests.support.commands import Outcome
from tests.support.in_process import invoke

COMMANDS = [
    ["init", "--schema", "atlas.pg"],
    ["load", "--data", "seed.jsonl", "--mode", "merge"],
    ["mutate", "retire", "--query", "atlas.gq", "--params", '{"code": "NONE"}'],
    ["commit", "list"],
    ["commit", "show", "01ARZ3NDEKTSV4RRFFQ69G5FAV"],
    ["snapshot"],
    ["recovery", "list"],
    ["index", "ensure"],
    ["index", "status"],
    ["query", "-e", "query q() { match { $c: Craft } return { $c.code } }"],
    ["export"],
    ["branch", "list"],
    ["changes", "poll", "--start", "beginning"],
    ["lint", "--query", "atlas.gq"],
]
STORAGE = {"init", "recovery", "index", "lint"}  # commands that work on storage alone
GROUPS = {"commit", "recovery", "index", "branch", "changes"}
READS = [*COMMANDS[3:7], COMMANDS[8]]
every_command = pytest.mark.parametrize(
    "words", COMMANDS, ids=lambda words: " ".join(words[: 2 if words[0] in GROUPS else 1])
)


def answers(folder: Path, *words: str) -> Outcome:
    """Run a command on the atlas; whatever it does, it has found the graph."""
    outcome = invoke(*words, cwd=folder)
    assert outcome.code in {0, 1}, outcome
    assert "no graph" not in outcome.stderr
    return outcome


@pytest.mark.case("surfaces", 87)
@every_command
def test_a_command_without_an_address_names_the_ways_to_give_one(words: list[str], tmp_path: Path) -> None:
    place_atlas(tmp_path)

    outcome = invoke(*words, cwd=tmp_path)

    assert (outcome.code, outcome.stdout) == (1, "")
    assert "no graph given: name it with --store, --uri, " in outcome.stderr
    assert ("--server" in outcome.stderr) == (words[0] not in STORAGE)


@pytest.mark.case("surfaces", 243)
def test_a_restore_without_an_id_says_so_and_how_to_find_one(tmp_path: Path) -> None:
    outcome = invoke("quarantine", "restore", GRAPH, cwd=tmp_path)

    assert (outcome.code, outcome.stdout) == (2, "")
    assert "the id is missing ('omnigraph quarantine list' shows the ids of a graph)" in outcome.stderr
    assert "no graph given" not in outcome.stderr


@every_command
def test_the_flags_may_stand_before_or_behind_the_command(words: list[str], tmp_path: Path) -> None:
    place_atlas(tmp_path)

    behind = answers(tmp_path, *words, "--uri", GRAPH)
    before = answers(tmp_path, "--store", GRAPH, *words)
    joined = answers(tmp_path, f"--uri={GRAPH}", "--quiet", *words)

    assert behind.code == before.code == joined.code


@pytest.mark.parametrize(
    "words",
    [words for words in COMMANDS if words[0] not in {"mutate", "query", "init"} and words[1:2] != ["show"]],
)
def test_the_graph_may_be_an_argument(words: list[str], tmp_path: Path) -> None:
    place_atlas(tmp_path)

    assert answers(tmp_path, *words, GRAPH).code == 0


@every_command
@pytest.mark.parametrize(
    "address",
    [["--uri", "a", "--store", "b"], ["--store", "a", "--store", "b"], ["--uri", "a", "--uri", "a"]],
    ids=["uri and store", "store twice", "uri twice"],
)
def test_two_addresses_are_a_mistake_that_names_both(
    words: list[str], address: list[str], tmp_path: Path
) -> None:
    outcome = invoke(*words, *address, cwd=tmp_path)

    assert (outcome.code, outcome.stdout) == (2, "")
    assert f"by {address[0]} and {address[2]}" in outcome.stderr


def test_an_argument_and_a_flag_are_two_addresses(tmp_path: Path) -> None:
    outcome = invoke("snapshot", "a", "--store", "b", cwd=tmp_path)

    assert (outcome.code, outcome.stdout) == (2, "")
    assert "by URI and --store" in outcome.stderr


@pytest.mark.case("surfaces", 88)
@pytest.mark.parametrize("words", [words for words in COMMANDS if words[0] in STORAGE], ids=" ".join)
def test_a_command_on_storage_refuses_a_server(words: list[str], tmp_path: Path) -> None:
    by_address = invoke(*words, "--store", "HTTPS://graph.example/atlas", cwd=tmp_path)
    by_flag = invoke(*words, "--server", "lab", cwd=tmp_path)

    assert (by_address.code, by_address.stdout) == (1, "")
    assert "works on the storage of a graph: name that with --store" in by_address.stderr
    assert (by_flag.code, by_flag.stdout) == (2, "")
    assert "--server does not apply: this command works on the storage of a graph" in by_flag.stderr


@every_command
@pytest.mark.parametrize("flag", ["--cluster"])
def test_what_comes_later_is_refused_by_name(words: list[str], flag: str, tmp_path: Path) -> None:
    outcome = invoke(flag, "x", *words, cwd=tmp_path)

    assert (outcome.code, outcome.stdout) == (2, "")
    assert f"{flag} is not in this version" in outcome.stderr


@pytest.mark.parametrize("words", READS, ids=" ".join)
def test_a_read_has_no_author(words: list[str], tmp_path: Path) -> None:
    outcome = invoke("--as", "act-mira", *words, "--store", GRAPH, cwd=tmp_path)

    assert (outcome.code, outcome.stdout) == (2, "")
    assert "--as applies to writes" in outcome.stderr


@pytest.mark.parametrize("words", [words for words in COMMANDS if words[0] != "init"], ids=" ".join)
def test_a_place_without_a_graph_is_said_to_have_none(words: list[str], tmp_path: Path) -> None:
    place_atlas(tmp_path)

    outcome = invoke(*words, "--store", "elsewhere", cwd=tmp_path)

    assert (outcome.code, outcome.stdout) == (1, "")
    assert "no graph at" in outcome.stderr
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("uri", ["file://{folder}/g.omni", "{folder}/g.omni", "./x/../g.omni"])
def test_a_graph_has_many_spellings(uri: str, tmp_path: Path) -> None:
    place_atlas(tmp_path)
    (tmp_path / "x").mkdir()

    assert answers(tmp_path, "snapshot", uri.format(folder=tmp_path)).code == 0


@pytest.mark.parametrize("uri", ["", "gs://bucket/atlas", "s3://", "file://host/path"])
def test_what_is_no_address_is_refused(uri: str, tmp_path: Path) -> None:
    outcome = invoke("snapshot", "--store", uri, cwd=tmp_path)

    assert (outcome.code, outcome.stdout) == (1, "")
    assert outcome.stderr.startswith("error: ")


def test_a_double_dash_keeps_the_flags_before_the_command_flags(tmp_path: Path) -> None:
    place_atlas(tmp_path)

    outcome = invoke("--json", "commit", "list", "--", GRAPH, cwd=tmp_path)

    assert outcome.code == 0
    assert outcome.stdout.startswith("{")


def test_a_flag_may_stand_between_a_command_and_its_verb(tmp_path: Path) -> None:
    place_atlas(tmp_path)

    between = invoke("commit", "--json", "list", GRAPH, cwd=tmp_path)

    assert between == invoke("commit", "list", GRAPH, "--json", cwd=tmp_path)


@pytest.mark.parametrize("command", ["init", "query"])
@pytest.mark.parametrize("scheme", STORES)
def test_the_help_names_every_kind_of_store(command: str, scheme: str, tmp_path: Path) -> None:
    assert f"{scheme}://" in invoke(command, "--help", cwd=tmp_path).stdout
