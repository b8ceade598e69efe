"""Texts given to `nearest`, embedded when the query runs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph import EmbeddingConfig, EmbeddingError, EmbeddingModelMismatch, Graph
from tests.support.queries import NEAREST, books
from tests.support.reading import values

TEXT = 'nearest($b.embedding, "rivers")'


@pytest.fixture
def unconfigured(monkeypatch: pytest.MonkeyPatch) -> None:
    """No provider, no key."""
    for name in ("OPENROUTER_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OMNIGRAPH_EMBEDDINGS_MOCK"):
        monkeypatch.delenv(name, raising=False)


def opened(root: Path, config: EmbeddingConfig | None) -> Graph:
    return omnigraph.open(root, mode="ro", embedding=config)


@pytest.fixture
def mocked(library_root: Path) -> Iterator[Graph]:
    with opened(library_root, EmbeddingConfig("mock", model="lab/mini-4")) as graph:
        yield graph


@pytest.mark.case("surfaces", 183)
def test_a_text_is_embedded_by_the_model_of_its_property(mocked: Graph) -> None:
    tail = f"return {{ $b.code, {TEXT} as d }} order {{ d }} limit 3"

    first = values(mocked.query(books("", tail)))

    assert sorted(code for code, _ in first) == ["AA-1", "AA-2", "BB-2"]
    assert first == values(mocked.query(books("", tail)))
    assert [distance for _, distance in first] == sorted(distance for _, distance in first)


@pytest.mark.case("languages", 180)
def test_another_model_is_refused_with_both_names(library_root: Path) -> None:
    config = EmbeddingConfig("mock", model="other")

    with opened(library_root, config) as graph, pytest.raises(EmbeddingModelMismatch) as caught:
        graph.query(books("", f"return {{ $b.code }} order {{ {TEXT} }} limit 3"))

    assert all(f"'{model}'" in str(caught.value) for model in ("lab/mini-4", "other"))


@pytest.mark.case("languages", 180)
@pytest.mark.usefixtures("unconfigured")
def test_without_a_key_only_texts_fail(library_root: Path) -> None:
    with opened(library_root, EmbeddingConfig("openai", model="lab/mini-4")) as graph:
        with pytest.raises(EmbeddingError, match="OPENAI_API_KEY"):
            graph.query(books("", f"return {{ $b.code }} order {{ {TEXT} }} limit 3"))
        vector = graph.query(books("", f"return {{ $b.code }} order {{ {NEAREST} }} limit 1"))

    assert values(vector) == ["AA-1"]


@pytest.mark.case("surfaces", 183)
def test_the_nearest_are_those_of_the_filtered_rows(mocked: Graph) -> None:
    ranked = f"return {{ $b.code }} order {{ {TEXT} }} limit "
    everything = values(mocked.query(books("", ranked + "10")))

    filtered = values(mocked.query(books("$b.price > 8.0", ranked + "1")))

    priced = set(values(mocked.query(books("$b.price > 8.0", "return { $b.code }"))))
    assert filtered == [code for code in everything if code in priced][:1]


@pytest.mark.case("surfaces", 185)
def test_a_fusion_is_ordered_alike_in_every_run(mocked: Graph, library_root: Path) -> None:
    fusion = f'rrf({TEXT}, bm25($b.title, "songs machines"))'
    tail = f"return {{ $b.code, {fusion} as score }} order {{ score desc }} limit 4"

    first = values(mocked.query(books("", tail)))

    with opened(library_root, EmbeddingConfig("mock", model="lab/mini-4")) as again:
        assert values(again.query(books("", tail))) == values(mocked.query(books("", tail))) == first
    places = [(-score, code) for code, score in first]
    assert places == sorted(places)  # equal scores by id
