"""Standard streams that are full or closed: every command says so in a line, and a change stays."""

import os
import subprocess
from pathlib import Path

import pytest

import omnigraph
from tests.support.commands import PROGRAM

SCHEMA = "node Craft {\n    code: String @key\n    photo: Blob?\n}\n"
QUERIES = """\
query crafts() { match { $c: Craft } return { $c.code } }
query add($code: String) { insert Craft { code: $code } }
"""
READS = (
    ["--help"],
    ["version"],
    ["query", "--store", "g", "--query", "q.gq", "crafts"],
    ["query", "--store", "g", "--query", "q.gq", "crafts", "--json"],
    ["export", "g"],
    ["blob", "get", "node", "Craft", "one", "photo", "--store", "g"],
    ["schema", "show", "g"],
    ["commit", "list", "g"],
    ["lint", "--schema", "s.pg", "--query", "q.gq"],
)
WRITES = (
    ["mutate", "--store", "g", "--query", "q.gq", "add", "--params", '{"code": "new"}'],
    ["mutate", "--json", "--store", "g", "--query", "q.gq", "add", "--params", '{"code": "new"}'],
    ["load", "g", "--data", "new.jsonl", "--mode", "append"],
    ["load", "--json", "--quiet", "g", "--data", "new.jsonl", "--mode", "append"],
)
STAYS = "; what the command had changed stays changed, only its answer is lost"
WAYS = {"full": (">/dev/full", "No space left on device"), "closed": (">&-", "Bad file descriptor")}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    graph = omnigraph.init(tmp_path / "g", SCHEMA, durability="process")
    graph.load(
        [{"type": "Craft", "data": {"code": "one", "photo": "base64:aGVsbG8="}}], "append", index=False
    )
    (tmp_path / "s.pg").write_text(SCHEMA, encoding="utf-8")
    (tmp_path / "q.gq").write_text(QUERIES, encoding="utf-8")
    (tmp_path / "new.jsonl").write_text('{"type":"Craft","data":{"code":"new"}}\n', encoding="utf-8")
    return tmp_path


def run(folder: Path, arguments: list[str], redirected: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {redirected}', "sh", str(PROGRAM), *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        env=os.environ | {"OMNIGRAPH_NO_WARM": "1"},
    )


@pytest.mark.case("surfaces", 761)
@pytest.mark.parametrize("way", WAYS)
def test_output_that_cannot_be_written_is_told_in_one_line(folder: Path, way: str) -> None:
    redirected, reason = WAYS[way]
    for arguments in READS:
        ended = run(folder, arguments, redirected)

        assert ended.returncode == 1, arguments
        assert ended.stderr == f"error: cannot write to standard output: {reason}\n", arguments


@pytest.mark.case("surfaces", 761)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("arguments", WRITES, ids=["mutate", "mutate json", "load", "load json"])
def test_a_change_whose_answer_is_lost_stays_and_is_told(
    folder: Path, way: str, arguments: list[str]
) -> None:
    redirected, reason = WAYS[way]

    ended = run(folder, arguments, redirected)

    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == f"error: cannot write to standard output: {reason}{STAYS}"
    assert "Traceback" not in ended.stderr
    assert omnigraph.open(folder / "g").table("Craft").sort_by("code")["code"].to_pylist() == ["new", "one"]


@pytest.mark.case("surfaces", 761)
@pytest.mark.parametrize("redirected", ["<&-", "2>&-", "<&- 2>&-"])
def test_other_streams_that_are_closed_change_no_result(folder: Path, redirected: str) -> None:
    read = run(folder, READS[3], redirected)
    written = run(folder, WRITES[0], redirected)

    assert (read.returncode, written.returncode) == (0, 0)
    assert "one" in read.stdout
    assert omnigraph.open(folder / "g").table("Craft").sort_by("code")["code"].to_pylist() == ["new", "one"]
