"""A graph with branches as plain dictionaries: what the specification says of it, written without the engine.

D1  A commit holds everything that is visible at it; no answer is computed from the commits before it.
D2  Ids and numbers of commits come from outside. All else follows from rows and parents.
D3  A row in conflict stays as the target has it while the rest of a merge is checked.
D4  Ancestry is the set of commits behind a commit, over both kinds of parents and whatever became of the
    branches; upkeep is left out of it, because it shows the rows of what it follows.
D5  Several best common ancestors are merged in the order in which they were made. What is in conflict there
    is in doubt, a value equal to no row, and stays so in every merge above but where both sides agree.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

MAIN = "main"

Row = dict[str, object]  # an edge has `src` and `dst` among its members
Rows = dict[str, dict[str, Row]]  # by table key and id
Outcome = Literal["already_up_to_date", "fast_forward", "merged"]

DOUBT: Row = {"in doubt": True}  # of a base: its ancestors do not agree (D5)


class Refused(Exception):
    """The specification refuses the operation: nothing changes."""


class Conflict(NamedTuple):
    """What a merge reports, without the words."""

    table_key: str
    row_id: str
    kind: str


class Difference(NamedTuple):
    """One entity that two states do not show alike."""

    table_key: str
    row_id: str
    op: str
    before: Row | None
    after: Row | None


@dataclass(frozen=True, slots=True)
class NodeRule:
    """What holds for the nodes of a type."""

    unique: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class EdgeRule:
    """What holds for the edges of a type; the ends are names of node types."""

    source: str
    target: str
    low: int = 0
    high: int | None = None
    unique: tuple[tuple[str, ...], ...] = ()


Rules = Mapping[str, NodeRule | EdgeRule]  # by table key


@dataclass(frozen=True, slots=True)
class Commit:
    """A point of history; upkeep changes no row and counts as its first parent."""

    id: str
    number: int
    parents: tuple[str, ...]
    rows: Rows
    is_upkeep: bool = False


@dataclass(slots=True)
class Branch:
    """A branch: where it was made from, and the commits that it shows, oldest first."""

    parent: str | None
    log: list[str]


@dataclass(frozen=True, slots=True)
class Point:
    """A commit, or several merged: what it shows, and every commit that it has behind it, itself included."""

    rows: Rows
    behind: frozenset[str]


@dataclass(frozen=True, slots=True)
class MergePlan:
    """What a merge must do; with conflicts the rows are those of the target."""

    outcome: Outcome
    rows: Rows
    conflicts: frozenset[Conflict]
    bases: tuple[str, ...]  # the best common ancestors
    is_in_doubt: bool = False  # of a conflict or more, because of the base


@dataclass(slots=True)
class Model:
    """Every commit there ever was, and the live branches."""

    rules: Rules
    commits: dict[str, Commit] = field(default_factory=dict)
    branches: dict[str, Branch] = field(default_factory=dict)

    # Branches

    def start(self, commit_id: str, number: int) -> None:
        """Begin with an empty graph."""
        self.commits[commit_id] = Commit(commit_id, number, (), {key: {} for key in self.rules})
        self.branches[MAIN] = Branch(None, [commit_id])

    def create(self, name: str, source: str) -> None:
        """Make a branch that shows what its source shows.

        Raises:
            Refused: the name is taken, or there is no such source.
        """
        if name in self.branches or source not in self.branches:
            raise Refused(name)
        self.branches[name] = Branch(source, list(self.branches[source].log))

    def delete(self, name: str) -> None:
        """Remove a branch with the history that is only its own.

        Raises:
            Refused: it is main, or a live branch was made from it, or it does not exist.
        """
        is_parent = any(branch.parent == name for branch in self.branches.values())
        if name == MAIN or name not in self.branches or is_parent:
            raise Refused(name)
        del self.branches[name]

    def head(self, branch: str) -> Commit:
        """Return the newest commit of a branch."""
        return self.commits[self.branches[branch].log[-1]]

    def rows(self, branch: str) -> Rows:
        """Return what a branch shows now."""
        return self.head(branch).rows

    def record(self, branch: str, commit: Commit) -> None:
        """Add a commit to a branch."""
        assert commit.parents[0] == self.head(branch).id, f"{commit.id} does not follow the head of {branch}"
        self.commits[commit.id] = commit
        self.branches[branch].log.append(commit.id)

    def shows(self, commit_id: str) -> bool:
        """Return whether any live branch has a commit."""
        return any(commit_id in branch.log for branch in self.branches.values())

    # Merges

    def plan_merge(self, source: str, target: str) -> MergePlan:
        """Return what merging one branch into another must do."""
        ours, theirs = self.head(target), self.head(source)
        here, there = self._point(ours.id), self._point(theirs.id)
        bases, nothing = self._best_common(there, here), frozenset[Conflict]()
        if bases == (self._effective(theirs),):
            return MergePlan("already_up_to_date", ours.rows, nothing, bases)
        if bases == (self._effective(ours),):
            return MergePlan("fast_forward", theirs.rows, nothing, bases)
        base = self._base(bases)
        rows, conflicts = merge_rows(base, theirs.rows, ours.rows)
        is_in_doubt = any(base[key].get(each) == DOUBT for key, each, _ in conflicts)
        conflicts |= violations(self.rules, ours.rows, rows)
        kept = ours.rows if conflicts else rows
        return MergePlan("merged", kept, frozenset(conflicts), bases, is_in_doubt)

    def _point(self, commit_id: str) -> Point:
        """Return a commit with what is behind it (D4)."""
        found, queue = set[str](), [commit_id]
        while queue:
            commit = self.commits[queue.pop()]
            if commit.id not in found:
                found.add(commit.id)
                queue += commit.parents
        behind = frozenset(each for each in found if not self.commits[each].is_upkeep)
        return Point(self.commits[commit_id].rows, behind)

    def _best_common(self, one: Point, other: Point) -> tuple[str, ...]:
        """Return the commits behind both that are behind no other such commit, oldest first."""
        common = one.behind & other.behind
        passed = {older for each in common for older in self._point(each).behind - {each}}
        return tuple(each for each in self.commits if each in common - passed)

    def _base(self, bases: tuple[str, ...]) -> Rows:
        """Return what a merge starts from: one commit, or several merged with each other (D5)."""
        first, *others = (self._point(each) for each in bases)
        for other in others:
            base = self._base(self._best_common(first, other))
            rows, conflicts = merge_rows(base, other.rows, first.rows)
            for key, each, _ in conflicts:
                rows[key][each] = DOUBT
            first = Point(rows, first.behind | other.behind)
        return first.rows

    def _effective(self, commit: Commit) -> str:
        while commit.is_upkeep:
            commit = self.commits[commit.parents[0]]
        return commit.id


# Rows


def with_rows(rows: Rows, table_key: str, added: Mapping[str, Row]) -> Rows:
    """Return rows with others added or replaced."""
    return {**rows, table_key: {**rows[table_key], **added}}


def without_edges(rows: Rows, table_key: str, gone: Iterable[str]) -> Rows:
    """Return rows without some edges."""
    left = set(gone)
    return {**rows, table_key: {each: row for each, row in rows[table_key].items() if each not in left}}


def without_nodes(rules: Rules, rows: Rows, table_key: str, gone: Iterable[str]) -> Rows:
    """Return rows without some nodes and without every edge that one of them is an end of."""
    left = set(gone)
    type_name = table_key.removeprefix("node:")
    after = without_edges(rows, table_key, left)
    for key, rule in rules.items():
        if isinstance(rule, EdgeRule):
            ends = [end for end, of in (("src", rule.source), ("dst", rule.target)) if of == type_name]
            hit = [each for each, row in rows[key].items() if any(row[end] in left for end in ends)]
            after = without_edges(after, key, hit)
    return after


def differences(before: Rows, after: Rows) -> list[Difference]:
    """Return every entity that differs between two states, by table and id."""
    found = []
    for key in sorted(before.keys() | after.keys()):
        for each in sorted(before[key].keys() | after[key].keys()):
            old, new = before[key].get(each), after[key].get(each)
            if old != new:
                op = "insert" if old is None else "delete" if new is None else "update"
                found.append(Difference(key, each, op, old, new))
    return found


def merge_rows(base: Rows, source: Rows, target: Rows) -> tuple[Rows, set[Conflict]]:
    """Return the target with what only the source changed, and what both changed differently (D3)."""
    merged: Rows = {}
    conflicts = set()
    for key, kept in target.items():
        merged[key] = dict(kept)
        for each in base[key].keys() | source[key].keys() | kept.keys():
            was, theirs, ours = (rows.get(each) for rows in (base[key], source[key], kept))
            if theirs == ours or (theirs == was and was != DOUBT):
                continue
            if ours != was or was == DOUBT:
                conflicts.add(Conflict(key, each, _kind(was, theirs, ours)))
            elif theirs is None:
                del merged[key][each]
            else:
                merged[key][each] = theirs
    return merged, conflicts


def _kind(was: Row | None, theirs: Row | None, ours: Row | None) -> str:
    if was is None:
        return "divergent_insert"
    return "delete_vs_update" if theirs is None or ours is None else "divergent_update"


# Constraints


def violations(rules: Rules, before: Rows, after: Rows) -> set[Conflict]:
    """Return what a step from one state to another breaks; a source or tuple left alone breaks nothing."""
    found = set[Conflict]()
    for key, rule in rules.items():
        old, new = before[key], after[key]
        touched = {each for each in old.keys() | new.keys() if old.get(each) != new.get(each)}
        for columns in rule.unique:
            found |= _repeated(key, columns, new, touched)
        if isinstance(rule, EdgeRule):
            sources, targets = after[f"node:{rule.source}"], after[f"node:{rule.target}"]
            found |= {
                Conflict(key, each, "orphan_edge")
                for each, row in new.items()
                if row["src"] not in sources or row["dst"] not in targets
            }
            ends = {str(side[each]["src"]) for each in touched for side in (old, new) if each in side}
            for source in ends & sources.keys():
                found |= _miscounted(key, rule, source, new, touched)
    return found


def _repeated(key: str, columns: tuple[str, ...], rows: dict[str, Row], touched: set[str]) -> set[Conflict]:
    holders: dict[tuple[object, ...], list[str]] = {}
    for each in sorted(rows):
        values = tuple(rows[each][column] for column in columns)
        if None not in values:
            holders.setdefault(values, []).append(each)
    charged = (
        each
        for members in holders.values()
        for each in (members if not touched.issuperset(members) else members[1:])
        if len(members) > 1 and each in touched
    )
    return {Conflict(key, each, "unique_violation") for each in charged}


def _miscounted(
    key: str, rule: EdgeRule, source: str, rows: dict[str, Row], touched: set[str]
) -> set[Conflict]:
    own = {each for each, row in rows.items() if row["src"] == source}
    if len(own) < rule.low:
        return {Conflict(key, source, "cardinality_violation")}
    if rule.high is None or len(own) <= rule.high:
        return set()
    return {Conflict(key, sorted(own & touched)[rule.high - len(own - touched)], "cardinality_violation")}
