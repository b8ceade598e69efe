"""Where two histories meet."""

import itertools
import random
from collections.abc import Iterable

import orjson
import pyarrow as pa
import pytest

from omnigraph.core.errors import InvariantViolation
from omnigraph.history.ancestry import Ancestor, Ancestry, HistoryUnknown, Meeting, MergedBase
from omnigraph.history.commits import MAINTENANCE_ACTOR
from omnigraph.history.identity import MAIN_BRANCH, BranchIdentity, branch_name
from omnigraph.history.lineage import MERGED_HISTORY, ChainedLog, Lineage
from omnigraph.history.manifest_rows import commit_row, metadata_members, rows_table
from omnigraph.history.state import ManifestState
from tests.support.seam import patched


class History:
    """Branches as their manifests show them, written commit by commit."""

    def __init__(self, *, is_recorded: bool = True) -> None:
        """Begin with main; `is_recorded` says whether merges record what they bring."""
        self.states: dict[str, ManifestState] = {"main": ManifestState(MAIN_BRANCH, 0)}
        self.parents: dict[str, tuple[str, ...]] = {}
        self.is_recorded = is_recorded
        self.commit("main", "r")

    def fork(self, name: str, source: str) -> None:
        """Make a branch."""
        state = self.states[source]
        self.states[name] = self._copied(BranchIdentity(name, f"{name}-ref"), state, state.version)

    def give_up(self, branch: str, to: ManifestState) -> None:
        """Let a branch show again, as a new version, what it showed in an older state."""
        state = self.states[branch]
        self.states[branch] = self._copied(state.branch, to, state.version + 1)

    def _copied(self, branch: BranchIdentity, state: ManifestState, version: int) -> ManifestState:
        rows = rows_table([commit_row(i, branch_name(b), m, at=v) for i, b, m, v in self._rows_of(state)])
        return ManifestState(branch, 0).with_rows(rows, version=version, fragments={})

    def commit(
        self, branch: str, commit_id: str, *, merged: str | None = None, is_upkeep: bool = False
    ) -> None:
        """Add a commit to a branch; `merged` is the branch whose head it merges."""
        state = self.states[branch]
        first = state.commits.head.graph_commit_id if state.commits.head else None
        second = None if merged is None else self.states[merged].head.graph_commit_id
        metadata: dict[str, object] = {
            "parent_commit_id": first,
            "merged_parent_commit_id": second,
            "actor_id": MAINTENANCE_ACTOR if is_upkeep else None,
            "created_at": state.version + 1,
        }
        if merged is not None and self.is_recorded:
            ancestry = Ancestry(self.states[merged], state)
            metadata[MERGED_HISTORY] = ancestry.record(str(second), self._ref_of)
        row = commit_row(commit_id, state.branch.name, metadata, at=state.version + 1)
        self.states[branch] = state.with_rows(rows_table([row]), version=state.version + 1, fragments={})
        self.parents[commit_id] = tuple(parent for parent in (first, second) if parent is not None)

    def _ref_of(self, name: str) -> str | None:
        return self.states[name].ref if name in self.states else None

    def delete(self, name: str) -> None:
        """Remove a branch with its rows."""
        del self.states[name]

    def meeting(self, one: str, other: str, others: Iterable[str] = ()) -> Meeting:
        """Return where two branches meet."""
        ancestry = Ancestry(self.states[one], self.states[other])
        return ancestry.where_chains_part() or ancestry.meeting(self.states[name] for name in others)

    def best(self, one: str, other: str, others: Iterable[str] = ()) -> list[str]:
        """Return the best common ancestors; both directions agree."""
        found, mirrored = self.meeting(one, other, others), self.meeting(other, one, others)
        assert sorted(leaves(found)) == sorted(leaves(mirrored))
        return sorted(leaves(found))

    def defined(self, one: str, other: str) -> list[str]:
        """Return the same by the definition."""
        common = self._behind(self._head(one)) & self._behind(self._head(other))
        return sorted(c for c in common if not any(c in self._behind(d) - {d} for d in common))

    def _head(self, branch: str) -> str:
        return self.states[branch].head.graph_commit_id

    def _behind(self, commit_id: str) -> set[str]:
        found, waiting = {commit_id}, [commit_id]
        while waiting:
            fresh = set(self.parents[waiting.pop()]) - found
            found |= fresh
            waiting += fresh
        return found

    def _rows_of(self, state: ManifestState) -> Iterable[tuple[str, str | None, dict[str, object], int]]:
        for row in state.commits.rows().to_pylist():
            yield row["object_id"], row["table_branch"], orjson.loads(row["metadata"]), row["table_version"]


