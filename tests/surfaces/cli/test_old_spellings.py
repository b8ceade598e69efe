"""Old spellings of commands and flags: they work as ever, with one warning on standard error."""

from pathlib import Path

import pytest

from tests.support.atlas import GRAPH, craft, lines, place_atlas, row_counts
from tests.support.commands import write
from tests.support.in_process import document, invoke

EVERY_CRAFT = "query crafts() { match { $c: Craft } return { $c.code } order { $c.code } }\n"
INGEST = "warning: 'ingest' is deprecated, use 'load'\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place_atlas(tmp_path)
    write(tmp_path, "more.jsonl", lines(craft("VGR-1"), craft("CAS-1")))
    write(tmp_path, "q.gq", EVERY_CRAFT)
    return tmp_path


@pytest.mark.case("surfaces", 370)
def test_ingest_is_a_load_that_merges_into_main_unless_told_otherwise(folder: Path) -> None:
    outcome = invoke("ingest", GRAPH, "--data", "more.jsonl", "--quiet", cwd=folder)

    assert (outcome.code, outcome.stderr.count("deprecated")) == (0, 1)
    assert outcome.stderr.startswith(INGEST)
    assert row_counts(folder)["node:Craft"] == 4


@pytest.mark.case("surfaces", 370)
def test_ingest_makes_a_missing_branch_from_main(folder: Path) -> None:
    made = document("ingest", GRAPH, "--data", "more.jsonl", "--branch", "june", cwd=folder)

    assert (made["branch"], made["base_branch"], made["branch_created"]) == ("june", "main", True)
    assert made["mode"] == "merge"
    assert row_counts(folder)["node:Craft"] == 3


@pytest.mark.case("surfaces", 370)
def test_ingest_takes_the_flags_of_load(folder: Path) -> None:
    append = invoke("ingest", GRAPH, "--data", "more.jsonl", "--mode", "append", cwd=folder)

    assert append.code == 1
    assert "VGR-1" in append.stderr
    assert invoke("load", GRAPH, "--data", "more.jsonl", cwd=folder).code == 2


@pytest.mark.case("surfaces", 370)
def test_the_name_of_a_query_may_be_given_with_its_old_flag(folder: Path) -> None:
    source = ("--query", "q.gq", "--store", GRAPH)

    old = invoke("query", "--name", "crafts", *source, cwd=folder)
    twice = invoke("query", "crafts", "--name", "crafts", *source, cwd=folder)
    wrong = invoke("query", "--name", "ships", *source, cwd=folder)

    assert old.stdout == invoke("query", "crafts", *source, cwd=folder).stdout
    assert old.stderr == "warning: '--name' is deprecated, give the name of the query without a flag\n"
    assert twice.code == 2
    assert (wrong.code, "ships" in wrong.stderr) == (1, True)


@pytest.mark.case("surfaces", 370)
def test_an_export_may_be_asked_for_lines_of_json_which_it_prints_anyway(folder: Path) -> None:
    old = invoke("export", GRAPH, "--jsonl", cwd=folder)

    assert old.stdout == invoke("export", GRAPH, cwd=folder).stdout
    assert old.stderr == "warning: '--jsonl' is deprecated, leave it out: NDJSON is what an export prints\n"


@pytest.mark.case("surfaces", 370)
@pytest.mark.parametrize("command", ["query", "mutate", "explain", "export", "embed", "load"])
def test_no_old_flag_is_advertised(command: str, folder: Path) -> None:
    help_text = invoke(command, "--help", cwd=folder).stdout

    assert not {"--name", "--jsonl", "--reembed_all", "ingest"}.intersection(help_text.split())
