"""Random loads by a seed: the records, right or with a few mistakes, and how they are loaded.

A graph of `BASE` takes what is made without mistakes. Mistakes are put in afterwards, so that most of a load
stays right and each of them stands for itself.
"""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from omnigraph.operations.load.model import MODES, LoadMode, OnError

SCHEMA = """\
node Person {
    handle: String @key
    age:    I32?
    mail:   String? @unique
    kind:   enum(a, b)?
    is_on:  Bool?
    tags:   [String]?
    spot:   Vector(2)?
    raw:    Blob?
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
node Cell { row: I32  col: String  size: F32?  @key(row, col) }
edge Knows:  Person -> Person { since: Date? }
edge Visits: Person -> Place @card(0..2) { rate: F64?  @unique(src, dst) }
edge Writes: Person -> Note @card(1..) { n: U64? }
edge Holds:  Cell -> Note
"""
NODES = ("Person", "Place", "Note", "Cell")
ENDS = {
    "Knows": ("Person", "Person"),
    "Visits": ("Person", "Place"),
    "Writes": ("Person", "Note"),
    "Holds": ("Cell", "Note"),
}
Record = dict[str, Any]
Line = Record | bytes  # of NDJSON: a record, or a line that is none

BAD_VALUES: dict[str, list[tuple[str, object]]] = {
    "Person": [
        ("age", 151),
        ("age", "x"),
        ("age", 1.5),
        ("age", 2**40),
        ("kind", "c"),
        ("handle", None),
        ("is_on", "yes"),
        ("tags", [1]),
        ("tags", [None]),
        ("spot", [1.0]),
        ("raw", "none"),
        ("no", 1),
        ("id", "other"),
    ],
    "Place": [("name", "A1"), ("x", None), ("x", 2**63), ("x", "12"), ("y", "2020-13-01"), ("id", "")],
    "Note": [("text", None), ("at", "soon"), ("at", "2020-01-01T25:00:00Z"), ("score", "many")],
    "Cell": [("row", None), ("row", 2**31), ("size", "x"), ("col", 7)],
    "Knows": [("since", "2020-02-30"), ("since", "10000-01-01"), ("no", 1)],
    "Visits": [("rate", "high"), ("src", "p1")],
    "Writes": [("n", -1), ("n", 2**64), ("n", "7")],
    "Holds": [("size", 1)],
}
BAD_LINES = [
    b'{"type": "Person"',
    b"[]",
    b"{}",
    b'{"type": "Perso", "data": {"handle": "q"}}',
    b'{"type": "Person", "edge": "Knows", "data": {}}',
    b'{"type": "Person", "data": {"handle": "q"}, "more": 1}',
    b'{"type": "Person", "type": "Person", "data": {"handle": "q"}}',
    b'{"type": "Note", "data": {"text": "\xff"}}',
    b'{"edge": "Knows", "from": "b0", "data": {}}',
]


@dataclass(frozen=True, slots=True)
class Case:
    """One load: what it reads, and how. `slice_bytes` is how large the pieces of its files are."""

    seed: int
    mode: LoadMode
    lines: tuple[Line, ...]
    on_error: OnError
    is_dry_run: bool
    has_rejects: bool
    slice_bytes: int


def random_case(seed: int) -> Case:
    """Return the load of a seed; seeds in a row take the modes in turns."""
    rng = random.Random(seed)
    mode = MODES[seed % len(MODES)]
    lines: list[Line] = [*_Maker(rng, mode).records()]
    rng.shuffle(lines)
    for _ in range(rng.choice([0, 0, 1, 1, 2, 4])):
        rng.choice(MISTAKES)(lines, rng)
    return Case(
        seed,
        mode,
        tuple(lines),
        on_error="skip" if rng.random() < 0.25 else "fail",
        is_dry_run=rng.random() < 0.1,
        has_rejects=rng.random() < 0.2,
        slice_bytes=rng.choice([300, 1000, 1 << 20]),
    )


