"""New commits as events: in order, resumable, and bounded whatever their reader does."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from omnigraph.graph.graph import Graph
from omnigraph.graph.opening import open as open_graph
from omnigraph.server import events
from omnigraph.server.metrics import Metrics
from omnigraph.server.threads import Threads
from tests.support.atlas import place_atlas
from tests.support.http_app import serving_app, settings_for
from tests.support.http_server import error_of, running_server
from tests.support.seam import patched

ADD = "query add($title: String) { insert Mission { title: $title } }"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return place_atlas(tmp_path_factory.mktemp("events"))


@pytest.fixture(scope="module")
def client(graph: Path) -> Iterator[httpx.Client]:
    """One open server for this file."""
    with serving_app(settings_for(graph)) as client:
        yield client


class Followed:
    """A stream that is read event by event."""

    def __init__(self, answer: httpx.Response) -> None:
        self.lines = answer.iter_lines()
        assert next(self.lines) == ": following"  # from here on every commit is told
        assert next(self.lines) == ""

    def next(self) -> dict[str, Any]:
        """Wait for the next event, and return its document."""
        id_, event, data, end = (next(self.lines) for _ in range(4))
        document: dict[str, Any] = json.loads(data.removeprefix("data: "))
        assert (event, end) == ("event: commit", "")
        assert id_ == f"id: {document['graph_commit_id']}"
        return document

    def rest(self) -> list[str]:
        """Wait for the end, and return what came before it."""
        return list(self.lines)


@contextmanager
def following(client: httpx.Client, last: str | None = None, **params: str) -> Iterator[Followed]:
    headers = {} if last is None else {"Last-Event-ID": last}
    with client.stream("GET", "/events", params=params, headers=headers) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        followed = Followed(answer)  # kept here: a stream ends with the last who reads it
        yield followed


def add(client: httpx.Client, title: str, **more: str) -> dict[str, Any]:
    answer = client.post("/mutate", json={"query": ADD, "params": {"title": title}, **more})
    commit: dict[str, Any] = answer.raise_for_status().json()["commit"]
    return commit


@pytest.mark.case("surfaces", 384)
def test_every_commit_is_told_in_order_whoever_makes_it(client: httpx.Client, graph: Path) -> None:
    with following(client) as followed:
        ours = [add(client, f"told {number}") for number in range(3)]
        with open_graph(graph, maintenance="inline") as other:
            made = other.mutate(ADD, params={"title": "told by another"})
            assert made.commit is not None
        told = [followed.next() for _ in range(4)]

    assert told[:3] == ours
    assert told[3]["graph_commit_id"] == made.commit.graph_commit_id


@pytest.mark.case("surfaces", 384)
def test_a_reader_that_comes_back_gets_what_it_missed_and_nothing_twice(client: httpx.Client) -> None:
    with following(client) as followed:
        seen = add(client, "seen")
        assert followed.next() == seen
    missed = [add(client, f"missed {number}") for number in range(3)]

    with following(client, last=str(seen["graph_commit_id"])) as followed:
        again = [followed.next() for _ in range(3)]
        new = add(client, "new")
        assert followed.next() == new

    assert again == missed


@pytest.mark.case("surfaces", 384)
def test_a_reader_that_knows_more_than_the_list_is_not_taken_for_a_slow_one(
    graph: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list was read for another reader a moment ago, and a commit has been made since."""
    patched(monkeypatch, "omnigraph.server.events.POLL_S", 1.0)
    threads = Threads()

    async def follow(opened: Graph) -> bytes:
        streams, followed = events.EventStreams(), events.Followed(opened.commit_log(), threads)
        await followed.refresh()
        opened.mutate(ADD, params={"title": "since the list was read"})
        streams.reserve(followed)
        missed = events.missed_commits(opened, None, None)
        lines = events.event_lines(streams, followed, missed, Metrics())
        assert await anext(lines) == b": following\n\n"
        made = opened.mutate(ADD, params={"title": "to be told"})
        assert made.commit is not None
        told = await anext(lines)
        await lines.aclose()
        assert made.commit.graph_commit_id.encode() in told
        return told

    with open_graph(graph, maintenance="inline") as opened:
        told = asyncio.run(follow(opened))
    threads.close()

    assert told.startswith(b"id: ")


