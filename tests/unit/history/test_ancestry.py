"""Where two histories meet."""

import itertools
import random

import pyarrow as pa
import pytest

from omnigraph.core.errors import InvariantViolation
from omnigraph.history import ancestry
from omnigraph.history.ancestry import Ancestry
from omnigraph.history.commits import MAINTENANCE_ACTOR, CommitLog
from omnigraph.history.manifest_rows import commit_row, rows_table

Commits = dict[str, tuple[int, tuple[str, ...]]]  # version and parents by id


def log_of(commits: Commits, *, maintenance: frozenset[str] = frozenset(), pieces: int = 1) -> CommitLog:
    rows = []
    for commit_id, (version, parents) in commits.items():
        first, second = (*parents, None, None)[:2]
        metadata = {
            "parent_commit_id": first,
            "merged_parent_commit_id": second,
            "actor_id": MAINTENANCE_ACTOR if commit_id in maintenance else None,
            "created_at": version,
        }
        rows.append(commit_row(commit_id, None, metadata, at=version))
    log = CommitLog()
    size = max(len(rows) // pieces, 1)
    for start in range(0, len(rows), size):
        log = log.with_rows(rows_table(rows[start : start + size]))
    return log


def base(one: Commits, other: Commits, heads: tuple[str, str]) -> str:
    found = Ancestry(log_of(one), log_of(other)).merge_base(*heads).commit_id
    assert Ancestry(log_of(other), log_of(one)).merge_base(*reversed(heads)).commit_id == found
    return found


ROOT: Commits = {"r": (1, ())}


@pytest.mark.case("engine", 61)
def test_linear() -> None:
    long: Commits = {**ROOT, "a": (2, ("r",)), "b": (3, ("a",))}

    assert base(long, ROOT, ("b", "r")) == "r"
    assert base(long, long, ("b", "a")) == "a"
    assert base(long, long, ("b", "b")) == "b"


@pytest.mark.case("engine", 61)
def test_two_branches_meet_where_they_parted() -> None:
    main: Commits = {**ROOT, "a": (2, ("r",)), "m1": (3, ("a",)), "m2": (4, ("m1",))}
    june: Commits = {**ROOT, "a": (2, ("r",)), "j1": (3, ("a",))}

    assert base(main, june, ("m2", "j1")) == "a"


@pytest.mark.case("engine", 61)
def test_after_a_merge_the_merged_head_is_the_base() -> None:
    june: Commits = {**ROOT, "j1": (2, ("r",)), "j2": (3, ("j1",))}
    main: Commits = {**ROOT, "m1": (2, ("r",)), "merge": (3, ("m1", "j1"))}

    assert base(main, june, ("merge", "j2")) == "j1"
    assert base(main, june, ("merge", "j1")) == "j1"


@pytest.mark.case("engine", 61)
def test_a_diamond() -> None:
    main: Commits = {**ROOT, "m1": (2, ("r",)), "m2": (3, ("m1", "j1")), "m3": (4, ("m2",))}
    june: Commits = {**ROOT, "j1": (2, ("r",)), "j2": (3, ("j1", "m1")), "j3": (4, ("j2",))}

    # m1 and j1 are both three steps away: the greater version decides, then the greater id.
    assert base(main, june, ("m2", "j2")) == "m1"
    assert base({**main, "m1": (1, ("r",))}, june, ("m2", "j2")) == "j1"


@pytest.mark.case("engine", 61)
def test_a_criss_cross_takes_the_nearest() -> None:
    main: Commits = {**ROOT, "m1": (2, ("r",)), "m2": (3, ("m1", "j1"))}
    june: Commits = {
        **ROOT,
        "j1": (2, ("r",)),
        "j2": (3, ("j1", "m1")),
        "j3": (4, ("j2",)),
        "j4": (5, ("j3",)),
    }
    main |= {"m3": (4, ("m2", "j3"))}

    assert base(main, june, ("m3", "j4")) == "j3"


def test_a_parent_of_a_deleted_branch_ends_its_path() -> None:
    main: Commits = {**ROOT, "m1": (2, ("r", "gone")), "m2": (3, ("m1",))}
    june: Commits = {**ROOT, "j1": (2, ("r", "gone"))}

    assert base(main, june, ("m2", "j1")) == "r"


def test_histories_that_never_met_are_refused() -> None:
    with pytest.raises(InvariantViolation, match="no common ancestor"):
        Ancestry(log_of(ROOT), log_of({"s": (1, ())})).merge_base("r", "s")


def test_maintenance_counts_as_its_parent() -> None:
    main: Commits = {**ROOT, "a": (2, ("r",)), "u1": (3, ("a",)), "u2": (4, ("u1",)), "b": (5, ("u2",))}
    log = log_of(main, maintenance=frozenset({"u1", "u2"}))

    both = Ancestry(log, log)

    assert [both.effective(commit) for commit in ("r", "a", "u1", "u2", "b")] == ["r", "a", "a", "a", "b"]
    with pytest.raises(InvariantViolation, match="in neither branch"):
        both.effective("x")


def test_old_history_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    shared: Commits = {f"c{n:05d}": (n, (f"c{n - 1:05d}",) if n > 1 else ()) for n in range(1, 5_001)}
    one, other = ({**shared, f"{name}": (5_001, ("c05000",))} for name in "ab")
    logs = log_of(one), log_of(other)
    decoded: list[int] = []
    decode = ancestry._decode

    def counted(rows: pa.Table) -> dict[str, ancestry.Ancestor]:
        decoded.append(rows.num_rows)
        return decode(rows)

    monkeypatch.setattr(ancestry, "_decode", counted)

    assert Ancestry(*logs).merge_base("a", "b").commit_id == "c05000"
    assert sum(decoded) <= 512


@pytest.mark.parametrize("seed", range(100))
def test_random_histories_agree_with_the_definition(seed: int) -> None:
    chance = random.Random(seed)
    commits: Commits = {"c00": (1, ())}
    for number in range(1, chance.randint(5, 40)):
        known = sorted(commits)
        parents = tuple(dict.fromkeys(chance.choice(known[-6:]) for _ in range(chance.choice([1, 1, 2]))))
        commits[f"c{number:02d}"] = (chance.randint(1, 20), parents)
    log = log_of(commits, pieces=chance.randint(1, 5))

    for one, other in itertools.islice(itertools.combinations(chance.sample(sorted(commits), 4), 2), 6):
        assert Ancestry(log, log).merge_base(one, other).commit_id == defined(commits, one, other)


@pytest.mark.parametrize("seed", range(30))
def test_branches_meet_where_the_definition_says(seed: int) -> None:
    chance = random.Random(seed)
    branches: list[Commits] = [{"c00": (1, ())}]
    commits: Commits = dict(branches[0])
    for number in range(1, chance.randint(4, 40)):
        branch = chance.randrange(len(branches))
        if chance.random() < 0.3:
            branches.append(dict(branches[branch]))
            branch = len(branches) - 1
        *_, head = branches[branch]
        merged = [list(other)[-1] for other in branches if chance.random() < 0.1]
        parents = tuple(dict.fromkeys([head, *merged[:1]]))
        commit_id = f"c{number:02d}"
        commits[commit_id] = branches[branch][commit_id] = (len(branches[branch]) + 1, parents)

    for one, other in itertools.combinations(branches, 2):
        shown = {name: commits[name] for name in {*one, *other}}
        kept = {
            name: (at, tuple(parent for parent in parents if parent in shown))
            for name, (at, parents) in shown.items()
        }
        heads = list(one)[-1], list(other)[-1]
        assert base(one, other, heads) == defined(kept, *heads)


def defined(commits: Commits, one: str, other: str) -> str:
    here, there = distances(commits, one), distances(commits, other)
    common = here.keys() & there.keys()
    return min(common, key=lambda c: (here[c] + there[c], -commits[c][0], [-ord(x) for x in c]))


def distances(commits: Commits, head: str) -> dict[str, int]:
    found, level = {head: 0}, [head]
    while level:
        reached = {parent for commit in level for parent in commits[commit][1]} - found.keys()
        found |= dict.fromkeys(reached, found[level[0]] + 1)
        level = sorted(reached)
    return found


def test_rows_come_back_as_a_table() -> None:
    log = log_of({**ROOT, "a": (2, ("r",))}, pieces=2)

    assert isinstance(log.rows(), pa.Table)
    assert (log.has("a"), log.has("b")) == (True, False)
