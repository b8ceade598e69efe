"""A command starts fast, because nothing is imported that it does not need.

What it costs is counted in modules, which is where the time goes; `bench/startup.py` measures the time.
"""

import json
from pathlib import Path

import pytest

from omnigraph.cli.main import COMMANDS
from tests.support.atlas import GRAPH, craft, lines, place_atlas
from tests.support.commands import READ, SCHEMA, python, write
from tests.support.engine import new_graph, node
from tests.support.gates import policy_text

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
HEAVY = (
    "lance",
    "pyarrow",
    "pyspark",
    "starlette",
    "mcp",
    "numpy",
    "pandas",
    "rich",
    "httpx",
    "obstore",
    "prompt_toolkit",
)
EVERY_CRAFT = "query q() { match { $c: Craft } return { $c.name } }"

# What a read has no use for: libraries, and of ours what writes, recovers, loads, merges and embeds.
NOT_FOR_A_READ = {
    *("pandas", "yaml", "pyspark", "httpx", "obstore", "rich", "cedarpy"),
    *("omnigraph.policy.model", "omnigraph.policy.read", "omnigraph.policy.cedar"),
    *(f"omnigraph.{name}" for name in ("bulk", "merge", "embedding", "staging", "validate", "changes")),
    *(f"omnigraph.commit.{name}" for name in ("publish", "recovery", "sidecar", "section", "finalize")),
    *(f"omnigraph.exec.{name}" for name in ("search", "operators.rank", "mutation")),
    *(f"omnigraph.operations.{name}" for name in ("load", "merge", "mutate", "embed", "init", "verify")),
    "omnigraph.plan.describe",
}
# What a read without a query text has no use for besides: the query language, plans and their execution.
NOT_WITHOUT_A_QUERY = {
    *NOT_FOR_A_READ,
    *("omnigraph.plan", "omnigraph.exec", "omnigraph.catalog.bind", "omnigraph.catalog.bound"),
    *("omnigraph.language.query_ast", "omnigraph.language.query_parser", "omnigraph.operations.query"),
}


def imported(folder: Path, *arguments: str, code: int = 0) -> set[str]:
    """Return the modules that a run of the program ends with."""
    outcome = python("-W", "ignore::ResourceWarning", "-c", LISTING_MODULES, *arguments, cwd=folder)
    document = json.loads(outcome.stdout)
    assert document["code"] == code, outcome
    return set(document["modules"])


def among(modules: set[str], unwanted: set[str]) -> set[str]:
    """Return the modules that are unwanted, or lie in an unwanted package."""
    return {module for module in modules if any(f"{module}.".startswith(f"{name}.") for name in unwanted)}


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
    table = {"main", "exit_codes", "global_flags", "invocation", "lean_imports", "standard_streams"}
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
    assert found.intersection({"lance", "pandas", "pyspark", "starlette", "mcp"}) == set()


def test_a_pattern_is_checked_without_the_functions_of_arrow(tmp_path: Path) -> None:
    write(tmp_path, "s.pg", SCHEMA.replace("    mass_kg", '    @check(code, "^[A-Z]+-[0-9]+$")\n    mass_kg'))

    assert "pyarrow.compute" not in imported(tmp_path, "schema", "plan", "--from", "s.pg", "--schema", "s.pg")


@pytest.mark.parametrize(
    ("arguments", "unwanted"),
    [
        (["query", "-e", EVERY_CRAFT, "--store", GRAPH], NOT_FOR_A_READ),
        (["commit", "list", GRAPH], NOT_WITHOUT_A_QUERY),
        (["branch", "list", GRAPH], NOT_WITHOUT_A_QUERY),
        (["snapshot", GRAPH], NOT_WITHOUT_A_QUERY),
        (["schema", "show", GRAPH], NOT_WITHOUT_A_QUERY),
    ],
    ids=lambda given: " ".join(given[:2]) if isinstance(given, list) else "",
)
def test_a_read_imports_nothing_of_writes_and_searches(
    arguments: list[str], unwanted: set[str], tmp_path: Path
) -> None:
    place_atlas(tmp_path)

    modules = imported(tmp_path, *arguments)

    assert "lance" in modules
    assert among(modules, unwanted) == set()