def leaves(meeting: Meeting) -> list[str]:
    if isinstance(meeting, Ancestor):
        return [meeting.commit_id]
    return leaves(meeting.one) + leaves(meeting.other)


@pytest.fixture
def history() -> History:
    """Main and june, which parted at `r`."""
    history = History()
    history.fork("june", "main")
    return history


@pytest.mark.case("engine", 61)
def test_one_that_did_nothing_and_one_that_went_on(history: History) -> None:
    assert history.best("main", "june") == ["r"]
    history.commit("main", "m1")
    history.commit("main", "m2")

    assert history.best("main", "june") == ["r"]
    assert history.best("main", "main") == ["m2"]


@pytest.mark.case("engine", 61)
def test_two_branches_meet_where_they_parted(history: History) -> None:
    history.commit("main", "m1")
    history.fork("july", "main")
    history.commit("main", "m2")
    history.commit("july", "y1")
    history.commit("june", "j1")

    assert history.best("main", "july") == ["m1"]
    assert history.best("june", "july") == ["r"]


@pytest.mark.case("engine", 61)
def test_after_a_merge_the_merged_head_is_where_they_meet(history: History) -> None:
    history.commit("june", "j1")
    history.commit("main", "m1")
    history.commit("main", "merge", merged="june")

    assert history.best("main", "june") == ["j1"]
    history.commit("june", "j2")
    assert history.best("main", "june") == ["j1"]


@pytest.mark.case("engine", 61)
@pytest.mark.case("engine", 375)
def test_a_criss_cross_meets_in_two_commits_over_the_one_before(history: History) -> None:
    history.commit("main", "m1")
    history.commit("june", "j1")
    history.fork("main0", "main")
    history.commit("main", "m2", merged="june")
    history.commit("june", "j2", merged="main0")

    found = history.meeting("main", "june")

    assert isinstance(found, MergedBase)
    assert sorted(leaves(found)) == ["j1", "m1"]
    assert leaves(found.over) == ["r"]
    history.commit("june", "j3")
    history.commit("main", "m3", merged="june")
    assert history.best("main", "june") == ["j3"]


@pytest.mark.case("engine", 373)
@pytest.mark.parametrize("is_deleted", [False, True])
def test_two_branches_meet_in_a_third_one(history: History, is_deleted: bool) -> None:
    history.fork("fix", "main")
    history.commit("fix", "f1")
    history.commit("main", "m1", merged="fix")
    history.commit("fix", "f2")
    history.commit("june", "j1", merged="fix")
    if is_deleted:
        history.delete("fix")

    found = history.meeting("main", "june")

    assert isinstance(found, Ancestor)
    assert found.commit_id == "f1"
    assert found.chain is not None
    assert (found.chain.branch, found.chain.ref) == ("fix", "fix-ref")


def test_merges_without_a_record_are_placed_by_the_branch_that_has_the_commit() -> None:
    history = History(is_recorded=False)
    history.fork("june", "main")
    history.fork("inner", "main")
    history.fork("fix", "main")
    history.commit("inner", "i1")
    history.commit("fix", "f1", merged="inner")
    history.commit("main", "m1", merged="fix")
    history.commit("june", "j1", merged="inner")

    assert history.best("main", "june", ["inner", "fix"]) == ["i1"]
    assert history.best("main", "june", ["fix", "inner"]) == ["i1"]
    with pytest.raises(HistoryUnknown, match="f1, i1"):
        history.meeting("main", "june")
    with pytest.raises(HistoryUnknown, match="i1"):
        history.meeting("main", "june", ["fix"])


