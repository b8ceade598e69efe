"""Random histories: branches, writes and merges, drawn so that both sides often touch the same few things."""

import random
from collections.abc import Iterable, Sequence
from typing import TypeVar

from tests.models.dag.model import MAIN, Commit, Conflict, Model, Row, Rows, differences
from tests.models.dag.schema import KEYS
from tests.models.dag.steps import Create, Delete, Drop, Link, Merge, Put, Replace, SetAge, Step
from tests.models.dag.tangles import Move, Touch, TouchSame, TouchTaken, tangle

LIVE_MAX = 4  # branches, main included and those of scripts aside
TANGLES = 0.15  # of the steps, outside of scripts, begin one
NAMES = ("a", "a/b", "fix-1", "fix/Two", "june", "ß")
PEOPLE, TEAMS, NOTES = (
    [f"{letter}{number}" for number in range(count)] for letter, count in (("p", 9), ("t", 4), ("n", 5))
)
NODES = {"node:Person": PEOPLE, "node:Team": TEAMS, "node:Note": NOTES}
EDGES = {"edge:Knows": ("k", 10), "edge:Joined": ("j", 7), "edge:Wrote": ("w", 7)}  # letter and number of ids
LISTS: tuple[list[str] | None, ...] = (None, [], [""], ["x"], ["x", "y"], ["y", "x"])
TEXTS = (None, "", "x", "y")
DROPPED: dict[str, tuple[str, Sequence[str]]] = {
    "node:Person": ("handle", PEOPLE),
    "node:Team": ("name", TEAMS),
    "node:Note": ("body", ("", "x", "y")),
}
ROW_KINDS = {"divergent_insert", "divergent_update", "delete_vs_update"}
FREED = {"node:Person": "email", "node:Team": "floor", "edge:Joined": "role"}  # a null takes no part


T = TypeVar("T")


