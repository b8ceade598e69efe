"""A server beside other processes that write the same graph, and beside what dead ones left."""

import json
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest

import omnigraph
from omnigraph.commit.recovery.kinds import RecoveryKind
from omnigraph.core.failpoint import ENVIRONMENT, EXIT_STATUS
from tests.support.atlas import GRAPH, MUTATIONS, commits, craft, flew, lines, mission, place_atlas, rows
from tests.support.commands import write
from tests.support.forked import Forked
from tests.support.http_app import serving_app, settings_for
from tests.support.http_server import error_of, running_server
from tests.support.in_process import invoke

SEED_CODES = {"VGR-1", "VGR-2", "GLL-1"}
_COMMAND = """
import os, sys
from omnigraph.cli.main import main
folder, *words = sys.argv[1:]
os.chdir(folder)
main(words)
"""
ROUNDS = 50


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    """A graph of this test's own."""
    return place_atlas(tmp_path)


def add(client: httpx.Client, code: str) -> httpx.Response:
    """Insert a craft and the mission that it flew."""
    body = {"query": MUTATIONS, "name": "add_craft", "params": {"code": code, "name": "n"}}
    return client.post("/mutate", json=body)


def codes(graph: Path) -> set[str]:
    return {row["code"] for row in rows(graph, "Craft")}


def killed_load(folder: Path, data: Path, mode: str) -> None:
    """Load with the command line, in a process that dies behind the first of its tables."""
    words = ["load", GRAPH, "--data", str(data), "--mode", mode, "--yes", "--no-warm"]
    with Forked(_COMMAND, folder, *words, **{ENVIRONMENT: "write.post_table_commit=exit"}) as script:
        assert script.wait() == EXIT_STATUS


def recoveries(graph: Path) -> list[RecoveryKind]:
    with omnigraph.open(graph, mode="ro") as opened:
        return [record.recovery_kind for record in opened.recoveries()]


@pytest.mark.case("surfaces", 146)
@pytest.mark.case("surfaces", 220)
def test_a_write_undoes_what_a_killed_command_began_where_no_restore_is_needed(
    graph: Path, tmp_path: Path
) -> None:
    append = write(tmp_path, "more.jsonl", lines(craft("MORE"), flew("MORE", "Jupiter")))
    with serving_app(settings_for(graph)) as client:
        assert add(client, "A").status_code == 200

        killed_load(tmp_path, append, "append")
        healed = add(client, "B")

        assert healed.status_code == 200, healed.text
        assert recoveries(graph) == [RecoveryKind.ROLLED_BACK]
    assert codes(graph) == {*SEED_CODES, "A", "B"}
    with omnigraph.open(graph, mode="ro") as opened:
        assert opened.verify(deep=True).is_whole


@pytest.mark.case("surfaces", 146)
def test_a_write_waits_for_an_open_where_a_restore_is_needed(graph: Path, tmp_path: Path) -> None:
    overwrite = write(tmp_path, "new.jsonl", lines(craft("NEW"), mission("New"), flew("NEW", "New")))
    body = {"data": lines(craft("A"), flew("A", "Jupiter")), "mode": "append"}
    with serving_app(settings_for(graph)) as client:
        killed_load(tmp_path, overwrite, "overwrite")
        refused = [client.post("/load", json=body) for _ in range(2)]
    for answer in refused:
        error_of(answer, 503, None)
    (operation_id,) = {answer.json()["recovery_required"]["operation_id"] for answer in refused}
    assert codes(graph) == SEED_CODES

    with serving_app(settings_for(graph)) as client:
        again = client.post("/load", json=body)
        assert again.status_code == 200, again.text
    with omnigraph.open(graph, mode="ro") as opened:
        (recovery,) = opened.recoveries()
    assert (recovery.operation_id, recovery.recovery_kind) == (operation_id, RecoveryKind.ROLLED_BACK)
    assert codes(graph) == {*SEED_CODES, "A"}


@pytest.mark.case("surfaces", 150)
def test_a_cursor_from_before_a_cleanup_is_gone(graph: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_READER_GRACE", "0")
    with omnigraph.open(graph, upkeep=False) as opened:
        cursor = opened.poll_changes().cursor
        first, *_ = (
            opened.mutate(MUTATIONS, "rename", {"code": "VGR-1", "name": name}).commit for name in "ab"
        )
        opened.cleanup(1)

    with serving_app(settings_for(graph)) as client:
        answer = client.get("/changes", params={"cursor": str(cursor)})

    error_of(answer, 410, None)
    assert first is not None
    assert answer.json()["change_feed_gap"]["first_unreadable_commit_id"] == first.graph_commit_id


@pytest.mark.slow
@pytest.mark.case("surfaces", 219)
def test_a_server_and_loads_from_a_shell_write_at_once(graph: Path, tmp_path: Path) -> None:
    acknowledged = set(SEED_CODES)
    with running_server(graph, log=tmp_path / "log") as server, server.client() as client:
        with ThreadPoolExecutor(1) as pool:
            for number in range(ROUNDS):
                records = lines(craft(f"L{number}"), flew(f"L{number}", "Jupiter"))
                data = write(tmp_path, "new.jsonl", records)
                words = ("load", GRAPH, "--data", data, "--mode", "append", "--no-index", "--no-warm")
                adding = pool.submit(add, client, f"S{number}")
                loaded = invoke(*words, cwd=tmp_path)
                answer = adding.result()
                if answer.status_code == 200:
                    acknowledged.add(f"S{number}")
                else:
                    error_of(answer, 409, "conflict")
                if loaded.code == 0:
                    acknowledged.add(f"L{number}")
                else:
                    assert loaded.code == 1
                    assert "again" in loaded.stderr, loaded
        seen = client.post("/query", json={"query": "query q() { match { $c: Craft } return { $c.code } }"})
    found = {row["c.code"] for row in seen.json()["rows"]}

    assert found == codes(graph) == acknowledged
    assert recoveries(graph) == []
    with omnigraph.open(graph, mode="ro") as opened:
        assert opened.verify(deep=True).is_whole


@pytest.mark.slow
@pytest.mark.case("surfaces", 223)
def test_every_result_names_its_own_commit_among_those_of_maintenance(graph: Path, tmp_path: Path) -> None:
    named: list[str] = []
    numbers = count()
    before = len(commits(tmp_path))

    def params() -> dict[str, Any]:
        return {"code": "VGR-1", "name": f"n{next(numbers)}"}

    with serving_app(settings_for(graph)) as client, omnigraph.open(graph) as opened:
        for turn in range(200):
            if turn % 10 == 0:
                words = (
                    "mutate",
                    "rename",
                    "--query",
                    "atlas.gq",
                    "--store",
                    GRAPH,
                    "--params",
                    json.dumps(params()),
                )
                printed = invoke(
                    *words, *(("--if-commit", named[-1]) if named else ()), "--json", cwd=tmp_path
                )
                assert printed.code == 0, printed
                named.append(json.loads(printed.stdout)["commit"]["graph_commit_id"])
            elif turn % 2:
                body = {"query": MUTATIONS, "name": "rename", "params": params()}
                answer = client.post("/mutate", json=body)
                assert answer.status_code == 200, answer.text
                named.append(answer.json()["commit"]["graph_commit_id"])
            else:
                done = opened.mutate(MUTATIONS, "rename", params(), if_commit=named[-1])
                assert done.commit is not None
                named.append(done.commit.graph_commit_id)

    listed = commits(tmp_path)[:-before]
    own = [found["graph_commit_id"] for found in listed if found["actor_id"] != "omnigraph:maintenance"]
    assert own == named[::-1]
    assert len(listed) > len(own)
