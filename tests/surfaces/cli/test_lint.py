"""`omnigraph lint` as text: what it prints where, and how it ends."""

import json
from pathlib import Path

import pytest

from tests.support.atlas import GRAPH, place_atlas
from tests.support.commands import (
    NO_SUCH_PROPERTY,
    READ,
    SCHEMA,
    UNPARSABLE,
    WARNED,
    Outcome,
    omnigraph,
    python,
    write,
)
from tests.support.in_process import invoke

# Runs the program in this process and fails at the first sign of a network.
WITHOUT_NETWORK = """\
import sys

def refuse(event, _arguments):
    if event.startswith("socket."):
        raise RuntimeError(f"reached for the network: {event}")

sys.addaudithook(refuse)
from omnigraph.cli.main import main
main()
"""


def lint(folder: Path, text: str | bytes, *flags: str, schema: str | bytes = SCHEMA) -> Outcome:
    """Lint one file, q.gq, against s.pg."""
    write(folder, "s.pg", schema)
    write(folder, "q.gq", text)
    return omnigraph("lint", "--schema", "s.pg", "--query", "q.gq", *flags, cwd=folder)


def test_a_good_file_lists_its_queries_and_succeeds(tmp_path: Path) -> None:
    outcome = lint(tmp_path, READ)

    assert outcome == Outcome(0, "q.gq\nOK    craft (read)\n1 query in 1 file: 0 errors, 0 warnings\n", "")


@pytest.mark.case("surfaces", 79)
def test_lint_needs_neither_a_network_nor_a_graph_and_finds_a_missing_required_property(
    tmp_path: Path,
) -> None:
    write(tmp_path, "a.pg", SCHEMA)
    write(
        tmp_path,
        "q.gq",
        "query add($code: String, $name: String) { insert Craft { code: $code, name: $name } }",
    )
    write(tmp_path, "bad.gq", "query add($code: String) { insert Craft { code: $code } }")
    files = {path.name for path in tmp_path.iterdir()}

    good, bad = (
        python("-c", WITHOUT_NETWORK, "lint", "--schema", "a.pg", "--query", name, cwd=tmp_path)
        for name in ("q.gq", "bad.gq")
    )

    assert good.code == 0
    assert bad.code == 1
    assert "T12" in bad.stdout
    assert "name" in bad.stdout
    assert {path.name for path in tmp_path.iterdir()} == files


def test_the_guard_against_networks_works(tmp_path: Path) -> None:
    program = WITHOUT_NETWORK.replace(
        "main()", "try:\n    import socket; socket.socket()\nexcept RuntimeError: print(1)"
    )

    assert python("-c", program, cwd=tmp_path).stdout == "1\n"


@pytest.mark.case("surfaces", 80)
def test_warnings_alone_are_no_failure(tmp_path: Path) -> None:
    outcome = lint(tmp_path, WARNED)

    assert outcome.code == 0
    warnings = [line for line in outcome.stdout.splitlines() if line.startswith("WARN ")]
    assert len(warnings) == 2
    assert "hard-coded mutation" in warnings[0]
    assert warnings[1].split()[:3] == ["WARN", "L201", "Craft.mass_kg"]
    assert outcome.stdout.endswith("0 errors, 2 warnings\n")


def test_an_error_shows_its_code_its_place_and_a_caret(tmp_path: Path) -> None:
    outcome = lint(tmp_path, NO_SUCH_PROPERTY)

    assert outcome.code == 1
    lines = [line.strip() for line in outcome.stdout.splitlines()]
    assert lines[1] == "ERROR heavy (read)"
    assert lines[2].startswith("type error: T6: ")
    assert lines[3] == "--> q.gq:1:36"
    assert lines[5] == f"1 | {NO_SUCH_PROPERTY.strip()}"
    assert lines[6] == "|" + " " * 36 + "^" * len("$c.mass")
    assert outcome.stdout.endswith("1 query in 1 file: 1 error, 0 warnings\n")


