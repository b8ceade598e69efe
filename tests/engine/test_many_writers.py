"""Processes, handles and threads that write one table at once: every write lands, once."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.engine import assert_settled, chain, ids, new_graph, reopen
from tests.support.forked import Forked

PROCESSES, HANDLES, THREADS, EACH = 3, 2, 3, 4

WRITERS = """
import sys
from concurrent.futures import ThreadPoolExecutor
import omnigraph as og
ADD = "query q($n: String) { insert Person { name: $n } }"
root, process, handles, threads, each = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
opened = [og.open(root) for _ in range(handles)]
print("open", flush=True)
sys.stdin.readline()
def write(place):
    handle, thread = divmod(place, threads)
    for number in range(each):
        name = f"p{process}h{handle}t{thread}n{number}"
        result = opened[handle].mutate(ADD, params={"n": name})
        assert result.affected_nodes == 1 and result.commit is not None
with ThreadPoolExecutor(handles * threads) as pool:
    list(pool.map(write, range(handles * threads)))
print("done", flush=True)
"""


@pytest.mark.slow
@pytest.mark.case("engine", 709)
def test_processes_and_threads_of_one_table_all_land(tmp_path: Path) -> None:
    graph = new_graph(tmp_path / "graph")
    sizes: Sequence[str] = [str(size) for size in (HANDLES, THREADS, EACH)]

    with ExitStack() as held:
        processes = [
            held.enter_context(Forked(WRITERS, graph.uri, str(number), *sizes)) for number in range(PROCESSES)
        ]
        for process in processes:
            assert process.read_line() == "open"
        for process in processes:
            process.write_line()
        for process in processes:
            assert process.read_line() == "done"
            assert process.wait() == 0

    names = [
        f"p{process}h{handle}t{thread}n{number}"
        for process in range(PROCESSES)
        for handle in range(HANDLES)
        for thread in range(THREADS)
        for number in range(EACH)
    ]
    with reopen(graph) as after:
        assert ids(after, "Person") == sorted(names)
        assert len({commit.graph_commit_id for commit in chain(after)}) == len(chain(after))
        assert_settled(after)
