"""A store that fails now and then: one call of the library or of the system, drawn at random, raises.

F1  A fault comes before the call, which then has no effect, or after it, so that only the answer is lost.
F2  What is raised is what the library and the system raise: whoever calls them must make it an error of ours.
"""

import errno
import os
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar
from unittest import mock

import lance
from lance.dataset import Branches, LanceScanner, MergeInsertBuilder
from lance.optimize import Compaction

from omnigraph.storage.tables import shapes, stage

# Every call below reads or writes files.
CALLS: tuple[tuple[object, str], ...] = (
    (lance, "dataset"),
    (lance.LanceDataset, "commit"),
    (lance.LanceDataset, "create_index_uncommitted"),
    (lance.LanceDataset, "describe_indices"),
    (lance.LanceDataset, "read_transaction"),
    (lance.LanceDataset, "_take_rows"),
    (lance.LanceDataset, "create_branch"),
    (Branches, "delete"),
    (LanceScanner, "to_table"),
    (MergeInsertBuilder, "execute"),
    (MergeInsertBuilder, "execute_uncommitted"),
    (Compaction, "execute"),
    (stage, "write_fragments"),
    (shapes, "write_fragments"),
    (os, "open"),
    (os, "fsync"),
    (os, "replace"),
    (os, "link"),
    (os, "unlink"),
    (os, "scandir"),
)
HELD = frozenset({"open", "scandir"})  # what they return would stay open if nobody got it

P = ParamSpec("P")
T = TypeVar("T")


class Faults:
    """Counts the calls inside `armed` down to the next fault; `raised` names those that came."""

    def __init__(self, seed: int, calls_between: int) -> None:
        self._random = random.Random(seed)
        self._calls_between = calls_between
        self._left = self._random.randrange(calls_between)
        self._is_armed = False
        self.raised: list[str] = []

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Stand before every call for the time of a block."""
        with ExitStack() as stack:
            for owner, name in CALLS:
                found = vars(owner)[name]
                is_static = isinstance(found, staticmethod)
                call = self._failing(name, found.__func__ if is_static else found)
                stack.enter_context(mock.patch.object(owner, name, staticmethod(call) if is_static else call))
            yield

    @contextmanager
    def armed(self, within: int | None = None) -> Iterator[None]:
        """Let at most one call of a block fail, one of the first so many if that is said."""
        if within is not None:
            self._left = min(self._left, self._random.randrange(within))
        self._is_armed = True
        try:
            yield
        finally:
            self._is_armed = False

    def _failing(self, name: str, call: Callable[P, T]) -> Callable[P, T]:
        @wraps(call)
        def failing(*arguments: P.args, **named: P.kwargs) -> T:
            if not self._is_due():
                return call(*arguments, **named)
            is_answer_lost = name not in HELD and self._random.random() < 0.5
            self.raised.append(f"{name} {'after' if is_answer_lost else 'before'}")
            if is_answer_lost:
                call(*arguments, **named)
            raise OSError(errno.EIO, f"{os.strerror(errno.EIO)} (os error {errno.EIO})")

        return failing

    def _is_due(self) -> bool:
        if not self._is_armed:
            return False
        if self._left:
            self._left -= 1
            return False
        self._left = self._random.randrange(self._calls_between)
        self._is_armed = False
        return True