def test_a_record_keeps_what_is_not_known() -> None:
    history = History(is_recorded=False)
    history.fork("june", "main")
    history.fork("inner", "main")
    history.fork("fix", "main")
    history.commit("inner", "i1")
    history.commit("fix", "f1", merged="inner")
    history.delete("inner")
    history.is_recorded = True
    history.commit("june", "j1", merged="fix")
    history.commit("main", "m1")

    with pytest.raises(HistoryUnknown, match=r"^i1$"):
        history.meeting("main", "june")


def test_what_is_unknown_behind_the_meeting_does_not_matter() -> None:
    history = History(is_recorded=False)
    history.fork("fix", "main")
    history.commit("fix", "f1")
    history.commit("main", "m1", merged="fix")
    history.delete("fix")
    history.fork("june", "main")
    history.commit("june", "j1")
    history.is_recorded = True
    history.commit("main", "m2", merged="june")

    assert history.best("main", "june") == ["j1"]
    history.commit("june", "j2")
    assert history.best("main", "june") == ["j1"]


def test_what_one_record_knows_is_not_forgotten_for_another_that_does_not() -> None:
    history = History(is_recorded=False)
    for name in ("june", "july", "inner", "fix", "other"):
        history.fork(name, "main")
    history.commit("inner", "i1")
    history.commit("fix", "f1", merged="inner")
    history.is_recorded = True
    history.commit("june", "j1", merged="fix")  # has no place for `i1`
    history.commit("inner", "i2", merged="fix")  # has one
    history.commit("july", "k1", merged="inner")
    history.commit("other", "o1")
    for name, commit_id in (("june", "j2"), ("july", "k2")):
        history.commit(name, commit_id, merged="other")

    assert history.best("june", "july") == ["f1", "o1"]


def test_each_of_three_meetings_is_merged_over_what_it_shares_with_any_before() -> None:
    history = History()
    for name in ("a", "b", "c", "shared", "june"):
        history.fork(name, "main")
    history.commit("shared", "s1")
    history.commit("a", "a1", merged="shared")
    history.commit("b", "b1")
    history.commit("c", "c1", merged="shared")
    for branch in ("main", "june"):
        for number, merged in enumerate(("a", "b", "c")):
            history.commit(branch, f"{branch}{number}", merged=merged)

    meeting = history.meeting("main", "june")

    assert leaves(meeting) == ["a1", "b1", "c1"]
    assert isinstance(meeting, MergedBase)
    assert leaves(meeting.over) == ["s1"]


def test_what_is_unknown_behind_several_meetings_does() -> None:
    """Nobody can say whether one of them is behind another."""
    history = History(is_recorded=False)
    history.fork("fix", "main")
    history.commit("fix", "f1")
    history.commit("main", "m1", merged="fix")
    history.delete("fix")
    history.fork("june", "main")
    history.is_recorded = True
    history.commit("june", "j1")
    history.commit("main", "m2")
    history.fork("main0", "main")
    history.commit("main", "m3", merged="june")
    history.commit("june", "j2", merged="main0")

    with pytest.raises(HistoryUnknown, match="f1"):
        history.meeting("main", "june")


def test_histories_that_never_met_are_refused() -> None:
    one, other = History(), History()
    other.states["main"] = ManifestState(MAIN_BRANCH, 0)
    other.commit("main", "s")

    with pytest.raises(InvariantViolation, match="no common ancestor"):
        Ancestry(one.states["main"], other.states["main"]).meeting()


def test_two_commits_at_one_place_are_refused(history: History) -> None:
    """A name that was made again under a branch that had its first commits would look like one chain."""
    other = History()
    other.fork("june", "main")
    for each, commits in ((history, ("j1", "j2")), (other, ("j1", "x2"))):
        for commit_id in commits:
            each.commit("june", commit_id)
    other.commit("main", "m1", merged="june")

    with pytest.raises(InvariantViolation, match="j2 and x2 are at the same place"):
        Ancestry(history.states["june"], other.states["main"]).meeting()
    history.commit("june", "j3")
    with pytest.raises(InvariantViolation, match="different commits at one place"):
        Ancestry(history.states["june"], other.states["main"]).meeting()