class _Maker:
    """Makes records that fit each other, and the rows of `BASE`."""

    def __init__(self, rng: random.Random, mode: LoadMode) -> None:
        self.rng, self.mode = rng, mode
        self.made = 0
        self.ids: dict[str, list[str]] = {name: [] for name in NODES}

    def records(self) -> list[Record]:
        rng = self.rng
        if self.mode == "overwrite" and rng.random() < 0.3:
            self.ids = {"Person": ["b0", "b1"], "Place": ["bp"], "Note": ["bn"], "Cell": ['["b","0"]']}
            return [self.edge("Knows") for _ in range(rng.randrange(1, 5))]
        if self.mode != "overwrite":
            self.ids = {"Person": ["b0", "b1"], "Place": ["bp"], "Note": ["bn"], "Cell": ['["b","0"]']}
        # An overwrite takes away every row that edges might refer to: it brings all types along.
        least = int(self.mode == "overwrite")
        made = [self.person() for _ in range(rng.randrange(least, 7))]
        made += [self.place() for _ in range(rng.randrange(least, 4))]
        made += [self.note() for _ in range(rng.randrange(least, 5))]
        made += [self.cell() for _ in range(rng.randrange(least, 4))]
        if self.mode == "overwrite":
            made += [self.place(f"pl{self.number()}"), self.note(f"n{self.number()}")]
        for name in ("Knows", "Knows", "Writes", "Writes", "Holds"):
            made += [self.edge(name) for _ in range(rng.randrange(least, 3))]
        made += [self.visit(person) for person in self.ids["Person"][-2:] if not person.startswith("b")]
        if self.mode == "merge":
            made += self.repeated()
        return made

    def number(self) -> int:
        self.made += 1
        return self.made

    def person(self) -> Record:
        number = self.number()
        handle = f"p{number}" if self.rng.random() < 0.9 else f'ö "{number}",\n'
        if self.mode == "merge" and "b2" not in self.ids["Person"] and self.rng.random() < 0.3:
            handle = "b2"
        self.ids["Person"].append(handle)
        values = self.some(
            age=self.rng.randint(0, 150),
            mail=f"m{number}",
            kind=self.rng.choice("ab"),
            is_on=self.rng.random() < 0.5,
            tags=[f"t{number}", ""][: self.rng.randrange(3)],
            spot=[0.5, float(number)],
            raw="base64:AAEC/w==",
        )
        return {"type": "Person", "data": {"handle": handle, **values}}

    def place(self, id_: str | None = None) -> Record:
        number = self.number()
        data: Record = {"x": number, **self.some(y=f"2020-01-{1 + number % 28:02d}", name="abc")}
        if id_ is not None or self.rng.random() < 0.7:
            data["id"] = id_ or f"pl{number}"
            self.ids["Place"].append(data["id"])
        return {"type": "Place", "data": data}

    def note(self, id_: str | None = None) -> Record:
        number = self.number()
        data: Record = {"text": f"t{number}"}
        data |= self.some(at=self.rng.choice(["2020-01-01T00:00:00Z", "1969-12-31T23:59:59.999Z"]))
        data |= self.some(score=number / 4)
        if id_ is not None or self.rng.random() < 0.7:
            data["id"] = id_ or f"n{number}"
            self.ids["Note"].append(data["id"])
        return {"type": "Note", "data": data}

    def cell(self) -> Record:
        number = self.number()
        self.ids["Cell"].append(f'["c","{number}"]')
        return {"type": "Cell", "data": {"row": number, "col": "c", **self.some(size=0.1)}}

    def edge(self, name: str) -> Record:
        source, target = (self.rng.choice(self.ids[node]) for node in ENDS[name])
        data = self.some(id=f"e{self.number()}")
        if name == "Knows":
            data |= self.some(since="1969-07-20")
        if name == "Writes":
            data |= self.some(n=str(2**64 - 1))
        return {"edge": name, "from": source, "to": target, "data": data}

    def visit(self, person: str) -> Record:
        return {**self.edge("Visits"), "from": person}

    def repeated(self) -> list[Record]:
        """Return rows whose ids stand in the base already, or twice in this load: the last of them counts."""
        found = [{"edge": "Knows", "from": "b1", "to": "b0", "data": {"id": "be", "since": "2021-01-01"}}]
        found += [self.place(self.rng.choice(["bp", "same"])) for _ in range(self.rng.randrange(3))]
        return found[self.rng.randrange(2) :]

    def some(self, **values: object) -> Record:
        return {name: value for name, value in values.items() if self.rng.random() < 0.6}


