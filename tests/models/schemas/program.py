"""Random histories of schemas, rows, branches and merges, in which branches touch the same few things."""

import random
from collections.abc import Sequence
from typing import TypeVar

from tests.models.dag.model import MAIN
from tests.models.dag.steps import Create, Delete
from tests.models.schemas.edits import Editor
from tests.models.schemas.expect import expect
from tests.models.schemas.merging import State
from tests.models.schemas.model import Model, Undecided
from tests.models.schemas.shape import Property, Schema, Type, Value, Wanted, WantedProperty, WantedType
from tests.models.schemas.steps import (
    Apply,
    Data,
    Insert,
    Load,
    Merge,
    Record,
    Remove,
    Step,
    Update,
    Upgrade,
    Write,
)
from tests.models.schemas.texts import parameter_text

LIVE_MAX = 4  # branches, main included
MISTAKES = 0.03  # of the values where one is possible
OMISSIONS = 0.15  # of the properties that may be left out are
STALE = 0.08  # of the writes use the names of another branch
BRANCHES = ("a", "a/b", "june", "fix-1")
KEYS = ("k0", "k1", "k2", "k3", "k4")
TOO_BIG = 2**40  # for 32 bits
NODES_FIRST = 4
EDGES_FIRST = 3

T = TypeVar("T")


def _first(*properties: Property) -> tuple[WantedProperty, ...]:
    return tuple(WantedProperty(each) for each in properties)


FIRST: Wanted = (
    WantedType(
        "node",
        "Person",
        _first(
            Property("handle", "String", False, is_key=True),
            Property("age", "I32"),
            Property("mood", "enum", values=frozenset({"calm", "wild"})),
            Property("motto", "String"),
        ),
    ),
    WantedType(
        "node",
        "Place",
        _first(
            Property("code", "String", False, is_key=True),
            Property("size", "F32", False),
            Property("label", "String", is_indexed=True),
        ),
    ),
    WantedType("node", "Note", _first(Property("body", "String"))),
    WantedType("edge", "Knows", _first(Property("since", "I32")), ("Person", "Person")),
    WantedType("edge", "Lives", _first(Property("rent", "F32", False)), ("Person", "Place")),
    WantedType("edge", "About", (), ("Note", "Place")),
)


