"""Objects of Python programs become nodes and edges: pydantic models, dataclasses, dicts."""

import uuid
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pydantic import BaseModel, ConfigDict, Field

from omnigraph import BadRequest, Graph, ValidationError

SEEN = datetime(2024, 5, 1, 15, 45, 12, 345_000, tzinfo=timezone(timedelta(hours=2)))
BADGE = uuid.UUID(int=7)


class Mood(Enum):
    """A property of an enum."""

    CALM = "calm"
    GLAD = "glad"


class Ages(IntEnum):
    """An enum of numbers."""

    OLD = 90


class Person(BaseModel):
    """A node, as pydantic has it."""

    model_config = ConfigDict(populate_by_name=True)

    name: str
    age: int | None = None
    share: Decimal | None = None
    born: date | None = None
    seen: datetime | None = None
    mood: Mood | None = None
    badge: uuid.UUID | None = None
    tags: list[str] | None = None
    place: tuple[float, float] | None = None
    photo: bytes | None = None
    kind: str | None = Field(None, alias="class")
    town: str | None = None


@dataclass
class Knows:
    """An edge, as a dataclass."""

    from_: str
    to: str
    since: int | None = None
    id: str | None = None


@dataclass
class Memo:
    """A node whose class is not called like its type."""

    text: str
    kept: bool = True
    id: str | None = field(default=None)


ANN = Person(  # type: ignore[call-arg] # pydantic's plugin would know `kind`
    name="ann",
    age=2**60 + 1,
    share=Decimal("0.1"),
    born=date(1990, 2, 3),
    seen=SEEN,
    mood=Mood.GLAD,
    badge=BADGE,
    tags=["x", "y"],
    place=(1, 2.5),
    photo=b"\x00png",
    kind="first",
)
BO = Person.model_validate({"name": "bo", "town": "Köln"})
STORED = {
    "id": "ann",
    "name": "ann",
    "age": 2**60 + 1,
    "share": 0.1,
    "half": None,
    "born": date(1990, 2, 3),
    "seen": SEEN.astimezone(UTC),
    "seen_at": None,
    "mood": "glad",
    "badge": str(BADGE),
    "tags": ["x", "y"],
    "place": [1.0, 2.5],
    "photo": b"\x00png",
    "class": "first",
    "town": "Ruhr",
}


def commits(graph: Graph) -> int:
    """Return how many commits there are."""
    return len(graph.commits())


@pytest.mark.case("surfaces", 640)
def test_nodes_and_edges_are_one_commit_with_every_value_as_it_was(town: Graph) -> None:
    before = commits(town)

    result = town.load_objects(
        [Knows("ann", "bo", 3), ANN, BO, Memo("hi"), Knows("bo", "ann", id="k")],
        "append",
        types={Memo: "Note"},
        index=False,
    )

    assert result.tables == (("edge:Knows", 2), ("node:Note", 1), ("node:Person", 2))
    assert commits(town) == before + 1
    assert town.entity_at("Person", "ann") == STORED
    assert town.entity_at("Person", "bo")["town"] == "Köln"
    assert town.entity_at("Knows", "k") == {"id": "k", "src": "bo", "dst": "ann", "since": None}
    (note,) = town.table("Note").to_pylist()
    assert (note["text"], note["kept"]) == ("hi", True)


def test_ends_may_be_called_as_in_a_table_and_further_members_are_kept(town: Graph) -> None:
    @dataclass
    class Met:
        src: uuid.UUID
        dst: str

    class Loose(BaseModel):
        model_config = ConfigDict(extra="allow")
        name: str

    town.load_objects(
        [Loose.model_validate({"name": str(BADGE), "age": 4}), Met(BADGE, str(BADGE))],
        "append",
        types={Met: "Knows", Loose: "node:Person"},
        index=False,
    )

    (edge,) = town.table("Knows").to_pylist()
    assert (edge["src"], edge["dst"]) == (str(BADGE), str(BADGE))
    assert town.entity_at("Person", str(BADGE))["age"] == 4


@dataclass
class Home:
    """What some put into a person."""

    street: str


PERSON = {"name": "x"}
NAIVE = SEEN.replace(tzinfo=None)
REFUSED: list[tuple[dict[str, object], str]] = [
    ({"town": Home("a")}, "Person.town: a Home is nested, and a property holds a value or a list of values"),
    ({"town": {"street": "a"}}, "Person.town: a dict is nested"),
    ({"tags": [Home("a")]}, "Person.tags: a Home is nested"),
    (
        {"seen": NAIVE},
        r"Person.seen: .* has no time zone, so it is no moment: give an aware datetime, such as",
    ),
    ({"seen_at": [SEEN, NAIVE]}, r"Person.seen_at: .* has no time zone"),
    ({"seen": pd.NaT}, "Person.seen: NaT is not a time"),
    ({"seen": datetime.max.replace(tzinfo=timezone(-timedelta(hours=1)))}, "outside of the years 1 to 9999"),
    ({"badge": SEEN}, "Person.badge: a datetime is not a String"),
    ({"badge": b"x"}, "Person.badge: bytes are not a String"),
    ({"share": float("nan")}, "Person.share: nan is not a number that a graph holds"),
    ({"share": Decimal("0.10000000000000001")}, "Person.share: .* without losing a digit"),
    ({"half": Decimal("0.123456789")}, "Person.half: .* without losing a digit"),
    ({"age": Decimal("1.5")}, "Person.age: .* without losing a digit"),
    ({"age": Decimal("Infinity")}, "Person.age: .* without losing a digit"),
    ({"age": 2**200}, "Person.age: an integer of more than 128 bits"),
    ({"tags": {"a", "b"}}, "Person.tags: a set is not a value that a property holds"),
]


