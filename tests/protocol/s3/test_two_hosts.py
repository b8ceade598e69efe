"""Two hosts and one graph: a writer that was stopped wakes after another one has taken over its work.

What it had published stays, what its successor published stays, and nothing is left that needs a repair.
"""

from collections.abc import Iterator

import pytest

import omnigraph
from omnigraph.commit.sidecar import RECOVERY_DIR
from omnigraph.core.errors import RecoveryRequired
from omnigraph.core.failpoint import failpoint
from omnigraph.graph.graph import Graph
from omnigraph.history.commits import MAINTENANCE_ACTOR
from omnigraph.storage.control.durability import Durability
from omnigraph.storage.control.object_store import open_adapter
from omnigraph.storage.control.uri import GraphRoot
from tests.support.hosts import Host
from tests.support.s3 import build_people, place, settings_of
from tests.support.seam import internals

pytestmark = pytest.mark.slow

ADD_DEE = """
query add() {
    insert Person { name: "dee" }
    insert Knows { from: "dee", to: "ann" }
}
"""
ADD_EVE = """
query add() {
    insert Person { name: "eve" }
    insert Knows { from: "eve", to: "ann" }
}
"""


Two = tuple[Host, Host]


@pytest.fixture(scope="module")
def two(endpoint: str) -> Iterator[Two]:
    with Host(settings_of(endpoint)) as first, Host(settings_of(endpoint)) as second:
        yield first, second


@pytest.fixture(autouse=True)
def closed(two: Two) -> Iterator[None]:
    """Let go of what a test has left open."""
    yield
    for host in two:
        host.ask("close")


def make(root: GraphRoot, branch: str | None, *, is_first: bool) -> None:
    """Make a graph with a branch, which owns its tables or only inherits them."""
    place(build_people, root)
    if branch is not None:
        with omnigraph.open(root.uri) as graph:
            graph.create_branch(branch)
            if not is_first:
                own = 'query add() { insert Person { name: "own" } insert Knows { from: "own", to: "ann" } }'
                graph.mutate(own, branch=branch)


def people(graph: Graph, branch: str | None) -> set[object]:
    return set(graph.table("Person", branch=branch)["name"].to_pylist())


def check_heads(graph: Graph, branch: str | None) -> None:
    """Make sure that no table is ahead of what is published."""
    parts = internals(graph).parts
    for entry in graph.snapshot(branch).entries.values():
        assert parts.store.latest_version(parts.address(entry)) == entry.version, entry.table_key


def check_whole(root: GraphRoot, branch: str | None, *, is_visible: bool | None = None) -> None:
    """Look at everything, as the next writer: no half of a write, no drift, no sidecar; and write on."""
    with omnigraph.open(root.uri) as graph:
        knows = set(graph.table("Knows", branch=branch)["src"].to_pylist())
        assert ("dee" in people(graph, branch)) == ("dee" in knows), "half of a write is visible"
        assert {"eve"} <= people(graph, branch) & knows
        if is_visible is not None:
            assert ("dee" in people(graph, branch)) == is_visible
        graph.mutate(
            'query add() { insert Person { name: "zoe" } insert Knows { from: "zoe", to: "ann" } }',
            branch=branch,
        )
        assert "zoe" in people(graph, branch)
        check_heads(graph, branch)
    assert open_adapter(root, Durability.FULL).list_dir(RECOVERY_DIR) == []


PLACES = [
    pytest.param(None, False, id="main"),
    pytest.param("side", True, id="branch first"),
    pytest.param("side", False, id="branch later"),
]


@pytest.mark.case("engine", 378)
@pytest.mark.parametrize(("branch", "is_first"), PLACES)
def test_a_writer_that_wakes_before_its_publish_deletes_nothing_of_its_successor(
    root: GraphRoot, two: Two, branch: str | None, *, is_first: bool
) -> None:
    make(root, branch, is_first=is_first)
    first, second = two
    first.ask("open", uri=root.uri)
    point = "write.post_finalize_pre_publisher"
    first.stop_inside("mutate", query=ADD_DEE, branch=branch, stop={"point": point})
    second.ask("open", uri=root.uri)  # rolls forward

    first.resume()
    told = first.answer()

    assert told["error"] == "WriterEnded"
    assert second.ask("mutate", query=ADD_EVE, branch=branch)["commit"]
    second.ask("close")
    check_whole(root, branch, is_visible=True)


