"""The messages of a conversation as LangChain's chat history, on a branch of its own."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import BaseMessage, message_to_dict, messages_from_dict

from omnigraph.agents.texts import json_text
from omnigraph.agents.threads import ChatLine, ChatThreads, branch_of
from omnigraph.core.errors import BadRequest
from omnigraph.core.values import named
from omnigraph.history.identity import MAIN

if TYPE_CHECKING:
    from omnigraph.agents.place import AnyGraph
    from omnigraph.operations.merge.merge import MergeResult

FORM = "langchain"


class OmnigraphChatHistory(BaseChatMessageHistory):
    """The messages of one thread, on the branch `thread/<id>`, which the first message makes.

    Any number of programs may add to it: nothing is lost, and all see the same order. `merge` brings it into
    another branch, once what was said there shall count.
    """

    def __init__(self, graph: "AnyGraph", thread: str, *, from_: str = MAIN) -> None:
        """Take the graph, the id of the thread, and the branch that the thread's is made from."""
        super().__init__()
        self.branch, self.thread = branch_of(thread), thread
        self._threads = ChatThreads(graph, from_=from_, form=FORM)

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override] # LangChain allows a property
        """The messages, in the order in which they were added."""
        return messages_from_dict([json.loads(kept.body) for kept in self._threads.read(self.thread)])

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Add messages at the end, as one commit.

        Raises:
            BadRequest: one is no message.
        """
        self._threads.append(self.thread, [_message(message) for message in messages])

    def clear(self) -> None:
        """Delete the messages on the branch of the thread; branches that it was merged into keep them."""
        self._threads.clear(self.thread)

    def merge(
        self, into: str = MAIN, *, delete_branch: bool = False, message: str | None = None
    ) -> "MergeResult":
        """Bring the messages into another branch, as one commit.

        Raises:
            BranchNotFound: nothing was ever added.
            MergeConflicts: the two branches disagree.
        """
        return self._threads.merge(self.thread, into, delete_branch=delete_branch, message=message)


def _message(message: object) -> ChatLine:
    if not isinstance(message, BaseMessage):
        raise BadRequest(f"a chat history has messages of LangChain, and {named(message)} is none")
    body = json_text(message_to_dict(message), f"a message of type {message.type}")
    return ChatLine(message.type, message.text, body)