def test_one_bad_query_does_not_hide_the_others(tmp_path: Path) -> None:
    outcome = lint(tmp_path, NO_SUCH_PROPERTY + READ)

    assert outcome.code == 1
    assert "ERROR heavy (read)" in outcome.stdout
    assert "OK    craft (read)" in outcome.stdout


def test_a_file_that_does_not_parse_shows_every_diagnostic(tmp_path: Path) -> None:
    outcome = lint(tmp_path, UNPARSABLE + "query other( { }\n")

    assert outcome.code == 1
    assert "ERROR Q000 the file does not parse" in outcome.stdout
    assert "--> q.gq:1:" in outcome.stdout
    assert "--> q.gq:2:" in outcome.stdout
    assert "^" in outcome.stdout
    assert outcome.stdout.endswith("0 queries in 1 file: 1 error, 0 warnings\n")


def test_a_folder_stands_for_the_query_files_below_it_in_order(tmp_path: Path) -> None:
    write(tmp_path, "s.pg", SCHEMA)
    for name in (
        "queries/b.gq",
        "queries/a.gq",
        "queries/deep/er/c.gq",
        "queries/notes.txt",
        "queries/old.pg",
    ):
        write(tmp_path, name, READ)

    outcome = omnigraph("lint", "--schema", "s.pg", "--query", "queries", cwd=tmp_path)

    assert outcome.code == 0
    headings = [line for line in outcome.stdout.splitlines() if line.startswith("queries/")]
    assert headings == ["queries/a.gq", "queries/b.gq", "queries/deep/er/c.gq"]
    assert outcome.stdout.endswith("3 queries in 3 files: 0 errors, 0 warnings\n")


def test_several_files_are_reported_in_the_order_given_and_one_error_fails_all(tmp_path: Path) -> None:
    write(tmp_path, "s.pg", SCHEMA)
    write(tmp_path, "good.gq", READ)
    write(tmp_path, "bad.gq", NO_SUCH_PROPERTY)
    files = ["--query", "good.gq", "--query", "bad.gq", "--query", "good.gq"]

    outcome = omnigraph("lint", "--schema", "s.pg", *files, cwd=tmp_path)

    assert outcome.code == 1
    assert [line for line in outcome.stdout.splitlines() if line.endswith(".gq")] == [
        "good.gq",
        "bad.gq",
        "good.gq",
    ]


@pytest.mark.parametrize(
    ("schema", "query", "stdin"), [("s.pg", "-", READ), ("-", "q.gq", SCHEMA)], ids=["query", "schema"]
)
def test_a_dash_is_standard_input(schema: str, query: str, stdin: str, tmp_path: Path) -> None:
    write(tmp_path, "s.pg", SCHEMA)
    write(tmp_path, "q.gq", READ)

    outcome = omnigraph("lint", "--schema", schema, "--query", query, cwd=tmp_path, stdin=stdin)

    assert outcome.code == 0
    assert "OK    craft (read)" in outcome.stdout


def test_an_error_in_standard_input_says_where_it_came_from(tmp_path: Path) -> None:
    write(tmp_path, "s.pg", SCHEMA)

    outcome = omnigraph("lint", "--schema", "s.pg", "--query", "-", cwd=tmp_path, stdin=NO_SUCH_PROPERTY)

    assert outcome.code == 1
    assert "--> <stdin>:1:36" in outcome.stdout


@pytest.mark.parametrize(
    "arguments",
    [["--schema", "-", "--query", "-"], ["--schema", "s.pg", "--query", "-", "--query", "-"]],
    ids=["schema and query", "query twice"],
)
def test_two_dashes_are_a_mistake_in_usage(arguments: list[str], tmp_path: Path) -> None:
    write(tmp_path, "s.pg", SCHEMA)

    outcome = omnigraph("lint", *arguments, cwd=tmp_path, stdin=READ)

    assert (outcome.code, outcome.stdout) == (2, "")
    assert "'-'" in outcome.stderr