@pytest.mark.case("engine", 379)
@pytest.mark.parametrize(("branch", "is_first"), PLACES)
def test_a_writer_that_wakes_before_its_commits_leaves_no_drift(
    root: GraphRoot, two: Two, branch: str | None, *, is_first: bool
) -> None:
    make(root, branch, is_first=is_first)
    first, second = two
    first.ask("open", uri=root.uri)
    point = "write.post_sidecar_pre_commit"
    first.stop_inside("mutate", query=ADD_DEE, branch=branch, stop={"point": point})
    second.ask("open", uri=root.uri)  # finishes it as a write without effects
    with omnigraph.open(root.uri, mode="ro") as graph:
        check_heads(graph, branch)

    first.resume()
    told = first.answer()

    assert told["error"] == "WriterEnded"
    assert second.ask("mutate", query=ADD_EVE, branch=branch).get("commit")
    second.ask("close")
    check_whole(root, branch, is_visible=False)


@pytest.mark.case("engine", 380)
@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize(("branch", "is_first"), PLACES)
def test_a_writer_that_stops_behind_its_last_look_at_itself_does_no_harm(
    root: GraphRoot, two: Two, branch: str | None, number: int, *, is_first: bool
) -> None:
    """Before the sidecar, the tables, and the publish: a look is no fence.

    Without a sidecar nobody takes it for dead, and its write lands.
    """
    make(root, branch, is_first=is_first)
    first, second = two
    first.ask("open", uri=root.uri)
    first.stop_inside("mutate", query=ADD_DEE, branch=branch, stop={"check": number})
    second.ask("open", uri=root.uri)

    first.resume()
    told = first.answer()

    assert ("error" in told) == (number > 1)
    assert second.ask("mutate", query=ADD_EVE, branch=branch).get("commit")
    second.ask("close")
    check_whole(root, branch, is_visible=True if number == 1 else None)


@pytest.mark.case("engine", 382)
def test_an_index_that_lands_behind_a_fence_is_published_by_the_next_write(root: GraphRoot, two: Two) -> None:
    make(root, None, is_first=False)
    first, second = two
    first.ask("open", uri=root.uri)
    first.stop_inside("index", stop={"check": 2})  # in front of the first table
    second.ask("open", uri=root.uri)

    first.resume()
    told = first.answer()

    assert told["error"] == "ExpectedVersionMismatch"
    assert second.ask("mutate", query=ADD_EVE).get("commit")
    second.ask("close")
    check_whole(root, None, is_visible=False)
    with omnigraph.open(root.uri, mode="ro") as graph:
        assert MAINTENANCE_ACTOR in {commit.actor_id for commit in graph.commits()}


@pytest.mark.parametrize(
    "point",
    [
        "branch_merge.after_append_pre_upsert",
        "branch_merge.post_phase_b_pre_confirm",
        "branch_merge.post_phase_b_pre_manifest_commit",
    ],
)
def test_a_merge_that_wakes_brings_nothing_back(root: GraphRoot, two: Two, point: str) -> None:
    make(root, "side", is_first=False)
    first, second = two
    first.ask("open", uri=root.uri)
    first.ask("mutate", query='query q() { update Person set { age: 7 } where name = "ann" }', branch="side")
    first.stop_inside("merge", source="side", into="main", stop={"point": point})
    second.ask("open", uri=root.uri)

    first.resume()
    told = first.answer()

    assert told["error"] in {"WriterEnded", "RecoveryRequired"}
    assert open_adapter(root, Durability.FULL).list_dir(RECOVERY_DIR) == []
    assert second.ask("mutate", query=ADD_EVE).get("commit")
    assert "error" not in second.ask("merge", source="side", into="main")
    second.ask("close")
    check_whole(root, None, is_visible=False)
    with omnigraph.open(root.uri, mode="ro") as graph:
        assert {"own", "eve"} <= people(graph, None)
        assert graph.entity_at("Person", "ann")["age"] == 7
        assert len(graph.recoveries()) == 1


LOOKED = {"point": "branch_delete.post_look_pre_control"}


