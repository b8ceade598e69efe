"""Writes of random programs: every way in which a table changes."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from omnigraph.graph.graph import Graph
from tests.support.engine import edge, ndjson, node
from tests.support.queries import mutation

CITIES = ("Bern", "Lima", "Oslo", None)


@dataclass(slots=True)
class Writer:
    """Writes into a graph by dice; knows just enough to name rows that exist."""

    graph: Graph
    dice: random.Random
    people: list[str] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    edges: list[str] = field(default_factory=list)
    count: int = 0

    def write(self) -> str:
        """Make one write and return what it was."""
        choice = self.dice.choice(self._choices())
        choice()
        return choice.__name__

    def _choices(self) -> list[Callable[[], None]]:
        frequent = [self.insert_person, self.insert_edge, self.update_person]
        rare = [
            self.delete_person,
            self.delete_edge,
            self.move_edge,
            self.load_many,
            self.reinsert,
            self.merge,
        ]
        rarest = [self.overwrite_edges, self.ensure_indices, self.overwrite_all]
        choices = [*frequent * 4, *rare * 2, *rarest] if self.people else [self.insert_person]
        return [
            choice for choice in choices if self.edges or choice not in (self.delete_edge, self.move_edge)
        ]

    def insert_person(self) -> None:
        self._insert(self._name("p"))

    def insert_edge(self) -> None:
        source, target = self.dice.choice(self.people), self.dice.choice(self.people)
        self._load(self._know(self._edge(), source, target))

    def update_person(self) -> None:
        name, age = self.dice.choice(self.people), self.dice.randrange(99)
        self.graph.mutate(mutation(f'update Person set {{ age: {age} }} where name = "{name}"'))

    def delete_person(self) -> None:
        name = self.people.pop(self.dice.randrange(len(self.people)))
        self.graph.mutate(mutation(f'delete Person where name = "{name}"'))
        self._forget_edges()

    def reinsert(self) -> None:
        name = self.dice.choice(self.people)
        self.graph.mutate(mutation(f'delete Person where name = "{name}"'))
        self.people.remove(name)
        self._forget_edges()
        self._insert(name)

    def delete_edge(self) -> None:
        name = self.edges.pop(self.dice.randrange(len(self.edges)))
        self.graph.mutate(mutation(f'delete Knows where tag = "{name}"'))

    def move_edge(self) -> None:
        source, target = self.dice.choice(self.people), self.dice.choice(self.people)
        self._load(self._know(self.dice.choice(self.edges), source, target), mode="merge")

    def load_many(self) -> None:
        people = [self._name("q") for _ in range(self.dice.randrange(1, 40))]
        place = self._name("place")
        records = [node("Place", name=place), *(self._person(name) for name in people)]
        self.people += people
        self.places.append(place)
        for _ in range(self.dice.randrange(40)):
            source, target = self.dice.choice(people), self.dice.choice(self.people)
            records.append(self._know(self._edge(), source, target))
        records += [edge("Lives", name, place, id=self._name("l")) for name in people[:5]]
        self._load(*records)

    def merge(self) -> None:
        chosen = self.dice.sample(self.people, min(len(self.people), 30))
        self._load(*(self._person(name) for name in chosen), mode="merge")

    def overwrite_edges(self) -> None:
        names = [self._edge() for _ in range(self.dice.randrange(30))]
        self.edges = names
        self.graph.load({"Knows": self._knows(names)}, "overwrite")

    def overwrite_all(self) -> None:
        self.people, self.edges = [self._name("r") for _ in range(10)], [self._edge() for _ in range(12)]
        people = pa.table({"name": self.people, "age": pa.array(range(10), pa.int32())})
        nothing = pa.array([], pa.utf8())
        lives = pa.table({"id": nothing, "from": nothing, "to": nothing})
        tables = {"Person": people, "Knows": self._knows(self.edges), "Lives": lives}
        self.graph.load(tables, "overwrite")

    def ensure_indices(self) -> None:
        self.graph.ensure_indices()

    def _know(self, name: str, source: str, target: str) -> dict[str, object]:
        return edge("Knows", source, target, id=name, tag=name, since=self.dice.randrange(9))

    def _knows(self, names: list[str]) -> pa.Table:
        ends = [(self.dice.choice(self.people), self.dice.choice(self.people)) for _ in names]
        return pa.table(
            {
                "id": pa.array(names, pa.utf8()),
                "tag": pa.array(names, pa.utf8()),
                "from": pa.array([source for source, _ in ends], pa.utf8()),
                "to": pa.array([target for _, target in ends], pa.utf8()),
            }
        )

    def _insert(self, name: str) -> None:
        self._load(self._person(name))
        self.people.append(name)

    def _person(self, name: str) -> dict[str, object]:
        return node("Person", name=name, age=self.dice.randrange(99), city=self.dice.choice(CITIES))

    def _load(self, *records: dict[str, object], mode: str = "append") -> None:
        assert mode in {"append", "merge"}
        self.graph.load(ndjson(records), "append" if mode == "append" else "merge", index=False)

    def _name(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count:05d}"

    def _edge(self) -> str:
        self.edges.append(self._name("e"))
        return self.edges[-1]

    def _forget_edges(self) -> None:
        self.edges = [str(id) for id in self.graph.table("Knows")["id"].to_pylist()]
