"""Servers that lead a program in a circle: asked again more and more seldom, and then given up."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph
from omnigraph.client.remote.graph import RemoteGraph
from tests.support.in_process import invoke
from tests.support.scripted import COMMIT, HEAD, Answer, serving

EVENTS = {"Content-Type": "text/event-stream"}
SIDE = {"branch": "main", "snapshot": HEAD, "manifest_version": 1}
CAUSE = {
    "graph_commit_id": HEAD,
    "parent_commit_id": None,
    "merged_parent_commit_id": None,
    "authored_branch": "main",
    "actor_id": None,
    "authored_at": 1,
}
DIFF: Answer = (200, {"from": SIDE, "to": SIDE, "changes": [], "stats": {}, "next_page_token": "t"}, {})
PAGE: Answer = (200, {"cause": CAUSE, "changes": [], "next_page_token": "t"}, {})
BEHIND: Answer = (200, {"blocks": [], "cursor": "c", "caught_up": False}, {})
CUT: Answer = (200, {"blocks": [], "next_page_token": "t"}, {})
NO_CURSOR: Answer = (200, {"blocks": [], "caught_up": True}, {})


def data(document: object) -> bytes:
    return f"event: commit\ndata: {json.dumps(document)}\n\n".encode()


@pytest.mark.case("surfaces", 784)
@pytest.mark.parametrize(
    "answer",
    [
        (200, b"<html>", {"Content-Type": "text/html"}),
        (200, b"", {}),
        (200, data({}), EVENTS),
        (200, data({**COMMIT, "graph_commit_id": 5}), EVENTS),
        (200, data(COMMIT), EVENTS),
        (200, b"data: {\n\n", EVENTS),
    ],
    ids=["page", "no type", "no commit", "no id", "the last again", "no JSON"],
)
def test_what_is_no_event_is_raised_at_once(answer: Answer) -> None:
    with (
        serving(answer) as script,
        script.remote() as graph,
        pytest.raises(omnigraph.TransportError, match="not one of this API"),
    ):
        next(graph.events())

    assert (len(script.after), script.waited) == (1, [])


@pytest.mark.case("surfaces", 784)
def test_streams_that_say_nothing_are_asked_for_more_and_more_seldom_and_given_up() -> None:
    with (
        serving(*[(200, b"", EVENTS)] * 5) as script,
        script.remote() as graph,
        pytest.raises(omnigraph.TransportError, match="5 streams of events in a row without a word"),
    ):
        next(graph.events())

    assert script.waited == pytest.approx([0.1, 0.3, 0.9, 2.7])


@pytest.mark.case("surfaces", 784)
def test_streams_without_news_are_no_error() -> None:
    idle: Answer = (200, b": hello\n\n", EVENTS)
    told: Answer = (200, b": hello\n\n" + data({**COMMIT, "graph_commit_id": "B"}), EVENTS)
    with serving(*[idle] * 8, told, told) as script, script.remote() as graph:
        assert next(graph.events()).graph_commit_id == "B"

    assert script.waited == pytest.approx([0.1, 0.3, 0.9, 2.7, 8.1, 10.0, 10.0, 10.0])


@pytest.mark.case("surfaces", 784)
@pytest.mark.parametrize(
    ("answer", "take", "command"),
    [
        (DIFF, lambda graph: [*graph.diff("a", "b")], ["diff", "a", "b"]),
        (PAGE, lambda graph: [*graph.commit_changes(HEAD)], ["commit", "changes", HEAD]),
        (CUT, lambda graph: [*graph.changes("c0")], ["changes", "poll"]),
        (BEHIND, lambda graph: [*graph.changes("c0")], None),
        (NO_CURSOR, lambda graph: [*graph.changes("c0")], None),
    ],
    ids=["diff", "commit", "cut", "feed", "no cursor"],
)
def test_a_page_that_was_there_before_is_an_error(
    answer: Answer, take: Callable[[RemoteGraph], object], command: list[str] | None, tmp_path: Path
) -> None:
    with (
        serving(*[answer] * 4) as script,
        script.remote() as graph,
        pytest.raises(omnigraph.TransportError),
    ):
        take(graph)
    assert len(script.asked) <= 2
    if command is not None:
        with serving(*[answer] * 4) as script:
            outcome = invoke(*command, "--store", script.url, cwd=tmp_path)
        assert (outcome.code, len(script.asked)) == (1, 2)
        assert "one that was there before" in outcome.stderr
