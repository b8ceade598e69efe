"""Rows of results become instances of the classes that programs have."""

import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, NamedTuple, NotRequired, TypedDict

import pytest
from pydantic import BaseModel, ConfigDict, Field

import omnigraph
from omnigraph import BadRequest, Graph

SEEN = datetime(2024, 5, 1, 13, 45, 12, 345_000, tzinfo=UTC)
BADGE = str(uuid.UUID(int=7))
PEOPLE = [
    {
        "name": "ann",
        "age": 3,
        "share": 0.5,
        "born": date(2000, 1, 2),
        "seen": SEEN,
        "mood": "glad",
        "badge": BADGE,
    },
    {"name": "bo", "tags": ["x"]},
]
ROWS = (
    "query q() { match { $p: Person } return { $p.name, $p.age, $p.class as class } order { $p.name asc } }"
)
WHOLE = "query q() { match { $p: Person } return { $p } order { $p.name asc } }"
PAIRS = "query q() { match { $p: Person  $p knows $q } return { $p, $q.name as friend } }"
ALL = """\
query q() {
    match { $p: Person { name: "ann" } }
    return {
        $p.name as name, $p.age as age, $p.share as share, $p.born as born, $p.seen as seen, $p.mood as mood,
        $p.badge as badge, $p.tags as tags
    }
}
"""


class Mood(Enum):
    """A property of an enum."""

    CALM = "calm"
    GLAD = "glad"


class Person(BaseModel):
    """All of a person that matters, as pydantic has it."""

    name: str
    age: int | None
    share: Decimal | None
    born: date | None
    seen: datetime | None
    mood: Mood | None
    badge: uuid.UUID | None
    tags: list[str] | None = None


@dataclass(frozen=True)
class PersonData:
    """The same as a dataclass."""

    name: str
    age: int | None
    share: Decimal | None
    born: date | None
    seen: datetime | None
    mood: Mood | None
    badge: uuid.UUID | None
    tags: list[str] | None = None


class PersonTuple(NamedTuple):
    """The same as a tuple."""

    name: str
    age: int | None
    share: Decimal | None
    born: date | None
    seen: datetime | None
    mood: Mood | None
    badge: uuid.UUID | None
    tags: list[str] | None = None


class PersonDict(TypedDict):
    """The same as a dict."""

    name: str
    age: int | None
    share: float | None
    born: date | None
    seen: datetime | None
    mood: str | None
    badge: str | None
    tags: NotRequired[list[str] | None]


class Row(NamedTuple):
    """The columns that a query calls `p.name` and so on."""

    p_name: str
    p_age: int | None
    class_: str | None


@dataclass
class Pair:
    """A whole entity, and another column."""

    p: Person
    friend: str


class Aliased(BaseModel):
    """Fields that are called otherwise."""

    model_config = ConfigDict(strict=True)
    who: str = Field(alias="p.name")
    years: int | None = Field(alias="p.age")
    class_: str | None = Field(alias="class")


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    """Two persons who know each other."""
    from tests.engine.shapes.conftest import TOWN

    with omnigraph.init(tmp_path_factory.mktemp("to") / "g.omni", TOWN, durability="process") as made:
        made.load({"Person": PEOPLE, "Knows": [{"from": "ann", "to": "bo"}]}, "append", index=False)
        yield made


ANN = ("ann", 3, Decimal("0.5"), date(2000, 1, 2), SEEN, Mood.GLAD, uuid.UUID(BADGE), None)
NAMES = ("name", "age", "share", "born", "seen", "mood", "badge", "tags")


@pytest.mark.case("surfaces", 643)
def test_rows_are_models_dataclasses_tuples_and_dicts(graph: Graph) -> None:
    result = graph.query(ALL)

    models: list[Person] = result.to(Person)
    data: list[PersonData] = result.to(PersonData)
    tuples: list[PersonTuple] = result.to(PersonTuple)
    dicts: list[PersonDict] = result.to(PersonDict)

    assert models == [Person.model_validate(dict(zip(NAMES, ANN, strict=True)))]
    assert data == [PersonData(*ANN)]
    assert tuples == [PersonTuple(*ANN)]
    assert dicts == [result.rows[0]]


@pytest.mark.case("surfaces", 643)
def test_dotted_columns_whole_entities_and_words_of_python(graph: Graph) -> None:
    ann = Person.model_validate(dict(zip(NAMES, ANN, strict=True)))

    assert graph.query(ROWS).to(Row) == [Row("ann", 3, None), Row("bo", None, None)]
    assert [one.who for one in graph.query(ROWS).to(Aliased)] == ["ann", "bo"]
    assert graph.query(WHOLE).to(Person)[0] == ann
    assert graph.query(WHOLE).to(PersonData)[1].tags == ["x"]
    assert graph.query(PAIRS).to(Pair) == [Pair(ann, "bo")]


