"""Values by key; the least recently used one is dropped first."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Held = TypeVar("Held")


class Recent(Generic[Key, Held]):
    """The most recently used values, up to a count or a total weight; safe to share between threads.

    With `weigh` the limit is on the sum of what it returns, and a value above the limit is not kept.
    """

    def __init__(self, limit: int, weigh: Callable[[Held], int] | None = None) -> None:
        """Take how much is kept, and how it is measured."""
        self._limit, self._weigh = limit, weigh
        self._values: OrderedDict[Key, Held] = OrderedDict()
        self._weight = 0
        self._lock = Lock()

    def __len__(self) -> int:
        """Return how many values are kept."""
        return len(self._values)

    def get(self, key: Key) -> Held | None:
        """Return the value of a key, which counts as a use, or `None`."""
        with self._lock:
            found = self._values.get(key)
            if found is not None:
                self._values.move_to_end(key)
            return found

    def put(self, key: Key, value: Held) -> None:
        """Keep a value in place of the one the key had."""
        with self._lock:
            self._put(key, value)

    def keep(self, key: Key, value: Held) -> Held:
        """Keep a value unless the key has one; return the value that is kept."""
        with self._lock:
            found = self._values.get(key)
            if found is None:
                self._put(key, value)
                return value
            self._values.move_to_end(key)
            return found

    def made(self, key: Key, make: Callable[[], Held]) -> Held:
        """Return the value of a key, making it if there is none.

        No thread waits while a value is made; two may make the same one, and both use the first. An error
        from `make` is raised and not remembered.
        """
        found = self.get(key)
        return self.keep(key, make()) if found is None else found

    def forget(self, is_gone: Callable[[Key], bool]) -> None:
        """Drop the values of some keys."""
        with self._lock:
            for key in [key for key in self._values if is_gone(key)]:
                self._drop(key)

    def values(self) -> list[Held]:
        """Return all values, the most recently used one last."""
        with self._lock:
            return list(self._values.values())

    def clear(self) -> None:
        """Drop everything."""
        with self._lock:
            self._values.clear()
            self._weight = 0

    def _put(self, key: Key, value: Held) -> None:
        self._drop(key)
        self._values[key] = value
        self._weight += self._of(value)
        while self._weight > self._limit:
            self._drop(next(iter(self._values)))

    def _drop(self, key: Key) -> None:
        if key in self._values:
            self._weight -= self._of(self._values.pop(key))

    def _of(self, value: Held) -> int:
        return 1 if self._weigh is None else self._weigh(value)
