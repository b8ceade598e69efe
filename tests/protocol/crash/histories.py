"""What concurrent writers reported, against what the graph's own history says.

Every write has a name, and its commit has that name as its actor. The chain of commits therefore tells which
writes landed and in which order; replayed on the model in that order they must give the contents.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from omnigraph.commit.recovery.kinds import RecoveryKind
from omnigraph.graph.graph import Graph
from omnigraph.history.commits import GraphCommit
from tests.models.histories.contents import Contents, difference
from tests.models.histories.operations import Operation, apply
from tests.models.histories.reading import check_whole, read_contents
from tests.protocol.crash.writer import Acknowledged, Failed, Message, Request, Started, Touched

Fate = Literal["open", "acknowledged", "refused", "unfinished", "killed"]

# Raised before any effect, or for effects that recovery undoes; whatever else a writer says is a failure.
EXPECTED_ERRORS = frozenset(
    {"ExpectedVersionMismatch", "ReadSetChanged", "ValidationError", "KeyConflict", "CommitConflict"}
)


@dataclass(slots=True)
class Write:
    """One write and what became of it."""

    operation: Operation
    fate: Fate = "open"
    commit_id: str | None = None


@dataclass(slots=True)
class Reports:
    """Everything that the writers of a run were asked and said."""

    writes: dict[str, Write] = field(default_factory=dict)
    errors: Counter[str] = field(default_factory=Counter)
    texts: dict[str, str] = field(default_factory=dict)  # the last message of each error
    kills: int = 0

    def asked(self, request: Request) -> None:
        """Note a write that begins."""
        self.writes[request.name] = Write(request.operation)

    def said(self, message: Message) -> None:
        """Note what a writer says of it."""
        match message:
            case Acknowledged(name, commit_id):
                self.writes[name].fate = "acknowledged"
                self.writes[name].commit_id = commit_id
            case Failed(name, error, text):
                self.errors[error] += 1
                self.texts[error] = f"{name}: {text}"
                is_open_end = error == "RecoveryRequired"
                assert is_open_end or error in EXPECTED_ERRORS, f"{name} failed: {error}: {text}"
                self.writes[name].fate = "unfinished" if is_open_end else "refused"
            case Touched(what):
                raise AssertionError(what)
            case Started():
                pass
            case _:
                raise AssertionError(f"unexpected: {message}")

    def count(self, fate: Fate) -> int:
        """Return how many writes had a fate."""
        return sum(write.fate == fate for write in self.writes.values())


def check_history(graph: Graph, reports: Reports) -> dict[str, int]:
    """Check a run against the graph that it left, which was just opened; return counts for people."""
    check_whole(graph)
    records = graph.recoveries()
    assert len({record.operation_id for record in records}) == len(records)
    forward = {
        record.graph_commit_id: record.recovery_for_actor
        for record in records
        if record.recovery_kind is RecoveryKind.ROLLED_FORWARD and record.recovery_for_actor is not None
    }
    commits = list(reversed(graph.commits()))
    own = {name: commit.graph_commit_id for commit in commits for name in _writers(commit)}
    contents = Contents()
    seen: set[str] = set()
    for commit in commits:
        names = _writers(commit)
        if names == ["omnigraph:recovery"]:
            names = [forward.get(commit.graph_commit_id)]
            if names[0] in own:
                continue  # the writer had published; recovery finished the books
        for name in names:
            if name is None or name not in reports.writes:
                continue
            assert name not in seen, f"{name} is visible twice"
            seen.add(name)
            contents = apply(contents, reports.writes[name].operation)
    found = read_contents(graph)
    assert difference(found, contents) == ""
    for name, write in reports.writes.items():
        if write.fate == "acknowledged":
            assert own.get(name) == write.commit_id, f"{name} was acknowledged and is not there"
        elif write.fate == "refused":
            assert name not in seen, f"{name} was refused and is visible"
    _check_recovered(reports, {record.recovery_for_actor for record in records} - {None})
    kinds = Counter(record.recovery_kind.value for record in records)
    return {"commits": len(commits), "visible": len(seen), "recoveries": len(records), **kinds}


def _writers(commit: GraphCommit) -> list[str | None]:
    """Return whose writes a commit has, in their order: several if they were committed together."""
    return [item.actor_id for item in commit.operations] or [commit.actor_id]


def _check_recovered(reports: Reports, recovered: "set[str | None]") -> None:
    """Recovery takes up only what a writer gave up, or what nobody finished because its writer was killed."""
    for name in recovered:
        assert name is not None
        assert reports.writes[name].fate != "acknowledged", f"{name} was recovered while its writer lived"
