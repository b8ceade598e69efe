"""`omnigraph mutate`: one mutation, one commit; parameters, preconditions and what is refused before."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.atlas import GRAPH, SEED_ROWS, commits, head, place_atlas, row_counts, rows
from tests.support.commands import Outcome, omnigraph, write
from tests.support.in_process import document, invoke

STORE = ("--query", "atlas.gq", "--store", GRAPH)


def mutate(
    folder: Path, name: str, *arguments: str, params: Mapping[str, object] | None = None, stdin: str = ""
) -> Outcome:
    """Run a mutation of the atlas."""
    words = [] if params is None else ["--params", json.dumps(params)]
    return invoke("mutate", name, *STORE, *words, *arguments, cwd=folder, stdin=stdin)


def test_a_mutation_says_what_it_did(tmp_path: Path) -> None:
    place_atlas(tmp_path)

    outcome = mutate(tmp_path, "rename", "--as", "act-mira", params={"code": "VGR-1", "name": "Voyager"})

    assert (outcome.code, outcome.stderr) == (0, "")
    assert outcome.stdout == f"rename on main: 1 node and 0 edges affected\ncommit {head(tmp_path)}\n"
    assert commits(tmp_path)[0]["actor_id"] == "act-mira"


def test_the_document_of_a_mutation(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    params = json.dumps({"code": "CAS-1", "title": "Saturn"})

    done = document("mutate", "launch", *STORE, "--params", params, "--as", "act-mira", cwd=tmp_path)

    assert done == {
        "branch": "main",
        "query_name": "launch",
        "affected_nodes": 2,
        "affected_edges": 1,
        "actor_id": "act-mira",
        "commit": commits(tmp_path)[0],
    }


@pytest.mark.case("surfaces", 49)
def test_a_statement_sees_those_before_it_and_all_are_one_commit(tmp_path: Path) -> None:
    graph = place_atlas(tmp_path)
    before = commits(tmp_path)

    outcome = mutate(tmp_path, "launch", params={"code": "CAS-1", "title": "Saturn"})

    assert outcome.code == 0
    assert len(commits(tmp_path)) == len(before) + 1
    assert row_counts(tmp_path) == {"node:Craft": 4, "node:Mission": 3, "edge:Flew": 4}
    assert ("CAS-1", "Saturn") in {(row["src"], row["dst"]) for row in rows(graph, "Flew")}


@pytest.mark.case("surfaces", 50)
def test_a_statement_that_fails_takes_those_before_it_along(tmp_path: Path) -> None:
    graph = place_atlas(tmp_path)
    before = commits(tmp_path)

    failed = mutate(tmp_path, "crew", params={"code": "CAS-1", "title": "Nowhere"})
    between = commits(tmp_path)
    present = {row["code"] for row in rows(graph, "Craft")}
    worked = mutate(tmp_path, "crew", params={"code": "CAS-1", "title": "Jupiter"})

    assert (failed.code, failed.stdout) == (1, "")
    assert "'Nowhere' not found in Mission" in failed.stderr
    assert between == before
    assert "CAS-1" not in present
    assert worked.code == 0
    assert row_counts(tmp_path) == {"node:Craft": 4, "node:Mission": 2, "edge:Flew": 4}


@pytest.mark.case("surfaces", 51)
def test_insert_and_delete_in_one_mutation_are_refused_before_the_graph_is_opened(tmp_path: Path) -> None:
    text = """query swap() {
        insert Mission { title: "Saturn" }
        delete Craft where code = "VGR-1"
    }"""

    outcome = invoke("mutate", "-e", text, "--store", "no-graph-here.omni", cwd=tmp_path)

    assert (outcome.code, outcome.stdout) == (1, "")
    assert outcome.stderr.startswith("parse error: mutation 'swap' mixes")
    assert "split it" in outcome.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.case("surfaces", 52)
def test_a_mutation_that_matches_nothing_succeeds_without_a_commit(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    before = commits(tmp_path)
    params = {"code": "NONE", "name": "x"}

    done = document("mutate", "rename", *STORE, "--params", json.dumps(params), cwd=tmp_path)
    outcome = mutate(tmp_path, "rename", params=params)

    assert (done["affected_nodes"], done["affected_edges"], done["commit"]) == (0, 0, None)
    assert outcome.stdout == "rename on main: 0 nodes and 0 edges affected, nothing to commit\n"
    assert commits(tmp_path) == before


@pytest.mark.case("surfaces", 53)
def test_a_condition_on_the_head_holds_once_and_then_exits_with_4(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    expected = head(tmp_path)
    params = json.dumps({"code": "VGR-1", "name": "Voyager"})
    arguments = ("mutate", "rename", *STORE, "--params", params, "--if-commit", expected, "--json")

    first = omnigraph(*arguments, cwd=tmp_path)
    again = omnigraph(*arguments, cwd=tmp_path)

    assert first.code == 0
    assert again.code == 4
    body = json.loads(again.stdout)
    assert body["precondition_failure"] == {"expected": expected, "actual": head(tmp_path)}
    assert body["error"] == f"branch 'main': expected head {expected}, found {head(tmp_path)}"
    assert "code" not in body


def test_a_lost_condition_has_no_effect(tmp_path: Path) -> None:
    graph = place_atlas(tmp_path)
    genesis = commits(tmp_path)[-1]["graph_commit_id"]

    outcome = mutate(tmp_path, "retire", "--if-commit", genesis, params={"code": "VGR-1"})

    assert (outcome.code, outcome.stdout) == (4, "")
    assert "expected head" in outcome.stderr
    assert "VGR-1" in {row["code"] for row in rows(graph, "Craft")}


def test_the_text_may_come_from_the_command_line_or_from_standard_input(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    text = 'query saturn() { insert Mission { title: "Saturn" } }'

    given = invoke("mutate", "-e", text, "--store", GRAPH, cwd=tmp_path)
    piped = invoke(
        "mutate", "--query", "-", "--store", GRAPH, cwd=tmp_path, stdin=text.replace("Saturn", "Pluto")
    )

    assert (given.code, piped.code) == (0, 0)
    assert row_counts(tmp_path)["node:Mission"] == 4


def test_parameters_may_come_from_a_file_or_from_standard_input(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    write(tmp_path, "p.json", '{"code": "CAS-1", "name": "Cassini"}')

    filed = mutate(tmp_path, "add_craft", "--params-file", "p.json")
    piped = mutate(tmp_path, "add_craft", "--params-file", "-", stdin='{"code": "CAS-2", "name": "Huygens"}')

    assert (filed.code, piped.code) == (0, 0)
    assert row_counts(tmp_path)["node:Craft"] == 5


def test_a_file_with_several_queries_needs_a_name_that_it_declares(tmp_path: Path) -> None:
    place_atlas(tmp_path)

    unnamed = invoke("mutate", *STORE, cwd=tmp_path)
    unknown = mutate(tmp_path, "lanch")

    assert (unnamed.code, unknown.code) == (1, 1)
    assert "name one of: add_craft, launch" in unnamed.stderr
    assert "query 'lanch' not found" in unknown.stderr


def test_a_read_is_no_mutation(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    text = "query all() { match { $c: Craft } return { $c.code } }"

    outcome = invoke("mutate", "-e", text, "--store", GRAPH, cwd=tmp_path)

    assert (outcome.code, outcome.stdout) == (1, "")
    assert "'all' is a read" in outcome.stderr


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ("{", "--params is not JSON"),
        ("[1]", "--params must be a JSON object"),
        ("null", "--params must be a JSON object"),
        ('{"code": NaN}', "NaN is not a JSON number"),
        ('{"code": "a", "code": "b"}', "a key is given twice"),
        ('{"code": 7, "name": "x"}', "code"),
        ('{"code": "VGR-1"}', "name"),
        ('{"code": "VGR-1", "name": "x", "colour": "red"}', "colour"),
    ],
)
def test_wrong_parameters_are_data_and_exit_with_1(params: str, said: str, tmp_path: Path) -> None:
    place_atlas(tmp_path)

    outcome = mutate(tmp_path, "rename", "--params", params)

    assert (outcome.code, outcome.stdout) == (1, "")
    assert said in outcome.stderr
    assert row_counts(tmp_path) == SEED_ROWS


def test_a_mistake_in_the_text_is_shown_with_its_place_and_as_a_document(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    write(tmp_path, "bad.gq", "query bad() {\n    insert Crafft { code: 1 }\n}\n")

    outcome = invoke("mutate", "--query", "bad.gq", "--store", GRAPH, "--json", cwd=tmp_path)

    assert outcome.code == 1
    assert "bad.gq:2:12" in outcome.stderr
    body = json.loads(outcome.stdout)
    assert body["code"] == "bad_request"
    assert body["error"].startswith("type error: ")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["rename", "--query", "atlas.gq", "-e", "x", "--store", GRAPH], "-e"),
        (["rename", *STORE, "--params", "{}", "--params-file", "p.json"], "--params-file"),
        (["rename", "--query", "-", "--params-file", "-", "--store", GRAPH], "standard input"),
        (["rename", *STORE, "--snapshot", "x"], "--snapshot"),
        (["rename", *STORE, "--format", "kv"], "--format"),
        (["rename", *STORE, "--yes"], "--yes"),
        ([GRAPH, "--query", "atlas.gq"], f"--store {GRAPH}"),
        (["s3://bucket/atlas", "--query", "atlas.gq"], "--store"),
        (["plain", "--query", "atlas.gq"], "--store plain"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_in_usage_exits_with_2(arguments: list[str], named: str, tmp_path: Path) -> None:
    (place_atlas(tmp_path)).rename(tmp_path / "plain")

    outcome = invoke("mutate", *arguments, cwd=tmp_path)

    assert (outcome.code, outcome.stdout) == (2, "")
    assert named in outcome.stderr


def test_a_name_without_a_text_is_a_stored_query_and_needs_a_server(tmp_path: Path) -> None:
    place_atlas(tmp_path)

    outcome = invoke("mutate", "rename", "--store", GRAPH, cwd=tmp_path)

    assert (outcome.code, outcome.stdout) == (1, "")
    assert "stored queries need a server" in outcome.stderr


@pytest.mark.case("surfaces", 47)
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_the_old_name_works_with_a_warning(form: tuple[str, ...], tmp_path: Path) -> None:
    words = ["retire", *STORE, "--params", '{"code": "VGR-1"}', *form]
    outcomes, printed = [], []
    for name in ("change", "mutate"):
        place_atlas(tmp_path / name)
        outcomes.append(invoke(name, *words, cwd=tmp_path / name))
        assert row_counts(tmp_path / name) == {"node:Craft": 2, "node:Mission": 2, "edge:Flew": 2}
        made = commits(tmp_path / name, "--limit", "1")[0]
        facts = {str(made[key]): key for key in ("graph_commit_id", "parent_commit_id", "created_at")}
        text = outcomes[-1].stdout
        for value, key in facts.items():
            text = text.replace(value, key)
        printed.append(text)

    assert [outcome.code for outcome in outcomes] == [0, 0]
    assert [outcome.stderr for outcome in outcomes] == ["warning: 'change' is deprecated, use 'mutate'\n", ""]
    assert printed[0] == printed[1] != ""


@pytest.mark.case("surfaces", 451)
def test_how_long_a_lost_race_is_run_again_is_a_number_of_seconds(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    craft = '{"type": "Craft", "data": {"code": "CAS-1", "name": "Cassini"}}\n'
    record = write(tmp_path, "one.jsonl", craft)
    load = ("load", GRAPH, "--data", str(record), "--mode", "merge", "--no-index")
    rename = {"code": "VGR-1", "name": "Voyager"}

    for wrong in ("-1", "1.5", "soon"):
        assert mutate(tmp_path, "rename", "--retry", wrong, params=rename).code == 2
        assert invoke(*load, "--retry", wrong, cwd=tmp_path).code == 2

    assert mutate(tmp_path, "rename", "--retry", "0", params=rename).code == 0
    assert invoke(*load, "--retry", "0", cwd=tmp_path).code == 0
