"""A graph whose schema changes, as plain dictionaries: what the specification says of it, without the engine.

S1  A commit holds its schema and every row that is visible at it. Types and properties have numbers that a
    rename keeps; rows are kept by numbers, and names are only looked up to show them. What is dropped and
    added again has a new number, and shares nothing with what had its name.
S2  A text is planned against the schema of the branch that it is applied to. Other branches keep theirs.
    Reads and writes of a branch use its own schema, reads of a commit the schema of that commit.
S3  Applying a text changes no value: what it adds is null in older rows, or the default; what it drops is
    gone from the newest commit, and from no older one. Another default is for later rows. What a property
    gave to older rows when it was added is its fill, which is never changed: rows of other branches that lack
    the property get the fill, whatever the default is by then.
S4  A merge takes three schemas: of the source, the target and the merge base. A type, a property or one
    attribute of a property (its name, type, nullability, values of an enum, default, index) that one side
    changed is taken. Both sides may make the same change. Two changes that differ are a conflict, except for
    two extensions of one enum, which are both taken; and so is any change of what the other side dropped.
S5  What each side adds has a number of its own. Two things of one name in the merged schema are therefore a
    conflict, even if they look alike; so is an edge type that has lost an end. What came to both sides from
    the same commit has the same number on both, and agrees unless one of them has changed it since.
S6  Rows are merged by their ids, entity by entity. A side has changed an entity if it is not what the base
    has of it, seen with the properties of that side: an added property changes nothing until it is given
    another value than its fill, and a dropped one changes nothing.
S7  The merged row has the properties of the merged schema. A row from a side without one of them shows its
    fill there. Two rows are equal if they are as merged rows.
S8  A property that one side dropped is gone, unless the other has written a value of it since the base, in a
    row that was there or in a new one: that is a conflict. So is a row that was changed or inserted in a type
    that the other side dropped; one that was deleted is not.
S9  In the merged rows every edge has both its ends, or the merge is a conflict.
S10 Bringing a branch up to main's schema is a merge of main as it would be had no row of it changed since the
    merge base. It makes a commit with one parent, or none if nothing changes. For the schemas of later merges
    main's commit is an ancestor of it, for their rows it is not: the base of the schemas may be newer
    than that of the rows. An older one would bring back what main dropped after an upgrade, and make a
    conflict of what main changed of it.
S11 A conflict, and whatever is refused, leaves everything as it was.
S12 Ancestry, best common ancestors and virtual bases are those of `tests.models.dag.model` (D4, D5). The
    schema of a virtual base is merged by S4; where that is a conflict, nothing is said about the merge.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Literal

from tests.models.dag.model import MAIN, Branch, Refused
from tests.models.schemas.merging import (
    DOUBT,
    Conflict,
    Row,
    State,
    fit_all,
    merge_schemas,
    merge_states,
)
from tests.models.schemas.shape import Plan, Schema, Value, Wanted, plan

Merged = Literal["already_up_to_date", "fast_forward", "merged", "upgraded", "conflict"]
View = dict[str, dict[str, dict[str, Value]]]  # rows by table key, id and name of the property


class Undecided(Exception):
    """The specification does not say what happens here."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A point of history."""

    id: str
    parents: tuple[str, ...]
    state: State
    upgraded_from: str | None = None  # main's commit, of an upgrade (S10)


@dataclass(frozen=True, slots=True)
class MergePlan:
    """What a merge or an upgrade must do; with conflicts the state is that of the target."""

    outcome: Merged
    state: State
    conflicts: frozenset[Conflict] = frozenset()
    has_one_schema: bool = False  # base, source and target do not differ in it
    bases: tuple[str, ...] = ()


