"""When a write in an object store lists the sidecars, and what it settles where it does not."""

from collections.abc import Callable
from typing import Literal

import pytest

from omnigraph.commit.sidecar import RECOVERY_DIR
from omnigraph.core.clock import boot_clock
from omnigraph.core.errors import RecoveryRequired
from omnigraph.core.failpoint import failpoint
from omnigraph.graph.graph import Graph
from omnigraph.graph.opening import open as open_graph
from omnigraph.storage.control.lease import LEASE_LIFETIME
from tests.support.proxy import StoreProxy, asked
from tests.support.seam import patched
from tests.support.store_people import INSERT, SCHEMA, insert, people, persons

pytestmark = pytest.mark.slow  # starts a server


def sweeps(proxy: StoreProxy, graph: Graph, handle: str) -> int:
    """Return how often an insert lists the sidecars."""
    return listed(proxy, lambda: insert(graph, handle))


def listed(proxy: StoreProxy, work: Callable[[], object]) -> int:
    """Return how often a piece of work lists the sidecars."""
    return sum(one.kind == "LIST" and RECOVERY_DIR in one.key for one in asked(proxy, work))


@pytest.mark.case("engine", 472)
def test_sidecars_are_listed_only_where_there_may_be_any(
    uri: str, proxy: StoreProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pass_time(seconds: float) -> None:
        later = boot_clock() + seconds
        patched(monkeypatch, "omnigraph.commit.recovery.sweep.boot_clock", lambda: later)

    with open_graph(uri) as graph:
        assert sweeps(proxy, graph, "bob") == 0
        pass_time(LEASE_LIFETIME / 3 + 1)
        assert sweeps(proxy, graph, "cid") == 1
        assert sweeps(proxy, graph, "dee") == 0
    with open_graph(uri, writers="one") as graph:
        pass_time(LEASE_LIFETIME * 3)
        assert sweeps(proxy, graph, "eve") == 0


@pytest.mark.case("engine", 852)
@pytest.mark.parametrize("writers", ["many", "one"])
def test_other_writes_list_the_sidecars_no_more_often(
    uri: str, proxy: StoreProxy, monkeypatch: pytest.MonkeyPatch, writers: Literal["many", "one"]
) -> None:
    with open_graph(uri, writers=writers) as graph:
        writes: list[Callable[[], object]] = [
            lambda: graph.load(people("bob"), "append"),
            lambda: graph.create_branch("side"),
            lambda: graph.load(people("cid"), "append", branch="side"),
            lambda: graph.merge("side"),
            lambda: graph.delete_branch("side"),
        ]
        assert [listed(proxy, write) for write in writes] == [0] * len(writes)
        wider = SCHEMA.replace("age: I64?", "age: I64?  height: I64?")
        found = listed(proxy, lambda: graph.apply_schema(wider))
        assert found == (1 if writers == "many" else 0)
        later = boot_clock() + LEASE_LIFETIME / 3 + 1
        patched(monkeypatch, "omnigraph.commit.recovery.sweep.boot_clock", lambda: later)
        found = listed(proxy, lambda: graph.load(people("dee"), "append"))
        assert found == (1 if writers == "many" else 0)


@pytest.mark.case("engine", 852)
def test_a_load_and_a_merge_settle_what_another_process_has_left_on_their_table(uri: str) -> None:
    with open_graph(uri) as graph, open_graph(uri) as other:
        graph.create_branch("side")
        graph.mutate(INSERT, params={"h": "sid"}, branch="side")
        writes: list[Callable[[], object]] = [
            lambda: graph.load(people("bob"), "append"),
            lambda: graph.merge("side"),
        ]
        for number, write in enumerate(writes):
            with (
                failpoint("write.post_finalize_pre_publisher", "raise:once"),
                pytest.raises(RecoveryRequired),
            ):
                insert(other, f"left{number}")

            write()

            assert len(graph.recoveries()) == number + 1
        assert persons(graph) == 5


@pytest.mark.case("engine", 472)
@pytest.mark.parametrize("writers", ["many", "one"])
def test_what_a_handle_has_left_is_settled_by_its_next_mutation(
    uri: str, writers: Literal["many", "one"]
) -> None:
    with open_graph(uri, writers=writers) as graph:
        with (
            failpoint("write.post_finalize_pre_publisher", "raise:once"),
            pytest.raises(RecoveryRequired),
        ):
            insert(graph, "bob")
        graph.mutate('query m() { insert Filler { name: "other table" } }')

        assert persons(graph) == 2
        assert len(graph.recoveries()) == 1


@pytest.mark.case("engine", 472)
def test_a_mutation_settles_what_another_process_has_left_on_its_table(uri: str, proxy: StoreProxy) -> None:
    with open_graph(uri) as graph:
        insert(graph, "bob")
        with (
            open_graph(uri) as other,
            failpoint("write.post_finalize_pre_publisher", "raise:once"),
            pytest.raises(RecoveryRequired),
        ):
            insert(other, "left")
        graph.mutate('query m() { insert Filler { name: "other table" } }')
        assert graph.recoveries() == []  # the last sweep is young, and nothing is in the way

        insert(graph, "cid")

        assert persons(graph) == 4
        assert len(graph.recoveries()) == 1
