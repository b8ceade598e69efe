"""How a mutation becomes a commit, or does not: preconditions, interrupts, rivals."""

import base64
import os
import signal
from collections.abc import Callable
from random import Random

import pytest

from omnigraph.core.errors import (
    BadRequest,
    BranchNotFound,
    ConflictError,
    ExpectedVersionMismatch,
    PreconditionFailed,
    ReadSetChanged,
)
from omnigraph.core.failpoint import failpoint
from omnigraph.core.source_errors import MixedMutation
from omnigraph.graph.graph import Graph
from tests.support.engine import (
    Publisher,
    assert_settled,
    chain,
    contents,
    counts,
    edge,
    foreign,
    head,
    ids,
    intent,
    ndjson,
    node,
    pins,
    reopen,
    rows,
)
from tests.support.queries import mutation
from tests.support.seam import internals

ANN = mutation('insert Person { name: "ann" }')
BOB = mutation('insert Person { name: "bob" }')


# Before anything is read


@pytest.mark.case("engine", 92)
@pytest.mark.parametrize("branch", [None, "nowhere"])
def test_a_mixed_mutation_is_refused_before_any_io(graph: Graph, branch: str | None) -> None:
    mixed = mutation('insert Person { name: "ann" } delete Company where name = "x"')
    before = counts(graph)

    with pytest.raises(MixedMutation):
        graph.mutate(mixed, branch=branch)

    assert counts(graph) == before


@pytest.mark.case("engine", 103)
def test_the_name_of_the_schema_lock_is_no_branch(graph: Graph) -> None:
    before = counts(graph)

    with pytest.raises(BadRequest):
        graph.mutate(ANN, branch="__schema_apply_lock__")

    assert counts(graph) == before


def test_a_branch_that_is_not_there_is_not_found(graph: Graph) -> None:
    with pytest.raises(BranchNotFound):
        graph.mutate(ANN, branch="nowhere")


# Names and bytes


@pytest.mark.case("engine", 98)
@pytest.mark.parametrize("is_pending", [False, True])
def test_a_property_in_camel_case_keeps_its_case_in_predicates(graph: Graph, is_pending: bool) -> None:
    graph.load(ndjson([node("Person", name="ann", nickName="A"), node("Person", name="bob")]), "append")
    pending = 'insert Person { name: "cid", nickName: "A" }' if is_pending else ""

    updated = graph.mutate(mutation(f'{pending} update Person set {{ age: 1 }} where nickName = "A"'))
    assert updated.affected_nodes == (3 if is_pending else 1)
    assert rows(graph, "Person")["ann"]["age"] == 1

    deleted = graph.mutate(mutation('delete Person where nickName = "A"'))
    assert deleted.affected_nodes == (2 if is_pending else 1)
    assert ids(graph, "Person") == ["bob"]


@pytest.mark.case("engine", 99)
def test_an_update_of_another_property_keeps_a_blob_and_reads_no_other(library: Graph) -> None:
    covers = {code: Random(code).randbytes(1 << 20) for code in ("AA-1", "AA-2", "BB-1", "BB-2")}
    declared = "$cover: String, $code: String"
    for code, cover in covers.items():
        params = {"cover": f"base64:{base64.b64encode(cover).decode()}", "code": code}
        library.mutate(
            mutation("update Book set { cover: $cover } where code = $code", declared), params=params
        )
    store = internals(library).parts.store
    before = store.io_stats().read_bytes

    library.mutate(mutation('update Book set { price: 3.0 } where code = "AA-2"'))

    assert store.io_stats().read_bytes - before < 2 << 20
    assert {code: row["cover"] for code, row in rows(library, "Book").items()} == covers


@pytest.mark.case("engine", 99)
def test_a_blob_of_the_same_query_survives_an_update(library: Graph) -> None:
    insert = 'insert Book { code: "CC-1", title: "T", price: 1.0, format: "paper", added: now(), cover: $c }'
    update = 'update Book set { price: 2.0 } where code = "CC-1"'
    cover = f"base64:{base64.b64encode(b'bytes').decode()}"

    library.mutate(mutation(f"{insert} {update}", "$c: String"), params={"c": cover})
    library.mutate(mutation('update Book set { price: 3.0 } where code = "CC-1"'))

    stored = rows(library, "Book")["CC-1"]
    assert (stored["price"], stored["cover"]) == (3.0, b"bytes")


