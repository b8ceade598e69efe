"""The messages of conversations: each thread on a branch of its own, in one order for all who write.

T1  A message's key is its thread and its position. A position is taken by a strict insert: of two writers one
    gets it, and the other takes the next. So nothing is lost, and the order is that of the commits.
T2  A thread's branch is made with its first change. Reading makes none: without it, a thread is what the
    branch that it would be made from has of it.
T3  What replaces all messages is prepared on a branch beside and merged: readers see all of it or nothing.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from omnigraph.agents.declarations import NodeWanted, declare
from omnigraph.agents.parameters import QueryParameters
from omnigraph.agents.place import GraphPlace, GraphRecord, ndjson, node_record
from omnigraph.core.clock import now_micros
from omnigraph.core.errors import AlreadyExistsError, BadRequest, BranchNotFound, ConflictError, KeyConflict
from omnigraph.core.ids import UlidSource
from omnigraph.core.values import is_text, shown
from omnigraph.operations.retry import RetryTime

if TYPE_CHECKING:
    from omnigraph.agents.place import AnyGraph
    from omnigraph.operations.merge.merge import MergeResult

TYPE_NAME = "ChatMessage"
PREFIX = "thread/"
THREAD_BYTES_MAX = 120  # escaped: a branch name has 200 bytes, and a branch beside needs some of them
WAIT_S = 30.0  # for a turn, among others who write the same thread
DIGITS = 12  # of a position within a key, so that keys sort as positions do

_PROPERTIES = {
    "key": "String @key",
    "thread": "String @index",
    "position": "I64",
    "role": "String",
    "text": "String @index",
    "format": "String",
    "body": "String",
    "created_at": "DateTime",
}
_PLAIN = re.compile(r"[A-Za-z0-9-]")
_ESCAPE = re.compile(r"_([0-9a-f]{2})")
_new_id = UlidSource()


@dataclass(frozen=True, slots=True)
class ChatLine:
    """A message to keep: who speaks, what people read, and all of it in the form of its framework."""

    role: str
    text: str
    body: str


@dataclass(frozen=True, slots=True)
class KeptMessage:
    """A message of a thread, under its key."""

    key: str
    position: int
    body: str


class ChatThreads:
    """The threads of a graph, written by one framework."""

    def __init__(self, graph: "AnyGraph", *, from_: str, form: str) -> None:
        """Take the branch that those of threads are made from, and the name of the form of bodies."""
        self._graph, self._from, self._form = graph, from_, form

    def append(self, thread: str, messages: Sequence[ChatLine]) -> None:
        """Add messages at the end of a thread, as one commit (T1).

        Raises:
            KeyConflict: others were faster, each time for half a minute.
        """
        if not messages:
            return
        branch = branch_of(thread)
        self._declare(thread)
        time = RetryTime(WAIT_S)
        while True:
            records = self._records(thread, messages, self._next(thread))
            try:
                self._graph.load(ndjson(records), "append", branch=branch, from_=self._from, index=False)
            except (KeyConflict, AlreadyExistsError):  # of the position, or of the branch
                if time.is_over:
                    raise
                time.pause()
            else:
                return

    def read(self, thread: str) -> list[KeptMessage]:
        """Return the messages of a thread, in their order (T2).

        Raises:
            BadRequest: one is of another framework.
        """
        rows = self._rows(thread)
        other = next((row["format"] for row in rows if row["format"] != self._form), None)
        if other is not None:
            raise BadRequest(
                f"the thread {shown(thread)} has messages of {other}, which {self._form} cannot read"
            )
        return [KeptMessage(row["key"], row["position"], row["body"]) for row in rows]

    def clear(self, thread: str) -> None:
        """Delete the messages of a thread on its branch."""
        if not self.read(thread):
            return
        self._make_branch(thread)
        self._clear(branch_of(thread), thread)

    def delete(self, thread: str, message: KeptMessage) -> None:
        """Delete one message of a thread on its branch."""
        self._make_branch(thread)
        parameters = QueryParameters()
        key = parameters.add(message.key, "String")
        text = parameters.query(f"    delete {TYPE_NAME} where key = {key}")
        self._graph.mutate(text, None, parameters.values, branch=branch_of(thread))

    def replace(self, thread: str, messages: Sequence[ChatLine]) -> None:
        """Put messages in place of all that a thread has (T3).

        Raises:
            ConflictError: others were faster, each time for half a minute.
        """
        self._declare(thread)
        self._make_branch(thread)
        branch = branch_of(thread)
        time = RetryTime(WAIT_S)
        while True:
            beside = f"{branch}/set-{_new_id()}"
            self._graph.create_branch(beside, branch)
            start = self._next(thread, beside)
            self._clear(beside, thread)
            if messages:
                records = self._records(thread, messages, start)
                self._graph.load(ndjson(records), "append", branch=beside, index=False)
            try:
                self._graph.merge(beside, into=branch, delete_branch=True)
            except ConflictError as lost:  # someone appended meanwhile
                if lost.recovery_operation_id is not None:
                    raise  # it may land
                self._graph.delete_branch(beside)
                if time.is_over:
                    raise
                time.pause()
            else:
                return

    def merge(self, thread: str, into: str, *, delete_branch: bool, message: str | None) -> "MergeResult":
        """Bring what a thread's branch has into another branch.

        Raises:
            BranchNotFound: the thread has no branch, because nothing was added to it.
            MergeConflicts: the two disagree.
        """
        return self._graph.merge(branch_of(thread), into=into, delete_branch=delete_branch, message=message)

    def names(self) -> list[str]:
        """Return the threads that have messages: on their branches, or on the one these are made from.

        What only looks like the branch of a thread is none, and a thread of another framework is not ours.
        """
        own = {thread_of(name) for name in self._graph.branches() if _is_of_thread(name)}
        found = {thread for thread in own if self._is_ours(self._rows(thread))}
        place = GraphPlace(self._graph, self._from)
        if TYPE_NAME in place.catalog.nodes:
            text = (
                f"    match {{ $m: {TYPE_NAME} }}\n"
                "    return { $m.thread as thread $m.format as format count($m) as messages }"
            )
            by_thread: dict[str, list[dict[str, Any]]] = {}
            for row in place.read(QueryParameters().query(text), {}).rows:
                by_thread.setdefault(str(row["thread"]), []).append(row)
            found |= {
                thread
                for thread, rows in by_thread.items()
                if thread not in own and _is_thread(thread) and self._is_ours(rows)
            }
        return sorted(found)

    # Parts

    def _place(self, thread: str) -> GraphPlace:
        """Return where a thread is read (T2)."""
        place = GraphPlace(self._graph, branch_of(thread))
        try:
            place.graph.commits(branch=place.branch, limit=1)
        except BranchNotFound:
            return GraphPlace(self._graph, self._from)
        return place

    def _rows(self, thread: str) -> list[dict[str, Any]]:
        place = self._place(thread)
        if TYPE_NAME not in place.catalog.nodes:
            return []
        return self._ask(
            place,
            thread,
            "    return { $m.key as key $m.position as position $m.format as format $m.body as body }\n"
            "    order { position }",
        )

    def _is_ours(self, rows: Sequence[dict[str, Any]]) -> bool:
        return bool(rows) and all(row["format"] == self._form for row in rows)

    def _declare(self, thread: str) -> None:
        declare(self._place(thread), lambda _: [NodeWanted(TYPE_NAME, _PROPERTIES)])

    def _make_branch(self, thread: str) -> None:
        branch = branch_of(thread)
        if self._place(thread).branch != branch:
            try:
                self._graph.create_branch(branch, self._from)
            except AlreadyExistsError:
                return  # another writer made it

    def _clear(self, branch: str, thread: str) -> None:
        parameters = QueryParameters()
        name = parameters.add(thread, "String")
        text = parameters.query(f"    delete {TYPE_NAME} where thread = {name}")
        self._graph.mutate(text, None, parameters.values, branch=branch)

    def _next(self, thread: str, branch: str | None = None) -> int:
        place = self._place(thread) if branch is None else GraphPlace(self._graph, branch)
        (row,) = self._ask(place, thread, "    return { max($m.position) as last }")
        return 0 if row["last"] is None else int(row["last"]) + 1

    def _ask(self, place: GraphPlace, thread: str, tail: str) -> list[dict[str, Any]]:
        parameters = QueryParameters()
        name = parameters.add(thread, "String")
        text = parameters.query(f"    match {{ $m: {TYPE_NAME} {{ thread: {name} }} }}\n{tail}")
        return place.read(text, parameters.values).rows

    def _records(self, thread: str, messages: Sequence[ChatLine], start: int) -> list[GraphRecord]:
        moment = now_micros() // 1_000
        return [
            node_record(
                TYPE_NAME,
                {
                    "key": f"{thread}/{position:0{DIGITS}}",
                    "thread": thread,
                    "position": position,
                    "role": message.role,
                    "text": message.text,
                    "format": self._form,
                    "body": message.body,
                    "created_at": moment,
                },
            )
            for position, message in enumerate(messages, start)
        ]


def branch_of(thread: object) -> str:
    """Return the branch of a thread; different threads have different ones.

    Raises:
        BadRequest: the id is no text, is blank, or is too long for the name of a branch.
    """
    if not isinstance(thread, str) or not thread or not is_text(thread):
        raise BadRequest(f"the id of a thread must be a text that is not blank, not {shown(thread)}")
    name = "".join(
        character if _PLAIN.fullmatch(character) else "".join(f"_{byte:02x}" for byte in character.encode())
        for character in thread
    )
    if len(name) > THREAD_BYTES_MAX:
        raise BadRequest(
            f"the id of a thread takes {len(name)} bytes in a branch name, at most {THREAD_BYTES_MAX}; "
            "every character but letters, digits and '-' takes three or more"
        )
    return f"{PREFIX}{name}"


def thread_of(branch: str) -> str:
    """Return the thread that a branch is of."""
    plain = _ESCAPE.sub(lambda match: f"%{match[1]}", branch.removeprefix(PREFIX))
    return unquote(plain)


def _is_thread(thread: str) -> bool:
    try:
        branch_of(thread)
    except BadRequest:
        return False
    return True


def _is_of_thread(branch: str) -> bool:
    thread = thread_of(branch)
    return _is_thread(thread) and branch_of(thread) == branch
