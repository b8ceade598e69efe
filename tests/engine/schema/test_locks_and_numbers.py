"""Who may change the schema, and the numbers that a change takes: each is issued once."""

import json
import os
from collections.abc import Iterable
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from omnigraph.core.errors import (
    BranchesBlockSchemaApply,
    ConflictError,
    InvariantViolation,
    RecoveryRequired,
    SchemaApplyInProgress,
)
from omnigraph.core.failpoint import ENVIRONMENT, EXIT_STATUS, InjectedFault, failpoint
from omnigraph.graph.graph import Graph
from tests.engine.schema.test_races import meanwhile
from tests.engine.schema.world import EMAIL, TEAM, field_ids, replaced, team
from tests.support.engine import assert_settled, chain, files, foreign, reopen, rows
from tests.support.forked import Forked

CITY = TEAM + "node City { name: String @key }\n"
NO_SCORE = replaced("    score: F32?\n", "")


HELD = {
    "operation_id": "01J00000000000000000000000",
    "host": "here",
    "pid": 5,
    "started_at": 7,
    "writer_id": None,
    "is_exclusive": False,
}
FORGED = [
    json.dumps(HELD | changed)
    for changed in (
        {"operation_id": "../../x"},
        {"operation_id": ""},
        {"operation_id": None},
        {"host": 5},
        {"pid": "5"},
        {"pid": True},
        {"started_at": 1.5},
        {"writer_id": 3},
        {"writer_id": "x"},
        {"is_exclusive": "no"},
        {"is_exclusive": None},
        {"more": 1},
    )
]


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return team(tmp_path / "graph")


def lock_of(graph: Graph) -> Path:
    return Path(graph.uri) / "__branches" / "__schema_apply_lock__.json"


@pytest.mark.case("engine", 250)
@pytest.mark.case("engine", 560)
@pytest.mark.case("languages", 94)
def test_an_exclusive_change_is_refused_while_there_are_branches(graph: Graph) -> None:
    graph.create_branch("june")
    graph.create_branch("july")
    commits = chain(graph)

    with pytest.raises(BranchesBlockSchemaApply, match="found: july, june") as caught:
        graph.apply_schema(EMAIL, exclusive=True)

    assert caught.value.branches == ("july", "june")
    assert not lock_of(graph).exists()
    assert (chain(graph), graph.schema()) == (commits, TEAM)
    assert graph.apply_schema(EMAIL).applied
    graph.delete_branch("june")
    graph.delete_branch("july")
    assert graph.apply_schema(TEAM, exclusive=True).applied
    assert not lock_of(graph).exists()


@pytest.mark.case("engine", 299)
@pytest.mark.case("engine", 560)
def test_branches_wait_for_an_exclusive_change_and_for_no_other(graph: Graph) -> None:
    other, told = foreign(graph), []

    def branch() -> None:
        with pytest.raises(SchemaApplyInProgress) as caught:
            other.create_branch("june")
        told.append(str(caught.value))

    with meanwhile("schema_apply.post_lock_pre_plan", branch):
        graph.apply_schema(EMAIL, exclusive=True, index=False)
    assert (len(told), other.branches()) == (1, ["main"])

    with meanwhile("schema_apply.post_lock_pre_plan", lambda: other.create_branch("june")):
        graph.apply_schema(TEAM, index=False)
    assert other.schema(branch="june") == EMAIL


@pytest.mark.case("engine", 548)
def test_the_lock_of_a_dead_process_is_taken(graph: Graph) -> None:
    program = (
        "import sys; from pathlib import Path; from tests.support.engine import reopen\n"
        "from tests.engine.schema.world import EMAIL\n"
        "reopen(Path(sys.argv[1])).apply_schema(EMAIL, index=False)"
    )
    place = {ENVIRONMENT: "schema_apply.post_lock_pre_plan=exit"}
    with Forked(program, graph.uri, **place) as script:
        assert script.wait() == EXIT_STATUS
    assert json.loads(lock_of(graph).read_text())["pid"] == script.pid

    graph.create_branch("june")
    assert graph.apply_schema(EMAIL, index=False).applied

    assert not lock_of(graph).exists()
    assert_settled(reopen(graph))


