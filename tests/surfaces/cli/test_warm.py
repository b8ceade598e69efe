"""A warm server: commands print the same through it, and do without it wherever it does not fit."""

import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from omnigraph.client.warm.link import Link, PeerGone
from omnigraph.client.warm.place import WarmPlace
from omnigraph.client.warm.reach import find_server
from omnigraph.client.warm.settings import counts, digest_of_settings
from omnigraph.embedding.config import DEFAULTS
from tests.support.atlas import GRAPH, commits, craft, lines, place_atlas
from tests.support.commands import Outcome, omnigraph, python, write
from tests.support.gates import policy_text
from tests.support.in_process import document, invoke
from tests.support.journey import EVERY_CRAFT, JOURNEY, MUTATE, place_journey, steps, told
from tests.support.s3 import s3_server, settings_of, upload
from tests.support.seam import patched
from tests.support.warm import RunningWarm, own_runtime, warm_server

READ = ["query", "-e", EVERY_CRAFT, "--store", GRAPH]
RENAME = [*MUTATE, "rename", "--params", '{"code": "VGR-1", "name": "Voyager"}', "--store", GRAPH]
NO_COMMIT = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
SLOW_COMMIT = "write.post_finalize_pre_publisher=delay:1500"
HEAVY = {"lance", "pyarrow", "numpy", "fastapi", "uvicorn", "httpx", "orjson", "asyncio", "ssl", "obstore"}
LISTING_MODULES = """\
import contextlib, json, os, sys
from omnigraph.cli.main import main
with contextlib.redirect_stdout(open(os.devnull, "w")):
    try:
        main()
    except SystemExit as end:
        assert not end.code, end.code
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""
COMPARED = [
    READ,
    [*READ, "--json"],
    [*READ, "--format", "csv"],
    ["query", "-e", "query q() { match { $c: Nope } return { $c.x, $d } }", "--store", GRAPH],
    ["query", "-e", EVERY_CRAFT, "--branch", "nowhere", "--json", "--store", GRAPH],
    [*RENAME, "--as", "act-mira", "--message", "a note", "--retry", "3", "--json"],
    [*MUTATE, "rename", "--params", '{"code": "VGR-1"}', "--store", GRAPH],
    [*MUTATE, "add_craft", "--params", '{"code": "VGR-1", "name": "again"}', "--store", GRAPH],
    [*MUTATE, "crew", "--params", '{"code": "NEW-1", "title": "Nowhere"}', "--store", GRAPH],
    [*RENAME, "--if-commit", NO_COMMIT],
    [*RENAME, "--if-commit", NO_COMMIT, "--json"],
    ["commit", "list", GRAPH],
    ["commit", "show", GRAPH, NO_COMMIT, "--branch", "main"],
    ["branch", "create", GRAPH, "june", "--json"],
    ["branch", "list", GRAPH],
    ["diff", GRAPH, "june"],
]


@pytest.fixture(scope="module", autouse=True)
def runtime() -> Iterator[Path]:
    with own_runtime() as folder:
        yield folder


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWarm]:
    """A warm server, for tests that leave it running."""
    folder = tmp_path_factory.mktemp("warm")
    place_journey(folder)
    with warm_server(folder) as server:
        yield server


def test_commands_print_the_same_through_it(warm: RunningWarm, tmp_path: Path) -> None:
    place_journey(tmp_path)
    asked = warm.commands

    differing = []
    for words in COMPARED:
        here = told(invoke(*words, "--no-warm", cwd=tmp_path))
        there = told(invoke(*words, cwd=warm.folder))
        if here != there:
            differing.append((words, here, there))

    assert differing == []
    assert warm.commands == asked + len(COMPARED)
    assert invoke(*RENAME, "--if-commit", NO_COMMIT, cwd=warm.folder).code == 4


@pytest.mark.slow
@pytest.mark.case("surfaces", 500)
def test_a_whole_journey_prints_the_same_through_it(tmp_path: Path) -> None:
    direct, warmed = tmp_path / "direct", tmp_path / "warm"
    for folder in (direct, warmed):
        folder.mkdir()
        place_journey(folder)

    differing = []
    with warm_server(warmed) as server:
        for words in steps(direct, "--store", GRAPH):
            here = told(invoke(*words, cwd=direct))
            there = told(invoke(*words, cwd=warmed))
            if here != there:
                differing.append((words, here, there))
        assert server.commands > len(JOURNEY) / 2
        assert "exception" not in server.log.read_text(encoding="utf-8")

    assert differing == []


@pytest.mark.slow
@pytest.mark.case("surfaces", 508)
def test_a_graph_in_an_object_store_is_asked_for_in_the_same_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place_atlas(tmp_path)
    with s3_server() as endpoint:
        for name, value in settings_of(endpoint).items():
            monkeypatch.setenv(name, value)
        uri = upload(tmp_path / GRAPH, endpoint)
        words = [["query", "-e", EVERY_CRAFT], [*RENAME[:-2], "--json"], ["commit", "list", "--json"]]

        with warm_server(tmp_path, graph=uri) as server:
            there = [told(invoke(*command, "--store", uri, cwd=tmp_path)) for command in words]
            assert server.commands == len(words)
            here = [
                told(invoke(*command, "--store", uri, "--no-warm", cwd=tmp_path)) for command in words[::2]
            ]
            monkeypatch.setenv("AWS_ACCESS_KEY_ID", "another")
            assert find_server(uri) is None

    assert [outcome.code for outcome in there] == [0, 0, 0]
    assert here[1] == there[2]
    assert "3 rows" in here[0].stdout


@pytest.mark.case("surfaces", 501)
def test_a_query_through_it_imports_nothing_heavy(warm: RunningWarm) -> None:
    asked = warm.commands

    outcome = python("-W", "ignore::ResourceWarning", "-c", LISTING_MODULES, *READ, cwd=warm.folder)

    assert set(json.loads(outcome.stdout)).intersection(HEAVY) == set()
    assert warm.commands == asked + 1


@pytest.mark.case("surfaces", 502)
def test_what_others_may_enter_or_own_is_not_used(warm: RunningWarm, monkeypatch: pytest.MonkeyPatch) -> None:
    place = warm.place
    usual = invoke(*READ, cwd=warm.folder)
    asked = warm.commands

    found = []
    for path, mode, usual_mode in ((place.folder, 0o755, 0o700), (place.socket, 0o666, 0o600)):
        path.chmod(mode)
        found.append(invoke(*READ, cwd=warm.folder))
        found.append(invoke("serve", GRAPH, "--status", cwd=warm.folder))
        path.chmod(usual_mode)

    assert found[0] == found[2] == usual
    assert "is open to others (mode 755)" in found[1].stdout
    assert "is open to others (mode 666)" in found[3].stdout
    assert "belongs to another user" in str(place.distrust(os.geteuid() + 1))
    linked = place.folder.with_name("linked")
    linked.symlink_to(place.folder)
    assert "is not a folder" in str(replace(place, folder=linked).distrust(os.geteuid()))
    patched(monkeypatch, "omnigraph.client.warm.place.peer_uid", lambda _end: os.geteuid() + 1)
    assert find_server(place.root) is None
    monkeypatch.undo()
    assert warm.commands == asked


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_a_process_of_another_user_is_not_answered(warm: RunningWarm) -> None:
    """Even where somebody has opened folder and socket to everybody."""
    ask = f"""\
