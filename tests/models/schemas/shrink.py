"""Make a failing history shorter, for as long as it fails with the same kind of error."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.models.schemas.play import History
from tests.models.schemas.steps import Apply, Step
from tests.models.schemas.texts import render


def shrink(seed: int, steps: Sequence[Step], error: Exception) -> tuple[Sequence[Step], Exception]:
    """Return fewer steps, if fewer fail, and how they fail; each try plays a history.

    What is looked at is chosen anew, so that a history that failed once may pass: then it stays as it was.
    """
    at = len(steps)
    while at:
        at -= 1
        fewer = [*steps[:at], *steps[at + 1 :]]
        found = failure(seed, fewer)
        if found is not None and type(found[1]) is type(error):
            steps, error = found
            at = min(at, len(steps))
    return steps, error


def failure(seed: int, steps: Sequence[Step]) -> tuple[Sequence[Step], Exception] | None:
    """Return the steps up to the one that fails, and its error; none if they pass."""
    with tempfile.TemporaryDirectory(prefix="omnigraph-schemas-") as folder:
        history = History(Path(folder), seed)
        try:
            history.play_again(steps)
        except Exception as error:  # noqa: BLE001 - whatever the engine raises is the finding
            return list(history.steps), error
        finally:
            history.close()
    return None


def told(steps: Sequence[Step]) -> str:
    """Return steps for people: one a line, with the texts of schemas."""
    texts = (
        f"Apply to {each.branch}\n{render(each.wanted)}" if isinstance(each, Apply) else each
        for each in steps
    )
    return "\n".join(f"  {number}: {text}" for number, text in enumerate(texts))
