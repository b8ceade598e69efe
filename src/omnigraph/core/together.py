"""Calls that wait for a store, made at once instead of one after the other.

On a local disk they are made in turn: a thread costs more than what they wait for.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

REQUESTS_AT_ONCE = 16

Given = TypeVar("Given")
CallResult = TypeVar("CallResult")
OtherResult = TypeVar("OtherResult")


def each(
    call: Callable[[Given], CallResult],
    values: Sequence[Given],
    *,
    at_once: bool,
    most: int = REQUESTS_AT_ONCE,
) -> list[CallResult]:
    """Return what a call returns for each value, in their order; the first error of them, once all ended."""
    if not at_once or min(len(values), most) < 2:
        return [call(value) for value in values]
    with ThreadPoolExecutor(min(len(values), most)) as threads:
        return list(threads.map(call, values))


def both(
    first: Callable[[], CallResult], second: Callable[[], OtherResult], *, at_once: bool
) -> tuple[CallResult, OtherResult]:
    """Return what two calls return; if both fail, the error of the first."""
    if not at_once:
        return first(), second()
    with ThreadPoolExecutor(1) as thread:
        pending = thread.submit(second)
        return first(), pending.result()
