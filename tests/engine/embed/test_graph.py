"""`embed` inside a graph: which rows get vectors, what stays, and what happens when something fails."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from omnigraph import (
    BadRequest,
    EmbeddingConfig,
    EmbeddingError,
    EmbeddingModelMismatch,
    Graph,
    RecoveryRequired,
)
from omnigraph.bulk.connect.progress import ProgressEvent, Stage
from omnigraph.bulk.embed import Share, cut
from omnigraph.core.failpoint import failpoint
from omnigraph.embedding.mock import MockProvider
from tests.engine.embed.crafts import (
    CRAFTS,
    MODEL,
    answer,
    data_files,
    is_unit,
    new_graph,
    openai,
    reopened,
    row_ids,
    vectors,
)
from tests.support.engine import assert_settled, head, ndjson, node, rows
from tests.support.queries import mutation
from tests.unit.embedding.stand_in import Answer, stand_in


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[Graph]:
    with new_graph(tmp_path / "g.omni") as graph:
        yield graph


def test_only_rows_with_a_text_and_no_vector_get_one(graph: Graph) -> None:
    before, kept = rows(graph, "Craft"), row_ids(graph)

    result = graph.embed(index=False, message="vectors", actor="ann")

    made = vectors(graph)
    assert (
        made["VGR-1"]
        == made["VGR-2"]
        == pytest.approx(MockProvider(MODEL).embed(["Voyager"], "document", 4)[0])
    )
    assert made["CAS"] == [3.0, 0.0, 0.0, 0.0]
    assert made["NONE"] == [0.0, 0.0, 0.0, 1.0]
    assert [code for code, vector in vectors(graph, "purpose_vector").items() if vector] == ["VGR-1"]
    others = [name for name in before["CAS"] if not name.endswith("_vector")]
    after = rows(graph, "Craft")
    assert {id_: [row[name] for name in others] for id_, row in after.items()} == {
        id_: [row[name] for name in others] for id_, row in before.items()
    }
    assert row_ids(graph) == kept
    assert [(table.table_key, table.rows, table.vectors) for table in result.tables] == [("node:Craft", 2, 3)]
    assert result.commit == head(graph)
    assert (head(graph).message, head(graph).actor_id) == ("vectors", "ann")


def test_a_second_run_has_nothing_to_do_and_makes_no_commit(graph: Graph) -> None:
    graph.embed()
    before = head(graph)

    again = graph.embed()

    assert (again.commit, again.tables) == (None, ())
    assert head(graph) == before


def test_a_changed_text_keeps_its_vector_until_it_is_embedded_anew(graph: Graph) -> None:
    graph.embed(index=False)
    stale = vectors(graph)["VGR-1"]
    graph.mutate(mutation('update Craft set { name: "Pioneer" } where code = "VGR-1"'))

    assert graph.embed(index=False).commit is None
    assert vectors(graph)["VGR-1"] == stale
    graph.embed(reembed_all=True, index=False)

    fresh = vectors(graph)
    assert fresh["VGR-1"] == pytest.approx(MockProvider(MODEL).embed(["Pioneer"], "document", 4)[0])
    assert is_unit(fresh["CAS"])
    assert fresh["NONE"] == [0.0, 0.0, 0.0, 1.0], "without a text a vector stays as it was given"


@pytest.mark.parametrize(
    ("select", "changed"),
    [
        ("Craft:code=CAS", {"CAS"}),
        ("launched=1977-08-20", {"VGR-2"}),
        ("mass_kg=721.9", {"VGR-1"}),
        (["id=CAS", "Craft:code=VGR-1"], {"CAS", "VGR-1"}),
        ("Craft:code=nobody", set()),
    ],
)
def test_what_is_selected_is_embedded_anew(graph: Graph, select: str | list[str], changed: set[str]) -> None:
    before = vectors(graph)

    result = graph.embed("Craft.name_vector", select, index=False)

    after = vectors(graph)
    assert {code for code in after if after[code] != before[code]} == changed
    assert result.mode == "reembed_selected"
    assert (result.commit is None) == (not changed)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("Crafft", ()), "type 'Crafft' is not one with an @embed property; did you mean 'Craft'"),
        (("Craft.name", ()), "Craft has no @embed property 'name'; use one of name_vector, purpose_vector"),
        (((), "Craft:cod=x"), "Craft has no property 'cod'; did you mean 'code'"),
        (((), "nothing=x"), "no embedded type has a property 'nothing'"),
        (((), "code"), "write \\[Type:\\]field=value"),
        (((), "launched=yesterday"), "Craft.launched: invalid Date 'yesterday'"),
        (((), "tags=far"), "Craft.tags is a \\[String\\]\\?, which cannot be selected by"),
    ],
)
def test_what_does_not_exist_is_refused_by_name(
    graph: Graph, arguments: tuple[str | tuple[()], str | tuple[()]], message: str
) -> None:
    before = head(graph)

    with pytest.raises(BadRequest, match=message):
        graph.embed(*arguments)

    assert head(graph) == before


def test_another_model_than_the_recorded_one_is_refused_with_both_names(tmp_path: Path) -> None:
    with new_graph(tmp_path / "g.omni", embedding=EmbeddingConfig("mock", model="other")) as graph:
        before = head(graph)

        with pytest.raises(EmbeddingModelMismatch, match=r"Craft\.name_vector was built with 'lab/mini-4'"):
            graph.embed()

        assert head(graph) == before
        assert graph.embed("Craft.purpose_vector", index=False).commit == head(graph)


def test_missing_indexes_are_built_afterwards(graph: Graph) -> None:
    result = graph.embed()

    assert result.index_commit == head(graph)
    assert result.index_commit.actor_id == "omnigraph:maintenance"
    states = {index.property: index.coverage for table in graph.index_status() for index in table.indexes}
    assert states["name_vector"] == "indexed"


def test_an_index_build_that_fails_is_a_warning(graph: Graph) -> None:
    with failpoint("ensure_indices.post_stage_pre_commit", "raise"):
        result = graph.embed()

    assert result.commit == head(graph)
    assert "name_vector" in [index.property for index in result.pending_indexes]
    assert result.warnings[0].startswith("indexes could not be built and are pending")


# Providers


def test_a_remote_provider_gets_texts_in_batches_and_no_text_twice(tmp_path: Path) -> None:
    records = [node("Craft", code=str(place), name=f"n{place % 3}") for place in range(5)]
    with (
        stand_in(answer([1, 0, 0, 0], [0, 1, 0, 0]), answer([0, 0, 2, 0])) as server,
        new_graph(tmp_path / "g.omni", *records, embedding=openai(server.url)) as graph,
    ):
        result = graph.embed(batch=2, index=False)
        made = vectors(graph)

    assert [asked.body["input"] for asked in server.asked] == [["n0", "n1"], ["n2"]]
    assert result.tables[0].vectors == 5
    assert made == {
        "0": [1, 0, 0, 0],
        "1": [0, 1, 0, 0],
        "2": [0, 0, 1, 0],
        "3": [1, 0, 0, 0],
        "4": [0, 1, 0, 0],
    }


@pytest.mark.case("surfaces", 188)
@pytest.mark.parametrize(
    "bad",
    [
        Answer(raw=b'{"data": [{"index": 0, "embedding": [NaN, 0, 0, 0]}]}'),
        answer([0, 0, 0, 0]),
        answer([1, 0]),
        Answer(status=401),
        Answer(hangs=True),
    ],
    ids=["NaN", "zeros", "wrong length", "refused", "slow"],
)
def test_a_provider_that_fails_half_way_leaves_the_graph_as_it_was(tmp_path: Path, bad: Answer) -> None:
    with stand_in(answer([1, 0, 0, 0]), bad) as server:
        config = openai(server.url, retry_attempts=1, deadline_ms=300)
        with new_graph(tmp_path / "g.omni", embedding=config) as graph:
            before, files, content = head(graph), data_files(graph), rows(graph, "Craft")

            with pytest.raises(EmbeddingError) as caught:
                graph.embed("Craft.name_vector", reembed_all=True, batch=1)

            assert "secret" not in str(caught.value)
            assert (head(graph), data_files(graph), rows(graph, "Craft")) == (before, files, content)
            assert_settled(graph)


def test_a_missing_key_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    config = EmbeddingConfig("openai", model=MODEL)
    with (
        new_graph(tmp_path / "g.omni", embedding=config) as graph,
        pytest.raises(EmbeddingError, match="OPENAI_API_KEY is needed"),
    ):
        graph.embed()


# Others at work


def on_embedded(act: Callable[[], object]) -> Callable[[ProgressEvent], None]:
    """Return a listener that acts once, when all vectors are made and nothing is written yet."""
    acts = [act]

    def listen(event: ProgressEvent) -> None:
        if event.stage is Stage.EMBED and event.is_done and acts:
            acts.pop()()

    return listen


def test_what_others_write_meanwhile_is_not_lost_and_not_paid_for_twice(tmp_path: Path) -> None:
    root = tmp_path / "g.omni"
    with stand_in(answer([1, 0, 0, 0], [0, 1, 0, 0]), answer([0, 0, 1, 0])) as server:
        records = [node("Craft", code=code, name=code) for code in ("a", "b")]
        with new_graph(root, *records, embedding=openai(server.url)) as graph, reopened(root) as other:
            edit = mutation('update Craft set { name: "c", mass_kg: 5.0 } where code = "b"')

            result = graph.embed(index=False, progress=on_embedded(lambda: other.mutate(edit)))

            found, files = rows(graph, "Craft"), data_files(graph)

    assert len(files) == 3, "of the load, of the update and of the vectors; what was in vain is gone"
    assert [asked.body["input"] for asked in server.asked] == [["a", "b"], ["c"]]
    assert (found["b"]["name"], found["b"]["mass_kg"]) == ("c", 5.0)
    assert (found["a"]["name_vector"], found["b"]["name_vector"]) == ([1, 0, 0, 0], [0, 0, 1, 0])
    assert result.commit is not None


def test_what_was_written_is_used_although_an_index_was_built_meanwhile(tmp_path: Path) -> None:
    root = tmp_path / "g.omni"
    with new_graph(root) as graph, reopened(root) as other:
        before = data_files(graph)

        result = graph.embed(index=False, progress=on_embedded(other.ensure_indices))

        assert result.commit == head(graph)
        assert graph.commits(limit=2)[1].actor_id == "omnigraph:maintenance"
        assert len(data_files(graph)) == len(before) + 1, "rows were written once"
        assert is_unit(vectors(graph)["VGR-1"])


def test_a_write_that_fails_half_way_is_finished_with_its_files(graph: Graph) -> None:
    kept = row_ids(graph)

    with failpoint("write.post_finalize_pre_publisher", "raise"), pytest.raises(RecoveryRequired):
        graph.embed(index=False)

    with reopened(Path(graph.uri)) as other:
        assert is_unit(vectors(other)["VGR-1"])
        assert row_ids(other) == kept
        assert other.embed(index=False).commit is None
        assert_settled(other)


def test_rows_of_several_fragments_with_deleted_ones_among_them(tmp_path: Path) -> None:
    with new_graph(tmp_path / "g.omni", *CRAFTS[:3]) as graph:
        graph.load(
            ndjson([node("Craft", code=str(n), name=f"n{n}") for n in range(6)]), "append", index=False
        )
        graph.mutate(mutation('delete Craft where code = "3"'))
        kept = row_ids(graph)

        graph.embed(index=False)

        assert row_ids(graph) == kept
        made = vectors(graph)
        assert all(is_unit(made[str(n)]) for n in range(6) if n != 3)
        expected = MockProvider(MODEL).embed([f"n{n}" for n in range(6)], "document", 4)
        assert made["5"] == pytest.approx(expected[5])


def test_tasks_have_as_many_rows_as_they_may_and_fragments_are_cut() -> None:
    assert list(cut([(7, 5), (9, 1), (11, 3)], 4)) == [
        (Share(7, 0, 4),),
        (Share(7, 4, 5), Share(9, 0, 1), Share(11, 0, 2)),
        (Share(11, 2, 3),),
    ]