def test_maintenance_counts_as_its_parent(history: History) -> None:
    history.commit("main", "a")
    history.commit("main", "u1", is_upkeep=True)
    history.commit("main", "u2", is_upkeep=True)
    history.commit("main", "b")

    both = Ancestry(history.states["main"], history.states["june"])

    assert [both.effective(commit) for commit in ("r", "a", "u1", "u2", "b")] == ["r", "a", "a", "a", "b"]
    assert both.effective("of another branch") == "of another branch"


@pytest.mark.case("engine", 376)
def test_old_history_is_not_decoded(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        commit_row(f"c{n:05d}", "main", {"parent_commit_id": f"c{n - 1:05d}", "created_at": n}, at=n)
        for n in range(1, 5_001)
    ]
    history.states["main"] = ManifestState(MAIN_BRANCH, 0).with_rows(
        rows_table(rows), version=5_000, fragments={}
    )
    history.states["june"] = ManifestState(BranchIdentity("june", "june-ref"), 0).with_rows(
        rows_table(rows), version=5_000, fragments={}
    )
    history.commit("june", "j1")
    history.commit("main", "m1", merged="june")
    history.commit("june", "j2")
    decoded: list[str] = []

    def counted(text: str) -> dict[str, object]:
        decoded.append(text)
        return metadata_members(text)

    patched(monkeypatch, "omnigraph.history.lineage.metadata_members", counted)

    assert history.best("main", "june") == ["j1"]
    assert len(decoded) == 2, "once in each direction"


def test_the_words_of_a_merge_in_a_message_are_no_merge(history: History) -> None:
    state = history.states["june"]
    metadata = {"parent_commit_id": "r", "created_at": 2, "message": "merged_parent_commit_id"}
    row = commit_row("j1", "june", metadata, at=2)
    log = ChainedLog(state.with_rows(rows_table([row]), version=2, fragments={}).commits)

    assert list(log.merges()) == []
    assert Lineage([log]).reach([log.head]).keys() == {"r", "j1"}


@pytest.mark.case("engine", 375)
@pytest.mark.parametrize("is_recorded", [True, False])
@pytest.mark.parametrize("seed", range(20))
def test_random_histories_meet_where_the_definition_says(seed: int, is_recorded: bool) -> None:
    """With records branches may be deleted; without them every branch is looked into."""
    chance = random.Random(seed)
    history = History(is_recorded=is_recorded)
    for number in range(chance.randint(5, 30 if is_recorded else 15)):
        name = chance.choice(sorted(history.states))
        what = chance.random()
        if what < 0.2:
            history.fork(f"b{number:02d}", name)
            history.commit(f"b{number:02d}", f"c{number:02d}")
        elif what < 0.5 and len(history.states) > 1:
            merged = chance.choice([other for other in sorted(history.states) if other != name])
            history.commit(name, f"c{number:02d}", merged=merged)
        elif what < 0.55 and name != "main" and is_recorded:
            history.delete(name)
        else:
            history.commit(name, f"c{number:02d}", is_upkeep=chance.random() < 0.2)

    for one, other in itertools.combinations(sorted(history.states), 2):
        assert history.best(one, other, sorted(history.states)) == history.defined(one, other)


# Commits that a branch gave up


@pytest.fixture
def given_up(history: History) -> History:
    """June merged m2 of main, which then gave m1 and m2 up and went on with m3."""
    kept = history.states["main"]
    history.commit("june", "j1")
    history.commit("main", "m1")
    history.commit("main", "m2")
    history.commit("june", "j2", merged="main")
    history.give_up("main", kept)
    return history


@pytest.mark.case("engine", 419)
def test_what_was_given_up_is_behind_whoever_merged_it_and_not_behind_the_branch(given_up: History) -> None:
    assert given_up.best("main", "june") == ["r"]
    given_up.commit("main", "m3")
    assert given_up.best("main", "june") == ["r"]
    given_up.commit("june", "j3")
    given_up.commit("main", "m4", merged="june")
    assert given_up.best("main", "june") == ["j3"]
    given_up.commit("main", "m5")
    given_up.commit("june", "j4", merged="main")
    assert given_up.best("main", "june") == ["m5"]