@pytest.mark.case("surfaces", 384)
def test_a_branch_is_followed_by_its_name(client: httpx.Client) -> None:
    client.post("/branches", json={"name": "june"}).raise_for_status()

    with following(client, branch="june") as followed:
        add(client, "on main")
        commit = add(client, "on june", branch="june")
        assert followed.next() == commit


@pytest.mark.case("surfaces", 384)
def test_what_cannot_be_followed_is_refused(client: httpx.Client) -> None:
    unknown = client.get("/events", headers={"Last-Event-ID": "01ARZ3NDEKTSV4RRFFQ69G5FAV"})
    nowhere = client.get("/events", params={"branch": "nowhere"})

    assert "Last-Event-ID" in error_of(unknown, 400, "bad_request")
    error_of(nowhere, 404, "not_found")


@pytest.mark.case("surfaces", 385)
def test_a_reader_that_falls_behind_is_disconnected_and_can_continue(client: httpx.Client) -> None:
    last = str(add(client, "before")["graph_commit_id"])
    missed = [add(client, f"behind {number}") for number in range(4)]

    with pytest.MonkeyPatch.context() as patch:
        patched(patch, "omnigraph.server.events.RECENT_MAX", 2)
        patched(
            patch, "omnigraph.server.routes.events.missed_commits", lambda graph, *_: [graph.commit(last)]
        )
        missed.append(add(client, "one more"))  # so that the list is read again
        with following(client, last=last) as followed:
            assert followed.rest() == []

    with following(client, last=last) as followed:
        assert [followed.next() for _ in missed] == missed


@pytest.mark.case("surfaces", 385)
def test_streams_are_limited_and_their_places_are_given_back(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    while "omnigraph_http_event_streams 0.0" not in client.get("/metrics").text:
        pass  # the server has yet to notice that readers of other tests have gone
    patched(monkeypatch, "omnigraph.server.events.STREAMS_MAX", 1)

    with following(client) as first:
        refused = client.get("/events")
        commit = add(client, "while there is one")
        assert first.next() == commit
    while "omnigraph_http_event_streams 0.0" not in client.get("/metrics").text:
        pass
    with following(client) as followed:
        commit = add(client, "after")
        assert followed.next() == commit

    error_of(refused, 429, "too_many_requests")
    assert refused.headers["retry-after"] == "10"


@pytest.mark.case("surfaces", 384)
def test_a_stream_ends_with_its_branch(client: httpx.Client) -> None:
    client.post("/branches", json={"name": "short"}).raise_for_status()

    with following(client, branch="short") as followed:
        client.delete("/branches/short").raise_for_status()
        assert followed.rest() == []

    error_of(client.get("/events", params={"branch": "short"}), 404, "not_found")


@pytest.mark.slow
@pytest.mark.case("surfaces", 384)
def test_a_server_that_is_told_to_stop_ends_its_streams(tmp_path: Path) -> None:
    with (
        running_server(place_atlas(tmp_path), log=tmp_path / "log") as server,
        server.client() as client,
        following(client) as followed,
    ):
        assert server.stop() == 0
        assert followed.rest() == []


@pytest.mark.case("surfaces", 343)
def test_a_branch_is_followed_once_however_its_name_is_spelled(graph: Path) -> None:
    streams, threads = events.EventStreams(), Threads()
    with open_graph(graph) as opened:
        followed = [streams.follow(opened, name, threads) for name in (None, "main", " main", "main\t ")]
        other = streams.follow(opened, "other", threads)

    assert all(one is followed[0] for one in followed)
    assert other is not followed[0]
    threads.close()
