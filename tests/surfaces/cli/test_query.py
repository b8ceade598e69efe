"""`omnigraph query` and `omnigraph explain`: sources, parameters, snapshots, and what is refused before."""

import csv
import io
import json
from pathlib import Path

import pytest

from tests.support.atlas import GRAPH, commits, digest, head, place_atlas
from tests.support.commands import NO_SUCH_PROPERTY, READ, SCHEMA, Outcome, omnigraph, start, write
from tests.support.in_process import document, invoke

READS = """\
query get_craft($code: String) {
    match {
        $c: Craft { code: $code }
    }
    return {
        $c.name
        $c.code
        $c.mass_kg as mass
        $c.launched
    }
}

query missions() {
    match {
        $c flew $m
    }
    return {
        $m.title
        count($c) as craft
    }
    order { $m.title }
}

query by_name($name: String?) {
    match {
        $c: Craft { name: $name }
    }
    return { $c.code }
}
"""
ALL = "query all() { match { $c: Craft } return { $c.code } order { $c.code } }"
FILE = ("--query", "reads.gq", "--store", GRAPH)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a graph that no test of the module changes."""
    folder = tmp_path_factory.mktemp("query")
    place_atlas(folder)
    write(folder, "reads.gq", READS)
    return folder


def ask(folder: Path, text: str, *arguments: str) -> Outcome:
    """Run a query given as text."""
    return invoke("query", "-e", text, "--store", GRAPH, *arguments, cwd=folder)


@pytest.mark.case("surfaces", 29)
def test_a_query_prints_a_table_that_says_where_it_comes_from(folder: Path) -> None:
    outcome = ask(folder, ALL)

    assert (outcome.code, outcome.stderr) == (0, "")
    assert outcome.stdout == ("3 rows from branch main via all\nc.code\n------\nGLL-1\nVGR-1\nVGR-2\n")


@pytest.mark.case("surfaces", 30)
def test_the_formats_show_the_same_rows(folder: Path) -> None:
    arguments = ("query", "missions", *FILE, "--format")
    printed = {name: invoke(*arguments, name, cwd=folder) for name in ("kv", "csv", "jsonl", "json")}

    assert {outcome.code for outcome in printed.values()} == {0}
    title = "2 rows from branch main via missions\n"
    assert printed["kv"].stdout == (
        f"{title}row 1\nm.title: Grand Tour\ncraft: 2\n\nrow 2\nm.title: Jupiter\ncraft: 1\n"
    )
    assert printed["csv"].stdout == "m.title,craft\nGrand Tour,2\nJupiter,1\n"
    metadata, *rows = map(json.loads, printed["jsonl"].stdout.splitlines())
    assert metadata == {
        "kind": "metadata",
        "query_name": "missions",
        "target": {"branch": "main", "snapshot": None},
        "row_count": 2,
    }
    assert rows == [{"m.title": "Grand Tour", "craft": 2}, {"m.title": "Jupiter", "craft": 1}]
    assert json.loads(printed["json"].stdout) == {
        "query_name": "missions",
        "target": {"branch": "main", "snapshot": None},
        "row_count": 2,
        "columns": ["m.title", "craft"],
        "rows": rows,
        "graph_commit_id": head(folder),
    }
    assert invoke("query", "missions", *FILE, "--json", cwd=folder).stdout == printed["json"].stdout


@pytest.mark.case("surfaces", 31)
def test_csv_parses_back_equal(folder: Path) -> None:
    text = 'one, "two"\nthree'
    query = 'query echo($text: String) { match { $c: Craft { code: "GLL-1" } } return { $text, $c.mass_kg } }'

    outcome = ask(folder, query, "--params", json.dumps({"text": text}), "--format", "csv")

    assert list(csv.reader(io.StringIO(outcome.stdout, newline=""))) == [
        ["text", "c.mass_kg"],
        [text, "null"],
    ]


@pytest.mark.case("surfaces", 32)
def test_columns_have_the_names_and_the_order_of_the_projection(folder: Path) -> None:
    arguments = ("query", "get_craft", *FILE, "--params", '{"code": "VGR-1"}')
    names = ["c.name", "c.code", "mass", "c.launched"]

    answered = document(*arguments, cwd=folder)
    as_csv = invoke(*arguments, "--format", "csv", cwd=folder).stdout

    assert answered["columns"] == names
    assert list(answered["rows"][0].items()) == list(
        zip(names, ["vgr-1", "VGR-1", 825.5, "1977-09-05"], strict=True)
    )
    assert as_csv == "c.name,c.code,mass,c.launched\nvgr-1,VGR-1,825.5,1977-09-05\n"


@pytest.mark.case("surfaces", 33)
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["-e", ALL, "--json", "--format", "kv"], "--format"),
        (["-e", ALL, "--query", "reads.gq"], "--query"),
        (["-e", ALL, "--format", "xml"], "xml"),
        (["-e", ALL, "--params", "{}", "--params-file", "p.json"], "--params-file"),
        (["--query", "-", "--params-file", "-"], "standard input"),
        (["-e", ALL, "--as", "act-mira"], "--as"),
        (["-e", ALL, "--if-commit", "x"], "--snapshot"),
        (["-e", ALL, "--alias", "craft"], "--alias"),
        ([], "--query FILE or -e"),
        (["s3://bucket/atlas", "-e", ALL], "write --store s3://bucket/atlas"),
        ([GRAPH, "-e", ALL], f"write --store {GRAPH}"),
    ],
    ids=lambda value: " ".join(value[-2:]) if isinstance(value, list) else "",
)
def test_a_mistake_in_usage_exits_with_2(arguments: list[str], named: str, folder: Path) -> None:
    outcome = invoke("query", *arguments, "--store", GRAPH, cwd=folder)

    assert (outcome.code, outcome.stdout) == (2, "")
    assert named in outcome.stderr


@pytest.mark.case("surfaces", 33)
@pytest.mark.parametrize("text", ["", "  // nothing\n", "query q() {"])
def test_a_text_without_a_query_is_data_and_exits_with_1(text: str, folder: Path) -> None:
    outcome = ask(folder, text)

    assert (outcome.code, outcome.stdout) == (1, "")
    assert outcome.stderr


@pytest.mark.case("surfaces", 34)
def test_a_file_with_several_queries_needs_a_name_that_it_declares(folder: Path) -> None:
    unnamed = invoke("query", *FILE, cwd=folder)
    unknown = invoke("query", "get_kraft", *FILE, cwd=folder)
    named = invoke("query", "missions", *FILE, cwd=folder)

    assert (unnamed.code, unknown.code, named.code) == (1, 1, 0)
    assert "name one of: get_craft, missions, by_name" in unnamed.stderr
    assert "query 'get_kraft' not found" in unknown.stderr
    assert "via missions" in named.stdout


@pytest.mark.case("surfaces", 36)
@pytest.mark.parametrize(
    ("params", "said"),
    [
        ("{}", ["'code'"]),
        ('{"code": "VGR-1", "colour": "red"}', ["'colour'"]),
        ('{"code": 7}', ["'code'", "tring", "umber"]),
        ('{"code": null}', ["'code'"]),
    ],
)
def test_wrong_parameters_are_named(params: str, said: list[str], folder: Path) -> None:
    outcome = invoke("query", "get_craft", *FILE, "--params", params, cwd=folder)

    assert (outcome.code, outcome.stdout) == (1, "")
    assert [word for word in said if word not in outcome.stderr] == []


@pytest.mark.case("surfaces", 37)
def test_parameters_come_as_json_from_a_flag_a_file_or_standard_input(folder: Path, tmp_path: Path) -> None:
    right = write(tmp_path, "p.json", '{"code": "VGR-2"}')

    wrong = invoke("query", "get_craft", *FILE, "--params", "{not json", cwd=folder)
    filed = invoke("query", "get_craft", *FILE, "--params-file", str(right), cwd=folder)
    piped = invoke("query", "get_craft", *FILE, "--params-file", "-", cwd=folder, stdin=right.read_bytes())

    assert (wrong.code, wrong.stdout) == (1, "")
    assert "--params is not JSON" in wrong.stderr
    assert filed.code == 0
    assert "VGR-2" in filed.stdout
    assert piped.stdout == filed.stdout


@pytest.mark.case("surfaces", 38)
def test_a_parameter_that_may_be_left_out_is_null_then(folder: Path) -> None:
    left_out = invoke("query", "by_name", *FILE, "--format", "csv", cwd=folder)
    null = invoke("query", "by_name", *FILE, "--format", "csv", "--params", '{"name": null}', cwd=folder)

    assert (left_out.code, left_out.stdout) == (0, "c.code\n")
    assert null == left_out


@pytest.mark.case("surfaces", 39)
def test_an_integer_that_json_cannot_carry_is_a_text(folder: Path) -> None:
    query = 'query n($n: I64, $m: I64) { match { $c: Craft { code: "GLL-1" } } return { $n, $m } }'
    params = '{"n": "9007199254740993", "m": 9007199254740991}'

    answered = document("query", "-e", query, "--params", params, "--store", GRAPH, cwd=folder)

    assert answered["rows"] == [{"n": "9007199254740993", "m": 9007199254740991}]


@pytest.mark.case("surfaces", 40)
def test_a_past_state_is_read_by_commit_or_by_version(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    before = commits(tmp_path)[0]
    retired = invoke(
        *("mutate", "retire", "--query", "atlas.gq", "--params", '{"code": "VGR-1"}'),
        *("--store", GRAPH),
        cwd=tmp_path,
    )

    now = ask(tmp_path, ALL, "--format", "csv")
    then = ask(tmp_path, ALL, "--snapshot", before["graph_commit_id"])
    by_version = ask(tmp_path, ALL, "--snapshot", str(before["manifest_version"]), "--format", "csv")
    pinned = document(
        "query", "-e", ALL, "--store", GRAPH, "--snapshot", before["graph_commit_id"], cwd=tmp_path
    )

    assert retired.code == 0
    assert now.stdout == "c.code\nGLL-1\nVGR-2\n"
    assert then.stdout.startswith(f"3 rows from snapshot {before['graph_commit_id']} via all\n")
    assert by_version.stdout == "c.code\nGLL-1\nVGR-1\nVGR-2\n"
    assert pinned["target"] == {"branch": None, "snapshot": before["graph_commit_id"]}
    assert pinned["graph_commit_id"] == before["graph_commit_id"]


@pytest.mark.case("surfaces", 40)
def test_a_snapshot_is_of_one_branch(folder: Path) -> None:
    outcome = ask(folder, ALL, "--snapshot", head(folder), "--branch", "main")

    assert (outcome.code, outcome.stdout) == (2, "")
    assert "--snapshot" in outcome.stderr


@pytest.mark.parametrize("snapshot", ["01ARZ3NDEKTSV4RRFFQ69G5FAV", "999999", "nonsense"])
def test_a_snapshot_that_does_not_exist_is_not_found(snapshot: str, folder: Path) -> None:
    outcome = ask(folder, ALL, "--snapshot", snapshot, "--json")

    assert outcome.code == 1
    assert json.loads(outcome.stdout)["code"] == "not_found"


@pytest.mark.case("surfaces", 41)
def test_a_mutation_is_no_read_and_a_read_no_mutation(folder: Path) -> None:
    mutation = ask(folder, 'query q() { insert Mission { title: "Saturn" } }')
    read = invoke("mutate", "-e", ALL, "--store", GRAPH, cwd=folder)

    assert (mutation.code, mutation.stdout) == (1, "")
    assert "mutate" in mutation.stderr
    assert (read.code, read.stdout) == (1, "")
    assert "query" in read.stderr


@pytest.mark.case("surfaces", 42)
def test_a_name_without_a_text_needs_a_server(folder: Path) -> None:
    outcome = invoke("query", "get_craft", "--store", GRAPH, cwd=folder)

    assert (outcome.code, outcome.stdout) == (1, "")
    assert "stored queries need a server" in outcome.stderr


@pytest.mark.case("surfaces", 47)
def test_the_old_name_works_with_a_warning(folder: Path) -> None:
    outcome = invoke("read", "missions", *FILE, cwd=folder)

    assert outcome.stderr == "warning: 'read' is deprecated, use 'query'\n"
    assert outcome.stdout == invoke("query", "missions", *FILE, cwd=folder).stdout


@pytest.mark.case("surfaces", 81)
@pytest.mark.parametrize("old", ["query lint", "query check", "check"])
def test_the_old_names_of_lint_work_with_a_warning(old: str, tmp_path: Path) -> None:
    write(tmp_path, "s.pg", SCHEMA)
    write(tmp_path, "q.gq", READ + NO_SUCH_PROPERTY)
    arguments = ("--schema", "s.pg", "--query", "q.gq")

    outcome = invoke(*old.split(), *arguments, cwd=tmp_path)

    assert outcome.stderr == f"warning: '{old}' is deprecated, use 'lint'\n"
    assert (outcome.code, outcome.stdout) == (1, invoke("lint", *arguments, cwd=tmp_path).stdout)


@pytest.mark.case("surfaces", 201)
def test_a_bare_variable_is_the_whole_entity(folder: Path) -> None:
    craft = {"id": "GLL-1", "code": "GLL-1", "launched": None, "mass_kg": None, "name": "gll-1"}
    query = 'query q() { match { $c: Craft { code: "GLL-1" } $c $f:flew $m } return { $c, $f } }'

    (row,) = document("query", "-e", query, "--store", GRAPH, cwd=folder)["rows"]
    as_csv = ask(folder, query, "--format", "csv").stdout

    assert row["c"] == craft
    assert list(row["c"]) == ["id", "code", "launched", "mass_kg", "name"]
    assert row["f"] == {"id": "GLL-1 on Jupiter", "src": "GLL-1", "dst": "Jupiter", "seat": None}
    head, record = csv.reader(io.StringIO(as_csv, newline=""))
    assert head == ["c", "f"]
    assert record[0] == json.dumps(craft, separators=(",", ":"))
    assert record[0] in ask(folder, query.replace("$c, $f", "$c")).stdout


def test_an_answer_without_rows_is_a_success(folder: Path) -> None:
    arguments = ("query", "get_craft", *FILE, "--params", '{"code": "NONE"}')

    assert invoke(*arguments, cwd=folder).stdout.splitlines()[0] == "0 rows from branch main via get_craft"
    assert invoke(*arguments, "--format", "kv", cwd=folder).stdout.endswith("(no rows)\n")
    assert document(*arguments, cwd=folder)["rows"] == []


def test_a_mistake_in_the_text_is_found_before_a_graph_is_opened(tmp_path: Path) -> None:
    outcome = invoke("query", "-e", "query q( {", "--store", "no-graph.omni", cwd=tmp_path)

    assert outcome.code == 1
    assert outcome.stderr.startswith("parse error: ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("flag", [["--json"], ["--format", "json"]], ids=" ".join)
def test_an_error_is_a_document_where_one_was_asked_for(flag: list[str], folder: Path) -> None:
    outcome = ask(folder, "query q() { match { $c: Craft } return { $c.colour } }", *flag)

    assert outcome.code == 1
    body = json.loads(outcome.stdout)
    assert body["code"] == "bad_request"
    assert "colour" in body["error"]


def test_a_query_changes_nothing_in_the_graph(tmp_path: Path) -> None:
    graph = place_atlas(tmp_path)
    before = digest(graph)

    assert ask(tmp_path, ALL).code == 0
    assert invoke("explain", "-e", ALL, "--store", GRAPH, cwd=tmp_path).code == 0

    assert digest(graph) == before


def test_explain_shows_the_plan_as_text_and_as_a_document(folder: Path) -> None:
    text = invoke("explain", "missions", *FILE, cwd=folder)
    plan = document("explain", "missions", *FILE, cwd=folder)

    assert (text.code, text.stderr) == (0, "")
    assert "Craft" in text.stdout or "Mission" in text.stdout
    assert isinstance(plan, dict)
    assert plan


def test_explain_needs_no_parameters_and_shows_none_of_their_values(folder: Path) -> None:
    without = invoke("explain", "get_craft", *FILE, cwd=folder)
    given = invoke("explain", "get_craft", *FILE, "--params", '{"code": "SECRET-7"}', cwd=folder)

    assert (without.code, given.code) == (0, 0)
    assert "$code" in without.stdout
    assert "SECRET-7" not in given.stdout
    assert given.stdout == without.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["get_craft", "--store", GRAPH], 2, "--query"),
        ([*FILE], 1, "name one of"),
        (["get_craft", *FILE, "--format", "kv"], 2, "--json"),
        (["get_craft", *FILE, "--branch", "main", "--snapshot", "2"], 2, "--snapshot"),
        (["-e", 'query q() { insert Mission { title: "x" } }', "--store", GRAPH], 1, "mutat"),
    ],
    ids=lambda value: " ".join(value[-2:]) if isinstance(value, list) else "",
)
def test_explain_refuses_what_a_query_refuses(
    arguments: list[str], code: int, said: str, folder: Path
) -> None:
    outcome = invoke("explain", *arguments, cwd=folder)

    assert (outcome.code, outcome.stdout) == (code, "")
    assert said in outcome.stderr


def test_a_long_answer_whose_reader_leaves_is_no_traceback(folder: Path) -> None:
    variables = [f"$v{number}" for number in range(8)]
    bindings = "\n".join(f"{variable}: Craft" for variable in variables)
    many = f"query many() {{ match {{ {bindings} }} return {{ {', '.join(variables)} }} }}"
    process = start("query", "-e", many, "--store", GRAPH, "--format", "jsonl", cwd=folder)
    assert process.stdout is not None
    first = process.stdout.readline()
    process.stdout.close()
    process.stdout = None

    _, stderr = process.communicate(timeout=60)

    assert json.loads(first)["row_count"] == 3 ** len(variables)
    assert (process.returncode, stderr) == (1, b"")


def test_the_program_itself_answers_with_flags_before_the_command(folder: Path) -> None:
    outcome = omnigraph("--store", GRAPH, "--json", "query", "-e", ALL, cwd=folder)

    assert (outcome.code, outcome.stderr) == (0, "")
    assert [row["c.code"] for row in json.loads(outcome.stdout)["rows"]] == ["GLL-1", "VGR-1", "VGR-2"]