@pytest.mark.parametrize(("schema", "query"), [("gone.pg", "q.gq"), ("s.pg", "gone.gq")])
def test_a_missing_file_is_named(schema: str, query: str, tmp_path: Path) -> None:
    write(tmp_path, "s.pg", SCHEMA)
    write(tmp_path, "q.gq", READ)

    outcome = omnigraph("lint", "--schema", schema, "--query", query, cwd=tmp_path)

    assert (outcome.code, outcome.stdout) == (1, "")
    assert "gone." in outcome.stderr
    assert "No such file" in outcome.stderr


def test_a_folder_is_no_schema(tmp_path: Path) -> None:
    write(tmp_path, "folder/q.gq", READ)

    outcome = omnigraph("lint", "--schema", "folder", "--query", "folder/q.gq", cwd=tmp_path)

    assert (outcome.code, outcome.stdout) == (1, "")
    assert "folder" in outcome.stderr


def test_a_folder_without_query_files_is_named(tmp_path: Path) -> None:
    write(tmp_path, "s.pg", SCHEMA)
    (tmp_path / "nothing").mkdir()

    outcome = omnigraph("lint", "--schema", "s.pg", "--query", "nothing", cwd=tmp_path)

    assert (outcome.code, outcome.stdout) == (1, "")
    assert "nothing" in outcome.stderr
    assert ".gq" in outcome.stderr


@pytest.mark.parametrize(
    ("schema", "label"),
    [
        ("node Craft { code: String @key, name: String }", "parse error: "),
        ("node Craft { code: String @key }\nedge Flew: Craft -> Misson", "catalog error: "),
    ],
)
def test_a_schema_that_is_none_fails_with_a_caret_on_stderr(schema: str, label: str, tmp_path: Path) -> None:
    outcome = lint(tmp_path, READ, schema=schema)

    assert (outcome.code, outcome.stdout) == (1, "")
    assert "--> s.pg:" in outcome.stderr
    assert "^" in outcome.stderr
    assert outcome.stderr.startswith(label)


@pytest.mark.case("surfaces", 372)
def test_queries_are_checked_against_the_schema_of_a_graph(tmp_path: Path) -> None:
    graph = place_atlas(tmp_path)
    write(tmp_path, "q.gq", READ + NO_SUCH_PROPERTY)
    files = {path: path.stat().st_mtime_ns for path in graph.rglob("*")}

    with_file = invoke("lint", "--schema", "atlas.pg", "--query", "q.gq", cwd=tmp_path)
    with_graph = invoke("lint", GRAPH, "--query", "q.gq", cwd=tmp_path)
    by_flag = invoke("lint", "--store", GRAPH, "--query", "atlas.gq", "--json", cwd=tmp_path)

    assert with_graph == with_file
    assert with_graph.code == 1
    assert json.loads(by_flag.stdout)["schema_source"] == {"kind": "graph", "uri": GRAPH}
    assert {path: path.stat().st_mtime_ns for path in graph.rglob("*")} == files


@pytest.mark.case("surfaces", 372)
def test_the_schema_is_a_file_or_that_of_a_graph_and_not_both(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    source = ("--query", "atlas.gq")

    both = invoke("lint", GRAPH, "--schema", "atlas.pg", *source, cwd=tmp_path)
    neither = invoke("lint", *source, cwd=tmp_path)

    assert (both.code, "--schema" in both.stderr) == (2, True)
    assert (neither.code, "--schema" in neither.stderr) == (1, True)


def test_check_is_an_old_name_of_lint_and_says_so_once(tmp_path: Path) -> None:
    new = lint(tmp_path, WARNED)

    old = omnigraph("check", "--schema", "s.pg", "--query", "q.gq", cwd=tmp_path)

    assert (old.code, old.stdout) == (new.code, new.stdout)
    assert old.stderr == "warning: 'check' is deprecated, use 'lint'\n"


def test_the_old_name_is_not_advertised(tmp_path: Path) -> None:
    commands = [line.split(maxsplit=1)[:1] for line in omnigraph("--help", cwd=tmp_path).stdout.splitlines()]

    assert ["lint"] in commands
    assert ["check"] not in commands
