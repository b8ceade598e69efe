"""Destroying what is not on this machine needs consent; a store that cannot be reached is explained."""

import os
import pty
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.atlas import GRAPH, commits, place_atlas
from tests.support.commands import PROGRAM, Outcome, omnigraph
from tests.support.in_process import invoke

REMOTE = "s3://lab-bucket/atlas"
OVERWRITE = ("load", REMOTE, "--data", "seed.jsonl", "--mode", "overwrite")
NO_SETTINGS = dict.fromkeys(
    (
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_REGION",
        "AWS_DEFAULT_REGION",
        "AWS_ENDPOINT_URL",
        "AWS_ENDPOINT_URL_S3",
    ),
    "",
)


@contextmanager
def listening() -> Iterator[tuple[socket.socket, dict[str, str]]]:
    """Listen where a store could be, and yield the settings that lead there."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        settings = {
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.getsockname()[1]}",
            "AWS_ALLOW_HTTP": "true",
        }
        yield server, settings


def nobody_called(server: socket.socket) -> bool:
    """Return whether no connection waits to be accepted."""
    try:
        server.accept()
    except BlockingIOError:
        return True
    return False


@pytest.mark.case("surfaces", 27)
@pytest.mark.parametrize("flags", [[], ["--json"]], ids=["text", "json"])
def test_an_overwrite_of_a_remote_graph_without_consent_never_reaches_it(
    flags: list[str], tmp_path: Path
) -> None:
    place_atlas(tmp_path)

    with listening() as (server, settings):
        outcome = omnigraph(*OVERWRITE, *flags, cwd=tmp_path, **settings)

        assert nobody_called(server)
    assert outcome.code == 1
    assert "--yes" in outcome.stderr


def test_with_yes_it_goes_on(tmp_path: Path) -> None:
    place_atlas(tmp_path)

    outcome = omnigraph(*OVERWRITE, "--yes", cwd=tmp_path, **NO_SETTINGS)

    assert outcome.code == 1
    assert "omnigraph load → s3://lab-bucket/atlas (direct, remote)" in outcome.stderr
    assert "AWS_ACCESS_KEY_ID" in outcome.stderr


@pytest.mark.parametrize(("answer", "said"), [("no\n", "not confirmed"), ("yes\n", "AWS_"), ("Y\n", "AWS_")])
def test_on_a_terminal_it_asks_and_takes_the_answer(answer: str, said: str, tmp_path: Path) -> None:
    place_atlas(tmp_path)

    outcome = at_terminal(tmp_path, *OVERWRITE, answer=answer)

    assert outcome.code == 1
    assert "Type yes to go on" in outcome.stderr
    assert said in outcome.stderr


def test_it_does_not_ask_where_standard_input_is_the_data(tmp_path: Path) -> None:
    outcome = at_terminal(tmp_path, "load", REMOTE, "--data", "-", "--mode", "overwrite", answer="yes\n")

    assert outcome.code == 1
    assert "confirm with --yes" in outcome.stderr


@pytest.mark.parametrize("mode", ["append", "merge"])
def test_the_other_modes_destroy_nothing_and_need_no_consent(mode: str, tmp_path: Path) -> None:
    place_atlas(tmp_path)

    outcome = omnigraph("load", REMOTE, "--data", "seed.jsonl", "--mode", mode, cwd=tmp_path, **NO_SETTINGS)

    assert outcome.code == 1
    assert "AWS_" in outcome.stderr


def test_on_this_machine_nothing_is_asked(tmp_path: Path) -> None:
    place_atlas(tmp_path)

    outcome = invoke("load", GRAPH, "--data", "seed.jsonl", "--mode", "overwrite", cwd=tmp_path)

    assert outcome.code == 0
    assert len(commits(tmp_path)) == 5


@pytest.mark.case("surfaces", 28)
@pytest.mark.parametrize(
    "words", [["snapshot"], ["init", "--schema", "atlas.pg"]], ids=lambda words: words[0]
)
def test_missing_settings_of_a_store_are_named(words: list[str], tmp_path: Path) -> None:
    place_atlas(tmp_path)

    outcome = omnigraph(*words, REMOTE, cwd=tmp_path, **NO_SETTINGS)

    assert (outcome.code, outcome.stdout) == (1, "")
    assert outcome.stderr.startswith("error: an s3:// address needs AWS_REGION, AWS_ACCESS_KEY_ID")
    assert len(outcome.stderr.splitlines()) == 1


def at_terminal(folder: Path, *arguments: str, answer: str) -> Outcome:
    """Run the program with a terminal as its standard input, where an answer waits already."""
    ours, theirs = pty.openpty()
    try:
        os.write(ours, answer.encode())
        ended = subprocess.run(
            [str(PROGRAM), *arguments],
            cwd=folder,
            stdin=theirs,
            capture_output=True,
            check=False,
            text=True,
            timeout=100,
            env=os.environ | NO_SETTINGS | {"PYTHONUTF8": "1"},
        )
    finally:
        os.close(ours)
        os.close(theirs)
    return Outcome(ended.returncode, ended.stdout, ended.stderr)
