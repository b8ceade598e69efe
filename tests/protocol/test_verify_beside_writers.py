"""Deep verification beside a process that writes, merges, deletes branches and folds: no false alarm."""

import threading
from pathlib import Path

import pytest

from omnigraph.operations.verify.report import VerifyReport
from omnigraph.operations.verify.verify import verify_place
from tests.support.forked import Forked

ROUNDS = 10
WRITING = """
import sys
import omnigraph
from omnigraph.commit import publish
from omnigraph.operations import upkeep

publish.FRAGMENTS_MAX = upkeep.UPKEEP_INTERVAL = 4
graph = omnigraph.open(sys.argv[1])
insert = "query m($n: String) { insert Person { name: $n, age: 1 } }"
link = 'query m($n: String) { insert Knows { from: $n, to: "ann" } }'
drop = "query m($n: String) { delete Person where name = $n }"
for number in range(int(sys.argv[2])):
    name = f"p{number}"
    graph.create_branch("june")
    graph.mutate(insert, params={"n": name}, branch="june")
    graph.mutate(link, params={"n": name}, branch="june")
    graph.merge("june", delete_branch=True)
    if number % 2:
        graph.mutate(drop, params={"n": name})
sys.stdout.write("done\\n")
sys.stdout.flush()
"""


@pytest.mark.case("engine", 517)
def test_nothing_is_wrong_while_another_process_writes(root: Path) -> None:
    reports: list[VerifyReport] = []
    ended = threading.Event()

    def verify() -> None:
        while not ended.is_set():
            reports.append(verify_place(str(root), deep=len(reports) % 2 == 0))

    verifying = threading.Thread(target=verify)
    with Forked(WRITING, root, ROUNDS) as script:
        verifying.start()
        try:
            assert script.read_line() == "done"
        finally:
            ended.set()
            verifying.join()

    assert len(reports) > 1
    assert [finding for report in reports for finding in report.findings] == []
    assert verify_place(str(root), deep=True).is_whole
