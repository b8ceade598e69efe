"""Random programs of several branches: writes on each, merges between any two, and what makes them meet."""

from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import replace

from tests.models.dag.model import MAIN, Conflict, Model
from tests.models.dag.steps import Create, Delete, Merge
from tests.models.histories.branching import BRANCH_SCHEMA, On, Step, is_free, shown
from tests.models.histories.contents import OWN_TABLES, Contents
from tests.models.histories.operations import (
    ChangeSchema,
    CleanUp,
    DropEdge,
    DropPeople,
    EnsureIndices,
    Load,
    Operation,
    Optimize,
    PutOwn,
    PutPerson,
)
from tests.models.histories.programs import Program

LIVE_MAX = 4  # branches, main included
NAMES = ("a", "a/b", "June", "fix-1", "ß")
RESOLVED_MAX = 8  # conflicts; a branch with more is given up
OWN_KEYS = 12  # of each table that a writer has for itself: two branches come to use the same one
LATER_S = (
    3_600,
    90_000,
    700_000,
)  # of a moment, of a day, or of a time after which nothing is too young to go
SCHEMAS = (
    0,
    1,
    4,
    5,
)  # without a default: its value would count as written, and merges would report its drop
EDGE_TYPES = {"edge:Knows": "Knows", "edge:Joined": "Joined"}


