"""LlamaIndex's chat store: a branch for each chat, setting as one change, deletion, keys."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from llama_index.core.llms import ChatMessage, ImageBlock, MessageRole, TextBlock
from llama_index.core.memory import ChatMemoryBuffer

from omnigraph import BadRequest, Graph
from omnigraph.agents.llamaindex import OmnigraphChatStore
from omnigraph.core.failpoint import failpoint
from tests.surfaces.agents.conftest import Either

MESSAGES = [
    ChatMessage("Be brief.", role=MessageRole.SYSTEM),
    ChatMessage(
        role=MessageRole.USER, blocks=[TextBlock(text="What's\nthis?"), ImageBlock(url="http://x/y.png")]
    ),
    ChatMessage(
        "", role=MessageRole.ASSISTANT, additional_kwargs={"tool_calls": [{"id": "1", "args": {"a": None}}]}
    ),
    ChatMessage("a cat", role=MessageRole.TOOL, additional_kwargs={"tool_call_id": "1"}),
]


def add_five(store: OmnigraphChatStore) -> None:
    for number in range(5):
        store.add_message("a", ChatMessage(str(number)))


@pytest.mark.case("surfaces", 749)
@pytest.mark.case("surfaces", 752)
async def test_messages_are_set_added_deleted_and_merged(either: Either) -> None:
    store = OmnigraphChatStore(either)
    assert (store.get_messages("a"), store.get_keys(), store.delete_messages("a")) == ([], [], None)
    assert store.delete_last_message("a") is None

    for message in MESSAGES:
        store.add_message("a", message)
    await store.async_add_message("b/c", MESSAGES[0])

    assert store.get_messages("a") == MESSAGES
    assert await store.aget_keys() == ["a", "b/c"]
    assert store.delete_message("a", 1) == MESSAGES[1]
    assert store.delete_message("a", 3) is None
    assert store.delete_message("a", -1) is None
    assert store.delete_last_message("a") == MESSAGES[3]
    assert store.get_messages("a") == [MESSAGES[0], MESSAGES[2]]
    store.add_message("a", MESSAGES[3])
    assert store.get_messages("a") == [MESSAGES[0], MESSAGES[2], MESSAGES[3]]
    merged = store.merge("a", delete_branch=True)
    assert merged.commit is not None
    assert (store.get_keys(), either.branches()) == (["a", "b/c"], ["main", "thread/b_2fc"])
    assert store.delete_messages("a") == [MESSAGES[0], MESSAGES[2], MESSAGES[3]]
    assert store.get_keys() == ["b/c"]
    store.set_messages("a", MESSAGES[:2])
    store.set_messages("b/c", [])
    assert (store.get_messages("a"), store.get_keys()) == (MESSAGES[:2], ["a"])


@pytest.mark.case("surfaces", 749)
def test_setting_messages_is_one_change_of_the_branch(graph: Graph) -> None:
    store = OmnigraphChatStore(graph)
    store.add_message("a", MESSAGES[0])
    store.add_message("b", MESSAGES[0])
    before = graph.commits(branch="thread/a")

    store.set_messages("a", MESSAGES[1:])

    assert store.get_messages("a") == MESSAGES[1:]
    assert store.get_messages("b") == MESSAGES[:1]
    assert graph.branches() == ["main", "thread/a", "thread/b"]
    seen = [commit for commit in graph.commits(branch="thread/a") if commit not in before]
    on_branch = [
        commit
        for commit in seen
        if commit.graph_commit_id == graph.commits(branch="thread/a")[0].graph_commit_id
    ]
    assert len(on_branch) == 1
    for commit in seen:
        rows = graph.query(
            "query n() { match { $m: ChatMessage } return { count($m) as n } }",
            snapshot=commit.graph_commit_id,
        )
        assert rows.scalar() in {0, 3}


@pytest.mark.case("surfaces", 749)
def test_what_is_added_while_messages_are_set_is_kept_or_replaced_and_never_lost_in_between(
    graph: Graph,
) -> None:
    """Whoever is later in the order of commits decides: an addition after a setting is there."""
    store = OmnigraphChatStore(graph)
    store.add_message("a", MESSAGES[0])

    with ThreadPoolExecutor(2) as pool:
        setting = pool.submit(store.set_messages, "a", MESSAGES[1:])
        adding = pool.submit(add_five, store)
        setting.result()
        adding.result()
    store.add_message("a", ChatMessage("last"))

    texts = [message.content for message in store.get_messages("a")]
    start = len(MESSAGES) - 1
    assert texts[:start] == [message.content for message in MESSAGES[1:]]
    assert texts[start:] == [str(n) for n in range(6 - len(texts[start:]), 5)] + ["last"]
    assert [name for name in graph.branches() if "set-" in name] == []


@pytest.mark.case("surfaces", 749)
def test_a_message_that_comes_while_the_merge_is_made_is_no_failure(graph: Graph) -> None:
    """Another process adds behind the look of the merge, so that its commit is refused and not its rows."""
    store, added = OmnigraphChatStore(graph), list[int]()
    store.add_message("a", MESSAGES[0])
    adding = (
        "import omnigraph\n"
        "from llama_index.core.llms import ChatMessage\n"
        "from omnigraph.agents.llamaindex import OmnigraphChatStore\n"
        f"with omnigraph.open({graph.uri!r}, durability='process') as graph:\n"
        "    OmnigraphChatStore(graph).add_message('a', ChatMessage('meanwhile'))\n"
    )

    def add_once() -> None:
        if not added:
            added.append(subprocess.run([sys.executable, "-c", adding], check=True, timeout=100).returncode)

    with failpoint("branch_merge.post_capture", call=add_once):
        store.set_messages("a", MESSAGES[1:])

    assert added == [0]
    assert [message.content for message in store.get_messages("a")] == [m.content for m in MESSAGES[1:]]
    assert [name for name in graph.branches() if "set-" in name] == []


@pytest.mark.case("surfaces", 749)
def test_a_memory_buffer_works_on_it_and_other_frameworks_are_told_apart(graph: Graph) -> None:
    from langchain_core.messages import HumanMessage

    from omnigraph.agents.langchain import OmnigraphChatHistory

    buffer = ChatMemoryBuffer.from_defaults(
        token_limit=1000, chat_store=OmnigraphChatStore(graph), chat_store_key="k", tokenizer_fn=str.split
    )
    buffer.put(MESSAGES[0])
    buffer.set(MESSAGES[:2])
    assert buffer.get_all() == MESSAGES[:2]
    buffer.reset()
    assert buffer.get_all() == []

    OmnigraphChatHistory(graph, "k").add_messages([HumanMessage("hi")])
    with pytest.raises(
        BadRequest, match="the thread 'k' has messages of langchain, which llamaindex cannot read"
    ):
        buffer.get_all()
