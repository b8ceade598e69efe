"""`omnigraph --help` stays fast, because nothing heavy is imported before a command needs it.

What it costs is counted in modules, which is where the time goes; `bench/startup.py` measures the time.
"""

import json
from pathlib import Path

import pytest

from omnigraph.cli.main import COMMANDS
from tests.support.atlas import GRAPH, craft, lines, place_atlas
from tests.support.commands import READ, SCHEMA, python, write

HELP_MODULES_MAX = 90  # beyond what the interpreter starts with; 66 today, most of them click's

# The program, and then what it has imported by the time it ends.
LISTING_MODULES = """\
import contextlib, json, os, sys
from omnigraph.cli.main import main
with contextlib.redirect_stdout(open(os.devnull, "w")):
    try:
        main()
    except SystemExit as end:
        code = end.code or 0
print(json.dumps({"code": code, "modules": sorted(sys.modules)}))
"""
# Several commands in one process: how each ended, and whether PySpark was imported by then.
RUNNING_ALL = """\
import contextlib, json, os, sys
from omnigraph.cli.main import main
ended = {}
for name, arguments in json.loads(sys.argv[1]).items():
    with contextlib.redirect_stdout(open(os.devnull, "w")):
        try:
            main(arguments)
        except SystemExit as end:
            ended[name] = [end.code or 0, "pyspark" in sys.modules]
print(json.dumps(ended))
"""
HEAVY = ("lance", "pyarrow", "pyspark", "fastapi", "mcp", "numpy", "pandas", "rich", "httpx", "obstore")


def imported(folder: Path, *arguments: str, code: int = 0) -> set[str]:
    """Return the modules that a run of the program ends with."""
    outcome = python("-W", "ignore::ResourceWarning", "-c", LISTING_MODULES, *arguments, cwd=folder)
    document = json.loads(outcome.stdout)
    assert document["code"] == code, outcome
    return set(document["modules"])


def packages(modules: set[str]) -> set[str]:
    return {module.partition(".")[0] for module in modules}


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["version"]], ids=" ".join)
def test_help_and_version_import_no_heavy_library(arguments: list[str], tmp_path: Path) -> None:
    modules = imported(tmp_path, *arguments)

    assert "click" in packages(modules)
    assert packages(modules).intersection(HEAVY) == set()


def test_help_imports_of_ours_no_more_than_the_command_table(tmp_path: Path) -> None:
    modules = imported(tmp_path, "--help")

    ours = {module for module in modules if module.startswith("omnigraph")}
    table = {"main", "exit_codes", "global_flags", "invocation"}
    assert ours == {"omnigraph", "omnigraph.cli", *(f"omnigraph.cli.{name}" for name in table)}


@pytest.mark.parametrize("command", list(COMMANDS))
def test_the_help_of_a_command_imports_no_heavy_library(command: str, tmp_path: Path) -> None:
    assert packages(imported(tmp_path, command, "--help")).intersection(HEAVY) == set()


@pytest.mark.parametrize(
    "arguments",
    [
        ["lint", "--schema", "s.pg", "--query", "q.gq"],
        ["schema", "plan", "--from", "s.pg", "--schema", "s.pg"],
        ["fmt", "--check", "s.pg", "q.gq"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_schema_without_patterns_needs_no_arrow(arguments: list[str], tmp_path: Path) -> None:
    write(tmp_path, "s.pg", SCHEMA)
    write(tmp_path, "q.gq", READ)

    modules = imported(tmp_path, *arguments)

    assert packages(modules).intersection(HEAVY) == set()


def test_a_pattern_is_checked_by_arrow_and_by_nothing_heavier(tmp_path: Path) -> None:
    write(tmp_path, "s.pg", SCHEMA.replace("    mass_kg", '    @check(code, "^[A-Z]+-[0-9]+$")\n    mass_kg'))
    write(tmp_path, "q.gq", READ)

    found = packages(imported(tmp_path, "lint", "--schema", "s.pg", "--query", "q.gq"))

    assert "pyarrow" in found
    assert found.intersection({"lance", "pyspark", "fastapi", "mcp"}) == set()


def test_help_imports_few_modules_of_any_kind(tmp_path: Path) -> None:
    bare = python("-c", "import contextlib, json, os, sys; print(*sys.modules)", cwd=tmp_path).stdout.split()

    assert len(imported(tmp_path, "--help") - set(bare)) <= HELP_MODULES_MAX


@pytest.mark.case("surfaces", 207)
def test_no_command_but_a_bulk_load_imports_pyspark(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    write(tmp_path, "more.jsonl", lines(craft("CAS-1")))
    store = ["--store", GRAPH]
    rename = '{"code": "VGR-1", "name": "Voyager"}'
    everything = "query q() { match { $c: Craft } return { $c } }"
    runs = {
        "branch": ["branch", "list", GRAPH],
        "changes": ["changes", "poll", GRAPH, "--start", "beginning"],
        "commit": ["commit", "list", GRAPH],
        "diff": ["diff", GRAPH, "main"],
        "explain": ["explain", "-e", everything, *store],
        "export": ["export", GRAPH, "--out", "all.jsonl"],
        "fmt": ["fmt", "--check", "atlas.pg"],
        "index": ["index", "status", GRAPH],
        "init": ["init", "other.omni", "--schema", "atlas.pg"],
        "lint": ["lint", "--schema", "atlas.pg", "--query", "atlas.gq"],
        "load": ["load", GRAPH, "--data", "more.jsonl", "--mode", "append"],
        "mutate": ["mutate", "rename", "--query", "atlas.gq", "--params", rename, *store],
        "query": ["query", "-e", everything, *store],
        "quarantine": ["quarantine", "list", GRAPH],
        "recovery": ["recovery", "list", GRAPH],
        "repair": ["repair", GRAPH, "--to", "1", "--yes"],
        "schema": ["schema", "plan", "--from", "atlas.pg", "--schema", "atlas.pg"],
        "snapshot": ["snapshot", GRAPH],
        "verify": ["verify", GRAPH],
        "version": ["version"],
    }

    outcome = python("-W", "ignore::ResourceWarning", "-c", RUNNING_ALL, json.dumps(runs), cwd=tmp_path)

    ended = json.loads(outcome.stdout)
    assert ended == {name: [0, False] for name in runs}
    assert set(runs) >= set(COMMANDS) - {"embed"}, "every command but embed, which may be bulk work"
