"""The walks of the architecture pass through the files that it lists, in that order."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph
from bench.walks import Walk
from omnigraph.core.errors import RecoveryRequired
from omnigraph.core.failpoint import failpoint
from omnigraph.history.contract import compiled
from omnigraph.operations.settings import KEY_ROWS
from tests.support.pages import DOCS
from tests.support.spark import spark_session

ARCHITECTURE = (DOCS / "internals" / "architecture.md").read_text(encoding="utf-8")
SCHEMA = """\
node Person {
    handle: String @key
}

node Task {
    code: String @key
    state: enum(open, done) @index
}

edge Assigned: Task -> Person
"""
SEED = """\
query seed() {
    insert Person { handle: "mira" }
    insert Task { code: "T-1", state: "open" }
    insert Assigned { from: "T-1", to: "mira" }
}
"""
READ = """\
query tasks($handle: String) {
    match {
        $p: Person { handle: $handle }
        $t assigned $p
        $t.state = "open"
    }
    return { $t.code }
}
"""
CLOSE = 'query close($code: String) { update Task set { state: "done" } where code = $code }\n'
ADD = 'query add() { insert Person { handle: "ida" } }\n'


def listed(title: str) -> list[list[str]]:
    """Return the files of a walk, item by item."""
    section = ARCHITECTURE.partition(f"\n### {title}\n")[2].partition("\n###")[0]
    items = re.findall(r"^\d+\) (.+)$", section, re.MULTILINE)
    assert len(items) >= 10
    return [re.findall(r"`([\w/]+\.py)`", item) for item in items]


def walked(act: Callable[[], object]) -> list[str]:
    """Return the files that a call passes through, step by step."""
    walk = Walk(Path(omnigraph.__file__).parent)
    with walk.watching():
        act()
    return walk.steps


def check(title: str, steps: list[str]) -> None:
    """Compare a walk of the page with the steps that were taken."""
    items = listed(title)
    assert {file for item in items for file in item} - {*steps} == set()
    ahead = iter(steps)
    assert [item[0] for item in items if item[0] not in ahead] == []  # the first that is out of order, and on


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A small graph."""
    place = tmp_path / "tasks.omni"
    with omnigraph.init(place, SCHEMA) as graph:
        graph.mutate(SEED, "seed")
    return place


def test_a_read(place: Path) -> None:
    def read() -> None:
        with omnigraph.open(place, mode="ro") as graph:
            graph.query(READ, "tasks", {"handle": "mira"}).to_arrow()

    compiled.cache_clear()  # a process compiles a schema once: here that is part of the walk
    check("One read", walked(read))


def test_a_write(place: Path) -> None:
    with omnigraph.open(place) as graph:
        check("One write", walked(lambda: graph.mutate(CLOSE, "close", {"code": "T-1"})))


def test_a_crash(place: Path) -> None:
    stopped = failpoint("write.post_finalize_pre_publisher", "raise")
    with omnigraph.open(place) as graph, stopped, pytest.raises(RecoveryRequired):
        graph.mutate(CLOSE, "close", {"code": "T-1"})

    check("One crash", walked(lambda: omnigraph.open(place).close()))
    with omnigraph.open(place, mode="ro") as graph:
        assert graph.query(READ, "tasks", {"handle": "mira"}).to_pylist() == []


def test_a_merge(place: Path) -> None:
    with omnigraph.open(place) as graph:
        graph.create_branch("review")
        graph.mutate(CLOSE, "close", {"code": "T-1"}, branch="review")
        graph.mutate(ADD, "add")

        check("One merge", walked(lambda: graph.merge("review")))


@pytest.mark.slow
def test_a_load_on_spark(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spark_session()
    monkeypatch.setenv(KEY_ROWS, "1")  # so that two rows are many
    data = tmp_path / "people.jsonl"
    people = [{"type": "Person", "data": {"handle": handle}} for handle in ("ida", "juri")]
    data.write_text("".join(f"{json.dumps(person)}\n" for person in people), encoding="utf-8")
    with omnigraph.open(place) as graph:
        graph.create_branch("load")

        steps = walked(lambda: graph.load(str(data), "append", engine="spark", branch="load"))

    check("One Spark load", steps)