def test_no_rows_are_no_instances_and_a_field_with_a_default_needs_no_column(graph: Graph) -> None:
    @dataclass
    class Named:
        p_name: str
        kept: bool = True

    none = graph.query('query q() { match { $p: Person { name: "?" } } return { $p } }')
    one = graph.query('query q() { match { $p: Person { name: "bo" } } return { $p.name } }')

    assert none.to(Person) == []
    assert one.to(Named) == [Named("bo")]


@dataclass
class Wrong:
    """A class for one column; each test gives it another type."""

    value: object


def query_of(property_name: str) -> str:
    """Return a query of one property of ann."""
    return (
        f'query q() {{ match {{ $p: Person {{ name: "ann" }} }} return {{ $p.{property_name} as value }} }}'
    )


@pytest.mark.case("surfaces", 644)
@pytest.mark.parametrize(
    ("property_name", "type_"),
    [
        ("name", int),
        ("name", datetime),
        ("age", str),
        ("age", bool),
        ("age", datetime),
        ("share", int),
        ("born", datetime),
        ("seen", date),
        ("mood", bool),
        ("tags", str),
        ("badge", Decimal),
    ],
)
def test_a_column_that_does_not_fit_is_named_with_its_field(
    property_name: str, type_: type, graph: Graph
) -> None:
    Wrong.__annotations__["value"] = type_

    with pytest.raises(BadRequest, match=r"^row 1: column 'value' does not fit Wrong\.value: "):
        graph.query(query_of(property_name)).to(Wrong)


def test_a_text_of_digits_does_not_become_a_number_nor_true_one(graph: Graph) -> None:
    with graph.branch("digits", "main") as branch:
        branch.load(
            {"Person": [{"name": "17"}], "Note": [{"text": "t", "kept": True}]}, "append", index=False
        )
        for text, type_ in (('Person { name: "17" }', int), ('Person { name: "17" }', bytes), ("Note", int)):
            Wrong.__annotations__["value"] = type_
            name = "kept" if text == "Note" else "name"
            with pytest.raises(
                BadRequest, match=r"column 'value' does not fit Wrong\.value: the field takes"
            ):
                branch.query(f"query q() {{ match {{ $p: {text} }} return {{ $p.{name} as value }} }}").to(
                    Wrong
                )


@pytest.mark.case("surfaces", 644)
def test_columns_without_fields_and_fields_without_columns_are_named(graph: Graph) -> None:
    class One(NamedTuple):
        p_name: str

    class Strict(BaseModel):
        p_name: str
        p_age: str | None
        class_: str | None = Field(None, alias="class")

    @dataclass
    class More:
        name: str
        height: int

    broken: Any = dataclass(type("Broken", (), {"__annotations__": {"name": "Nowhere"}}))
    refused: list[tuple[Any, str, str]] = [
        (One, ROWS, "column 'p.age' fits no field of One, whose fields are p_name"),
        (More, WHOLE, "More.height has no column and no default: project one, with 'as height'"),
        (
            Strict,
            ROWS,
            "row 1: column 'p.age' does not fit Strict.p_age: Input should be a valid string, not 3",
        ),
        (dict, ROWS, "rows become pydantic models, dataclasses, TypedDicts or NamedTuples, not dict"),
        (5, ROWS, "NamedTuples, not an int"),
        (broken, WHOLE, "the annotations of Broken cannot be read: name 'Nowhere'"),
        (
            One,
            "query q() { match { $p: Person } return { $p.name, $p.age as p_name } }",
            "are both for One.p_name",
        ),
    ]

    for model, text, said in refused:
        with pytest.raises(BadRequest, match=said):
            graph.query(text).to(model)


@pytest.mark.case("surfaces", 767)
def test_a_class_that_cannot_be_made_is_named(graph: Graph) -> None:
    class Undefined(BaseModel):
        p_name: "Nowhere"  # type: ignore[name-defined] # noqa: F821 - on purpose

    @dataclass
    class Holder:
        p: Undefined

    @dataclass
    class Abstract(ABC):
        name: str

        @abstractmethod
        def greet(self) -> str:
            """Say something."""

    @dataclass
    class Choosy:
        name: str

        def __post_init__(self) -> None:
            if self.name == "bo":
                raise ValueError("no bo")

    class Strict(BaseModel):
        name: str

        def model_post_init(self, context: object, /) -> None:
            raise TypeError("nobody")

    refused: list[tuple[Any, str, str]] = [
        (Undefined, ROWS, "the annotations of Undefined cannot be read: .*Nowhere"),
        (Holder, WHOLE, "the annotations of Undefined cannot be read: .*Nowhere"),
        (Abstract, WHOLE, "row 1: Abstract cannot be made: .*abstract"),
        (Choosy, WHOLE, "row 2: Choosy cannot be made: no bo"),
        (Strict, WHOLE, "row 1: Strict cannot be made: nobody"),
    ]

    for kind, query, reason in refused:
        with pytest.raises(BadRequest, match=reason):
            graph.query(query).to(kind)