@pytest.mark.case("engine", 419)
def test_a_merge_that_was_given_up_is_none(history: History) -> None:
    kept = history.states["main"]
    history.commit("june", "j1")
    history.commit("main", "m1", merged="june")
    history.fork("may", "june")
    history.commit("may", "y1", merged="main")
    history.give_up("main", kept)
    history.commit("main", "m2")

    assert history.best("main", "june") == ["r"]
    assert history.best("main", "may") == ["r"]
    assert history.best("june", "may") == ["j1"]
    history.commit("main", "m3", merged="june")
    assert history.best("main", "june") == history.best("main", "may") == ["j1"]


@pytest.mark.case("engine", 419)
def test_two_that_merged_what_was_given_up_meet_in_it(given_up: History) -> None:
    given_up.fork("may", "main")
    given_up.commit("may", "y1")
    kept = given_up.states["main"]
    given_up.commit("main", "m3")
    given_up.commit("main", "m4")
    given_up.fork("main4", "main")
    given_up.commit("may", "y2", merged="main")
    given_up.commit("june", "j3", merged="main4")
    given_up.give_up("main", kept)
    given_up.commit("main", "m5")

    found = given_up.meeting("may", "june")

    assert isinstance(found, Ancestor)
    assert found.commit_id == "m4"
    assert given_up.best("main", "june") == given_up.best("main", "may") == ["r"]


@pytest.mark.case("engine", 419)
@pytest.mark.parametrize("has_gone_on", [False, True])
def test_a_branch_that_started_from_what_was_given_up(history: History, has_gone_on: bool) -> None:
    history.commit("main", "m1")
    kept = history.states["main"]
    history.commit("main", "m2")
    history.fork("may", "main")
    history.fork("july", "main")
    history.give_up("main", kept)
    history.commit("main", "m3")
    if has_gone_on:
        history.commit("may", "y1")
        history.commit("june", "j1", merged="may")

    assert history.best("main", "may") == ["m1"]
    assert history.best("may", "july") == ["m2"]
    history.commit("june", "j2", merged="july")
    assert history.best("main", "june") == ["m1"]


@pytest.mark.case("engine", 419)
def test_two_meet_in_a_third_that_gave_up_what_one_of_them_merged(history: History) -> None:
    """Neither shows a row of the third one, and no other branch is asked."""
    history.fork("may", "main")
    history.fork("fix", "main")
    history.commit("fix", "f1")
    kept = history.states["fix"]
    history.commit("fix", "f2")
    history.commit("june", "j1", merged="fix")
    history.give_up("fix", kept)
    history.commit("fix", "f3")
    history.commit("fix", "f4")
    history.commit("may", "y1", merged="fix")
    history.give_up("fix", history.states["fix"])  # a number without a commit, as when the manifest is folded
    history.commit("fix", "f5")
    history.commit("main", "m1", merged="fix")

    assert history.best("june", "may") == ["f1"]
    assert history.best("june", "main") == ["f1"]
    assert history.best("may", "main") == ["f4"]


@pytest.mark.case("engine", 419)
def test_what_was_given_up_twice_over_one_commit_are_two_stretches(given_up: History) -> None:
    """Versions alone would put m2 behind m3, which was made when m2 was gone."""
    given_up.fork("may", "main")
    kept = given_up.states["main"]
    given_up.commit("main", "m3")
    given_up.commit("may", "y1")
    given_up.commit("may", "y2", merged="main")
    given_up.give_up("main", kept)
    given_up.commit("main", "m4")

    assert given_up.best("june", "may") == ["r"]


@pytest.mark.case("engine", 419)
def test_what_comes_back_is_not_behind_what_was_made_without_it(history: History) -> None:
    kept = history.states["main"]
    history.commit("main", "m1")
    former = history.states["main"]
    history.give_up("main", kept)
    history.commit("main", "m2")
    history.commit("june", "j1")
    history.commit("june", "j2", merged="main")
    history.give_up("main", former)
    history.commit("main", "m3")

    assert history.best("main", "june") == ["r"]


