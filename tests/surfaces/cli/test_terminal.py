"""What a command writes where: signs of life on a terminal, nothing of the kind on a pipe, and interrupts."""

import os
import pty
import signal
import subprocess
from pathlib import Path

import pytest

from omnigraph.core.failpoint import failpoint
from tests.support.atlas import GRAPH, commits, digest, place_atlas
from tests.support.commands import PROGRAM, omnigraph, start
from tests.support.in_process import invoke

LOAD = ("load", GRAPH, "--mode", "merge", "--data")


def test_a_load_shows_on_a_terminal_that_it_works(tmp_path: Path) -> None:
    place_atlas(tmp_path)

    usual = with_terminal(tmp_path, *LOAD, "seed.jsonl")
    quiet = with_terminal(tmp_path, *LOAD, "seed.jsonl", "--quiet")

    assert "loading" in usual
    assert "loading" not in quiet


def test_a_load_shows_nothing_of_the_kind_on_a_pipe(tmp_path: Path) -> None:
    place_atlas(tmp_path)

    outcome = omnigraph(*LOAD, "seed.jsonl", cwd=tmp_path)

    assert "\x1b" not in outcome.stdout + outcome.stderr
    assert outcome.stderr == f"omnigraph load → {GRAPH} (direct, local)\n"


def test_ctrl_c_while_a_load_waits_for_its_data_exits_with_130_and_changes_nothing(tmp_path: Path) -> None:
    graph = place_atlas(tmp_path)
    before = commits(tmp_path)
    process = start(*LOAD, "-", cwd=tmp_path)
    assert process.stderr is not None

    process.stderr.readline()  # it has begun, and waits for what nobody sends
    process.send_signal(signal.SIGINT)
    process.wait(timeout=60)
    stdout, stderr = process.communicate()

    assert (process.returncode, stdout) == (130, b"")
    assert b"Traceback" not in stderr
    assert stderr.splitlines()[-1] == b"interrupted: nothing was loaded"
    assert commits(tmp_path) == before
    assert list((graph / "__recovery").glob("*.json")) == []


@pytest.mark.case("surfaces", 238)
@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("write.post_sidecar_pre_commit", "interrupted: the write had already landed, as commit "),
        ("load.post_publish_pre_index", "interrupted: the load had already landed, as commit "),
    ],
)
def test_ctrl_c_says_what_became_of_a_load(place: str, said: str, tmp_path: Path) -> None:
    place_atlas(tmp_path)
    before = commits(tmp_path)

    with failpoint(place, call=lambda: signal.raise_signal(signal.SIGINT)):
        outcome = invoke(*LOAD, "seed.jsonl", cwd=tmp_path)

    assert (outcome.code, outcome.stdout) == (130, "")
    (line,) = [line for line in outcome.stderr.splitlines() if line.startswith("interrupted")]
    assert line.startswith(said)
    made = [commit["graph_commit_id"] for commit in commits(tmp_path)][: len(commits(tmp_path)) - len(before)]
    assert any(commit in line for commit in made)


def test_output_without_a_reader_is_no_traceback(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    process = start("commit", "list", GRAPH, "--json", cwd=tmp_path)
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None

    _, stderr = process.communicate(timeout=60)

    assert b"Traceback" not in stderr
    assert process.returncode in {0, 1}


@pytest.mark.parametrize(
    "arguments",
    [
        ["mutate", "retire", "--query", "atlas.gq", "--params", '{"code": "NONE"}', "--store", GRAPH],
        ["commit", "list", GRAPH],
        ["snapshot", GRAPH],
        ["recovery", "list", GRAPH],
    ],
    ids=lambda words: words[0],
)
def test_commands_that_only_answer_write_nothing_to_stderr(arguments: list[str], tmp_path: Path) -> None:
    place_atlas(tmp_path)

    outcome = invoke(*arguments, cwd=tmp_path)

    assert (outcome.code, outcome.stderr) == (0, "")


def test_an_error_goes_to_stderr_alone_unless_a_document_was_asked_for(tmp_path: Path) -> None:
    graph = place_atlas(tmp_path)
    before = digest(graph)

    text = invoke("commit", "show", GRAPH, "NONE", cwd=tmp_path)
    document = invoke("commit", "show", GRAPH, "NONE", "--json", cwd=tmp_path)

    assert (text.code, text.stdout, text.stderr) == (1, "", "error: commit 'NONE' not found\n")
    assert document.stderr == text.stderr
    assert document.stdout == '{\n  "error": "commit \'NONE\' not found",\n  "code": "not_found"\n}\n'
    assert digest(graph) == before


def with_terminal(folder: Path, *arguments: str) -> str:
    """Run the program with a terminal as its standard error, and return what it wrote there."""
    ours, theirs = pty.openpty()
    ended = subprocess.run(
        [str(PROGRAM), *arguments],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=theirs,
        check=False,
        timeout=100,
        env=os.environ | {"TERM": "xterm", "PYTHONUTF8": "1"},
    )
    os.close(theirs)
    written = b""
    try:
        while piece := os.read(ours, 65_536):
            written += piece
    except OSError:  # the other end is closed, and this is how a terminal says so
        pass
    os.close(ours)
    assert ended.returncode == 0, written
    return written.decode()
