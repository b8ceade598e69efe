"""Items one after the other, in runs that stay within limits."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Packed = TypeVar("Packed")


def runs(items: Iterable[Packed], *limits: tuple[Callable[[Packed], int], int]) -> Iterator[list[Packed]]:
    """Yield runs of items, each as long as what its items measure keeps to every limit together.

    An item that is above a limit itself is a run of its own; without items there is no run.
    """
    run: list[Packed] = []
    sizes = [0] * len(limits)
    for item in items:
        more = [size + measure(item) for size, (measure, _) in zip(sizes, limits, strict=True)]
        if run and any(size > limit for size, (_, limit) in zip(more, limits, strict=True)):
            yield run
            run, more = [], [measure(item) for measure, _ in limits]
        run.append(item)
        sizes = more
    if run:
        yield run