# Interrupts


@pytest.mark.case("engine", 100)
@pytest.mark.parametrize("place", ["write.post_stage_pre_gate", "write.post_gate_pre_sidecar"])
def test_an_interrupt_before_the_first_effect_leaves_nothing(graph: Graph, place: str) -> None:
    commit = head(graph)

    with pytest.raises(KeyboardInterrupt), failpoint(place, call=_interrupt):
        graph.mutate(ANN)

    assert head(graph) == commit
    assert_settled(graph)
    graph.mutate(BOB)
    assert ids(graph, "Person") == ["bob"]


@pytest.mark.case("engine", 100)
@pytest.mark.parametrize(
    "place",
    [
        "write.post_sidecar_pre_commit",
        "write.post_table_commit",
        "write.post_finalize_pre_publisher",
        "write.post_publish_pre_sidecar_delete",
    ],
)
def test_an_interrupt_in_the_commit_section_waits_for_its_end(graph: Graph, place: str) -> None:
    with pytest.raises(KeyboardInterrupt), failpoint(place, call=_interrupt):
        graph.mutate(ANN)

    assert ids(graph, "Person") == ["ann"]
    assert len(chain(graph)) == 2
    assert_settled(graph)


def _interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


# Preconditions


@pytest.mark.case("engine", 102)
def test_if_commit_accepts_every_commit_that_shows_the_rows_of_the_head(graph: Graph) -> None:
    graph.load(ndjson([node("Person", name="zoe")]), "append", index=False)
    loaded = head(graph).graph_commit_id
    graph.ensure_indices()
    between = head(graph).graph_commit_id
    Publisher(graph).publish(lineage=intent(actor="omnigraph:maintenance"))
    after = head(graph).graph_commit_id
    assert len({loaded, between, after}) == 3

    for number, required in enumerate((loaded, between, after)):
        # A no-op has the same precondition, and leaves the head where it is for the next one.
        nothing = mutation(f'delete Person where name = "nobody{number}"')
        assert reopen(graph).mutate(nothing, if_commit=required).commit is None

    assert graph.mutate(ANN, if_commit=loaded).commit is not None
    for required in (loaded, between, after):
        with pytest.raises(PreconditionFailed):
            graph.mutate(BOB, if_commit=required)


@pytest.mark.case("engine", 102)
@pytest.mark.parametrize("text", [ANN, mutation('delete Person where name = "nobody"')])
def test_a_wrong_if_commit_is_final_and_without_effect(graph: Graph, text: str) -> None:
    genesis = head(graph).graph_commit_id
    graph.mutate(mutation('insert Person { name: "zoe" }'))
    before, commit = contents(graph), head(graph)

    for required in (genesis, "01ARZ3NDEKTSV4RRFFQ69G5FAV"):
        with pytest.raises(PreconditionFailed) as caught:
            graph.mutate(text, if_commit=required)
        assert (caught.value.expected, caught.value.actual) == (required, commit.graph_commit_id)

    assert contents(graph) == before
    assert head(graph) == commit
    assert_settled(graph)


@pytest.mark.case("engine", 102)
def test_if_commit_is_compared_again_under_the_gates(graph: Graph) -> None:
    rival, required = foreign(graph), head(graph).graph_commit_id

    def write_elsewhere() -> None:
        rival.mutate(mutation('insert Company { name: "acme" }'))

    with (
        pytest.raises(PreconditionFailed),
        failpoint("write.post_stage_pre_gate", call=_once(write_elsewhere)),
    ):
        graph.mutate(ANN, if_commit=required)

    assert ids(graph, "Person") == []
    assert_settled(graph)


# Rivals