import socket
end = socket.socket(socket.AF_UNIX)
end.connect({str(warm.place.socket)!r})
try:
    end.sendall((16).to_bytes(8, "big") + b'{{"ask":"status"}}')
    print(end.recv(1))
except (ConnectionResetError, BrokenPipeError):
    print(b"")
"""
    opened = [warm.place.folder.parent, warm.place.folder, warm.place.socket]
    modes = [path.stat().st_mode & 0o777 for path in opened]
    for path in opened:
        path.chmod(0o777)

    answers = [
        subprocess.run(
            ["/usr/bin/env", "python3", "-c", ask], capture_output=True, check=False, user=user
        ).stdout
        for user in (65534, 0)
    ]

    for path, mode in zip(opened, modes, strict=True):
        path.chmod(mode)
    assert answers == [b"b''\n", b"b'\\x00'\n"]


@pytest.mark.case("surfaces", 503)
def test_a_server_of_another_version_or_with_other_settings_is_not_used(
    warm: RunningWarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, usual = warm.commands, invoke(*READ, cwd=warm.folder)
    assert warm.commands == asked + 1

    patched(monkeypatch, "omnigraph.client.warm.reach.__version__", "0.0.1")
    assert invoke(*READ, cwd=warm.folder) == usual
    monkeypatch.undo()
    for name in ("OMNIGRAPH_DURABILITY", "AWS_REGION", "OPENAI_API_KEY", "HTTPS_PROXY"):
        with monkeypatch.context() as patch:
            patch.setenv(name, "process")
            assert invoke(*READ, cwd=warm.folder) == usual
            why = document("serve", GRAPH, "--status", cwd=warm.folder)
            refused = invoke("serve", GRAPH, "--background", cwd=warm.folder)
        assert (why["is_used"], why["reason"]) == (False, "its environment has other settings than this one")
        assert (refused.code, "stop it with omnigraph serve --stop" in refused.stderr) == (1, True)

    assert warm.commands == asked + 1
    assert all(counts(name) for kind in DEFAULTS.values() for name in kind.key_variables)


def test_it_is_not_asked_where_a_flag_or_the_environment_says_so(
    warm: RunningWarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = warm.commands

    by_flag = invoke("--no-warm", *READ, cwd=warm.folder)
    monkeypatch.setenv("OMNIGRAPH_NO_WARM", "1")
    by_variable = invoke(*READ, cwd=warm.folder)

    assert (by_flag.code, by_variable.code) == (0, 0)
    assert warm.commands == asked
    monkeypatch.setenv("OMNIGRAPH_NO_WARM", "0")
    assert invoke(*READ, cwd=warm.folder) == by_flag
    assert warm.commands == asked + 1
    assert invoke("status", GRAPH, "--no-warm", cwd=warm.folder).code == 2


@pytest.mark.case("surfaces", 550)
def test_it_is_not_asked_by_a_command_with_a_policy(warm: RunningWarm, tmp_path: Path) -> None:
    """It has the graph open without one."""
    policy = write(tmp_path, "policy.yaml", policy_text())
    asked = warm.commands

    refused = invoke(*READ, "--policy", policy, cwd=warm.folder)

    assert (refused.code, warm.commands) == (1, asked)
    assert "policy denied action 'read'" in refused.stderr


@pytest.mark.case("surfaces", 504)
def test_a_second_start_finds_the_first_one(warm: RunningWarm) -> None:
    again = document("serve", GRAPH, "--background", cwd=warm.folder)

    assert (again["pid"], again["is_used"], again["idle_s"]) == (warm.pid, True, 900)
    assert again["socket"] == str(warm.place.socket)
    beside = omnigraph("serve", GRAPH, "--idle", "1s", cwd=warm.folder)
    assert (beside.code, "runs already" in beside.stderr) == (1, True)


@pytest.mark.case("surfaces", 504)
def test_a_stale_socket_is_passed_by_and_replaced_and_a_server_ends_when_nobody_asks(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    place = WarmPlace.of(os.path.realpath(tmp_path / GRAPH))
    place.make_folder()
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(place.socket))
    place.socket.chmod(0o600)

    assert invoke(*READ, cwd=tmp_path).code == 0
    with warm_server(tmp_path, "--idle", "2s"):
        _wait_for_the_end_of(place)

        assert not place.socket.exists()
        assert invoke(*READ, cwd=tmp_path).code == 0


@pytest.mark.case("surfaces", 505)
def test_a_graph_that_was_made_anew_is_not_answered_for_by_the_server_of_the_old_one(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for folder, code in ((tmp_path, "OLD-1"), (other, "NEW-1")):  # as many commits, with the same versions
        place_atlas(folder)
        write(folder, "more.jsonl", lines(craft(code)))
        loaded = invoke("load", GRAPH, "--data", "more.jsonl", "--mode", "append", cwd=folder)
        assert loaded.code == 0

    with warm_server(tmp_path) as server:
        before = invoke(*READ, cwd=tmp_path)
        shutil.rmtree(tmp_path / GRAPH)
        (other / GRAPH).rename(tmp_path / GRAPH)
        after = invoke(*READ, cwd=tmp_path)

        assert "OLD-1" in before.stdout
        assert "NEW-1" in after.stdout
        _wait_for_the_end_of(server.place)


@pytest.fixture
def slow_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningWarm]:
    """A warm server whose commits take longer than it waits for reads."""
    place_atlas(tmp_path)
    monkeypatch.setenv("OMNIGRAPH_FAILPOINTS", SLOW_COMMIT)
    monkeypatch.setenv("OMNIGRAPH_DRAIN_WAIT_S", "1")
    with warm_server(tmp_path) as server:
        yield server


@pytest.mark.case("surfaces", 506)
def test_a_signal_waits_for_the_commit_in_flight(slow_commits: RunningWarm) -> None:
    folder = slow_commits.folder

    interrupted = _begin_commit(folder)
    interrupted.send_signal(signal.SIGINT)
    _, stderr = interrupted.communicate()
    head = commits(folder, "--limit", "1")[0]["graph_commit_id"]

    assert interrupted.returncode == 130
    assert stderr.decode() == f"\ninterrupted: the write had already landed, as commit {head}\n"

    writing = _begin_commit(folder)
    for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGINT):
        os.kill(slow_commits.pid, number)
    stdout, stderr = writing.communicate()
    _wait_for_the_end_of(slow_commits.place)

    assert (writing.returncode, stderr.decode()) == (0, "")
    assert commits(folder, "--limit", "1")[0]["graph_commit_id"] in stdout.decode()
    assert not list((folder / GRAPH / "__recovery").glob("*.json"))


@pytest.mark.case("surfaces", 507)
def test_a_write_whose_answer_is_lost_is_not_sent_again_and_a_read_is_done_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place_atlas(tmp_path)
    head = commits(tmp_path, "--limit", "1")[0]["graph_commit_id"]
    monkeypatch.setenv("OMNIGRAPH_FAILPOINTS", "write.post_finalize_pre_publisher=exit")

    with warm_server(tmp_path) as server:
        lost = invoke(*RENAME, cwd=tmp_path)
        _wait_for_the_end_of(server.place)
        read = invoke(*READ, cwd=tmp_path)

    assert lost.code == 1
    assert f"no answer to the write on branch 'main' (head before: {head})" in lost.stderr
    assert read.code == 0


def test_settings_that_every_command_warns_of_are_refused(tmp_path: Path) -> None:
    place_atlas(tmp_path)

    outcome = omnigraph("serve", GRAPH, "--idle", "1s", cwd=tmp_path, OMNIGRAPH_VERIFY="always")

    assert outcome.code == 1
    assert "error: a setting in the environment is malformed" in outcome.stderr


def test_a_server_that_finds_a_setting_to_warn_of_takes_no_further_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place_atlas(tmp_path)
    monkeypatch.setenv("OMNIGRAPH_TRAVERSAL_MODE", "sideways")
    usual = invoke(*READ, "--no-warm", cwd=tmp_path)

    with warm_server(tmp_path) as server:
        assert [invoke(*READ, cwd=tmp_path) for _ in range(3)] == [usual] * 3
        assert server.commands == 1

    assert usual.stderr.startswith("warning: OMNIGRAPH_TRAVERSAL_MODE='sideways' is not one of")


def test_a_path_from_here_counts_with_the_folder_that_is_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = {"AWS_CONFIG_FILE": "config"}, {"AWS_CONFIG_FILE": "/etc/config"}
    before = [digest_of_settings(here), digest_of_settings(there)]

    monkeypatch.chdir(tmp_path)

    assert digest_of_settings(here) != before[0]
    assert digest_of_settings(there) == before[1]


def test_values_are_read_without_running_anything() -> None:
    class Runs:
        def __reduce__(self) -> tuple[object, ...]:
            return os.getpid, ()

    here, there = map(Link, socket.socketpair())
    outside = Outcome(0, "", "")  # a value, and none of the program's
    for value in (Runs(), Path("x"), find_server, outside):
        here.send(value)
        with pytest.raises(PeerGone, match="no value of ours"):
            there.receive()
    here.close()
    there.close()


def _begin_commit(folder: Path) -> subprocess.Popen[bytes]:
    """Start a mutation, and return when its commit is in flight: it has its record, and no answer yet."""
    command = [sys.executable, "-c", "import signal, sys; signal.signal(signal.SIGINT, "]
    command[-1] += "signal.default_int_handler); sys.argv[0] = 'omnigraph'\n"
    command[-1] += "from omnigraph.cli.main import main; main()"
    process = subprocess.Popen(
        [*command, *RENAME], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    while not list((folder / GRAPH / "__recovery").glob("*.json")):
        assert process.poll() is None, process.communicate()
    return process


def _wait_for_the_end_of(place: WarmPlace) -> None:
    """Wait as long as it holds its lock."""
    with place.lock.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
