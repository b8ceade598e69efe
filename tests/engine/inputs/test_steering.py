"""Data and names with escape sequences: unchanged in a pipe, shown on a terminal, never obeyed."""

import csv
import io
import json
import os
import pty
import subprocess
from pathlib import Path

import pytest

import omnigraph
from tests.support.commands import PROGRAM, run
from tests.support.in_process import invoke

SCHEMA = "node P { name: String @key }\n"
NAMES = ["a\x1b[31mb\x1b[2Jc", "\x9b31md\u202e", "e\x7f\x1b]0;t\x07"]
QUERY = "query q() { match { $p: P } return { $p.name } order { $p.name } }"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("steering")
    with omnigraph.init(place / "graph", SCHEMA, durability="process") as graph:
        rows = "".join(json.dumps({"type": "P", "data": {"name": name}}) + "\n" for name in NAMES)
        graph.load(rows.encode(), "append", index=False, actor="me\x1b[32m", message="note\x1b[31m")
    (place / "bad.jsonl").write_text('{"type": "Per\\u001b[31mson", "data": {}}\n')
    return place


def on_terminal(place: Path, *arguments: str) -> str:
    """Run the program with a terminal for all its output, and return what the terminal got."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [str(PROGRAM), *arguments], cwd=place, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs
    ):
        os.close(theirs)
        got = b""
        try:
            while piece := os.read(ours, 65_536):
                got += piece
        except OSError:
            pass  # the way a terminal says that nobody holds its other end
    os.close(ours)
    return got.decode()


@pytest.mark.case("surfaces", 244)
def test_data_in_a_pipe_are_unchanged(place: Path) -> None:
    read = ["query", "-e", QUERY, "--store", "graph"]

    table = invoke(*read, "--format", "csv", cwd=place)
    lines = invoke(*read, "--format", "jsonl", cwd=place).stdout.splitlines()
    document = invoke(*read, "--json", cwd=place)
    exported = invoke("export", "graph", cwd=place)

    assert sorted(row[0] for row in csv.reader(io.StringIO(table.stdout))) == sorted([*NAMES, "p.name"])
    assert sorted(json.loads(line)["p.name"] for line in lines[1:]) == sorted(NAMES)
    assert sorted(row["p.name"] for row in json.loads(document.stdout)["rows"]) == sorted(NAMES)
    found = sorted(json.loads(line)["data"]["name"] for line in exported.stdout.splitlines())
    assert found == sorted(NAMES)


@pytest.mark.case("surfaces", 244)
@pytest.mark.parametrize("form", ["table", "kv", "csv", "jsonl", "json"])
def test_data_on_a_terminal_do_not_steer_it(place: Path, form: str) -> None:
    shown = on_terminal(place, "query", "-e", QUERY, "--store", "graph", "--format", form)

    assert not {"\x1b", "\x9b", "\x7f", "\x07", "\u202e"} & set(shown)
    assert "[31mb" in shown


@pytest.mark.case("surfaces", 244)
@pytest.mark.parametrize(
    "arguments",
    [
        ["load", "graph", "--data", "bad.jsonl", "--mode", "merge", "--engine", "local"],
        ["load", "graph", "--data", "\x1b[31mx.jsonl", "--mode", "merge"],
        ["load", "graph", "--data", "bad.jsonl", "--mode", "\x1b[31m"],
        [
            "query",
            "-e",
            "query q() { match { $p: P $p.\x1b[31m = 1 } return { $p.name } }",
            "--store",
            "graph",
        ],
        ["branch", "create", "\x1b[31mbr", "--store", "graph"],
        ["\x1b[31mno-command"],
    ],
)
def test_messages_show_escape_sequences_and_do_not_contain_them(place: Path, arguments: list[str]) -> None:
    outcome = invoke(*arguments, cwd=place)

    assert outcome.code != 0
    assert "\\x1b" in outcome.stderr
    assert "\x1b" not in outcome.stderr


@pytest.mark.case("surfaces", 244)
def test_authors_and_messages_of_commits_do_not_steer_a_terminal(place: Path) -> None:
    listed = json.loads(invoke("commit", "list", "graph", "--json", cwd=place).stdout)["commits"]
    commit = next(found["graph_commit_id"] for found in listed if found["message"])

    shown = on_terminal(place, "commit", "show", "graph", commit)
    changes = run([str(PROGRAM), "changes", "poll", "graph"], cwd=place, FORCE_COLOR="1").stdout

    assert "me\\x1b[32m" in shown
    assert "note\\x1b[31m" in shown
    assert "\x1b[32m" not in shown + changes
