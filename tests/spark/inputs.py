"""Random inputs of a load: valid ones, and ones with every kind of error, by a seed."""

import json
import random
from pathlib import Path
from typing import Any

SCHEMA = """\
node Person {
    handle: String @key
    age:    I32?
    mail:   String? @unique
    kind:   enum(a, b)?
    @range(age, 0..150)
}
node Place {
    x:    I64
    y:    Date?
    name: String?
    @unique(x, y)
    @check(name, "^[a-z]*$")
}
node Note { text: String  at: DateTime?  score: F64? @unique }
edge Knows:  Person -> Person { since: Date? }
edge Visits: Person -> Place @card(0..2) { rate: F64?  @unique(src, dst) }
edge Writes: Person -> Note @card(1..) { n: U64? }
"""
EDGES = {"Knows": ("Person", "Person"), "Visits": ("Person", "Place"), "Writes": ("Person", "Note")}
Record = dict[str, Any]


class Inputs:
    """Makes records; the same seed makes the same ones."""

    def __init__(self, seed: int, *, faults: float = 0.0) -> None:
        self.random = random.Random(seed)
        self.faults = faults

    def is_fault(self) -> bool:
        return self.random.random() < self.faults

    def files(self, folder: Path, count: int, size: int) -> list[Path]:
        """Write some files of records; each has a few blank lines."""
        paths = []
        for number in range(count):
            lines = [self.line() if self.random.random() < 0.95 else "" for _ in range(size)]
            paths.append(folder / f"part{number}.jsonl")
            paths[-1].write_text("\n".join(lines) + "\n", encoding="utf-8")
        return paths

    def line(self) -> str:
        if self.is_fault() and self.random.random() < 0.2:
            return self.random.choice(['{"type": "Person"', "[]", '{"type": "Perso", "data": {}}', "{}"])
        return json.dumps(self.record())

    def record(self) -> Record:
        return self.random.choice([self.person, self.person, self.place, self.note, self.edge, self.edge])()

    def person(self) -> Record:
        data: Record = {"handle": f"p{self.number(40)}"}
        data |= self.maybe(age=self.random.randint(0, 90), mail=f"m{self.number(60)}", kind="a")
        if self.is_fault():
            data |= self.random.choice(
                [{"age": 151}, {"kind": "c"}, {"age": "x"}, {"handle": None}, {"no": 1}]
            )
        return {"type": "Person", "data": data}

    def place(self) -> Record:
        data: Record = {"id": f"pl{self.number(30)}", "x": self.number(30)}
        data |= self.maybe(y=f"2020-01-0{1 + self.random.randrange(3)}", name="abc")
        if self.is_fault():
            data |= self.random.choice([{"name": "A1"}, {"x": None}, {"y": "2020-13-01"}])
        return {"type": "Place", "data": data}

    def note(self) -> Record:
        data: Record = {"text": "t"} | self.maybe(id=f"n{self.number(30)}", score=self.number(50) / 4 or -0.0)
        if self.is_fault():
            data.pop("text")
        return {"type": "Note", "data": data}

    def edge(self) -> Record:
        name = self.random.choice(list(EDGES))
        targets = {"Person": "p", "Place": "pl", "Note": "n"}
        record: Record = {"edge": name, "from": f"p{self.number(40)}"}
        record["to"] = f"{targets[EDGES[name][1]]}{self.number(30)}"
        data = self.maybe(id=f"{name}{self.number(60)}")
        if self.is_fault():
            record["to"] = "nobody"
        return record | ({"data": data} if data else {})

    def maybe(self, **values: object) -> Record:
        return {name: value for name, value in values.items() if self.random.random() < 0.5}

    def number(self, top: int) -> int:
        return self.random.randrange(top if self.faults else top * 1_000_000)
