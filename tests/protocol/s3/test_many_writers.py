"""Several processes write one graph on an object store at once."""

import itertools
import json
from collections.abc import Iterator

import pytest

import omnigraph
from omnigraph.commit.sidecar import RECOVERY_DIR
from omnigraph.core.errors import ExpectedVersionMismatch
from omnigraph.core.failpoint import failpoint
from omnigraph.graph.graph import Graph
from omnigraph.storage.control.durability import Durability
from omnigraph.storage.control.object_store import open_adapter
from omnigraph.storage.control.uri import GraphRoot
from tests.support.hosts import Host
from tests.support.s3 import place, settings_of
from tests.support.seam import internals

pytestmark = pytest.mark.slow

TABLES = "".join(f"node T{number} {{ k: String @key }}\n" for number in range(3))
Two = tuple[Host, Host]


@pytest.fixture(scope="module")
def two(endpoint: str) -> Iterator[Two]:
    settings = settings_of(endpoint)
    with (
        Host(settings, name="alpha", lifetime_s=30.0) as first,
        Host(settings, name="beta", lifetime_s=30.0) as second,
    ):
        yield first, second


def three_tables(uri: str) -> None:
    """Make a graph of three tables, one row in each."""
    with omnigraph.init(uri, TABLES) as graph:
        rows = [{"type": f"T{number}", "data": {"k": "first"}} for number in range(3)]
        graph.load("\n".join(map(json.dumps, rows)).encode(), "append", index=False)


@pytest.fixture
def opened(root: GraphRoot, two: Two) -> Iterator[GraphRoot]:
    """Let both hosts open a graph of three tables, one row in each."""
    place(three_tables, root)
    for host in two:
        assert "writer" in host.ask("open", uri=root.uri)
    yield root
    for host in two:
        host.resume()  # a test that failed may have left it stopped
        host.ask("close")


def insert(table: int, key: str) -> str:
    return f'query add() {{ insert T{table} {{ k: "{key}" }} }}'


def check_chain(graph: Graph, commits: int) -> None:
    """Make sure that the history is one chain of so many commits, and that no table is ahead of it."""
    found = graph.commits()
    assert len(found) == commits
    parents = [commit.parent_commit_id for commit in found[:-1]]
    assert parents == [commit.graph_commit_id for commit in found[1:]]
    parts = internals(graph).parts
    for entry in graph.snapshot().entries.values():
        assert parts.store.latest_version(parts.address(entry)) == entry.version, entry.table_key


@pytest.mark.case("engine", 465)
def test_processes_that_write_different_tables_at_once_all_succeed(opened: GraphRoot, two: Two) -> None:
    for key in range(10):
        for table, host in enumerate(two):
            host.tell("mutate", query=insert(table, f"k{key}"))
        for host in two:
            assert "commit" in host.answer()

    with omnigraph.open(opened.uri, mode="ro") as graph:
        assert [graph.table(f"T{table}").num_rows for table in range(3)] == [11, 11, 1]
        check_chain(graph, 22)
        assert graph.recoveries() == []
    assert open_adapter(opened, Durability.FULL).list_dir(RECOVERY_DIR) == []


@pytest.mark.case("engine", 465)
def test_of_two_processes_on_one_table_the_later_one_is_told_and_leaves_nothing(
    opened: GraphRoot, two: Two
) -> None:
    first, second = two
    point = "write.post_sidecar_pre_commit"
    first.stop_inside("mutate", query=insert(0, "a"), stop={"point": point})

    assert "commit" in second.ask("mutate", query=insert(0, "b"))
    first.resume()
    told = first.answer()

    assert told["error"] == "ExpectedVersionMismatch"
    assert open_adapter(opened, Durability.FULL).list_dir(RECOVERY_DIR) == []
    assert "commit" in first.ask("mutate", query=insert(0, "a"))
    with omnigraph.open(opened.uri, mode="ro") as graph:
        assert set(graph.table("T0")["k"].to_pylist()) == {"a", "b", "first"}
        check_chain(graph, 4)
        assert graph.recoveries() == []