@pytest.mark.case("engine", 421)
@pytest.mark.parametrize(
    ("do", "stop"),
    [
        pytest.param("merge", LOOKED, id="merge, behind the look"),
        pytest.param("delete_branch", LOOKED, id="delete, behind the look"),
        pytest.param("delete_branch", {"check": 2}, id="delete, behind the last look at itself"),
    ],
)
def test_a_writer_that_wakes_deletes_no_branch_that_others_have_written(
    root: GraphRoot, two: Two, do: str, stop: dict[str, object]
) -> None:
    make(root, "side", is_first=False)
    first, second = two
    first.ask("open", uri=root.uri)
    first.stop_inside(do, branch="side", source="side", into="main", delete=True, stop=stop)
    second.ask("open", uri=root.uri)
    assert second.ask("mutate", query=ADD_EVE, branch="side").get("commit")

    first.resume()
    told = first.answer()

    assert "error" in told or told["deleted"] is False
    assert second.ask("mutate", query=ADD_DEE, branch="side").get("commit")
    second.ask("close")
    with omnigraph.open(root.uri, mode="ro") as graph:
        assert graph.branches() == ["main", "side"]
        assert {"own", "eve", "dee"} <= people(graph, "side")


@pytest.mark.case("engine", 468)
@pytest.mark.parametrize("is_killed", [True, False])
def test_a_deletion_that_has_begun_is_decided_by_whoever_writes_next(
    root: GraphRoot, two: Two, endpoint: str, *, is_killed: bool
) -> None:
    """Stopped or killed between the mark that the branch is ending and its fence."""
    make(root, "side", is_first=False)
    _, second = two
    second.ask("open", uri=root.uri)
    with Host(settings_of(endpoint)) as deleter:
        deleter.ask("open", uri=root.uri)
        point = {"point": "branch_delete.post_ending_pre_fence"}
        deleter.stop_inside("delete_branch", branch="side", stop=point)
        with omnigraph.open(root.uri, mode="ro") as graph:
            assert graph.branches() == ["main", "side"]
        if is_killed:
            deleter.kill()

        assert second.ask("mutate", query=ADD_EVE, branch="side")["error"] == "BranchNotFound"

        assert "error" not in second.ask("create_branch", branch="side")
        assert second.ask("mutate", query=ADD_EVE, branch="side").get("commit")
        if not is_killed:
            deleter.resume()
            assert deleter.answer() == {}
    assert second.ask("mutate", query=ADD_DEE, branch="side").get("commit")
    second.ask("close")
    with omnigraph.open(root.uri, mode="ro") as graph:
        assert {"eve", "dee"} <= people(graph, "side")


@pytest.mark.case("engine", 468)
def test_a_publish_prepared_before_a_deletion_is_not_acknowledged_behind_it(
    root: GraphRoot, two: Two
) -> None:
    make(root, "side", is_first=False)
    first, second = two
    first.ask("open", uri=root.uri)
    second.ask("open", uri=root.uri)
    first.stop_inside("mutate", query=ADD_DEE, branch="side", stop={"point": "publish.before_update"})

    assert "error" not in second.ask("delete_branch", branch="side")
    first.resume()

    assert "error" in first.answer()
    second.ask("close")
    with omnigraph.open(root.uri, mode="ro") as graph:
        assert graph.branches() == ["main"]


@pytest.mark.case("engine", 851)
@pytest.mark.parametrize("point", ["write.post_finalize_pre_publisher", "publish.before_update"])
def test_a_publish_that_does_not_look_first_is_not_acknowledged_on_a_deleted_branch(
    root: GraphRoot, two: Two, point: str
) -> None:
    """Its handle has published on the branch before, and builds on that without another look."""
    make(root, "side", is_first=False)
    first, second = two
    first.ask("open", uri=root.uri)
    assert first.ask("mutate", query=ADD_EVE, branch="side").get("commit")
    second.ask("open", uri=root.uri)
    first.stop_inside("mutate", query=ADD_DEE, branch="side", stop={"point": point})

    assert "error" not in second.ask("delete_branch", branch="side")
    assert "error" not in second.ask("create_branch", branch="side")
    first.resume()

    assert "error" in first.answer()
    assert first.ask("mutate", query=ADD_EVE, branch="side").get("commit")  # on the new one
    first.ask("close")
    second.ask("close")
    with omnigraph.open(root.uri) as graph:
        assert graph.branches() == ["main", "side"]
        assert people(graph, "side") == {*people(graph, None), "eve"}
    assert open_adapter(root, Durability.FULL).list_dir(RECOVERY_DIR) == []


