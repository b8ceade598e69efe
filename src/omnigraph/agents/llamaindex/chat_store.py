"""The messages of chats as LlamaIndex's chat store, each chat on a branch of its own."""

from typing import TYPE_CHECKING, Any

from llama_index.core.llms import ChatMessage
from llama_index.core.storage.chat_store.base import BaseChatStore
from pydantic import PrivateAttr

from omnigraph.agents.threads import ChatLine, ChatThreads, KeptMessage
from omnigraph.core.errors import BadRequest
from omnigraph.core.values import named
from omnigraph.history.identity import MAIN

if TYPE_CHECKING:
    from omnigraph.agents.place import AnyGraph
    from omnigraph.operations.merge.merge import MergeResult

FORM = "llamaindex"


class OmnigraphChatStore(BaseChatStore):
    """Chats by their keys, each on the branch `thread/<key>`, which its first message makes.

    Any number of programs may add to a chat: nothing is lost, and all see the same order. `merge` brings one
    into another branch.
    """

    _threads: ChatThreads = PrivateAttr()

    def __init__(self, graph: "AnyGraph", *, from_: str = MAIN, **kwargs: Any) -> None:  # noqa: ANN401 - LlamaIndex's
        """Take the graph, and the branch that those of chats are made from."""
        super().__init__(**kwargs)
        self._threads = ChatThreads(graph, from_=from_, form=FORM)

    @classmethod
    def class_name(cls) -> str:
        """Return the name that LlamaIndex writes into its documents."""
        return "OmnigraphChatStore"

    def set_messages(self, key: str, messages: list[ChatMessage]) -> None:
        """Put messages in place of all that a chat has: readers see all of them or none."""
        self._threads.replace(key, [_message(message) for message in messages])

    def get_messages(self, key: str) -> list[ChatMessage]:
        """Return the messages of a chat, in the order in which they were added."""
        return [_read(kept) for kept in self._threads.read(key)]

    def add_message(self, key: str, message: ChatMessage) -> None:
        """Add a message at the end of a chat, as one commit."""
        self._threads.append(key, [_message(message)])

    def delete_messages(self, key: str) -> list[ChatMessage] | None:
        """Delete the messages of a chat on its branch, and return them; None if it has none."""
        found = self.get_messages(key)
        self._threads.clear(key)
        return found or None

    def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Delete the message at a place, counted from 0, and return it; None if there is none.

        Raises:
            BadRequest: the place is no whole number.
        """
        if not isinstance(idx, int) or isinstance(idx, bool):
            raise BadRequest(f"idx must be a whole number, not {named(idx)}")
        found = self._threads.read(key)
        if not 0 <= idx < len(found):
            return None
        self._threads.delete(key, found[idx])
        return _read(found[idx])

    def delete_last_message(self, key: str) -> ChatMessage | None:
        """Delete the last message of a chat, and return it; None if there is none."""
        return self.delete_message(key, len(self._threads.read(key)) - 1)

    def get_keys(self) -> list[str]:
        """Return the keys of the chats of LlamaIndex that have messages, sorted."""
        return self._threads.names()

    def merge(
        self, key: str, into: str = MAIN, *, delete_branch: bool = False, message: str | None = None
    ) -> "MergeResult":
        """Bring the messages of a chat into another branch, as one commit.

        Raises:
            BranchNotFound: nothing was ever added to it.
            MergeConflicts: the two branches disagree.
        """
        return self._threads.merge(key, into, delete_branch=delete_branch, message=message)


def _message(message: ChatMessage) -> ChatLine:
    return ChatLine(message.role.value, message.content or "", message.model_dump_json())


def _read(kept: KeptMessage) -> ChatMessage:
    return ChatMessage.model_validate_json(kept.body)
