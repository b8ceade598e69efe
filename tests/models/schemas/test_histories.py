"""The engine against the model of changing schemas: random histories of schemas, rows, branches and merges.

`SCHEMAS_SEED` repeats a history of either test; the long test goes on from there, `SCHEMAS_COUNT` times. With
`SCHEMAS_SHRINK` a failing history is made shorter before it is shown, which takes a minute.
"""

import os
import tempfile
from collections import Counter
from pathlib import Path

import pytest

import omnigraph
from tests.models.dag.steps import Create, Delete
from tests.models.schemas import drive, merging
from tests.models.schemas.merging import Found, State
from tests.models.schemas.play import History
from tests.models.schemas.shrink import shrink, told
from tests.support.seeds import fixed_seed, fresh_seed

HISTORIES = 20
HISTORIES_FUZZ = 500
GROUP = 5  # histories of one test: what a test starts and ends with costs much, next to one
SEED = "SCHEMAS_SEED"


@pytest.mark.parametrize("group", range(1 if SEED in os.environ else HISTORIES // GROUP))
def test_the_engine_agrees_with_the_model(tmp_path: Path, group: int) -> None:
    first = fixed_seed(SEED) + group * GROUP
    for seed in range(first, first + (1 if SEED in os.environ else GROUP)):
        play(tmp_path / str(seed), seed)


@pytest.mark.fuzz
def test_the_engine_agrees_with_the_model_for_long() -> None:
    first = fresh_seed(SEED)
    count = int(os.environ.get("SCHEMAS_COUNT", HISTORIES_FUZZ))
    events = Counter[str]()
    for seed in range(first, first + count):
        with tempfile.TemporaryDirectory(prefix="omnigraph-schemas-") as folder:
            events += play(Path(folder), seed)
    print(f"{count} histories, no difference: {dict(sorted(events.items()))}")  # noqa: T201 - for people


def test_a_wrong_model_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = merging.merge_states

    def lenient(base: State, theirs: State, ours: State) -> Found:
        return right(base, theirs, ours)[0], frozenset()

    monkeypatch.setattr("tests.models.schemas.model.merge_states", lenient)

    with pytest.raises(pytest.fail.Exception, match=f"{SEED}="):
        [play(tmp_path / str(seed), seed) for seed in range(HISTORIES)]


def test_histories_use_all_that_the_engine_can_do() -> None:
    verbs = ("apply_schema", "upgrade_branch")

    assert all(hasattr(omnigraph.Graph, verb) for verb in verbs) == drive.EVOLVES


def test_a_failing_history_is_made_shorter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(tmp_path, 1)
    steps = [history.program.first(history.model), Create("a", "main"), Create("june", "main"), Delete("a")]
    history.close()
    monkeypatch.setattr("tests.models.schemas.expect.Model.delete", lambda *_: None)

    left, error = shrink(1, steps, AssertionError())

    assert left == [Delete("a")]  # which the engine refuses
    assert isinstance(error, AssertionError)


def play(folder: Path, seed: int) -> Counter[str]:
    """Play one history; if it differs, tell all of it, or with `SCHEMAS_SHRINK` what is needed of it."""
    history = History(folder, seed)
    try:
        history.play()
    except Exception as error:  # noqa: BLE001 - whatever the engine raises is the finding
        is_shrunk = "SCHEMAS_SHRINK" in os.environ
        steps, last = shrink(seed, history.steps, error) if is_shrunk else (history.steps, error)
        pytest.fail(
            f"{SEED}={seed} fails at its last step:\n{told(steps)}\n{type(last).__name__}: {last}",
            pytrace=False,
        )
    finally:
        history.close()
    return history.events