class Program:
    """A source of steps; `evolves` is whether schemas change."""

    def __init__(self, seed: int, *, evolves: bool = True) -> None:
        self.random = random.Random(f"schemas {seed}")
        self._evolves = evolves
        self._editor = Editor(self.random)
        self._mistakes = 0.0
        self._pending: list[Step] = []  # the next one last

    def first(self, model: Model) -> Step:
        """Return the write that the branches are based on; one or two branches come next."""
        names = self.random.sample(BRANCHES, self._choose((1, 2, 2)))
        self._pending = [Create(name, MAIN) for name in names]
        state = model.state(MAIN)
        nodes = [each for each in state.schema.values() if each.kind == "node"]
        edges = [each for each in state.schema.values() if each.kind == "edge"]
        records = {(each.name, key): self._node(each, key) for each in nodes for key in KEYS[:NODES_FIRST]}
        for each in edges:
            ids = self.random.sample(KEYS, EDGES_FIRST)
            records |= {(each.name, key): self._edge(each, key, KEYS[:3], KEYS[:3]) for key in ids}
        self._mistakes = MISTAKES
        return Load(MAIN, tuple(records.values()))

    def next(self, model: Model) -> Step:
        """Return a step that mostly makes sense, and of which the model has something to say."""
        while self._pending:
            step = self._pending.pop()
            if self._is_possible(step, model):
                return step
        step = self._any(model)
        if isinstance(step, Merge | Upgrade):
            try:
                expect(model, step)
            except Undecided:
                return self.write(MAIN, model)
        return step

    def after_conflict(self, step: Step) -> None:
        """Sometimes give up a branch that cannot be merged, and begin it anew."""
        names = {"source", "target", "branch"} & set(type(step).__dataclass_fields__)
        ends = [str(getattr(step, name)) for name in sorted(names)]
        own = [each for each in ends if each != MAIN]
        if own and self.random.random() < 0.35:
            self._pending = [Create(own[0], MAIN), Delete(own[0])]

    def _any(self, model: Model) -> Step:
        names = list(model.branches)
        draw = self.random.random()
        if draw < 0.08 and len(names) < LIVE_MAX:
            return Create(self._choose(BRANCHES), self._choose(names))
        if draw < 0.10:
            return Delete(self._choose(names))
        if draw < 0.32 and len(names) > 1:
            source, target = self.random.sample(names, 2)
            return Merge(source, target, self.random.random() < 0.15)
        if draw < 0.54 and self._evolves:
            branch = self._choose(names)
            others = [model.state(each).schema for each in names if each != branch]
            return Apply(branch, self._editor.text(model.state(branch).schema, others))
        if draw < 0.60 and self._evolves and len(names) > 1:
            return Upgrade(self._choose([each for each in names if each != MAIN]))
        return self.write(self._choose(names), model)

    def _is_possible(self, step: Step, model: Model) -> bool:
        match step:
            case Create(name, source):
                return source in model.branches and name not in model.branches
            case Delete(name):
                return name in model.branches
            case _:
                return True

    # Writes

    def write(self, branch: str, model: Model) -> Write:
        """Return a write to a branch, sometimes with the names that another one uses."""
        state = model.state(branch)
        if self.random.random() < STALE:
            return self._write(branch, state, model.state(self._choose(list(model.branches))).schema)
        return self._write(branch, state, state.schema)

    def _write(self, branch: str, state: State, names: Schema) -> Write:
        draw = self.random.random()
        keyed = [number for number, each in names.items() if each.key is not None]
        if draw < 0.16 and keyed:
            shape = names[self._choose(keyed)]
            data = self._node(shape, self._choose(KEYS)).data
            types = {each.name: parameter_text(each) for each in shape.properties.values()}
            return Insert(branch, shape.name, data, types)
        if draw < 0.42 and keyed:
            return self._update(branch, names[self._choose(keyed)])
        if draw < 0.58 and names:
            return self._remove(branch, self._choose(list(names.values())))
        return self._load(branch, state, names)

    def _update(self, branch: str, shape: Type) -> Write:
        assert shape.key is not None
        others = [each for each in shape.properties.values() if not each.is_key]
        key = shape.properties[shape.key]
        if not others:
            return self._remove(branch, shape)
        each = self._choose(others)
        assigned = (each.name, self._value(each))
        return Update(branch, shape.name, (key.name, self._choose(KEYS)), assigned, parameter_text(each))

    def _remove(self, branch: str, shape: Type) -> Remove:
        chosen: list[tuple[str, Value, str]] = [
            (each.name, self._choose(KEYS) if each.is_key else self._some(each), parameter_text(each))
            for each in shape.properties.values()
        ]
        if shape.kind == "edge" or not chosen:
            chosen = [*chosen, ("from", self._choose(KEYS), "String"), ("to", self._choose(KEYS), "String")]
        name, value, type_text = self._choose(chosen)
        return Remove(branch, shape.kind, shape.name, (name, value), type_text.removesuffix("?"))

    def _load(self, branch: str, state: State, names: Schema) -> Load:
        """Return a load of records of a few types; edges may use nodes that come along."""
        records: dict[tuple[str, str], Record] = {}
        for number in self.random.sample(sorted(names), min(len(names), self._choose((1, 1, 2, 3)))):
            shape = names[number]
            for key in self.random.sample(KEYS, self._choose((1, 1, 2))):
                if shape.ends is None:
                    records[shape.name, key] = self._node(shape, key)
                    continue
                sources, targets = (sorted(state.rows.get(end, {})) or KEYS for end in shape.ends)
                records[shape.name, key] = self._edge(shape, key, sources, targets)
        return Load(branch, tuple(records.values()))

    def _node(self, shape: Type, key: str) -> Record:
        return Record(shape.name, self._data(shape, key), None if shape.key is not None else key)

    def _edge(self, shape: Type, key: str, sources: Sequence[str], targets: Sequence[str]) -> Record:
        ends = (self._choose(sources), self._choose(targets))
        return Record(shape.name, self._data(shape, key), key, ends)

    def _data(self, shape: Type, key: str) -> Data:
        """Return what is said of an entity; some properties are not mentioned."""
        mentioned = [
            each
            for each in shape.properties.values()
            if each.is_key or self.random.random() >= self._omissions(each)
        ]
        return {each.name: key if each.is_key else self._value(each) for each in mentioned}

    def _omissions(self, shape: Property) -> float:
        return OMISSIONS if shape.is_nullable or shape.default is not None else self._mistakes

    def _value(self, shape: Property) -> Value:
        """Return a value that the property takes, but for a few."""
        if shape.is_nullable and self.random.random() < 0.3:
            return None
        if shape.scalar in {"I32", "enum"} and self.random.random() < self._mistakes:
            return TOO_BIG if shape.scalar == "I32" else "green"
        return self._some(shape)

    def _some(self, shape: Property) -> Value:
        match shape.scalar:
            case "String":
                return self._choose(("", "x", "y"))
            case "Bool":
                return self._choose((True, False))
            case "I32":
                return self._choose((0, 1, -2))
            case "I64":
                return self._choose((0, 1, TOO_BIG))
            case "F32" | "F64":
                return self._choose((0.5, 1.5, -2.25))
            case "enum":
                return self._choose(sorted(shape.values))

    def _choose(self, items: Sequence[T]) -> T:
        return self.random.choice(items)