@pytest.mark.case("engine", 851)
def test_a_publish_that_does_not_look_first_decides_that_an_ending_branch_goes_on(
    root: GraphRoot, two: Two
) -> None:
    make(root, "side", is_first=False)
    first, second = two
    first.ask("open", uri=root.uri)
    assert first.ask("mutate", query=ADD_EVE, branch="side").get("commit")
    second.ask("open", uri=root.uri)
    first.stop_inside("mutate", query=ADD_DEE, branch="side", stop={"point": "publish.before_update"})
    second.stop_inside("delete_branch", branch="side", stop={"point": "branch_delete.post_ending_pre_fence"})

    first.resume()
    assert first.answer().get("commit")
    second.resume()
    assert second.answer()["error"] == "BranchInUse"

    with omnigraph.open(root.uri, mode="ro") as graph:
        assert {"eve", "dee"} <= people(graph, "side")


@pytest.mark.case("engine", 421)
@pytest.mark.case("engine", 469)
def test_a_branch_that_a_writer_has_ended_is_written_by_nobody(root: GraphRoot, two: Two) -> None:
    """Stopped between the end of the branch and the removal of what says so."""
    make(root, "side", is_first=False)
    first, second = two
    first.ask("open", uri=root.uri)
    first.stop_inside("delete_branch", branch="side", stop={"point": "branch_delete.post_control_pre_refs"})
    second.ask("open", uri=root.uri)

    assert second.ask("mutate", query=ADD_EVE, branch="side")["error"] == "BranchNotFound"
    with omnigraph.open(root.uri, mode="ro") as graph:
        assert graph.branches() == ["main"]
    assert "error" not in second.ask("create_branch", branch="side")
    assert second.ask("mutate", query=ADD_EVE, branch="side").get("commit")
    first.resume()
    first.answer()

    assert second.ask("mutate", query=ADD_DEE, branch="side").get("commit")
    second.ask("close")
    with omnigraph.open(root.uri, mode="ro") as graph:
        assert graph.branches() == ["main", "side"]
        assert {"eve", "dee"} <= people(graph, "side")


@pytest.mark.case("engine", 467)
@pytest.mark.parametrize(
    "point",
    [
        "recovery.before_claim",
        "recovery.before_fence",
        "recovery.post_plan_pre_undo",
        "recovery.post_table_undo_pre_publish",
        "recovery.post_rollback_publish_pre_audit",
        "recovery.post_audit_pre_delete",
    ],
)
def test_a_healer_that_wakes_after_another_one_does_no_harm(root: GraphRoot, two: Two, point: str) -> None:
    make(root, None, is_first=False)
    first, second = two
    with omnigraph.open(root.uri) as dead:
        with failpoint("write.pre_table_commit_at_once", "raise:once"), pytest.raises(RecoveryRequired):
            dead.mutate(ADD_DEE)
        first.stop_inside("open", uri=root.uri, stop={"point": point})
    second.ask("open", uri=root.uri)
    assert second.ask("mutate", query=ADD_EVE).get("commit")

    first.resume()
    told = first.answer()

    assert "writer" in told or told["error"] in {"WriterEnded", "RecoveryRequired"}, told
    assert second.ask("mutate", query=ADD_DEE).get("commit")
    second.ask("close")
    check_whole(root, None, is_visible=True)
    with omnigraph.open(root.uri, mode="ro") as graph:
        assert len(graph.recoveries()) == 1


@pytest.mark.case("engine", 466)
def test_a_healer_fences_anew_for_each_write_that_it_takes_over(root: GraphRoot, endpoint: str) -> None:
    make(root, None, is_first=False)
    settings = settings_of(endpoint)

    def recover(healer: Graph, number: int) -> None:
        while len(healer.recoveries()) < number:
            healer.refresh()

    with (
        omnigraph.open(root.uri) as healer,
        Host(settings, name="alpha") as first,
        Host(settings, name="beta") as second,
    ):
        first.ask("open", uri=root.uri)
        point = {"point": "write.post_finalize_pre_publisher"}
        first.stop_inside("mutate", query=ADD_EVE, stop=point)
        recover(healer, 1)  # forward: what is published now is a fence of this healer
        second.ask("open", uri=root.uri)
        alone = 'query add() { insert Person { name: "dee" } }'  # one table: no look follows the one below
        second.stop_inside("mutate", query=alone, stop={"check": 2})  # in front of its table
        recover(healer, 2)
        second.resume()

        assert second.answer()["error"] in {"ExpectedVersionMismatch", "WriterEnded"}
        assert "dee" not in people(healer, None)
        check_heads(healer, None)
        healer.mutate(ADD_DEE)
    check_whole(root, None, is_visible=True)
