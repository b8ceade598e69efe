"""Writes and changes of schema that meet: one of them gets a typed conflict, and no row is wrong."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from omnigraph.core.errors import CommitNotFound, ConflictError, ExpectedVersionMismatch, SchemaChanged
from omnigraph.core.failpoint import failpoint
from omnigraph.core.source_errors import TypeCheckError
from omnigraph.graph.graph import Graph
from tests.engine.schema.test_steps import KINDS
from tests.engine.schema.world import EMAIL, PEOPLE, TEAM, Pins, replaced, team
from tests.support.engine import assert_settled, chain, contents, foreign, ndjson, node, reopen, rows
from tests.support.forked import Forked
from tests.support.queries import mutation

LIKES = TEAM + "edge Likes: Person -> Company\n"
NO_WORK = replaced("edge WorksAt: Person -> Company\n", "")
INSERT = mutation('insert Person { name: "zed", note: "n" }')


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return team(tmp_path / "graph")


@contextmanager
def meanwhile(place: str, call: Callable[[], object]) -> Iterator[None]:
    """Do something the first time that a place is passed."""
    called: list[bool] = []

    def once() -> None:
        if not called:
            called.append(True)
            call()

    with failpoint(place, "call", once):
        yield
    assert called, f"nobody came to {place}"


def assert_sound(graph: Graph) -> None:
    """Open once more, which settles what is unfinished: edges have their ends, tables are at their pins."""
    graph = reopen(graph)
    found = contents(graph)
    for edge in graph.catalog.edges.values():
        for row in found[edge.name].values():
            assert row["src"] in found[edge.source]
            assert row["dst"] in found[edge.target]
    assert_settled(graph)


WRITES: dict[str, Callable[[Graph], object]] = {
    "insert": lambda graph: graph.mutate(INSERT, retry=0),
    "update": lambda graph: graph.mutate(
        mutation('update Person set { age: 31 } where name = "ann"'), retry=0
    ),
    "delete": lambda graph: graph.mutate(mutation('delete Person where name = "ann"'), retry=0),
}
LOADS: dict[str, Callable[[Graph], object]] = {
    mode: (
        lambda graph, mode=mode, kept=kept: graph.load(  # type: ignore[misc]
            ndjson(node("Person", name=name, note="n") for name in (*kept, "zed")), mode, index=False, retry=0
        )
    )
    for mode, kept in {"append": (), "merge": (), "overwrite": ("ann", "bob")}.items()  # edges need these
}
MOVING = ("add property", "rename property", "drop property", "relax property", "widen property")


@pytest.mark.case("engine", 145)
@pytest.mark.case("engine", 550)
@pytest.mark.case("engine", 551)
@pytest.mark.parametrize("place", ["write.post_stage_pre_gate", "write.post_gate_pre_sidecar"])
@pytest.mark.parametrize("kind", MOVING)
@pytest.mark.parametrize("write", [*WRITES, *LOADS])
def test_a_write_that_was_prepared_under_the_old_columns_is_refused(
    graph: Graph, write: str, kind: str, place: str
) -> None:
    other = foreign(graph)
    run, change = (WRITES | LOADS)[write], KINDS[kind]

    with (
        meanwhile(place, lambda: other.apply_schema(change.schema, index=False)),
        pytest.raises((ExpectedVersionMismatch, SchemaChanged)),
    ):
        run(graph)

    assert rows(graph, "Person") == change.people
    assert_sound(graph)
    graph.mutate(INSERT)
    assert set(rows(graph, "Person")) == {"ann", "bob", "zed"}


@pytest.mark.case("engine", 550)
def test_an_insert_that_may_be_retried_lands_in_the_new_columns(graph: Graph) -> None:
    other = foreign(graph)

    with meanwhile("write.post_stage_pre_gate", lambda: other.apply_schema(EMAIL, index=False)):
        graph.mutate(INSERT)

    assert rows(graph, "Person")["zed"]["email"] is None
    assert_sound(graph)


@pytest.mark.case("engine", 550)
def test_a_retry_reads_the_mutation_under_the_new_schema(graph: Graph) -> None:
    other = foreign(graph)
    insert = mutation('insert Person { name: "zed", note: "n", nick: "z" }')

    with (
        meanwhile(
            "write.post_stage_pre_gate",
            lambda: other.apply_schema(KINDS["rename property"].schema, index=False),
        ),
        pytest.raises(TypeCheckError, match="nick"),
    ):
        graph.mutate(insert)

    assert_sound(graph)


@pytest.mark.case("engine", 550)
@pytest.mark.parametrize("place", ["write.post_stage_pre_gate", "write.post_gate_pre_sidecar"])
def test_nodes_are_not_removed_behind_a_new_kind_of_edge(graph: Graph, place: str) -> None:
    other = foreign(graph)

    def like() -> None:
        other.apply_schema(LIKES, index=False)
        other.mutate(mutation('insert Likes { from: "ann", to: "acme" }'))

    with meanwhile(place, like), pytest.raises(ExpectedVersionMismatch):
        graph.mutate(mutation('delete Person where name = "ann"'), retry=0)

    assert rows(graph, "Person") == PEOPLE
    assert_sound(graph)
    graph.mutate(mutation('delete Person where name = "ann"'))
    assert rows(graph, "Likes") == {}
    assert_sound(graph)


@pytest.mark.case("engine", 550)
def test_a_dropped_type_takes_no_row_any_more(graph: Graph) -> None:
    other = foreign(graph)

    with (
        meanwhile("write.post_gate_pre_sidecar", lambda: other.apply_schema(NO_WORK, index=False)),
        pytest.raises(ExpectedVersionMismatch),
    ):
        graph.mutate(mutation('insert WorksAt { from: "bob", to: "acme" }'), retry=0)

    with pytest.raises(TypeCheckError):
        graph.mutate(mutation('insert WorksAt { from: "bob", to: "acme" }'))
    assert_sound(graph)


@pytest.mark.case("engine", 550)
def test_a_row_for_a_renamed_type_lands_under_its_new_name(graph: Graph) -> None:
    other = foreign(graph)

    with meanwhile(
        "write.post_gate_pre_sidecar",
        lambda: other.apply_schema(KINDS["rename type"].schema, index=False),
    ):
        graph.mutate(INSERT)

    assert set(rows(reopen(graph), "Human")) == {"ann", "bob", "zed"}
    assert_sound(graph)


@pytest.mark.case("engine", 552)
@pytest.mark.parametrize("kind", ["add property", "rename type", "add edge type"])
def test_a_change_is_refused_when_its_table_moved_meanwhile(graph: Graph, kind: str) -> None:
    other = foreign(graph)

    with (
        meanwhile("schema_apply.post_stage_pre_gate", lambda: other.mutate(INSERT)),
        pytest.raises(ConflictError),
    ):
        graph.apply_schema(KINDS[kind].schema, index=False)

    assert graph.schema() == TEAM
    assert set(rows(graph, "Person")) == {"ann", "bob", "zed"}
    assert_sound(graph)
    assert graph.apply_schema(KINDS[kind].schema, index=False).applied
    assert_sound(graph)


@pytest.mark.case("engine", 552)
def test_a_drop_is_refused_when_its_table_moved_meanwhile(graph: Graph) -> None:
    other = foreign(graph)
    insert = mutation('insert WorksAt { from: "bob", to: "acme" }')

    with (
        meanwhile("schema_apply.post_stage_pre_gate", lambda: other.mutate(insert)),
        pytest.raises(ConflictError),
    ):
        graph.apply_schema(NO_WORK, index=False)

    assert len(rows(graph, "WorksAt")) == 2


@pytest.mark.case("engine", 552)
def test_a_write_to_another_table_does_not_matter(graph: Graph) -> None:
    other, pins = foreign(graph), Pins.of(graph)
    insert = mutation('insert Company { name: "ibex" }')

    with meanwhile("schema_apply.post_stage_pre_gate", lambda: other.mutate(insert)):
        graph.apply_schema(EMAIL, index=False)

    assert sorted(Pins.of(graph).moved(pins).values()) == [1, 1]
    assert set(rows(graph, "Company")) == {"acme", "ibex"}
    assert_sound(graph)


@pytest.mark.case("engine", 547)
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (EMAIL, EMAIL),
        (EMAIL, replaced("city: String?", "city: String?\n size: I32?")),
        (replaced("edge WorksAt: Person -> Company\n", ""), TEAM + "node City { name: String @key }\n"),
    ],
)
@pytest.mark.parametrize("place", ["schema_apply.post_lock_pre_plan", "schema_apply.post_stage_pre_gate"])
def test_of_two_changes_at_once_one_waits_its_turn(graph: Graph, ours: str, theirs: str, place: str) -> None:
    """The lock object is there before the plan is made; the second one never gets that far."""
    other, refused = foreign(graph), []

    def apply() -> None:
        with pytest.raises(ConflictError) as caught:
            other.apply_schema(theirs, index=False)
        refused.append(type(caught.value).__name__)

    with meanwhile(place, apply):
        graph.apply_schema(ours, index=False)

    assert refused == ["SchemaApplyInProgress"]
    assert graph.schema() == ours
    assert other.apply_schema(theirs, index=False).applied == (ours != theirs)
    assert other.schema() == theirs
    assert_sound(graph)


@pytest.mark.case("engine", 547)
def test_of_two_changes_that_passed_the_lock_the_later_one_is_refused(graph: Graph) -> None:
    """Whoever holds what: a schema is published only on the one that it was planned on."""
    other, lock = foreign(graph), Path(graph.uri) / "__branches" / "__schema_apply_lock__.json"

    def apply() -> None:
        text = lock.read_text()
        lock.unlink()
        other.apply_schema(replaced("city: String?", "city: String?\n size: I32?"), index=False)
        lock.write_text(text)

    with meanwhile("schema_apply.post_stage_pre_gate", apply), pytest.raises(SchemaChanged):
        graph.apply_schema(EMAIL, index=False)

    assert "size" in graph.schema()
    assert "email" not in graph.schema()
    assert_sound(graph)


@pytest.mark.case("engine", 772)
def test_a_schema_made_from_an_older_one_drops_nothing_that_came_since(graph: Graph) -> None:
    base = graph.commits(limit=1)[0].graph_commit_id
    theirs = replaced("city: String?", "city: String?\n size: I32?")
    foreign(graph).apply_schema(theirs, index=False)

    with pytest.raises(SchemaChanged, match=f"changed after {base}: make the change again") as refused:
        graph.apply_schema(EMAIL, base=base, index=False)

    assert (refused.value.branch, refused.value.base) == ("main", base)
    assert graph.schema() == theirs
    newest = graph.commits(limit=1)[0].graph_commit_id
    graph.mutate(INSERT)  # which is no change of the schema
    assert graph.apply_schema(EMAIL, base=newest, index=False).applied
    with pytest.raises(CommitNotFound):
        graph.apply_schema(TEAM, base="01HZZZZZZZZZZZZZZZZZZZZZZZ", index=False)
    assert_sound(graph)


_APPLIER = """
import sys
from pathlib import Path
from omnigraph.core.errors import ConflictError
from tests.support.engine import reopen
graph = reopen(Path(sys.argv[1]))
print("open", flush=True)
for line in sys.stdin:
    for _ in range(1000):
        base = graph.commits(limit=1)[0].graph_commit_id
        schema = graph.schema()
        name = line.strip()
        try:
            schema = schema.replace("note: String", f"note: String\\n {name}: String?")
            graph.apply_schema(schema, base=base, index=False)
        except ConflictError:
            continue
        break
    print("applied", flush=True)
"""


@pytest.mark.slow
@pytest.mark.case("engine", 547)
def test_processes_that_change_one_schema_each_land(graph: Graph) -> None:
    with Forked(_APPLIER, graph.uri) as one, Forked(_APPLIER, graph.uri) as other:
        assert (one.read_line(), other.read_line()) == ("open", "open")
        for number in range(3):
            one.write_line(f"a{number}")
            other.write_line(f"b{number}")
            assert (one.read_line(), other.read_line()) == ("applied", "applied")

    graph.refresh()
    assert {"a0", "a1", "a2", "b0", "b1", "b2"} <= set(rows(graph, "Person")["ann"])
    assert len(chain(graph)) == 2 + 6
    assert_sound(graph)
