"""Random programs against the dictionary model: the contents are equal after each step."""

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import omnigraph
from omnigraph.core.errors import OmnigraphError, ValidationError
from omnigraph.core.failpoint import InjectedFault, failpoint
from tests.models.histories.contents import SCHEMA, Contents, Refused, difference
from tests.models.histories.operations import Operation, PutKnows, apply, perform
from tests.models.histories.programs import Program
from tests.models.histories.reading import check_whole, read_contents

# Where a write may be cut off between its first durable effect and its last; before the publish the next
# pass decides, after it the write stands.
CUTS = [
    "write.post_gate_pre_sidecar",
    "lock.post_flock_pre_sidecar",
    "write.post_sidecar_pre_commit",
    "write.post_table_commit",
    "durability.pre_table_sync",
    "write.post_finalize_pre_publisher",
    "publish.before_update",
    "durability.pre_manifest_sync",
    "write.post_publish_pre_sidecar_delete",
]


class Writes(RuleBasedStateMachine):
    """Mutations and loads on one graph."""

    durability = "process"

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="omnigraph-model-"))
        self.contents = Contents()
        self.graph = omnigraph.init(self.folder / "graph", SCHEMA, durability=self.durability)

    def teardown(self) -> None:
        self.graph.close()
        shutil.rmtree(self.folder)

    @initialize(seed=st.integers(0, 1 << 32))
    def start(self, seed: int) -> None:
        self.program = Program(seed)

    @rule(count=st.integers(1, 4))
    def write(self, count: int) -> None:
        for _ in range(count):
            operation = self.program.next(self.contents)
            commit_id = perform(self.graph, operation)
            after = apply(self.contents, operation)
            assert commit_id is not None or after == self.contents
            self.contents = after
            self.compare()

    @rule()
    def load(self) -> None:
        operation = self.program.load(self.contents)
        perform(self.graph, operation)
        self.contents = apply(self.contents, operation)

    @rule()
    def refused(self) -> None:
        operation = PutKnows("dangling", ("nobody", "nobody"))
        with pytest.raises(Refused):
            apply(self.contents, operation)
        with pytest.raises(ValidationError):
            perform(self.graph, operation)

    @rule()
    def reopen(self) -> None:
        self.graph.close()
        self.graph = omnigraph.open(self.folder / "graph", durability=self.durability)

    @invariant()
    def compare(self) -> None:
        assert difference(read_contents(self.graph), self.contents) == ""
        check_whole(self.graph)


class WritesWithCuts(Writes):
    """The same, with writes cut off at failpoints, and a reopen after each."""

    durability = "full"

    def __init__(self) -> None:
        super().__init__()
        self.recoveries = 0

    @rule(place=st.sampled_from(CUTS), skipped=st.integers(0, 1))
    def cut(self, place: str, skipped: int) -> None:
        operation: Operation = self.program.next(self.contents)
        before, after = self.contents, apply(self.contents, operation)
        allowed = [before, after]
        with failpoint(place, f"skip:{skipped},raise:once"):
            try:
                perform(self.graph, operation)
                allowed = [after]
            except (OmnigraphError, InjectedFault):
                pass
        pending = {path.stem for path in (self.folder / "graph" / "__recovery").glob("*.json")}
        self.reopen()
        found = read_contents(self.graph)
        assert found in allowed, difference(found, allowed[-1])
        self.contents = found
        recorded = [record.operation_id for record in self.graph.recoveries()]
        assert len(set(recorded)) == len(recorded), "a recovery twice in the audit"
        assert pending <= set(recorded)
        assert len(recorded) == self.recoveries + len(pending)
        self.recoveries = len(recorded)


TestWrites = Writes.TestCase
TestWrites.settings = settings(max_examples=6, stateful_step_count=20)

TestWritesWithCuts = WritesWithCuts.TestCase
TestWritesWithCuts.settings = settings(max_examples=6, stateful_step_count=20)