def _bad_value(lines: list[Line], rng: random.Random) -> None:
    record = _any_record(lines, rng)
    if record is not None:
        name, value = rng.choice(BAD_VALUES[_type_of(record)])
        record["data"] = {**record["data"], name: value}


def _bad_line(lines: list[Line], rng: random.Random) -> None:
    lines.insert(rng.randrange(len(lines) + 1), rng.choice(BAD_LINES))


def _nobody(lines: list[Line], rng: random.Random) -> None:
    record = _any_record(lines, rng, "edge")
    if record is not None:
        record[rng.choice(["from", "to"])] = "nobody"


def _again(lines: list[Line], rng: random.Random) -> None:
    record = _any_record(lines, rng)
    if record is not None:
        lines.insert(rng.randrange(len(lines) + 1), json.loads(json.dumps(record)))


def _held(lines: list[Line], rng: random.Random) -> None:
    """Add a row whose id, or whose value of a unique property, the base has."""
    held: list[Record] = [
        {"type": "Person", "data": {"handle": "b0"}},
        {"type": "Person", "data": {"handle": "new", "mail": "bm"}},
        {"type": "Place", "data": {"id": "bp", "x": -7}},
        {"type": "Place", "data": {"x": -1, "y": "2020-01-01"}},
        {"type": "Note", "data": {"text": "t", "score": -0.0}},
        {"edge": "Knows", "from": "b0", "to": "b1", "data": {"id": "be"}},
        {"edge": "Visits", "from": "b0", "to": "bp", "data": {}},
    ]
    lines.insert(rng.randrange(len(lines) + 1), rng.choice(held))


def _too_many(lines: list[Line], rng: random.Random) -> None:
    for number in range(3):
        visit: Record = {"edge": "Visits", "from": "b1", "to": f"v{number}", "data": {}}
        place: Record = {"type": "Place", "data": {"id": f"v{number}", "x": -10 - number}}
        for line in (visit, place):
            lines.insert(rng.randrange(len(lines) + 1), line)


def _equal_values(lines: list[Line], rng: random.Random) -> None:
    for handle in rng.sample(["u1", "u2", "u3"], 2):
        person: Record = {"type": "Person", "data": {"handle": handle, "mail": "equal"}}
        lines.insert(rng.randrange(len(lines) + 1), person)


MISTAKES: list[Callable[[list[Line], random.Random], None]] = [
    _bad_value,
    _bad_value,
    _bad_line,
    _nobody,
    _again,
    _held,
    _too_many,
    _equal_values,
]

BASE: list[Record] = [
    *({"type": "Person", "data": {"handle": f"b{n}", "age": n, "mail": "bm" if n else None}} for n in (0, 1)),
    {"type": "Person", "data": {"handle": "b2"}},
    {"type": "Place", "data": {"id": "bp", "x": -1, "y": "2020-01-01"}},
    {"type": "Note", "data": {"id": "bn", "text": "base", "score": 0.0}},
    {"type": "Cell", "data": {"row": 0, "col": "b"}},
    {"edge": "Knows", "from": "b0", "to": "b1", "data": {"id": "be"}},
    {"edge": "Visits", "from": "b0", "to": "bp", "data": {}},
    {"edge": "Writes", "from": "b0", "to": "bn", "data": {}},
    {"edge": "Writes", "from": "b1", "to": "bn", "data": {"n": 1}},
    {"edge": "Holds", "from": '["b","0"]', "to": "bn", "data": {}},
]


def _any_record(lines: list[Line], rng: random.Random, member: str = "data") -> Record | None:
    found = [line for line in lines if isinstance(line, dict) and member in line]
    return rng.choice(found) if found else None


def _type_of(record: Record) -> str:
    name: str = record.get("type") or record["edge"]
    return name