@pytest.mark.case("engine", 548)
@pytest.mark.case("engine", 250)
def test_a_living_holder_is_named(graph: Graph) -> None:
    other = foreign(graph)
    told: list[str] = []

    def apply() -> None:
        with pytest.raises(SchemaApplyInProgress) as caught:
            other.apply_schema(CITY)
        with pytest.raises(SchemaApplyInProgress):
            other.apply_schema(CITY, branch="june")
        with pytest.raises(SchemaApplyInProgress):
            other.upgrade_branch("june")
        told.append(str(caught.value))

    graph.create_branch("june")
    with meanwhile("schema_apply.post_lock_pre_plan", apply):
        graph.apply_schema(EMAIL, index=False)

    assert f"process {os.getpid()} on " in told[0]


@pytest.mark.case("engine", 548)
@pytest.mark.case("engine", 629)
@pytest.mark.parametrize("text", ["", "[]", "{}", '{"operation_id": 3}', *FORGED])
def test_a_lock_that_nobody_of_ours_wrote_is_refused_and_kept(graph: Graph, text: str) -> None:
    lock_of(graph).parent.mkdir(exist_ok=True)
    lock_of(graph).write_text(text)

    with pytest.raises(SchemaApplyInProgress, match="not the lock of a schema change of this build"):
        graph.apply_schema(EMAIL)
    graph = reopen(graph)

    assert lock_of(graph).read_text() == text
    assert graph.schema() == TEAM
    graph.refresh()


@pytest.mark.case("engine", 186)
def test_a_change_that_failed_succeeds_at_the_first_clear_attempt(graph: Graph) -> None:
    versions = {key: entry.version for key, entry in graph.snapshot().entries.items()}
    both = replaced("city: String?", "city: String?\n size: I32?", EMAIL)

    with failpoint("schema_apply.post_table_commit", "raise"):
        for _ in range(5):
            with reopen(graph) as attempt, pytest.raises(RecoveryRequired):
                attempt.apply_schema(both, index=False)

    graph = reopen(graph)  # other columns are undone by a restore, which waits for an open
    assert graph.apply_schema(both, index=False).applied
    after = {key: entry.version for key, entry in graph.snapshot().entries.items()}
    assert {key: after[key] - versions[key] for key in after} == {
        "edge:Knows": 0,
        "edge:WorksAt": 0,
        "node:Company": 5 * 2 + 1,  # its commit and the undo of each failure
        "node:Person": 1,
    }
    assert rows(graph, "Company")["acme"] == {"id": "acme", "name": "acme", "city": "Bonn", "size": None}
    assert_settled(graph)


def issued(graph: Graph, branches: Iterable[str]) -> list[int]:
    """Return the numbers of all types, properties and tables of branches; no two things share one."""
    found: dict[int, tuple[str, ...]] = {}
    for branch in branches:
        catalog = graph.catalog_on(branch)
        for type_ in (*catalog.types, *catalog.interfaces.values()):
            things = {("type", type_.name): type_.id}
            if hasattr(type_, "incarnation"):
                things["table", type_.name] = type_.incarnation
            things |= {(type_.name, item.name): item.id for item in type_.properties.values()}
            for name, number in things.items():
                assert found.setdefault(number, name) == name, f"{number} is {name} and {found[number]}"
    return sorted(found)


