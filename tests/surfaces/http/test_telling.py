"""Loads that tell how they get on: lines of NDJSON, and how they ended as the last of them."""

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.responses import Response, StreamingResponse

from omnigraph.core.cancellation import Cancellation
from omnigraph.core.failpoint import failpoint
from omnigraph.server.serving import Serving
from omnigraph.server.telling import LINES_MAX, Telling
from tests.support.atlas import craft, flew, lines, mission, place_atlas, rows
from tests.support.http_app import listening, settings_for
from tests.support.http_server import WAIT_S, error_of
from tests.support.seam import patched

LOAD = "/load/ndjson?mode=merge"
NDJSON = "application/x-ndjson"
TELL = {"Content-Type": NDJSON, "Accept": NDJSON}
NAME = "name-of-a-load-0123456789"


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    """A graph of this test's own."""
    return place_atlas(tmp_path)


@pytest.fixture
def client(graph: Path) -> Iterator[httpx.Client]:
    """A server of the graph."""
    serving = Serving.begin(settings_for(graph))
    try:
        with listening(serving) as url, httpx.Client(base_url=url, timeout=WAIT_S) as client:
            yield client
    finally:
        serving.close()


def told(answer: httpx.Response) -> list[dict[str, Any]]:
    """Return what an answer tells, line by line."""
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == NDJSON
    assert answer.text.endswith("\n")
    return [json.loads(line) for line in answer.text.splitlines()]


@pytest.mark.case("surfaces", 834)
def test_a_load_tells_how_it_gets_on_and_at_last_its_result(client: httpx.Client, graph: Path) -> None:
    sent = lines(craft("TELL-1"), craft("TELL-2"), mission("Telling"), flew("TELL-1", "Telling"))

    *progress, last = told(client.post(LOAD, content=sent, headers=TELL))
    plain = client.post(LOAD, content=sent, headers={"Content-Type": NDJSON})
    refused = client.post(LOAD, content=sent, headers={**TELL, "Accept": f"{NDJSON};q=0"})

    phases = list(dict.fromkeys(line["progress"]["phase"] for line in progress))
    assert phases == ["read and parse", "keys and duplicates", "commit", "index"]
    assert progress[0] == {"progress": {"phase": "read and parse", "rows_read": 0, "tables": []}}
    counts = {"edge:Flew": 1, "node:Craft": 2, "node:Mission": 1}
    assert progress[-1]["progress"]["rows_read"] == 4
    assert progress[-1]["progress"]["tables"] == [
        {"table_key": key, "rows_read": count} for key, count in counts.items()
    ]
    assert list(last) == ["result"]
    assert set(last["result"]) == set(plain.json())
    assert {one["table_key"]: one["rows_loaded"] for one in last["result"]["tables"]} == counts
    for answer in (plain, refused):
        assert answer.headers["content-type"] == "application/json"
    assert {"TELL-1", "TELL-2"} <= {row["code"] for row in rows(graph, "Craft")}


@pytest.mark.case("surfaces", 834)
def test_what_is_wrong_behind_the_head_is_the_last_line(client: httpx.Client, graph: Path) -> None:
    before = rows(graph, "Craft")
    sent = lines(craft("TELL-1")) + "{"

    *progress, last = told(client.post(LOAD, content=sent, headers={**TELL, "Omnigraph-Write-Id": NAME}))
    plain = client.post(LOAD, content=sent, headers={"Content-Type": NDJSON})

    assert progress[0]["progress"]["phase"] == "read and parse"
    assert last == plain.json()
    assert "line 2: invalid JSON" in last["error"]
    kept = client.get(f"/writes/{NAME}").json()
    assert (kept["state"], kept["status"], kept["answer"]) == ("done", 400, last)
    assert rows(graph, "Craft") == before