@dataclass(slots=True)
class Model:
    """Every commit there ever was, and the live branches."""

    commits: dict[str, Commit] = field(default_factory=dict)
    branches: dict[str, Branch] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def start(self, commit_id: str, wanted: Wanted) -> None:
        """Begin with an empty graph that has a schema."""
        planned = plan({}, wanted, self.numbers)
        assert planned.outcome == "applied", planned.reasons
        self.commits[commit_id] = Commit(commit_id, (), State(planned.schema, fit_all({}, planned.schema)))
        self.branches[MAIN] = Branch(None, [commit_id])

    # Branches

    def create(self, name: str, source: str) -> None:
        """Make a branch that shows what its source shows.

        Raises:
            Refused: the name is taken, or there is no such source.
        """
        if name in self.branches or source not in self.branches:
            raise Refused(name)
        self.branches[name] = Branch(source, list(self.branches[source].log))

    def delete(self, name: str) -> None:
        """Remove a branch.

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

    def state(self, branch: str) -> State:
        """Return what a branch shows now."""
        return self.head(branch).state

    def record(
        self,
        branch: str,
        commit_id: str,
        state: State,
        *,
        merged: str | None = None,
        upgraded_from: str | None = None,
    ) -> None:
        """Add a commit to a branch; `merged` is the commit of the source of a merge."""
        parents = (self.head(branch).id, *([] if merged is None else [merged]))
        self.commits[commit_id] = Commit(commit_id, parents, state, upgraded_from)
        self.branches[branch].log.append(commit_id)

    def shown(self) -> list[str]:
        """Return the commits that live branches have."""
        return [each for each in self.commits if any(each in one.log for one in self.branches.values())]

    # Schemas

    def plan_apply(self, branch: str, wanted: Wanted) -> tuple[Plan, State]:
        """Return what applying a text to a branch must do, and what the branch shows then (S2, S3)."""
        before = self.state(branch)
        planned = plan(before.schema, wanted, self.numbers)
        return planned, State(planned.schema, fit_all(before.rows, planned.schema))

    def plan_upgrade(self, branch: str) -> MergePlan:
        """Return what bringing a branch up to main's schema must do (S10).

        Raises:
            Undecided: there are several best common ancestors.
        """
        ours, theirs = self.head(branch), self.head(MAIN)
        bases = self.bases(MAIN, branch)
        if len(bases) > 1:
            raise Undecided(branch)
        base = State(self._base_schema(MAIN, branch), self.commits[bases[0]].state.rows)
        untouched = State(theirs.state.schema, fit_all(base.rows, theirs.state.schema))
        state, conflicts = merge_states(base, untouched, ours.state)
        if conflicts:
            return MergePlan("conflict", ours.state, conflicts, bases=bases)
        is_new = state.schema != ours.state.schema
        return MergePlan("upgraded" if is_new else "already_up_to_date", state, bases=bases)

    # Merges

    def plan_merge(self, source: str, target: str) -> MergePlan:
        """Return what merging one branch into another must do.

        Raises:
            Undecided: several best common ancestors have schemas that cannot be merged.
        """
        ours, theirs = self.head(target), self.head(source)
        bases = self.bases(source, target)
        if bases == (theirs.id,):
            return MergePlan("already_up_to_date", ours.state, bases=bases)
        if bases == (ours.id,):
            return MergePlan("fast_forward", theirs.state, bases=bases)
        base = State(self._base_schema(source, target), self._base(bases).rows)
        state, conflicts = merge_states(base, theirs.state, ours.state)
        is_one = base.schema == theirs.state.schema == ours.state.schema
        if conflicts:
            return MergePlan("conflict", ours.state, conflicts, is_one, bases)
        return MergePlan("merged", state, has_one_schema=is_one, bases=bases)

    def bases(self, source: str, target: str) -> tuple[str, ...]:
        """Return the best common ancestors of two branches, oldest first."""
        return self._best_common(self._behind(self.head(source).id), self._behind(self.head(target).id))

    def _behind(self, commit_id: str, *, of_schemas: bool = False) -> frozenset[str]:
        """Return every commit behind a commit, itself included."""
        found, queue = set[str](), [commit_id]
        while queue:
            each = queue.pop()
            if each not in found:
                found.add(each)
                upgraded_from = self.commits[each].upgraded_from
                queue += self.commits[each].parents
                queue += [upgraded_from] if of_schemas and upgraded_from is not None else []
        return frozenset(found)

    def _best_common(
        self, one: frozenset[str], other: frozenset[str], *, of_schemas: bool = False
    ) -> tuple[str, ...]:
        common = one & other
        passed = {older for each in common for older in self._behind(each, of_schemas=of_schemas) - {each}}
        return tuple(each for each in self.commits if each in common - passed)

    def _base_schema(self, source: str, target: str) -> Schema:
        """Return the schema that a merge starts from (S10)."""
        behind = [self._behind(self.head(each).id, of_schemas=True) for each in (source, target)]
        return self._common_schema(self._best_common(behind[0], behind[1], of_schemas=True))

    def _common_schema(self, bases: tuple[str, ...]) -> Schema:
        schema, behind = self.commits[bases[0]].state.schema, self._behind(bases[0], of_schemas=True)
        for each in bases[1:]:
            more = self._behind(each, of_schemas=True)
            base = self._common_schema(self._best_common(behind, more, of_schemas=True))
            schema, clashes = merge_schemas(base, self.commits[each].state.schema, schema)
            if clashes:
                raise Undecided("the ancestors have schemas that cannot be merged")
            behind |= more
        return schema

    def _base(self, bases: tuple[str, ...]) -> State:
        """Return what a merge starts from: one commit, or several merged with each other (S12)."""
        state, behind = self.commits[bases[0]].state, self._behind(bases[0])
        for each in bases[1:]:
            other, more = self.commits[each].state, self._behind(each)
            base = self._base(self._best_common(behind, more))
            state, behind = _virtual(base, other, state), behind | more
        return state


def _virtual(base: State, theirs: State, ours: State) -> State:
    """Merge two ancestors: what is in conflict is in doubt."""
    _, clashes = merge_schemas(base.schema, theirs.schema, ours.schema)
    merged, conflicts = merge_states(base, theirs, ours)
    if clashes or any(kind.startswith("dropped") for _, _, kind in conflicts):
        raise Undecided("the ancestors have schemas that cannot be merged")
    rows: dict[int, dict[str, Row]] = {number: dict(some) for number, some in merged.rows.items()}
    tables = {f"{shape.kind}:{shape.name}": number for number, shape in merged.schema.items()}
    for where, each, kind in conflicts:
        if kind != "orphan_edge":
            rows[tables[where]][each] = DOUBT
    return State(merged.schema, rows)


def view(state: State) -> View:
    """Return what a state shows, by names."""
    return {
        f"{shape.kind}:{shape.name}": {
            each: _named(row, state.schema, number) for each, row in state.rows[number].items()
        }
        for number, shape in state.schema.items()
    }


def _named(row: Row, schema: Schema, number: int) -> dict[str, Value]:
    names: dict[int | str, str] = {item: shape.name for item, shape in schema[number].properties.items()}
    return {names.get(key, str(key)): value for key, value in row.items()}