@pytest.mark.parametrize("seed", range(20))
def test_random_histories_with_commits_given_up_meet_where_the_definition_says(seed: int) -> None:
    chance = random.Random(seed)
    history = History()
    past: dict[str, list[ManifestState]] = {"main": []}
    for number in range(chance.randint(10, 30)):
        name = chance.choice(sorted(history.states))
        what = chance.random()
        if what < 0.2 and len(history.states) < 4:
            history.fork(f"b{number:02d}", name)
            past[f"b{number:02d}"] = []
        elif what < 0.35 and past[name]:
            history.give_up(name, chance.choice(past[name]))
        elif what < 0.65 and len(history.states) > 1:
            merged = chance.choice([other for other in sorted(history.states) if other != name])
            history.commit(name, f"c{number:02d}", merged=merged)
        elif what > 0.95 and name != "main":
            history.delete(name)
            continue
        else:
            history.commit(name, f"c{number:02d}")
        past[name].append(history.states[name])

    for one, other in itertools.combinations(sorted(history.states), 2):
        assert history.best(one, other) == history.defined(one, other)


def meets_in_fix(history: History) -> bool:
    """Say whether the storage of `fix` is to stay when it goes."""
    fix = ChainedLog(history.states["fix"].commits, branch="fix")
    others = [state for name, state in history.states.items() if name != "fix"]
    lineage = Lineage(ChainedLog(state.commits, branch=state.branch.name) for state in others)
    return lineage.is_meeting_place(fix.own)


def test_two_stretches_of_one_branch_are_no_two_takers(history: History) -> None:
    history.fork("fix", "main")
    history.commit("fix", "f1")
    assert not meets_in_fix(history)
    history.commit("main", "m1", merged="fix")
    history.give_up("main", history.states["main"])
    history.commit("fix", "f2")
    history.commit("main", "m2", merged="fix")

    assert not meets_in_fix(history)
    history.commit("june", "j1", merged="fix")
    assert meets_in_fix(history)


def test_a_taker_that_was_given_up_is_one_for_whoever_merged_it(history: History) -> None:
    history.fork("fix", "main")
    history.commit("fix", "f1")
    kept = history.states["main"]
    history.commit("main", "m1", merged="fix")
    history.commit("june", "j1", merged="main")
    history.give_up("main", kept)
    assert not meets_in_fix(history)
    history.commit("main", "m2", merged="fix")

    assert meets_in_fix(history)
    assert history.best("main", "june") == ["f1"]


def test_what_a_branch_gave_up_and_kept_of_its_own_counts_as_its_own(history: History) -> None:
    history.fork("fix", "main")
    history.commit("fix", "f1")
    kept = history.states["fix"]
    history.commit("fix", "f2")
    history.commit("june", "j1", merged="fix")
    history.give_up("fix", kept)
    history.commit("fix", "f3")
    assert not meets_in_fix(history)
    history.commit("main", "m1", merged="fix")

    assert meets_in_fix(history)
    found = history.meeting("main", "june")
    assert isinstance(found, Ancestor)
    assert found.chain is not None
    assert (found.commit_id, found.chain.branch, found.chain.ref) == ("f1", "fix", "fix-ref")


def test_every_stretch_of_a_deleted_branch_can_be_read(history: History) -> None:
    """The record of a merge says where the chains of its source lie, not only the last of them."""
    history.fork("fix", "main")
    history.commit("fix", "f1")
    history.fork("may", "fix")
    history.commit("may", "y1")
    history.give_up("fix", history.states["fix"])
    history.commit("fix", "f2")
    history.commit("main", "m1", merged="fix")
    history.delete("fix")

    found = history.meeting("main", "may")

    assert isinstance(found, Ancestor)
    assert found.chain is not None
    assert (found.commit_id, found.chain.ref) == ("f1", "fix-ref")


def test_rows_come_back_as_a_table(history: History) -> None:
    history.commit("main", "a")
    log = history.states["main"].commits

    assert isinstance(log.rows(), pa.Table)
    assert (log.has("a"), log.has("b")) == (True, False)


@pytest.mark.case("engine", 374)
def test_a_merge_records_the_branch_that_it_read_whatever_became_of_the_name(history: History) -> None:
    history.commit("june", "j1")
    ancestry = Ancestry(history.states["june"], history.states["main"])

    record = ancestry.record("j1", lambda _name: "another-ref")

    assert record["chains"] == [["j1", "june", "june-ref", "r", 1, "r"]]