@pytest.mark.case("surfaces", 834)
def test_what_is_refused_before_the_head_keeps_its_status(client: httpx.Client) -> None:
    sent = lines(craft("TELL-1"))

    no_branch = client.post(f"{LOAD}&branch=nope", content=sent, headers=TELL)
    no_type = client.post(LOAD, content=sent, headers={**TELL, "Content-Type": "application/json"})

    assert "pass from to create it" in error_of(no_branch, 404, "not_found")
    error_of(no_type, 415, "bad_request")


@pytest.mark.case("surfaces", 834)
def test_what_fails_in_the_server_is_told_without_a_place(client: httpx.Client, graph: Path) -> None:
    with failpoint("write.post_stage_pre_gate", "raise:once"):
        *_, last = told(client.post(LOAD, content=lines(craft("TELL-1")), headers=TELL))

    assert last["code"] == "internal"
    assert str(graph) not in last["error"]


@pytest.mark.case("surfaces", 834)
def test_a_name_of_a_told_load_is_of_one_load(client: httpx.Client) -> None:
    sent, named = lines(craft("TELL-1")), {**TELL, "Omnigraph-Write-Id": NAME}

    *_, last = told(client.post(LOAD, content=sent, headers=named))
    again = client.post(LOAD, content=sent, headers=named)

    assert client.get(f"/writes/{NAME}").json()["answer"] == last["result"]
    assert "was sent before" in error_of(again, 400, "bad_request")


@pytest.mark.case("surfaces", 834)
@pytest.mark.parametrize(
    ("place", "is_finished"),
    [("write.post_gate_pre_sidecar", False), ("write.post_sidecar_pre_commit", True)],
)
def test_a_caller_that_goes_while_it_is_told(
    place: str, is_finished: bool, client: httpx.Client, graph: Path
) -> None:
    came, asked, body = threading.Event(), threading.Event(), lines(craft("TELL-1")).encode()
    head = (
        f"POST {LOAD} HTTP/1.1\r\nHost: x\r\nContent-Type: {NDJSON}\r\nAccept: {NDJSON}\r\n"
        f"Omnigraph-Write-Id: {NAME}\r\nContent-Length: {len(body)}\r\n\r\n"
    )

    def stop() -> None:
        came.set()
        assert asked.wait(WAIT_S)

    ask = Cancellation.ask

    def ask_and_tell(cancellation: Cancellation) -> bool:
        is_in_time = ask(cancellation)
        asked.set()
        return is_in_time

    with pytest.MonkeyPatch.context() as patch, failpoint(place, call=stop):
        patched(patch, "omnigraph.core.cancellation.Cancellation.ask", ask_and_tell)
        address = client.base_url.host, client.base_url.port or 0
        with socket.create_connection(address, WAIT_S) as connection:
            connection.sendall(head.encode() + body)
            assert b"read and parse" in connection.recv(65_536) + connection.recv(65_536)
            assert came.wait(WAIT_S)
        looks = int(WAIT_S * 100)
        while (found := client.get(f"/writes/{NAME}").json())["state"] == "under_way" and looks:
            threading.Event().wait(0.01)
            looks -= 1

    assert found["state"] == ("done" if is_finished else "not_begun")
    assert ("TELL-1" in {row["code"] for row in rows(graph, "Craft")}) == is_finished


@pytest.mark.case("surfaces", 834)
def test_the_work_does_not_wait_for_its_reader() -> None:
    many = 10 * LINES_MAX

    async def story() -> list[bytes]:
        telling, over = Telling(), asyncio.Event()

        async def work() -> Response:
            def tell() -> None:
                for number in range(many):
                    telling.tell({"number": number})

            await asyncio.to_thread(tell)
            over.set()
            return Response(b"{}")

        answer = await telling.answer(work(), lambda error: Response(str(error)), NDJSON)
        await over.wait()
        assert isinstance(answer, StreamingResponse)
        return [bytes(piece) async for piece in answer.body_iterator if isinstance(piece, bytes)]

    *progress, last = asyncio.run(story())

    assert len(progress) == LINES_MAX
    assert json.loads(progress[-1]) == {"number": many - 1}
    assert last == b'{"result":{}}\n'