class Program:
    """A source of steps; `is_plain` leaves out scripts, and steps whose ids only the engine knows."""

    def __init__(self, seed: int, *, is_plain: bool = False) -> None:
        self.random = random.Random(seed)
        self._is_plain = is_plain
        self._tags = iter(range(1 << 62))
        self._pending: list[Step | Move] = []  # the next one last

    def first(self) -> Step:
        """Return the write that most of what follows is based on; two branches come next."""
        self._pending = [Create(name, MAIN) for name in self.random.sample(NAMES, 2)]
        people = {each: self._person(each) for each in PEOPLE[:6]}
        rows: Rows = {
            "node:Person": {each: {**row, "email": None} for each, row in people.items()},
            "node:Team": {each: self._team(each, floor) for floor, each in enumerate(TEAMS[:3])},
            "node:Note": {each: {"body": self._choose(TEXTS)} for each in NOTES[:3]},
        }
        rows["edge:Knows"] = {each: self._edge("edge:Knows", each, rows) for each in ("k0", "k1", "k2")}
        rows["edge:Wrote"] = {each: self._edge("edge:Wrote", each, rows) for each in ("w0", "w1")}
        return Put(MAIN, rows, is_indexed=self.random.random() < 0.5)

    def next(self, model: Model) -> Step:
        """Return a step that mostly makes sense."""
        names = list(model.branches)
        free = [each for each in NAMES if each not in names]
        can_tangle = not self._is_plain and not self._pending and len(names) > 1 and free
        if can_tangle and self.random.random() < TANGLES:
            self._pending = [*reversed(tangle(self.random, names, free))]
        while self._pending:
            step = self._planned(self._pending.pop(), model)
            if step is not None:
                return step
        draw = self.random.random()
        if draw < 0.12 and len(names) < LIVE_MAX:
            return Create(self._choose(NAMES), self._choose(names))
        if draw < 0.15:
            return Delete(self._choose(names))
        if draw < 0.38 and len(names) > 1:
            source, target = self.random.sample(names, 2)
            return Merge(source, target, self.random.random() < 0.2, self.random.random() < 0.1)
        return self.write(self._choose(names), model)

    def resolve(self, merge: Merge, conflicts: Iterable[Conflict], model: Model) -> None:
        """Plan the steps after which the merge, if nothing comes in between, has fewer conflicts.

        Rows in conflict become those of one side, on the other. Where that is the target, what it has merged
        may go on to differ about them.
        """
        ends = [merge.source, merge.target]
        changed, other = ends if self.random.random() < 0.5 else ends[::-1]
        kept, source = model.rows(other), model.rows(merge.source)
        puts: Rows = {}
        drops: list[Step] = []
        for key, each, kind in sorted(conflicts):
            row, own = kept[key].get(each), source[key].get(each)
            if kind in ROW_KINDS and row is not None:
                puts.setdefault(key, {})[each] = row
            elif kind in ROW_KINDS:
                drops += self._drop_one(changed, key, model.rows(changed)[key][each])
            elif own is not None and kind == "unique_violation" and key in FREED:
                drops.append(Put(merge.source, {key: {each: {**own, FREED[key]: None}}}))
            elif own is not None:
                drops += self._drop_one(merge.source, key, own)
        steps: list[Step] = [*drops, *([Put(changed, puts)] if puts else [])]
        self._pending += [Merge(merge.source, merge.target, is_last=merge.is_last), *steps]

    def _drop_one(self, branch: str, key: str, row: Row) -> list[Step]:
        name = KEYS.get(key, "tag")
        return [Drop(branch, key, name, str(row[name]))] if name in row else []

    def _planned(self, move: Step | Move, model: Model) -> Step | None:
        """Return what a planned step has become; none if a branch has gone or a name was taken meanwhile."""
        match move:
            case Create(name, source):
                return move if source in model.branches and name not in model.branches else None
            case Merge(source, target):
                return move if {source, target} <= model.branches.keys() else None
            case Delete(name):
                return move if name in model.branches else None
            case _ if move.branch not in model.branches:
                return None
            case Touch(branch):
                return self.write(branch, model)
            case TouchTaken(branch):
                log = (model.commits[each] for each in reversed(model.branches[branch].log))
                merge = next((each for each in log if len(each.parents) > 1), None)
                return self._write_again(branch, merge, model)
            case TouchSame(branch, other):
                return self._write_again(
                    branch, model.head(other) if other in model.branches else None, model
                )
            case _:
                return move

    def _write_again(self, branch: str, commit: Commit | None, model: Model) -> Step:
        """Return a write to something that a commit has written, or any, if there is nothing."""
        rows = model.rows(branch)
        if commit is None or not commit.parents:
            return self.write(branch, model)
        changes = differences(model.commits[commit.parents[0]].rows, commit.rows)
        if not changes:
            return self.write(branch, model)
        key, each, *_ = self._choose(changes)
        dropped = self._drop_one(branch, key, rows[key].get(each, {}))
        if dropped and self.random.random() < 0.4:
            return dropped[0]
        return Put(branch, {key: {each: self._row(key, each, rows)}})

    def write(self, branch: str, model: Model) -> Step:
        """Return a write to a branch."""
        rows = model.rows(branch)
        draw = self.random.random()
        if draw < 0.18:
            people = list(rows["node:Person"]) or ["nobody"]
            is_one = self.random.random() < 0.8
            age = self._choose((None, 0, 1, 2))
            return SetAge(branch, self._choose(people) if is_one else None, self.random.randrange(3), age)
        if draw < 0.34:
            return self._drop(branch, rows)
        if draw < 0.40 and not self._is_plain and rows["node:Person"]:
            people = list(rows["node:Person"])
            return Link(branch, self._choose(people), self._choose(people), f"link {next(self._tags)}")
        if draw < 0.44:
            return self._replace(branch, rows)
        return Put(branch, self._some(rows), is_indexed=self.random.random() < 0.08)

    def _drop(self, branch: str, rows: Rows) -> Drop:
        key = self._choose(list(rows))
        if key in DROPPED:
            name, values = DROPPED[key]
            return Drop(branch, key, name, self._choose(values))
        if self.random.random() < 0.2:
            return Drop(branch, key, self._choose(("from", "to")), self._choose([*PEOPLE, *TEAMS]))
        tags = [str(row["tag"]) for row in rows[key].values()]
        return Drop(branch, key, "tag", self._choose(tags or ["none"]))

    def _replace(self, branch: str, rows: Rows) -> Replace:
        key = self._choose(("edge:Knows", "node:Note"))
        kept = {each: row for each, row in rows[key].items() if self.random.random() < 0.8}
        if key == "node:Note":
            return Replace(branch, key, {**kept, self._choose(NOTES): {"body": self._choose(TEXTS)}})
        if not rows["node:Person"]:
            return Replace(branch, "node:Note", {"n0": {"body": "x"}})
        added = self._edge_id(key)
        return Replace(branch, key, {**kept, added: self._edge(key, added, rows)})

    def _some(self, rows: Rows) -> Rows:
        """Return rows of one to three tables; edges may use nodes that come along."""
        added: Rows = {}
        for key in self.random.sample(list(rows), self._choose((1, 1, 1, 2, 2, 3))):
            both = {node: {**rows[node], **added.get(node, {})} for node in rows if node not in EDGES}
            ids = self._sample(NODES[key]) if key in NODES else self._edge_ids(key)
            added[key] = {each: self._row(key, each, both) for each in ids}
        return added

    def _row(self, key: str, each: str, nodes: Rows) -> Row:
        match key:
            case "node:Person":
                return self._person(each)
            case "node:Team":
                return self._team(each)
            case "node:Note":
                return {"body": self._choose(TEXTS)}
            case _:
                return self._edge(key, each, nodes)

    def _person(self, handle: str) -> Row:
        email = self._choose((None, None, "e0", "e1", "e2", "e3"))
        return {"handle": handle, "email": email, "age": self._choose((None, 0, 1, 2)), "tags": self._list()}

    def _team(self, name: str, floor: int | None = None) -> Row:
        floor = self._choose((None, 0, 1, 2)) if floor is None else floor
        return {"name": name, "city": self._choose(("c0", "c1")), "floor": floor}

    def _edge(self, key: str, tag: str, nodes: Rows) -> Row:
        target = {"edge:Knows": "Person", "edge:Joined": "Team", "edge:Wrote": "Note"}[key]
        sources, targets = list(nodes["node:Person"]) or PEOPLE, list(nodes[f"node:{target}"]) or ["none"]
        row: Row = {"src": self._choose(sources), "dst": self._choose(targets), "tag": tag}
        match key:
            case "edge:Knows":
                row["since"] = self._choose((None, 0, 1))
            case "edge:Joined":
                row["role"] = self._choose((None, None, "x", "y"))
            case _:
                row["words"] = self._list()
        return row

    def _edge_id(self, key: str) -> str:
        letter, count = EDGES[key]
        return f"{letter}{self.random.randrange(count)}"

    def _edge_ids(self, key: str) -> list[str]:
        return sorted({self._edge_id(key) for _ in range(self._choose((1, 1, 2)))})

    def _list(self) -> list[str] | None:
        return self._choose(LISTS)

    def _sample(self, names: Sequence[str]) -> list[str]:
        return self.random.sample(names, self._choose((1, 1, 2)))

    def _choose(self, items: Sequence[T]) -> T:
        return self.random.choice(items)
