"""Work on many files, several at a time, with its progress."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from typing import TypeVar

from omnigraph.bulk.connect.progress import ProgressCallback, ProgressEvent, Stage
from omnigraph.core.clock import boot_clock
from omnigraph.operations.clone.needs import NeededFile

FILES_AT_ONCE = 8  # enough to hide what a store takes for a request, with a few pieces of each in memory
TOLD_EVERY_S = 0.2  # people and logs want no more of it

FoundFile = TypeVar("FoundFile")


def work_on(
    files: Sequence[NeededFile],
    work: Callable[[NeededFile], FoundFile],
    stage: Stage,
    progress: ProgressCallback,
) -> list[FoundFile]:
    """Return what the work on each file came to, in no order.

    The first error ends it, once the files under way are done; others are not begun.
    """
    begun = told = boot_clock()
    event = ProgressEvent(stage, tasks_total=len(files), bytes_total=sum(file.length for file in files))
    progress(event)
    found = []
    with ThreadPoolExecutor(FILES_AT_ONCE) as threads:
        pending = {threads.submit(work, file): file.length for file in files}
        try:
            for finished in as_completed(pending):
                found.append(finished.result())
                now = boot_clock()
                event = replace(
                    event,
                    tasks_done=event.tasks_done + 1,
                    bytes_done=event.bytes_done + pending[finished],
                    seconds=now - begun,
                )
                if now - told >= TOLD_EVERY_S:
                    told = now
                    progress(event)
        except BaseException:
            threads.shutdown(cancel_futures=True)
            raise
    progress(replace(event, is_done=True, seconds=boot_clock() - begun))
    return found