@pytest.mark.case("engine", 465)
@pytest.mark.parametrize("is_first_write", [True, False])
def test_of_two_first_writes_of_a_branch_one_gets_through(
    opened: GraphRoot, two: Two, *, is_first_write: bool
) -> None:
    first, second = two
    assert first.ask("create_branch", branch="side") == {}
    if not is_first_write:
        assert "commit" in first.ask("mutate", query=insert(0, "own"), branch="side")
    point = "write.post_finalize_pre_publisher" if is_first_write else "write.post_sidecar_pre_commit"
    first.stop_inside("mutate", query=insert(0, "a"), branch="side", stop={"point": point})

    assert "commit" in second.ask("mutate", query=insert(0, "b"), branch="side")
    first.resume()

    assert first.answer()["error"] == "ExpectedVersionMismatch"
    assert open_adapter(opened, Durability.FULL).list_dir(RECOVERY_DIR) == []
    assert "commit" in first.ask("mutate", query=insert(0, "a"), branch="side")
    with omnigraph.open(opened.uri, mode="ro") as graph:
        assert {"a", "b", "first"} <= set(graph.table("T0", branch="side")["k"].to_pylist())
        parts, entry = internals(graph).parts, graph.snapshot("side").entry("node:T0")
        assert [ref.name for ref in parts.store.list_refs(parts.address(entry))] == [entry.pin.ref]


@pytest.mark.case("engine", 465)
def test_a_write_waits_for_the_index_build_of_another_process(opened: GraphRoot, two: Two) -> None:
    builder, _ = two
    looks = itertools.count(1)

    def resume_late() -> None:
        if next(looks) == 4:  # after the entry, the table, and the question who is in the way
            builder.resume()

    with omnigraph.open(opened.uri) as graph:
        point = {"point": "ensure_indices.post_phase_b_pre_manifest_commit"}
        builder.stop_inside("index", stop=point)
        with failpoint("recovery.sidecar_read", call=resume_late):
            graph.mutate(insert(0, "a"))

        assert builder.answer() == {"commit": True}
        assert graph.recoveries() == []
        check_chain(graph, 4)


@pytest.mark.case("engine", 466)
def test_what_a_live_writer_commits_while_a_dead_one_is_fenced_is_not_undone(
    opened: GraphRoot, two: Two
) -> None:
    live, rival = two
    with omnigraph.open(opened.uri) as healer:
        both = 'query add() { insert T0 { k: "dead" } insert T1 { k: "dead" } }'

        def come_first() -> None:
            assert "commit" in rival.ask("mutate", query=insert(1, "rival"))

        with (
            failpoint("write.post_gate_pre_sidecar", call=come_first),
            pytest.raises(ExpectedVersionMismatch),
        ):
            healer.mutate(both)  # T0 has moved, and goes back; T1 was refused
        begun: list[bool] = []

        def write_in_between() -> None:
            if begun:
                return
            begun.append(True)
            point = {"point": "write.post_finalize_pre_publisher"}
            live.stop_inside("mutate", query=insert(1, "live"), stop=point)

        with failpoint("recovery.before_fence", call=write_in_between):
            healer.refresh()
        live.resume()
        assert "commit" in live.answer()
        healer.refresh()

        assert set(healer.table("T1")["k"].to_pylist()) == {"first", "live", "rival"}
        assert len(healer.recoveries()) == 1
        check_chain(healer, 5)
        healer.mutate(both)
    assert open_adapter(opened, Durability.FULL).list_dir(RECOVERY_DIR) == []


@pytest.mark.case("engine", 448)
@pytest.mark.parametrize("moved", [(0,), (0, 1)], ids=["one-table", "both"])
def test_tables_that_are_committed_at_once_land_together_or_not_at_all(
    opened: GraphRoot, two: Two, moved: tuple[int, ...]
) -> None:
    rival, _ = two
    inserts = " ".join(f'insert T{table} {{ k: "rival" }}' for table in moved)
    both = 'query add() { insert T0 { k: "a" } insert T1 { k: "a" } }'
    with omnigraph.open(opened.uri) as graph:

        def come_first() -> None:
            assert "commit" in rival.ask("mutate", query=f"query add() {{ {inserts} }}")

        with (
            failpoint("write.post_gate_pre_sidecar", call=come_first),
            pytest.raises(ExpectedVersionMismatch) as caught,
        ):
            graph.mutate(both, retry=0)

        is_left = len(moved) == 1
        assert (caught.value.recovery_operation_id is not None) == is_left
        rows = [1 + (table in moved) for table in range(3)]
        assert [graph.table(f"T{table}").num_rows for table in range(3)] == rows
        graph.mutate(both)
        assert [graph.table(f"T{table}").num_rows for table in range(3)] == [rows[0] + 1, rows[1] + 1, 1]
        kinds = [record.recovery_kind.value for record in graph.recoveries()]
        assert kinds == (["RolledBack"] if is_left else [])