@pytest.mark.case("surfaces", 641)
def test_what_cannot_be_stored_as_it_is_names_the_object_and_the_property(town: Graph) -> None:
    before = commits(town)
    fine = {"type": "Person", "data": {"name": "fine"}}

    for values, said in REFUSED:
        with pytest.raises(BadRequest, match=f"^records:2: .*{said}"):
            town.load([fine, {"type": "Person", "data": PERSON | values}], "append")

    assert commits(town) == before


@pytest.mark.case("surfaces", 641)
def test_objects_of_no_type_are_refused(town: Graph) -> None:
    @dataclass
    class Persona:
        name: str

    @dataclass
    class Flat:
        to: str

    class House(BaseModel):
        name: str
        town: Home

    refused: list[tuple[Any, dict[type, str], str]] = [
        ([Persona("x")], {}, r"objects:1: there is no type 'Persona' for the class Persona.*types="),
        ([ANN, {"name": "x"}], {}, "objects:2: a dict is not an instance of a pydantic model or a dataclass"),
        ([Person], {}, "objects:1: .* is not an instance"),
        (ANN, {}, "expected objects in a list, not a Person"),
        (5, {}, "expected objects in a list, not an int"),
        ([Flat("x")], {Flat: "Knows"}, "objects:1: Knows is an edge, and Flat has no from_"),
        ([House(name="x", town=Home("a"))], {House: "Person"}, "objects:1: Person.town: a Home is nested"),
        ([Knows(Home("a"), "b")], {}, "objects:1: an edge has the ids of its nodes, not a Home"),  # type: ignore[arg-type] # what is refused
    ]

    for objects, types, said in refused:
        with pytest.raises(BadRequest, match=said):
            town.load_objects(objects, "append", types=types)
    with pytest.raises(ValidationError, match=r"objects:1: Person has no property 'text'"):
        town.load_objects([Memo("x")], "append", types={Memo: "Person"})


def test_exact_values_of_other_classes_are_taken(town: Graph) -> None:
    exact = {
        "age": Ages.OLD,
        "share": Decimal("2.50"),
        "half": Decimal("0.1"),
        "badge": Decimal("1.50"),
        "place": np.array([1, 2], np.float32),
        "seen": pd.Timestamp("2024-05-01T13:45:12.345678Z"),
        "born": date(2024, 1, 1),
        "seen_at": (SEEN,),
    }
    town.load({"Person": [{"name": np.str_("n")} | exact, {"name": "m", "age": np.int64(4)}]}, "append")

    found = town.entity_at("Person", "n")

    assert (found["age"], found["share"], found["badge"], found["place"]) == (90, 2.5, "1.50", [1.0, 2.0])
    assert found["half"] == np.float32(0.1)
    assert (found["seen"], found["seen_at"]) == (SEEN.astimezone(UTC), [SEEN.astimezone(UTC)])
    assert town.entity_at("Person", "m")["age"] == 4


@pytest.mark.case("surfaces", 642)
def test_dicts_are_records_or_the_rows_of_a_type(town: Graph) -> None:
    people = ({"type": "Person", "data": {"name": name, "seen": SEEN}} for name in ("a", "b"))
    town.load([*people, {"edge": "Knows", "from": "a", "to": "b", "data": {"id": "k1"}}], "append")
    result = town.load(
        {"Person": [{"name": "c", "age": 1}], "Knows": [{"from": "c", "to": "a", "since": 2}], "Note": []},
        "append",
        index=False,
    )

    assert result.tables == (("edge:Knows", 1), ("node:Note", 0), ("node:Person", 1))
    assert town.entity_at("Person", "b")["seen"] == SEEN.astimezone(UTC)
    assert town.table("Knows").num_rows == 2

    town.load({"Knows": []}, "overwrite", index=False)

    assert (town.table("Knows").num_rows, town.table("Person").num_rows) == (0, 3)


@pytest.mark.case("surfaces", 642)
def test_mistakes_in_dicts_are_those_of_a_load_with_the_number_of_the_record(town: Graph) -> None:
    before = commits(town)
    refused: list[tuple[Any, str]] = [
        (
            [{"type": "Person", "data": {"name": "x"}}, {"type": "Persn", "data": {}}],
            "records:2: unknown node",
        ),
        ([{"type": "Person", "data": {"name": "x", "age": "old"}}], "records:1: Person.age: expected I64"),
        ({"Person": [{"name": "x"}, {"nam": "y"}]}, "Person:2: Person has no property 'nam'"),
        ({"Knows": [{"from": "x"}]}, "Knows:1: 'to' of an edge must be the id of a node"),
        ([{"name": "x"}], "records:1: a dict without 'type' or 'edge' is not a record"),
        ({"Person": [["x"]]}, "Person:1: a list of str is not a row, which is a dict of properties"),
        ({"Person": [{("a",): "x"}]}, "is not a record"),
        ({"Person": [{"name": "\ud800"}]}, "Person:1: .*surrogate"),
    ]

    for data, said in refused:
        with pytest.raises(BadRequest, match=said):
            town.load(data, "append")

    assert commits(town) == before
