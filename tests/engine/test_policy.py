"""A policy in front of an engine: what it grants, what it refuses, and that a refusal tells nothing."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

import omnigraph
from omnigraph.core.errors import (
    BadRequest,
    BranchesBlockSchemaApply,
    BranchNotFound,
    CommitNotFound,
    NotFoundError,
    OmnigraphError,
    PolicyDenied,
)
from omnigraph.core.ids import new_ulid
from omnigraph.graph.graph import Graph
from omnigraph.graph.opening import open as open_graph
from omnigraph.operations.changes.sides import WantedChanges
from omnigraph.operations.clone.clone import CloneResult
from omnigraph.operations.pin import PinnedTarget, read_target
from omnigraph.policy.gate import OPEN_GATE
from omnigraph.policy.model import Policy
from tests.support.engine import PEOPLE, ids, ndjson, new_graph, node
from tests.support.gates import guard, install, policy_of, policy_text
from tests.support.queries import mutation, read
from tests.support.seam import internals

NAMES = read("$p: Person", "return { $p.name }")
ADD = mutation("insert Person { name: $n }", "$n: String")
JUNE_ONLY = "read, change, export; branch_scope: unprotected"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    """A graph that no test changes: main has ann and ben, june has joe as well."""
    with new_graph(tmp_path_factory.mktemp("policy") / "graph", PEOPLE, node("Person", name="ann")) as graph:
        graph.create_branch("june")
        graph.mutate(ADD, params={"n": "joe"}, branch="june", actor="ann")
        graph.mutate(ADD, params={"n": "ben"}, actor="ann")
        yield graph


@pytest.fixture
def world(shared: Graph) -> Iterator[Graph]:
    yield shared
    install(shared, OPEN_GATE)


def head_of(graph: Graph, branch: str) -> str:
    """Return the id of a head, past the gate."""
    return internals(graph).state(branch).head.graph_commit_id


def refusal(call: Callable[[], object]) -> OmnigraphError:
    with pytest.raises(OmnigraphError) as caught:
        call()
    return caught.value


def on_a_branch(ann: Graph) -> dict[str, Callable[[str], object]]:
    """Return calls that name a branch."""
    return {
        "query": lambda name: ann.query(NAMES, branch=name),
        "table": lambda name: ann.table("Nonsense", branch=name),
        "diff": lambda name: ann.diff(name, name),
        "entity_at": lambda name: ann.entity_at("Person", "x", name),
        "commits": lambda name: ann.commits(branch=name),
        "export": lambda name: ann.export(branch=name, types=["Nonsense"]),
        "mutate": lambda name: ann.mutate("nonsense", branch=name),
        "load from": lambda name: ann.load(b"", "append", branch=name, from_="main"),
        "delete": ann.delete_branch,
        "create": ann.create_branch,
        "merge into": lambda name: ann.merge("other", name),
        "bind": lambda name: ann.branch(name).__enter__(),
    }


def refusals(call: Callable[[str], object], *names: str) -> list[tuple[type, str]]:
    """Return what a call answers to each name, but for the name."""
    found = [refusal(partial(call, name)) for name in names]
    return [
        (type(error), str(error).replace(f"'{name}'", "")) for error, name in zip(found, names, strict=True)
    ]


@pytest.mark.case("surfaces", 161)
def test_a_past_state_is_read_with_the_right_to_the_branch_it_landed_on(world: Graph) -> None:
    main, june = head_of(world, "main"), head_of(world, "june")
    guard(world, JUNE_ONLY)

    assert len(world.query(NAMES, snapshot=june, actor="ann").rows) == 2
    assert len(world.acting_as("ann").at(june).query(NAMES).rows) == 2
    for call in (
        lambda: world.query(NAMES, snapshot=main, actor="ann"),
        lambda: world.explain(NAMES, snapshot=main, actor="ann"),
        lambda: world.describe("Person", snapshot=main, actor="ann"),
        lambda: world.acting_as("ann").at(main),
        lambda: world.query(NAMES, snapshot=internals(world).state("main").snapshot(), actor="ann"),
    ):
        with pytest.raises(PolicyDenied, match="on snapshot"):
            call()

    guard(world, "read; branch_scope: protected")
    assert len(world.query(NAMES, snapshot=main, actor="ann").rows) == 2
    with pytest.raises(PolicyDenied):
        world.query(NAMES, snapshot=june, actor="ann")


@pytest.mark.case("surfaces", 544)
def test_what_is_forbidden_and_what_is_not_there_get_one_answer(world: Graph) -> None:
    hidden, unknown = head_of(world, "main"), new_ulid()
    guard(world, JUNE_ONLY)
    ann = world.acting_as("ann")
    calls: dict[str, Callable[[str], object]] = {
        "query": lambda commit: ann.query(NAMES, snapshot=commit),
        "at": ann.at,
        "diff": lambda commit: ann.diff(commit, "june"),
        "diff, the other side": lambda commit: ann.diff("june", commit),
        "commit_changes": ann.commit_changes,
        "commit_changes_page": ann.commit_changes_page,
        "entity_at": lambda commit: ann.entity_at("Person", "ann", commit),
        "commit": ann.commit,
        "a feed": lambda commit: ann.poll_changes(branch="june", start=f"after:{commit}"),
        "a base": lambda commit: ann.apply_schema(PEOPLE, branch="june", base=commit),
    }
    for name, call in calls.items():
        first, second = refusals(call, hidden, unknown)
        assert first == second, name
    assert isinstance(refusal(lambda: ann.commit_changes(hidden)), CommitNotFound)
    for version in (2, 99, datetime(2001, 1, 1, tzinfo=UTC)):
        with pytest.raises(PolicyDenied, match="on snapshot"):
            ann.query(NAMES, snapshot=version)

    install(world, OPEN_GATE)
    with pytest.raises(CommitNotFound):
        world.query(NAMES, snapshot=unknown)


@pytest.mark.case("surfaces", 544)
def test_a_branch_that_is_forbidden_and_one_that_is_not_there_get_one_answer(world: Graph) -> None:
    for there, missing in (("main", "may"), ("june", "july")):
        guard(
            world,
            *("read, change, export; branch_scope: unprotected",),
            *("branch_delete, branch_merge, schema_apply, branch_create; target_branch_scope: unprotected",),
            protected=f"{there}, {missing}",
        )
        ann = world.acting_as("ann")
        for name, call in on_a_branch(ann).items():
            first, second = refusals(call, there, missing)
            assert first == second, name
            assert first[0] is PolicyDenied, name
        with pytest.raises(BranchNotFound):
            ann.query(NAMES, branch="nobody-forbids-this")
        with pytest.raises(NotFoundError, match="neither a branch nor a commit"):
            ann.diff("nobody-forbids-this", "nobody-forbids-this")


@pytest.mark.case("surfaces", 545)
def test_a_pinned_side_of_a_comparison_is_one_that_the_branch_has(world: Graph) -> None:
    main, june = head_of(world, "main"), head_of(world, "june")
    graph = internals(world)
    state = graph.state("june")
    begun = state.commits.head_at(graph.parts.branches.require("june").parent_manifest_version)
    assert begun is not None
    first = begun.graph_commit_id
    before = next(iter(state.commits.oldest_first(above=0))).graph_commit_id
    assert before not in {first, june}
    guard(world, JUNE_ONLY)

    assert read_target(graph, PinnedTarget("june", june), "ann").head.graph_commit_id == june
    assert read_target(graph, PinnedTarget("june", first), "ann").head.graph_commit_id == first
    for name, commit in (("june", main), (june, first), ("june", before), ("june", new_ulid())):
        with pytest.raises(CommitNotFound):
            read_target(graph, PinnedTarget(name, commit), "ann")
    with pytest.raises(PolicyDenied):
        read_target(graph, PinnedTarget("main", june), "ann")


@pytest.mark.case("surfaces", 809)
def test_what_is_of_the_whole_graph_is_asked_for_as_that_wherever_it_is_called(world: Graph) -> None:
    guard(world, JUNE_ONLY)
    ann = world.acting_as("ann")
    with ann.branch("june") as bound:
        assert "on branch 'main'" in str(refusal(bound.queries))
        for call in (lambda: bound.verify(branch="june"), lambda: bound.status(branch="june"), bound.verify):
            assert isinstance(refusal(call), PolicyDenied)
    guard(world, "read; branch_scope: protected")
    assert world.acting_as("ann").queries() == []
    guard(world, "read")
    with ann.branch("june") as bound:
        assert bound.queries() == []
        assert bound.verify(branch="june").is_whole


@pytest.mark.case("surfaces", 802)
def test_a_network_and_a_connection_are_reads(world: Graph) -> None:
    main, june = head_of(world, "main"), head_of(world, "june")
    guard(world, "read; branch_scope: unprotected")
    ann = world.acting_as("ann")

    assert len(ann.to_networkx(branch="june")) == len(ann.to_networkx(snapshot=june)) == 2
    for open_to in ({"branch": "june"}, {"snapshot": june}):
        assert ann.duckdb(**open_to).sql("select count(*) from Person").fetchall() == [(2,)]
    for call in (ann.to_networkx, ann.duckdb):
        assert "policy denied action 'read' on branch 'main'" in str(refusal(call))
        for unseen in (main, new_ulid()):
            assert "'read' on snapshot" in str(refusal(partial(call, snapshot=unseen)))
    guard(world, "export")
    for call in (ann.to_networkx, ann.duckdb):
        assert isinstance(refusal(partial(call, branch="june")), PolicyDenied)


@pytest.mark.case("surfaces", 692)
def test_a_handle_that_is_bound_to_a_branch_scans_a_snapshot(world: Graph) -> None:
    main = head_of(world, "main")
    with world.branch("june") as bound:
        names = {row["name"] for row in bound.scan("Person", snapshot=main).to_arrow().to_pylist()}

        assert names == {"ann", "ben"}
        with pytest.raises(BadRequest, match="cannot be combined"):
            bound.scan("Person", branch="june", snapshot=main)


@pytest.mark.case("surfaces", 803)
def test_a_branch_beside_a_snapshot_is_refused_whether_it_is_there_or_not(world: Graph) -> None:
    june = head_of(world, "june")
    guard(world, JUNE_ONLY)
    ann = world.acting_as("ann")
    calls: dict[str, Callable[[str], object]] = {
        "query": lambda name: ann.query(NAMES, branch=name, snapshot=june),
        "explain": lambda name: ann.explain(NAMES, branch=name, snapshot=june),
        "describe": lambda name: ann.describe("Person", branch=name, snapshot=june),
        "blob": lambda name: ann.blob("node", "Person", "ann", "name", branch=name, snapshot=june),
        "duckdb": lambda name: ann.duckdb(branch=name, snapshot=june),
        "to_networkx": lambda name: ann.to_networkx(branch=name, snapshot=june),
    }
    for name, call in calls.items():
        for branch in ("main", "june", "nobody-has-this"):
            error = refusal(partial(call, branch))
            assert type(error) is BadRequest, name
            assert "cannot be combined" in str(error), name


@pytest.mark.case("surfaces", 805)
def test_an_error_names_only_branches_that_the_caller_may_know_of(tmp_path: Path) -> None:
    rules = (
        "read, change; branch_scope: unprotected",
        "branch_delete, branch_merge, schema_apply; target_branch_scope: any",
    )
    with new_graph(tmp_path / "graph", PEOPLE, node("Person", name="ann")) as graph:
        graph.create_branch("june")
        graph.mutate(ADD, params={"n": "joe"}, branch="june")
        graph.create_branch("open", from_="june")
        graph.create_branch("secret", from_="june")
        ann = graph.acting_as("ann")
        for protected, named, unnamed in (("secret, open", (), 2), ("secret", ("open",), 1)):
            guard(graph, *rules, protected=f"main, {protected}")
            blocked = refusal(lambda: ann.apply_schema(PEOPLE, branch="june", exclusive=True))
            assert isinstance(blocked, BranchesBlockSchemaApply)
            assert (blocked.branches, blocked.hidden) == (tuple(sorted(("june", *named))), unnamed)
            assert f"{unnamed} that you may not read" in str(blocked)
            assert "secret" not in str(blocked)
        guard(graph, *rules, protected="main, secret, open")
        needed = refusal(lambda: ann.delete_branch("june"))
        assert str(needed).endswith("a branch that you may not read was created from it")
        merged = ann.merge("june", "main", delete_branch=True)
        assert merged.branch_delete_error == str(needed)
        install(graph, OPEN_GATE)
        assert "branch 'open' was created from it" in str(refusal(lambda: graph.delete_branch("june")))
        assert refusal(lambda: graph.apply_schema(PEOPLE, exclusive=True)).branches == (  # type: ignore[attr-defined]
            *("june", "open", "secret"),
        )


@pytest.mark.case("surfaces", 806)
def test_a_warning_counts_the_branches_that_the_caller_may_not_know_of(tmp_path: Path) -> None:
    with new_graph(tmp_path / "graph", PEOPLE, node("Person", name="ann")) as graph:
        graph.create_branch("secret")
        graph.mutate(ADD, params={"n": "joe"}, branch="secret")
        rules = ("read; branch_scope: unprotected", "schema_apply; target_branch_scope: any")
        guard(graph, *rules, protected="secret")
        changed = graph.acting_as("ann").apply_schema(
            "node Other { name: String @key }\n", allow_data_loss=True
        )

    told = " ".join(changed.warnings)
    assert "can still be read on a branch that you may not read" in told
    assert "secret" not in told


@pytest.mark.case("surfaces", 548)
def test_a_denied_caller_learns_no_types(world: Graph) -> None:
    guard(world, JUNE_ONLY)
    ann = world.acting_as("ann")

    for call in (
        lambda: ann.export(types=["Nonsense"]),
        lambda: ann.diff("june", "main", types=["Nonsense"]),
        lambda: ann.changes(types=["Nonsense"]),
        lambda: ann.load_tables({"Nonsense": None}, "append"),
        lambda: ann.describe("Nonsense"),
    ):
        with pytest.raises(PolicyDenied):
            call()
    with pytest.raises(BadRequest, match="Nonsense"):
        ann.export(branch="june", types=["Nonsense"])
    assert WantedChanges(kinds=["node"]).on(internals(world)).kinds == {"node"}


def test_without_a_branch_only_those_pass_who_may_read_all(world: Graph) -> None:
    calls: list[Callable[[Graph], object]] = [
        lambda graph: graph.branches(),
        lambda graph: graph.schema(),
        lambda graph: graph.catalog,
        lambda graph: graph.status(branch="june"),
        lambda graph: graph.verify(),
        lambda graph: graph.commit(head_of(graph, "june")),
    ]
    guard(world, JUNE_ONLY)
    for call in calls:
        with pytest.raises(PolicyDenied, match="denied action 'read' for actor"):
            call(world.acting_as("ann"))
    ann = world.acting_as("ann")
    assert "Person" in ann.schema(branch="june")
    with ann.branch("june") as bound:
        assert bound.catalog.nodes["Person"]
        bound.refresh()
    with pytest.raises(PolicyDenied, match="'main'"):
        ann.recoveries()
    with pytest.raises(PolicyDenied, match="'main'"):
        ann.catalog_on("june", "main")

    guard(world, "read")
    for call in calls:
        call(world.acting_as("ann"))


@pytest.mark.case("surfaces", 164)
@pytest.mark.case("surfaces", 555)
def test_a_policy_is_given_as_a_path_a_text_or_a_value(shared: Graph, tmp_path: Path) -> None:
    text = policy_text("read")
    file = tmp_path / "readers.yaml"
    file.write_text(text)

    for given in (file, str(file), text, Policy.parse(text)):
        with open_graph(shared.uri, mode="ro", policy=given) as graph:
            with pytest.raises(PolicyDenied, match="names no actor"):
                graph.query(NAMES)
            with pytest.raises(PolicyDenied, match="'eve': the actor is in no group"):
                graph.query(NAMES, actor="eve")
            assert len(graph.query(NAMES, actor="ann").rows) == 2
            assert len(graph.acting_as("ann").commits()) == 3
    with open_graph(shared.uri, mode="ro", actor="ben", policy=text) as graph:
        assert graph.branches() == ["june", "main"]
        with pytest.raises(BadRequest, match="actor"):
            graph.acting_as(" ")
    server = policy_text("graph_list")
    for wrong in (5, server, tmp_path / "missing.yaml", "missing.yaml"):
        with pytest.raises(BadRequest):
            open_graph(shared.uri, policy=wrong)  # type: ignore[arg-type]


@pytest.mark.case("surfaces", 226)
@pytest.mark.case("surfaces", 543)
def test_functions_that_open_no_graph_ask_as_well(shared: Graph, tmp_path: Path) -> None:
    nothing = policy_text()
    place = tmp_path / "new"
    calls: dict[str, Callable[[], object]] = {
        "init": lambda: omnigraph.init(place, PEOPLE, actor="ann", policy=nothing),
        "clone": lambda: omnigraph.clone(shared.uri, place, actor="ann", policy=nothing),
        "check_copy": lambda: omnigraph.check_copy(tmp_path / "a", place, actor="ann", policy=nothing),
        "repair": lambda: omnigraph.repair(place, 1, actor="ann", policy=nothing),
        "quarantined": lambda: omnigraph.quarantined(place, actor="ann", policy=nothing),
        "restore_quarantined": lambda: omnigraph.restore_quarantined(place, "x", actor="ann", policy=nothing),
    }
    functions = {
        name
        for name in dir(omnigraph)
        if not name.startswith("_") and type(getattr(omnigraph, name)).__name__ == "function"
    }
    assert functions == {*calls, "open", "connect", "connect_async"}  # whose graph has the gate
    for call in calls.values():
        with pytest.raises(PolicyDenied):
            call()
    assert [*tmp_path.iterdir()] == []

    for branches, rule, is_allowed in (
        (["june"], "export; branch_scope: protected", False),
        (["june"], "export", True),
        (None, "export; branch_scope: protected", False),
    ):
        with nullcontext() if is_allowed else pytest.raises(PolicyDenied):
            omnigraph.clone(shared.uri, place, branches=branches, actor="ann", policy=policy_text(rule))


@pytest.mark.case("surfaces", 902)
def test_a_past_of_a_branch_is_copied_by_those_who_may_export_it(tmp_path: Path) -> None:
    place = tmp_path / "new"
    with new_graph(tmp_path / "graph", PEOPLE, node("Person", name="ann")) as graph:
        graph.create_branch("june")
        commit = graph.mutate(ADD, params={"n": "x"}, branch="june").commit
    assert commit is not None
    for at in (commit.graph_commit_id, "01AAAAAAAAAAAAAAAAAAAAAAAA"):
        with pytest.raises(PolicyDenied, match="branch 'june'"):
            copy_of_past(graph, place, at, "export; branch_scope: protected")
    assert not place.exists()

    assert copy_of_past(graph, place, commit.graph_commit_id, "export").branches == ("main", "june")


def copy_of_past(graph: Graph, place: Path, at: str, rule: str) -> CloneResult:
    """Copy june up to a commit under a policy."""
    policy = policy_text(rule)
    return omnigraph.clone(graph.uri, place, branches=["june"], at=at, actor="ann", policy=policy)


@pytest.mark.case("surfaces", 158)
@pytest.mark.case("surfaces", 159)
@pytest.mark.case("surfaces", 160)
@pytest.mark.case("surfaces", 546)
@pytest.mark.case("surfaces", 547)
def test_a_crew_works_on_branches_and_its_control_merges(tmp_path: Path) -> None:
    with new_graph(tmp_path / "graph", PEOPLE, node("Person", name="ann")) as graph:
        row = ndjson([node("Person", name="kim")])
        guard(graph, "change; branch_scope: unprotected")
        for name in ("main", " main ", "\tmain\n"):
            with pytest.raises(PolicyDenied, match="'change' on branch 'main'"):
                graph.mutate(ADD, params={"n": "x"}, branch=name, actor="ben")
        for is_dry in (True, False):
            with pytest.raises(PolicyDenied, match="'branch_create' on branch 'june'"):
                graph.load(row, "append", branch="june", from_="main", actor="ben", dry_run=is_dry)

        guard(
            graph,
            *("change; branch_scope: unprotected", "branch_create; target_branch_scope: unprotected"),
            *("branch_merge; target_branch_scope: unprotected",),
        )
        assert graph.load(row, "append", branch="june", from_="main", actor="ben").branch_created
        graph.create_branch("may", actor="ben")
        guard(graph, "change; branch_scope: unprotected")
        more = ndjson([node("Person", name="lea")])
        assert not graph.load(more, "append", branch="june", from_="main", actor="ben").branch_created
        with pytest.raises(PolicyDenied, match="'branch_merge' on branch 'main'"):
            graph.merge("june", actor="ben")

        guard(graph, "branch_merge; target_branch_scope: protected")
        merged = graph.merge("june", delete_branch=True, actor="ben")
        assert (merged.branch_deleted, merged.branch_delete_refusal) == (False, "forbidden")
        install(graph, OPEN_GATE)
        assert ids(graph, "Person") == ["ann", "kim", "lea"]
        assert graph.branches() == ["june", "main", "may"]


def test_a_branch_that_may_not_be_deleted_hides_no_error(tmp_path: Path) -> None:
    with new_graph(tmp_path / "graph", PEOPLE) as graph:
        install_rules = ("read", "branch_create")
        guard(graph, *install_rules)

        with pytest.raises(ZeroDivisionError) as caught, graph.acting_as("ann").branch("june", "main"):
            raise ZeroDivisionError

        assert "branch 'june' stays: policy denied" in caught.value.__notes__[0]
    assert policy_of(*install_rules).rules