@pytest.mark.case("engine", 549)
def test_a_number_is_issued_once_over_branches_failures_and_drops(graph: Graph) -> None:
    graph.create_branch("june")
    graph.create_branch("july")
    graph.apply_schema(EMAIL + "node City { name: String @key }\n", branch="june", index=False)
    with failpoint("schema_apply.post_stage_pre_gate", "raise"), pytest.raises(InjectedFault):
        graph.apply_schema(TEAM + "node Town { name: String @key }\n", index=False)
    graph.apply_schema(TEAM + "node Land { name: String @key }\n", branch="july", index=False)
    graph.apply_schema(replaced("note: String", "note: String\n fax: String?"), index=False)

    numbers = issued(graph, ["main", "june", "july"])

    counter = json.loads((Path(graph.uri) / "__numbers.json").read_text())["next"]
    assert counter > numbers[-1]
    before = {**field_ids(graph, "node:Person"), **field_ids(graph, "node:Person", "june")}
    assert len(set(before.values())) == len(before)
    graph.apply_schema(NO_SCORE, index=False)
    graph.apply_schema(TEAM, index=False)
    assert field_ids(graph, "node:Person")["score"] not in before.values()
    assert json.loads((Path(graph.uri) / "__numbers.json").read_text())["next"] > counter


@pytest.mark.case("engine", 549)
@pytest.mark.parametrize("text", ["", "{}", '{"next": "7"}', '{"next": 0}', '{"next": 536870912}', "[1]"])
def test_a_damaged_counter_is_refused_by_its_name(graph: Graph, text: str) -> None:
    (Path(graph.uri) / "__numbers.json").write_text(text)

    with pytest.raises(InvariantViolation, match=r"__numbers\.json is not a counter"):
        graph.apply_schema(EMAIL)

    assert graph.schema() == TEAM
    assert not lock_of(graph).exists()


@pytest.mark.case("engine", 549)
def test_a_lost_counter_begins_above_the_numbers_of_the_schema(graph: Graph) -> None:
    """Those of columns count too: a wider column needs nothing but one of them."""
    graph.apply_schema(EMAIL, index=False)
    before = field_ids(graph, "node:Person")
    (Path(graph.uri) / "__numbers.json").unlink()

    graph.apply_schema(replaced("age: I32?", "age: I64?", EMAIL), index=False)

    after = field_ids(graph, "node:Person")
    assert after["age"] > before["email"] == after["email"]
    assert {row["age"] for row in rows(graph, "Person").values()} == {30, 40}


@pytest.mark.case("engine", 173)
@pytest.mark.parametrize("branch", [None, "june"])
def test_a_foreign_dataset_where_a_table_will_lie_is_left_alone(graph: Graph, branch: str | None) -> None:
    graph.create_branch("june")
    other = foreign(graph)
    seen: list[Path] = []

    def squat() -> None:
        """Put something where the next number says that the table goes."""
        number = json.loads((Path(graph.uri) / "__numbers.json").read_text())["next"]
        for stable in range(number - 6, number):
            for incarnation in range(number - 6, number):
                place = Path(graph.uri) / "nodes" / f"{stable:016x}-{incarnation:016x}"
                if not place.exists():
                    lance.write_dataset(pa.table({"mine": [1]}), place)
                    seen.append(place)

    with meanwhile("schema_apply.post_stage_pre_gate", squat), pytest.raises(ConflictError):
        graph.apply_schema(CITY, branch=branch, index=False)

    reopen(graph)
    assert seen
    for place in seen:
        assert lance.dataset(place).to_table().to_pylist() == [{"mine": 1}]
    assert graph.schema(branch=branch) == TEAM
    assert other.apply_schema(CITY, branch=branch, index=False).applied
    assert rows(graph._bound(branch) if branch else graph, "City") == {}


@pytest.mark.case("engine", 251)
def test_a_refused_change_leaves_no_file(graph: Graph) -> None:
    before = {name for name in files(Path(graph.uri)) if "__locks" not in name}

    with failpoint("schema_apply.post_lock_pre_plan", "raise"), pytest.raises(InjectedFault):
        graph.apply_schema(EMAIL)

    assert {name for name in files(Path(graph.uri)) if "__locks" not in name} == before
