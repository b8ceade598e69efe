"""Signals at a load on Spark: its files are published or removed, and never both."""

from pathlib import Path

import pytest

from omnigraph.graph.graph import Graph
from tests.protocol.interrupts.play import SIGNALS, Place, interrupted, stage
from tests.protocol.interrupts.scenes import LOADED, Scene
from tests.support.protocol import records

IN_THE_SECTION = (
    Place("write.post_table_commit", 0),
    Place("write.post_publish_pre_sidecar_delete", 0),
)


def _scene(name: str, branch: str | None, data: Path) -> Scene:
    def prepare(graph: Graph) -> None:
        if branch is not None:
            graph.create_branch(branch)

    def act(graph: Graph) -> None:
        graph.load(data, "append", index=False, branch=branch, engine="spark")

    return Scene(name, prepare, act)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    file = tmp_path / "people.ndjson"
    fresh = {**LOADED, "Person": frozenset({("eve", 60)})}
    file.write_bytes(records(fresh))
    return file


@pytest.mark.case("engine", 363)
@pytest.mark.slow
@pytest.mark.parametrize("branch", [None, "june"])
def test_a_signal_never_removes_the_files_of_a_load_that_landed(
    branch: str | None, data: Path, tmp_path: Path
) -> None:
    staged = stage(_scene("spark", branch, data), tmp_path)
    for place, sent in zip(IN_THE_SECTION, SIGNALS, strict=True):
        assert interrupted(staged, place, sent, tmp_path / place.failpoint), "the section was entered"


@pytest.mark.crash
@pytest.mark.parametrize("branch", [None, "june"])
def test_every_place_of_a_load_on_spark(branch: str | None, data: Path, tmp_path: Path) -> None:
    staged = stage(_scene("spark", branch, data), tmp_path)
    results = [
        interrupted(staged, place, sent, tmp_path / f"{place.failpoint}-{place.visit}-{sent.name}")
        for place in staged.places
        for sent in SIGNALS
    ]
    counts = f"{len(staged.places)} places, 2 signals: {sum(results)} of {len(results)} landed"
    print(f"\nspark on {branch or 'main'}: {counts}; 0 lost, 0 half visible")  # noqa: T201
