"""LangChain's chat history: a branch for each thread, order, clearing, merging, two writers."""

from contextlib import ExitStack
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

import omnigraph
from omnigraph import BadRequest, BranchNotFound, Graph
from omnigraph.agents.langchain import OmnigraphChatHistory
from omnigraph.agents.threads import branch_of, thread_of
from tests.support.forked import Forked
from tests.surfaces.agents.conftest import Either

MESSAGES: list[BaseMessage] = [
    SystemMessage("Be brief."),
    HumanMessage(
        [{"type": "text", "text": "What is\nthis?"}, {"type": "image_url", "image_url": {"url": "x"}}]
    ),
    AIMessage("", tool_calls=[{"name": "look", "args": {"at": ["it", 1, None]}, "id": "call-1"}]),
    ToolMessage("a cat", tool_call_id="call-1", artifact={"score": 0.5}),
    AIMessage("A cat.", response_metadata={"model": "m"}, id="run-1", additional_kwargs={"b": 1, "a": 2}),
]
ADDERS = """
import sys
import omnigraph
from langchain_core.messages import HumanMessage
from omnigraph.agents.langchain import OmnigraphChatHistory
place, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
with omnigraph.open(place, durability="process") as graph:
    history = OmnigraphChatHistory(graph, "shared")
    print("open", flush=True)
    sys.stdin.readline()
    for number in range(count):
        history.add_messages([HumanMessage(f"{name}{number}a"), HumanMessage(f"{name}{number}b")])
print("done", flush=True)
"""
EACH = 8


@pytest.mark.case("surfaces", 745)
@pytest.mark.case("surfaces", 752)
def test_messages_come_back_equal_and_in_order_and_main_sees_them_after_a_merge(either: Either) -> None:
    history = OmnigraphChatHistory(either, "t-1")
    assert history.messages == []
    assert either.branches() == ["main"]

    history.add_messages(MESSAGES[:3])
    history.add_messages(MESSAGES[3:])
    history.add_messages([])

    assert history.messages == MESSAGES
    assert OmnigraphChatHistory(either, "t-1").messages == MESSAGES
    assert either.branches() == ["main", "thread/t-1"]
    assert OmnigraphChatHistory(either, "t-2").messages == []
    count = "query n() { match { $m: ChatMessage } return { count($m) as n } }"
    assert either.query(count).scalar() == 0

    merged = history.merge(message="what was said", delete_branch=True)

    assert merged.commit is not None
    assert either.branches() == ["main"]
    assert history.messages == MESSAGES
    assert either.query(count).scalar() == len(MESSAGES)
    history.add_user_message("And now?")
    assert [message.text for message in history.messages[-2:]] == ["A cat.", "And now?"]


@pytest.mark.case("surfaces", 745)
@pytest.mark.case("surfaces", 752)
def test_clearing_one_thread_leaves_the_others_alone(either: Either) -> None:
    first, second = (OmnigraphChatHistory(either, name) for name in ("one", "two"))
    first.add_messages(MESSAGES[:1])
    second.add_messages(MESSAGES[:2])
    first.merge()
    second.merge()

    first.clear()
    OmnigraphChatHistory(either, "never").clear()
    first.add_ai_message("again")

    assert [message.text for message in first.messages] == ["again"]
    assert second.messages == MESSAGES[:2]
    assert either.branches() == ["main", "thread/one", "thread/two"]
    second.merge(delete_branch=True)
    second.clear()
    assert second.messages == []


@pytest.mark.case("surfaces", 745)
def test_reading_makes_no_branch_and_a_thread_without_one_cannot_be_merged(graph: Graph) -> None:
    history = OmnigraphChatHistory(graph, "t")

    assert history.messages == []
    with pytest.raises(BranchNotFound):
        history.merge()

    assert graph.branches() == ["main"]


@pytest.mark.case("surfaces", 745)
def test_every_id_has_a_branch_of_its_own(graph: Graph) -> None:
    threads = ["a/b", "a_2fb", "..", ".", "a b", "ä ö", "x'\"$}{", "-", "thread/main", "main", "A", "日本"]

    for thread in threads:
        OmnigraphChatHistory(graph, thread).add_user_message(thread)

    branches = {thread: branch_of(thread) for thread in threads}
    assert len({branch.lower() for branch in branches.values()} - {"thread/a"}) == len(threads) - 1
    assert {thread: thread_of(branch) for thread, branch in branches.items()} == {
        name: name for name in threads
    }
    assert set(graph.branches()) == {"main", *branches.values()}
    for thread in threads:
        assert [message.text for message in OmnigraphChatHistory(graph, thread).messages] == [thread]
    for wrong in ("", None, 7, "x" * 121, "ä" * 21, "\udc00"):
        with pytest.raises(BadRequest, match="the id of a thread"):
            OmnigraphChatHistory(graph, wrong)  # type: ignore[arg-type]


@pytest.mark.case("surfaces", 746)
def test_two_processes_that_add_to_one_thread_lose_nothing(tmp_path: Path) -> None:
    place = tmp_path / "g.omni"
    omnigraph.init(place, "", durability="process").close()

    with ExitStack() as held:
        processes = [held.enter_context(Forked(ADDERS, place, name, EACH)) for name in ("x", "y")]
        for process in processes:
            assert process.read_line() == "open"
        for process in processes:
            process.write_line()
        for process in processes:
            assert process.read_line() == "done"
            assert process.wait() == 0

    with omnigraph.open(place) as graph:
        texts = [message.text for message in OmnigraphChatHistory(graph, "shared").messages]
    for name in ("x", "y"):
        expected = [f"{name}{number}{half}" for number in range(EACH) for half in "ab"]
        assert [text for text in texts if text.startswith(name)] == expected
    assert len(texts) == 4 * EACH
    firsts = [text for text in texts if text.endswith("a")]
    assert [texts[texts.index(first) + 1] for first in firsts] == [f"{first[:-1]}b" for first in firsts]
