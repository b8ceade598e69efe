"""What is read of a value, and values that an earlier build stored."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from omnigraph.graph.graph import Graph
from tests.engine.blobs.steps import FIVE, VALUES, documents, expected, held, records
from tests.support.engine import reopen
from tests.support.queries import mutation
from tests.support.seam import patched


@pytest.fixture
def read_bytes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes each read of a file of values has given."""
    counted: list[int] = []
    pread = os.pread

    def counting(*given: Any) -> bytes:  # noqa: ANN401 - as the real one
        found = pread(*given)
        counted.append(len(found))
        return found

    monkeypatch.setattr(os, "pread", counting)
    return counted


@pytest.fixture
def older(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Graph]:
    """A graph whose columns ask for nothing, as those of earlier builds."""
    with monkeypatch.context() as earlier:
        patched(earlier, "omnigraph.catalog.arrow_schema.UNCOMPRESSED", {})
        documents(tmp_path / "older").close()
    with reopen(tmp_path / "older") as graph:
        yield graph


@pytest.mark.case("engine", 802)
def test_a_part_of_a_value_is_read_without_the_rest(docs: Graph, read_bytes: list[int]) -> None:
    blob = docs.blob("node", "Doc", "five", "body")
    assert (blob.size, sum(read_bytes) < 10_000) == (FIVE, True)

    assert blob.read(FIVE - 10) == (VALUES["five"] or b"")[-10:]

    assert sum(read_bytes) < 10_000


@pytest.mark.case("engine", 801)
def test_values_of_an_earlier_build_are_read_whole(older: Graph, read_bytes: list[int]) -> None:
    assert held(older) == expected()
    del read_bytes[:]

    blob = older.blob("node", "Doc", "five", "body")

    assert sum(read_bytes) < 100_000
    assert blob.read(7, 4_500_000) == (VALUES["five"] or b"")[7:4_500_000]
    assert len(list(blob.stream())) == 2
    older.mutate(mutation('update Doc set { note: "n" } where name != "n"'))
    older.optimize()
    assert held(older) == expected()


@pytest.mark.case("engine", 801)
def test_a_table_of_an_earlier_build_that_is_overwritten_is_read_in_parts(
    older: Graph, read_bytes: list[int]
) -> None:
    older.load(records(), "overwrite", index=False)
    del read_bytes[:]

    part = older.blob("node", "Doc", "five", "body").read(5, 10)

    assert part == (VALUES["five"] or b"")[5:10]
    assert read_bytes[-1] == 5
    assert held(older) == expected()