def test_a_mutation_imports_neither_pandas_nor_what_other_writes_need(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    params = '{"code": "VGR-1", "name": "Voyager"}'

    modules = imported(
        tmp_path, "mutate", "rename", "--query", "atlas.gq", "--params", params, "--store", GRAPH
    )

    unwanted = {"pandas", "yaml", "pyspark", "httpx", "omnigraph.merge", "omnigraph.embedding"}
    assert "omnigraph.operations.mutate" in modules
    assert among(modules, unwanted) == set()


def test_importing_the_library_imports_no_operation_but_open(tmp_path: Path) -> None:
    listing = "import json, sys, omnigraph; omnigraph.open; print(json.dumps(sorted(sys.modules)))"

    modules = set(json.loads(python("-c", listing, cwd=tmp_path).stdout))

    assert "omnigraph.operations.open" in modules
    assert among(modules, NOT_WITHOUT_A_QUERY - {"pandas"}) == set()


def test_help_imports_few_modules_of_any_kind(tmp_path: Path) -> None:
    bare = python("-c", "import contextlib, json, os, sys; print(*sys.modules)", cwd=tmp_path).stdout.split()

    assert len(imported(tmp_path, "--help") - set(bare)) <= HELP_MODULES_MAX


@pytest.mark.case("surfaces", 207)
def test_no_command_but_a_bulk_load_imports_pyspark(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    write(tmp_path, "more.jsonl", lines(craft("CAS-1")))
    pages = "node Page { code: String @key  scan: Blob? }"
    new_graph(tmp_path / "pages.omni", pages, node("Page", code="p1", scan="base64:")).close()
    store = ["--store", GRAPH]
    write(tmp_path, "policy.yaml", policy_text("read"))
    rename = '{"code": "VGR-1", "name": "Voyager"}'
    everything = "query q() { match { $c: Craft } return { $c } }"
    runs = {
        "blob": ["blob", "stat", "node", "Page", "p1", "scan", "--store", "pages.omni"],
        "branch": ["branch", "list", GRAPH],
        "changes": ["changes", "poll", GRAPH, "--start", "beginning"],
        "commit": ["commit", "list", GRAPH],
        "diff": ["diff", GRAPH, "main"],
        "cleanup": ["cleanup", GRAPH, "--keep", "10"],
        "clone": ["clone", GRAPH, "copy.omni"],
        "check-copy": ["check-copy", GRAPH, "copy.omni"],
        "explain": ["explain", "-e", everything, *store],
        "export": ["export", GRAPH, "--out", "all.jsonl"],
        "fmt": ["fmt", "--check", "atlas.pg"],
        "policy": ["policy", "validate", "--policy", "policy.yaml"],
        "import": ["import", GRAPH, "--data", "all.jsonl"],
        "index": ["index", "status", GRAPH],
        "init": ["init", "other.omni", "--schema", "atlas.pg"],
        "lint": ["lint", "--schema", "atlas.pg", "--query", "atlas.gq"],
        "codegen": ["codegen", "python", "--schema", "atlas.pg"],
        "load": ["load", GRAPH, "--data", "more.jsonl", "--mode", "append"],
        "mutate": ["mutate", "rename", "--query", "atlas.gq", "--params", rename, *store],
        "optimize": ["optimize", GRAPH],
        "query": ["query", "-e", everything, *store],
        "queries": ["queries", "list", "--queries", "atlas.gq"],
        "quarantine": ["quarantine", "list", GRAPH],
        "recovery": ["recovery", "list", GRAPH],
        "repair": ["repair", GRAPH, "--to", "1", "--yes"],
        "schema": ["schema", "plan", "--from", "atlas.pg", "--schema", "atlas.pg"],
        "shell": ["shell", GRAPH],
        "snapshot": ["snapshot", GRAPH],
        "completion": ["completion", "zsh"],
        "config": ["config", "check"],
        "login": ["login", "lab", "--token", "abc"],
        "logout": ["logout", "lab"],
        "profile": ["profile", "list"],
        "describe": ["describe", "Craft", GRAPH],
        "status": ["status", GRAPH],
        "verify": ["verify", GRAPH],
        "version": ["version"],
    }

    outcome = python("-W", "ignore::ResourceWarning", "-c", RUNNING_ALL, json.dumps(runs), cwd=tmp_path)

    ended = json.loads(outcome.stdout)
    assert ended == {name: [0, False] for name in runs}
    others = {"embed", "server", "serve"}  # which may be bulk work, and which do not end
    others |= {"graphs", "alias"}  # which asks a server, and which runs what `query` and `mutate` run
    assert set(runs) >= set(COMMANDS) - others