class BranchProgram(Program):
    """The writes of `Program` on some branch, index builds that loads have left undone, branches and merges.

    Main is optimized, cleaned up and given other schemas, which merges bring to the branches.

    Drawn so that two branches come to conflict now and then; mostly they are brought to agree, and merged.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._planned = deque[Step]()
        self._resolved: Merge | None = None  # the last one whose conflicts were dealt with

    def step(self, model: Model) -> Step:
        """Return a step that mostly makes sense."""
        while self._planned:
            planned = self._planned.popleft()
            if self._named(planned) <= model.branches.keys():
                return planned
        draw = self.random.random()
        names = list(model.branches)
        if draw < 0.02:
            return Create(self.random.choice(names), MAIN)
        if draw < 0.05:
            return Delete(self.random.choice(names))
        if draw < 0.18 and len(names) > 1:
            return self.merge(model)
        if draw < 0.28 and self.has_room(model):
            return self.create(model)
        if draw >= 0.97:
            return On(MAIN, self.random.choice((self.clean_up, self.change_schema, Optimize))())
        return self.write(model)

    def clean_up(self) -> CleanUp:
        """Return a cleanup, of a time at which some or all that may go is old enough."""
        return CleanUp(self.random.randint(1, 5), self.random.choice(LATER_S))

    def change_schema(self) -> ChangeSchema:
        """Return a change of the schema, perhaps the one that is there."""
        return ChangeSchema(self.random.choice(SCHEMAS), self.random.random() < 0.3, BRANCH_SCHEMA)

    def has_room(self, model: Model) -> bool:
        """Return whether there may be one more branch."""
        return len(model.branches) < LIVE_MAX

    def create(self, model: Model) -> Create:
        """Return the making of a branch, from main or from another one."""
        free = [name for name in NAMES if name not in model.branches]
        source = MAIN if self.random.random() < 0.6 else self.random.choice(list(model.branches))
        return Create(self.random.choice(free), source)

    def merge(self, model: Model) -> Merge:
        """Return a merge of two branches, mostly one of main."""
        source, target = self.random.sample(list(model.branches), 2)
        if MAIN not in {source, target} and self.random.random() < 0.6:
            target = MAIN
        return Merge(source, target)

    def write(self, model: Model, branch: str | None = None) -> On:
        """Return a write, on any branch if none is given."""
        names = list(model.branches)
        if branch is None:
            branch = MAIN if self.random.random() < 0.3 else self.random.choice(names)
        other = shown(model, self.random.choice(names))
        return On(branch, self._operation(shown(model, branch), other))

    def resolve(self, merge: Merge, conflicts: Collection[Conflict], model: Model) -> None:
        """Plan the steps after which a merge, mostly, has no conflicts; or to give up the branch.

        What is changed is the branch, where one of both is main. A merge that then still conflicts is not
        tried again: a program would do nothing else.
        """
        changed, kept = (merge.source, merge.target) if merge.source != MAIN else (merge.target, MAIN)
        is_again = merge == self._resolved
        self._resolved = None if is_again else merge
        if len(conflicts) <= RESOLVED_MAX and not is_again:
            self._planned += [*self._agreeing(changed, kept, sorted(conflicts), model), merge]
        elif is_free(model, changed):
            self._planned.append(Delete(changed))

    def _agreeing(self, changed: str, kept: str, conflicts: Iterable[Conflict], model: Model) -> list[On]:
        ours, theirs = shown(model, changed), shown(model, kept)
        steps: list[On] = []
        for key, each, kind in conflicts:
            if key in EDGE_TYPES:
                drop = DropEdge(EDGE_TYPES[key], each)
                steps += [On(name, drop) for name in (changed, kept) if each in model.rows(name)[key]]
            elif key == "node:Person" and each in theirs.people:
                steps.append(On(changed, PutPerson(each, *theirs.people[each])))
            elif key == "node:Person":
                steps.append(On(changed, DropPeople(each, 0)))
            elif kind == "unique_violation":
                table = int(key[-1])
                holder = changed if f"{table}/{each}" in ours.own else kept
                steps.append(On(holder, PutOwn(table, each, self._value(table, ours, theirs))))
            else:
                table = int(key[-1])
                steps.append(On(changed, PutOwn(table, each, theirs.own[f"{table}/{each}"])))
        return steps

    def _named(self, step: Step) -> set[str]:
        match step:
            case On(branch):
                return {branch}
            case Merge(source, target):
                return {source, target}
            case Create(_, source):
                return {source}
            case Delete(name):
                return {name}

    def _operation(self, contents: Contents, other: Contents) -> Operation:
        draw = self.random.random()
        if draw < 0.03:
            return EnsureIndices()
        if draw < 0.09:
            return self._put_own(contents)
        strangers = sorted(other.people.keys() - contents.people.keys())
        if draw < 0.15 and strangers:
            return self._put_stranger(self.random.choice(strangers), other)
        operation = self.next(contents)
        if isinstance(operation, PutOwn):
            return self._put_own(contents)
        if isinstance(operation, Load):
            is_indexed = self.random.random() >= 0.3
            return replace(self._joining_once(operation, contents), index=is_indexed)
        return operation

    def _put_own(self, contents: Contents) -> PutOwn:
        table = self.random.randrange(OWN_TABLES)
        key = f"o{self.random.randrange(OWN_KEYS)}"
        if self.random.random() < 0.1:
            return PutOwn(table, key, self.random.randrange(OWN_KEYS))  # perhaps of another row
        return PutOwn(table, key, self._value(table, contents))

    def _put_stranger(self, handle: str, other: Contents) -> PutPerson:
        """Return the insertion of somebody whom another branch has, as there or otherwise."""
        age, tag = other.people[handle]
        return PutPerson(handle, age, tag if self.random.random() < 0.5 else self._name("t"))

    def _value(self, table: int, *contents: Contents) -> int:
        """Return a value that no row of a table has: one of the least, which another branch takes as well."""
        taken = {value for each in contents for key, value in each.own.items() if key.startswith(f"{table}/")}
        return self.random.choice([value for value in range(2 * OWN_KEYS + 3) if value not in taken][:3])

    def _joining_once(self, load: Load, contents: Contents) -> Load:
        """Return a load, mostly without the edges of people who have one."""
        if self.random.random() < 0.05:
            return load
        taken = set() if "Joined" in load.types else {source for source, _ in contents.joined.values()}
        joined = {}
        for tag, ends in load.joined.items():
            if ends[0] not in taken:
                taken.add(ends[0])
                joined[tag] = ends
        has_rows = load.people or load.teams or load.notes or load.knows or joined or load.types
        return replace(load, joined=joined, notes=load.notes if has_rows else (self._name("n"),))