@pytest.mark.case("engine", 104)
def test_the_expected_version_is_that_of_the_first_touch(library: Graph) -> None:
    rival = reopen(library)
    expected = pins(library)["node:Author"]

    def rename() -> None:
        rival.mutate(mutation('update Author set { name: "B" } where handle = "ben"'))

    # The rival commits after the first statement has touched authors and before the second one does.
    text = mutation('delete Author where handle = "dot" delete Author where handle = "cy"')
    with (
        pytest.raises(ExpectedVersionMismatch) as caught,
        failpoint("mutation.delete_node_pre_primary_delete", call=_once(rename)),
    ):
        library.mutate(text, retry=0)

    assert (caught.value.table_key, caught.value.expected) == ("node:Author", expected)
    assert "dot" in ids(library, "Author")
    assert_settled(library)


@pytest.mark.case("engine", 105)
@pytest.mark.parametrize(
    "place",
    [
        "write.post_stage_pre_gate",
        "write.post_gate_pre_sidecar",
        "write.post_sidecar_pre_commit",
        "write.post_finalize_pre_publisher",
    ],
)
@pytest.mark.parametrize("is_insert_first", [True, False])
def test_an_edge_insert_and_a_node_delete_never_leave_an_orphan(
    graph: Graph, place: str, is_insert_first: bool
) -> None:
    graph.load(ndjson([node("Person", name="ann"), node("Company", name="acme")]), "append")
    insert = mutation('insert WorksAt { from: "ann", to: "acme" }')
    delete = mutation('delete Company where name = "acme"')
    slow, fast = (insert, delete) if is_insert_first else (delete, insert)
    rival = foreign(graph)
    outcomes: list[object] = []

    def race() -> None:
        try:
            outcomes.append(rival.mutate(fast, retry=0))
        except ConflictError as error:
            outcomes.append(error)

    with failpoint(place, call=_once(race)):
        try:
            outcomes.append(graph.mutate(slow, retry=0))
        except (ExpectedVersionMismatch, ReadSetChanged) as error:
            outcomes.append(error)

    healed = reopen(graph)
    assert sum(isinstance(outcome, ConflictError) for outcome in outcomes) == 1
    companies = set(ids(healed, "Company"))
    assert all(row["dst"] in companies for row in rows(healed, "WorksAt").values())
    assert_settled(healed)


def _once(call: Callable[[], object]) -> Callable[[], None]:
    """Return a call that happens on the first hit only: the rival passes the same place itself."""
    left = [call]

    def hit() -> None:
        if left:
            left.pop()()

    return hit


def test_edges_of_a_conflicting_write_are_not_half_visible(library: Graph) -> None:
    rival = reopen(library)
    rival_write = ndjson([edge("Wrote", "dot", "AA-1", id="w9")])

    with (
        pytest.raises(ExpectedVersionMismatch),
        failpoint("write.post_stage_pre_gate", call=_once(lambda: rival.load(rival_write, "append"))),
    ):
        library.mutate(
            mutation('insert Author { handle: "eve", name: "E" } insert Wrote { from: "eve", to: "AA-1" }'),
            retry=0,
        )

    assert "eve" not in ids(library, "Author")
    assert "w9" in ids(library, "Wrote")
    assert_settled(library)


@pytest.mark.case("engine", 106)
def test_two_inserts_from_one_pin_both_land(graph: Graph) -> None:
    rival = reopen(graph)

    with failpoint("write.post_stage_pre_gate", call=_once(lambda: rival.mutate(BOB))):
        result = graph.mutate(ANN)

    assert result.commit == head(graph)
    assert ids(graph, "Person") == ["ann", "bob"]
    assert len(chain(graph)) == 3
    assert_settled(graph)


@pytest.mark.case("engine", 106)
@pytest.mark.parametrize("statement", ["insert", "update", "delete"])
def test_without_retries_a_lost_race_is_a_conflict(graph: Graph, statement: str) -> None:
    graph.mutate(mutation('insert Person { name: "zoe" }'))
    text = {
        "insert": 'insert Person { name: "zoe", age: 9 }',
        "update": 'update Person set { age: 1 } where name = "zoe"',
        "delete": 'delete Person where name = "zoe"',
    }[statement]
    rival, before = reopen(graph), rows(graph, "Person")

    with (
        pytest.raises(ExpectedVersionMismatch),
        failpoint("write.post_stage_pre_gate", call=_once(lambda: rival.mutate(BOB))),
    ):
        graph.mutate(mutation(text), retry=0)

    assert rows(graph, "Person")["zoe"] == before["zoe"]
    assert_settled(graph)
