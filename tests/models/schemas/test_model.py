"""The model of changing schemas itself: small histories whose ends were worked out by hand."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import pytest

from tests.models.dag.model import MAIN
from tests.models.schemas.expect import expect, settle
from tests.models.schemas.merging import State, orphans
from tests.models.schemas.model import Model, View, view
from tests.models.schemas.program import FIRST as PROGRAM_FIRST
from tests.models.schemas.program import Program
from tests.models.schemas.shape import Kind, Property, Value, Wanted, WantedProperty, WantedType
from tests.models.schemas.steps import Apply, Insert, Load, Merge, Record, Remove, Step, Update, Upgrade
from tests.models.schemas.texts import render

HISTORIES = 200
STEPS = 30

KEY = Property("handle", "String", False, is_key=True)
AGE = Property("age", "I32")
MOOD = Property("mood", "enum", values=frozenset({"calm", "wild"}))
CODE = Property("code", "String", False, is_key=True)
SIZE = Property("size", "F32", False)
RENT = Property("rent", "I32")


def node(
    name: str, *shapes: Property, hints: Mapping[str, str] | None = None, hint: str | None = None
) -> WantedType:
    return _type("node", name, shapes, hints, None, hint)


def edge(name: str, source: str, target: str, *shapes: Property, hint: str | None = None) -> WantedType:
    return _type("edge", name, shapes, None, (source, target), hint)


def _type(
    kind: Kind,
    name: str,
    shapes: tuple[Property, ...],
    hints: Mapping[str, str] | None,
    ends: tuple[str, str] | None,
    hint: str | None,
) -> WantedType:
    items = tuple(WantedProperty(each, (hints or {}).get(each.name)) for each in shapes)
    return WantedType(kind, name, items, ends, hint)


PERSON, PLACE = node("Person", KEY, AGE, MOOD), node("Place", CODE, SIZE)
LIVES = edge("Lives", "Person", "Place", RENT)
FIRST: Wanted = (PERSON, PLACE, LIVES)


class Story:
    """A graph with two people at one place, and a branch of it."""

    def __init__(self) -> None:
        self.model = Model()
        self.model.start("c0", FIRST)
        self._count = 0
        people = [Record("Person", {"handle": each, "age": 1, "mood": "calm"}) for each in ("ann", "bob")]
        place = Record("Place", {"code": "x", "size": 0.5})
        self(Load(MAIN, (*people, place, Record("Lives", {"rent": 7}, "l", ("ann", "x")))))
        self.model.create("b", MAIN)

    def __call__(self, step: Step) -> str:
        """Do a step and return its outcome."""
        found = expect(self.model, step)
        if found.state is not None:
            self._count += 1
            settle(self.model, found, f"c{self._count}")
        return found.outcome

    def apply(self, branch: str, *wanted: WantedType) -> str:
        return self(Apply(branch, wanted))

    def assign(self, branch: str, handle: str, name: str, value: Value, key: str = "handle") -> str:
        type_text = "String?" if isinstance(value, str) else "I64?"
        return self(Update(branch, "Person", (key, handle), (name, value), type_text))

    def rows(self, branch: str) -> View:
        return view(self.model.state(branch))

    def kinds(self, source: str, target: str) -> set[str]:
        return {each.kind for each in self.model.plan_merge(source, target).conflicts}


@pytest.fixture
def story() -> Story:
    return Story()


# Texts


def test_a_text_reads_as_the_schema_language() -> None:
    extra = replace(AGE, name="years", is_indexed=True, default=5)
    text = (node("Human", KEY, extra, MOOD, hints={"years": "age"}, hint="Person"), LIVES)

    assert render(text) == (
        'node Human @rename_from("Person") {\n'
        "    handle: String @key\n"
        '    years: I32? @index @default(5) @rename_from("age")\n'
        "    mood: enum(calm, wild)?\n"
        "}\n\n"
        "edge Lives: Person -> Place {\n"
        "    rent: I32?\n"
        "}\n\n"
    )


# Applying


def test_a_rename_keeps_rows_and_a_change_of_names_without_hint_does_not(story: Story) -> None:
    human = node("Human", KEY, replace(AGE, name="years"), MOOD, hints={"years": "age"}, hint="Person")
    assert story.apply(MAIN, human, PLACE, edge("Lives", "Human", "Place", RENT)) == "applied"
    assert story.rows(MAIN)["node:Human"]["ann"] == {"handle": "ann", "years": 1, "mood": "calm"}
    assert story.rows(MAIN)["edge:Lives"] == {"l": {"rent": 7, "src": "ann", "dst": "x"}}

    story.apply(MAIN, node("Being", KEY), PLACE)

    assert story.rows(MAIN) == {"node:Being": {}, "node:Place": {"x": {"code": "x", "size": 0.5}}}
    assert story.rows("b")["node:Person"].keys() == {"ann", "bob"}


def test_a_name_that_stays_is_stronger_than_its_hint(story: Story) -> None:
    text = node("Person", KEY, MOOD, hints={"mood": "age"})

    assert story.apply(MAIN, text, PLACE, LIVES) == "applied"

    assert story.rows(MAIN)["node:Person"]["ann"] == {"handle": "ann", "mood": "calm"}


def test_what_is_added_shows_null_or_its_default(story: Story) -> None:
    more = (Property("p", "String"), Property("q", "I64", False, default=5))

    story.apply(MAIN, node("Person", KEY, AGE, MOOD, *more), PLACE, LIVES)

    expected = {"handle": "ann", "age": 1, "mood": "calm", "p": None, "q": 5}
    assert story.rows(MAIN)["node:Person"]["ann"] == expected


def test_what_is_dropped_and_added_again_is_new(story: Story) -> None:
    story.apply(MAIN, node("Person", KEY, MOOD), PLACE, LIVES)
    story.apply(MAIN, *FIRST)

    assert story.rows(MAIN)["node:Person"]["ann"]["age"] is None
    assert view(story.model.commits["c1"].state)["node:Person"]["ann"]["age"] == 1


@pytest.mark.parametrize(
    ("person", "outcome"),
    [
        (node("Person", KEY, AGE, MOOD), "unchanged"),
        (node("Person", MOOD, AGE, KEY, hints={"age": "ghost"}), "unchanged"),
        (node("Person", KEY, replace(AGE, scalar="I64"), MOOD), "applied"),
        (node("Person", KEY, replace(AGE, is_indexed=True), MOOD), "applied"),
        (node("Person", KEY, AGE, replace(MOOD, values=frozenset({"calm", "wild", "x"}))), "applied"),
        (node("Person", KEY, AGE, MOOD, Property("p", "I32", False)), "unsupported"),
        (node("Person", KEY, replace(AGE, scalar="F64"), MOOD), "applied"),
        (node("Person", KEY, replace(AGE, default=5), MOOD), "applied"),
        (node("Person", KEY, replace(AGE, scalar="F32"), MOOD), "unsupported"),
        (node("Person", KEY, replace(AGE, is_nullable=False), MOOD), "unsupported"),
        (node("Person", KEY, AGE, replace(MOOD, values=frozenset({"calm"}))), "unsupported"),
        (node("Person", AGE, MOOD), "unsupported"),
        (node("Person", KEY, AGE, MOOD, AGE), "invalid"),
        (node("Person", KEY, AGE, replace(MOOD, name="p"), hints={"p": "ghost"}), "invalid"),
        (node("Person", KEY, AGE, replace(AGE, name="p"), hints={"p": "age"}), "invalid"),
        (node("Human", KEY, AGE, MOOD, hint="Person"), "invalid"),  # the edge has lost its end
        (node("Person", replace(KEY, is_nullable=True), AGE, MOOD), "invalid"),
        (node("Person", KEY, replace(AGE, default="x"), MOOD), "invalid"),
        (node("Person", KEY, AGE, replace(MOOD, default="x")), "invalid"),
        (node("Person", replace(KEY, default="x"), AGE, MOOD), "invalid"),
    ],
)
def test_a_text_is_judged_as_a_whole(story: Story, person: WantedType, outcome: str) -> None:
    before = story.model.state(MAIN)

    assert story.apply(MAIN, person, PLACE, LIVES) == outcome

    assert (story.model.state(MAIN) == before) == (outcome != "applied")


def test_an_index_keeps_its_property_and_an_edge_its_ends(story: Story) -> None:
    indexed = node("Person", KEY, replace(AGE, is_indexed=True), MOOD)
    story.apply(MAIN, indexed, PLACE, LIVES)

    assert story.apply(MAIN, node("Person", KEY, MOOD), PLACE, LIVES) == "unsupported"
    assert story.apply(MAIN, PERSON, PLACE, LIVES) == "unsupported"
    assert story.apply(MAIN, indexed, PLACE, edge("Lives", "Place", "Place", RENT)) == "unsupported"
    assert story.apply("b", node("Person", KEY, MOOD), PLACE, LIVES) == "applied"


def test_writes_use_the_schema_of_their_branch(story: Story) -> None:
    story.apply(MAIN, node("Person", KEY, replace(AGE, scalar="I64")), PLACE, LIVES)

    assert story.assign(MAIN, "ann", "age", 2**40) == "done"
    assert story.assign("b", "ann", "age", 2**40) == "refused"
    assert story.assign("b", "ann", "mood", "wild") == "done"
    assert story.assign(MAIN, "ann", "mood", "wild") == "refused"
    assert story(Insert(MAIN, "Human", {"handle": "eve"}, {})) == "refused"


def test_a_row_gets_the_default_of_what_it_does_not_mention(story: Story) -> None:
    more = (Property("p", "I64", False, default=5), Property("q", "I64", default=6))
    story.apply(MAIN, node("Person", KEY, AGE, MOOD, *more), PLACE, LIVES)
    types = {"handle": "String", "p": "I64", "q": "I64?"}

    assert story(Insert(MAIN, "Person", {"handle": "eve", "q": None}, types)) == "done"
    assert story(Insert(MAIN, "Person", {"handle": "eva", "p": None}, types)) == "refused"

    assert story.rows(MAIN)["node:Person"]["eve"] == {
        "handle": "eve",
        "age": None,
        "mood": None,
        "p": 5,
        "q": None,
    }
    assert story(Load(MAIN, (Record("Place", {"code": "y"}),))) == "refused"


def test_another_default_is_for_later_rows(story: Story) -> None:
    story(Load(MAIN, (Record("Person", {"handle": "eve"}),)))

    assert story.apply(MAIN, node("Person", KEY, replace(AGE, default=9), MOOD), PLACE, LIVES) == "applied"

    story(Load(MAIN, (Record("Person", {"handle": "eva"}),)))
    assert story.rows(MAIN)["node:Person"]["eve"]["age"] is None
    assert story.rows(MAIN)["node:Person"]["eva"]["age"] == 9


@pytest.mark.parametrize("default", [None, 7])
@pytest.mark.parametrize("is_upgraded", [True, False])
def test_older_rows_of_a_branch_get_what_main_gave_its_own(
    story: Story, default: int | None, is_upgraded: bool
) -> None:
    added = Property("p", "I32", False, default=3)
    story.apply(MAIN, node("Person", KEY, AGE, MOOD, added), PLACE, LIVES)
    story.apply(MAIN, node("Person", KEY, AGE, MOOD, replace(added, default=default)), PLACE, LIVES)

    assert story(Upgrade("b") if is_upgraded else Merge(MAIN, "b")) in {"upgraded", "fast_forward"}

    assert {row["p"] for row in story.rows("b")["node:Person"].values()} == {3}
    story.apply(MAIN, node("Person", KEY, AGE, MOOD, replace(added, default=9)), PLACE, LIVES)
    assert story(Merge("b", MAIN)) in {"merged", "already_up_to_date"}
    assert {row["p"] for row in story.rows(MAIN)["node:Person"].values()} == {3}


# Merges of schemas


def test_changes_of_one_side_are_taken_with_the_rows_of_both(story: Story) -> None:
    human = node("Human", KEY, replace(AGE, name="years"), MOOD, hints={"years": "age"}, hint="Person")
    story.apply(MAIN, human, PLACE, edge("Lives", "Human", "Place", RENT))
    story(Update(MAIN, "Human", ("handle", "ann"), ("years", 2), "I32?"))
    added = Property("p", "I32", False, default=3)
    story.apply("b", node("Person", KEY, AGE, MOOD, added), PLACE, LIVES)
    story(Load("b", (Record("Person", {"handle": "eve", "age": None, "mood": "wild", "p": 4}),)))

    assert story(Merge("b", MAIN)) == "merged"

    assert story.rows(MAIN)["node:Human"] == {
        "ann": {"handle": "ann", "years": 2, "mood": "calm", "p": 3},
        "bob": {"handle": "bob", "years": 1, "mood": "calm", "p": 3},
        "eve": {"handle": "eve", "years": None, "mood": "wild", "p": 4},
    }
    assert story(Merge(MAIN, "b")) == "fast_forward"
    assert story.rows("b") == story.rows(MAIN)


def test_two_attributes_of_one_property_are_two_changes(story: Story) -> None:
    story.apply(
        MAIN, node("Person", KEY, replace(AGE, name="years"), MOOD, hints={"years": "age"}), PLACE, LIVES
    )
    story.apply("b", node("Person", KEY, replace(AGE, scalar="I64"), MOOD), PLACE, LIVES)

    assert story(Merge("b", MAIN)) == "merged"

    person = next(each for each in story.model.state(MAIN).schema.values() if each.name == "Person")
    assert {(each.name, each.scalar) for each in person.properties.values()} >= {("years", "I64")}


@pytest.mark.parametrize(
    ("one", "other", "outcome"),
    [
        (replace(AGE, name="years"), replace(AGE, name="years"), "merged"),
        (replace(AGE, name="years"), replace(AGE, name="old"), "conflict"),
        (replace(AGE, is_indexed=True), replace(AGE, is_indexed=True, scalar="I64"), "merged"),
        (replace(AGE, name="years"), None, "conflict"),
        (None, None, "merged"),
        (AGE, None, "merged"),
        (replace(AGE, default=5), AGE, "merged"),
        (replace(AGE, default=5), replace(AGE, default=6), "conflict"),
    ],
)
def test_both_sides_change_a_property(
    story: Story, one: Property | None, other: Property | None, outcome: str
) -> None:
    for branch, shape in ((MAIN, one), ("b", other)):
        shapes = [] if shape is None else [shape]
        hints = {each.name: "age" for each in shapes}
        story.apply(branch, node("Person", KEY, *shapes, MOOD, hints=hints), PLACE, LIVES)
    story.assign(MAIN, "ann", "mood", "wild")
    story.assign("b", "bob", "mood", "wild")
    story.model.create("c", "b")

    assert story(Merge("b", MAIN)) == outcome
    if outcome == "conflict":
        assert story(Merge(MAIN, "c")) == "conflict"


def test_two_extensions_of_an_enum_are_both_taken(story: Story) -> None:
    for branch, word in ((MAIN, "red"), ("b", "blue")):
        shape = replace(MOOD, values=MOOD.values | {word})
        story.apply(branch, node("Person", KEY, AGE, shape), PLACE, LIVES)

    assert story(Merge("b", MAIN)) == "merged"

    shown = story.model.state(MAIN).schema.values()
    values = {item.values for type_ in shown for item in type_.properties.values() if item.name == MOOD.name}
    assert values == {MOOD.values | {"red", "blue"}}


def test_two_things_of_one_name_are_a_conflict(story: Story) -> None:
    for branch in (MAIN, "b"):
        story.apply(branch, node("Person", KEY, AGE, MOOD, Property("p", "I32")), PLACE, LIVES)
    assert story.kinds("b", MAIN) == {"name"}

    story.apply("b", node("Person", KEY, AGE, MOOD, Property("q", "I32"), hints={"q": "p"}), PLACE, LIVES)
    assert story(Merge("b", MAIN)) == "merged"
    assert story.rows(MAIN)["node:Person"]["ann"].keys() == {"handle", "age", "mood", "p", "q"}


def test_a_type_that_is_dropped_is_not_changed_nor_ended_at(story: Story) -> None:
    story.apply(MAIN, PERSON)
    story.apply("b", *FIRST, edge("Likes", "Person", "Place"))
    assert story.kinds("b", MAIN) == {"name"}  # Likes has lost an end

    story.apply("b", *FIRST)
    story.apply("b", PERSON, node("Place", CODE, SIZE, Property("p", "I32")), LIVES)
    assert story.kinds("b", MAIN) == {"dropped_and_changed"}


# Merges of rows


def test_rows_of_a_dropped_type_must_be_as_they_were(story: Story) -> None:
    story.apply(MAIN, PERSON)
    story(Remove("b", "edge", "Lives", ("from", "ann"), "String"))
    story.assign("b", "ann", "age", 5)
    story.model.create("c", "b")
    assert story(Merge("b", MAIN)) == "merged"
    assert story.rows(MAIN).keys() == {"node:Person"}

    story(Load("c", (Record("Place", {"code": "y", "size": 0.5}),)))

    assert story.kinds("c", MAIN) == {"dropped_type"}
    assert story.kinds(MAIN, "c") == {"dropped_type"}


def test_a_dropped_property_is_gone_unless_it_was_written(story: Story) -> None:
    story.apply(MAIN, node("Person", KEY, MOOD), PLACE, LIVES)
    story.assign("b", "ann", "mood", "wild")
    story.model.create("c", "b")
    story.model.create("d", "b")
    story(Merge("b", MAIN))
    assert story.rows(MAIN)["node:Person"]["ann"] == {"handle": "ann", "mood": "wild"}

    story.assign("c", "bob", "age", 2)
    story(Load("d", (Record("Person", {"handle": "eve", "age": 3, "mood": None}),)))

    assert story.kinds("c", MAIN) == {"dropped_property"}
    assert story.kinds("d", MAIN) == {"dropped_property"}
    story(Load("d", (Record("Person", {"handle": "eve", "age": None, "mood": None}),)))
    assert story(Merge("d", MAIN)) == "merged"


def test_a_value_of_an_added_property_is_a_change_and_the_property_alone_is_not(story: Story) -> None:
    story.apply("b", node("Person", KEY, AGE, MOOD, Property("p", "I32")), PLACE, LIVES)
    story.assign(MAIN, "ann", "age", 5)
    story.model.create("c", "b")
    assert story(Merge(MAIN, "c")) == "merged"
    assert story.rows("c")["node:Person"]["ann"] == {"handle": "ann", "age": 5, "mood": "calm", "p": None}

    story.assign("b", "bob", "p", 1)
    story.model.create("d", "b")
    assert story(Merge("b", MAIN)) == "merged"
    assert story.rows(MAIN)["node:Person"]["bob"]["p"] == 1

    story.assign("d", "ann", "p", 1)
    assert story.kinds("d", MAIN) == {"divergent_update"}


def test_the_same_change_under_two_names_agrees(story: Story) -> None:
    years = node("Person", KEY, replace(AGE, name="years"), MOOD, hints={"years": "age"})
    story.apply(MAIN, years, PLACE, LIVES)
    story.assign(MAIN, "ann", "years", 5)
    story.assign("b", "ann", "age", 5)

    assert story(Merge("b", MAIN)) == "merged"
    assert story.rows(MAIN)["node:Person"]["ann"]["years"] == 5


def test_what_one_side_deleted_is_deleted(story: Story) -> None:
    story(Remove("b", "node", "Person", ("handle", "ann"), "String"))
    story.apply(MAIN, node("Human", KEY, MOOD, hint="Person"), PLACE, edge("Lives", "Human", "Place", RENT))

    assert story(Merge("b", MAIN)) == "merged"

    assert story.rows(MAIN)["node:Human"] == {"bob": {"handle": "bob", "mood": "calm"}}
    assert story.rows(MAIN)["edge:Lives"] == {}


def test_schemas_that_were_merged_crosswise_have_both_ancestors(story: Story) -> None:
    story.apply(MAIN, node("Person", KEY, AGE, MOOD, Property("p", "I32")), PLACE, LIVES)
    story.apply("b", PERSON, node("Place", CODE, SIZE, Property("q", "I32")), LIVES)
    story.model.create("c", MAIN)
    assert story(Merge("b", MAIN)) == "merged"
    assert story(Merge("c", "b")) == "merged"
    assert len(story.model.bases("b", MAIN)) == 2
    human = node("Human", KEY, AGE, MOOD, Property("p", "I32"), hint="Person")
    place = node("Place", CODE, SIZE, Property("q", "I32"))
    story.apply(MAIN, human, place, edge("Lives", "Human", "Place", RENT))
    story.apply("b", node("Person", KEY, AGE, MOOD, Property("p", "I32")), PLACE, LIVES)

    assert story(Merge(MAIN, "b")) == "merged"

    assert story.rows("b")["node:Place"] == {"x": {"code": "x", "size": 0.5}}  # q does not come back
    assert story.rows("b")["node:Human"]["ann"].keys() == {"handle", "age", "mood", "p"}


def test_an_edge_without_its_end_is_a_conflict(story: Story) -> None:
    story(Remove(MAIN, "node", "Person", ("handle", "bob"), "String"))
    story(Load("b", (Record("Lives", {"rent": 1}, "m", ("bob", "x")),)))

    assert story.kinds("b", MAIN) == {"orphan_edge"}


# Upgrades


def test_an_upgrade_brings_the_schema_and_no_rows(story: Story) -> None:
    shapes = (KEY, replace(AGE, name="years"), Property("p", "I32", False, default=3))
    story.apply(MAIN, node("Person", *shapes, hints={"years": "age"}), PLACE, LIVES)
    story(Remove(MAIN, "node", "Person", ("handle", "bob"), "String"))
    story.assign("b", "ann", "age", 5)

    assert story(Upgrade("b")) == "upgraded"

    assert story.rows("b")["node:Person"] == {
        "ann": {"handle": "ann", "years": 5, "p": 3},
        "bob": {"handle": "bob", "years": 1, "p": 3},
    }
    assert len(story.model.head("b").parents) == 1
    assert story(Upgrade("b")) == "already_up_to_date"
    assert story(Merge("b", MAIN)) == "merged"
    assert story.rows(MAIN)["node:Person"] == {"ann": {"handle": "ann", "years": 5, "p": 3}}


def test_an_upgrade_fails_where_the_branch_changed_what_main_dropped(story: Story) -> None:
    story.apply(MAIN, node("Person", KEY, MOOD), PLACE)
    story.model.create("c", "b")
    assert story(Upgrade("b")) == "upgraded"

    story.assign("c", "ann", "age", 2)

    before = story.model.state("c")
    assert story(Upgrade("c")) == "conflict"
    assert story.model.state("c") == before


def test_main_goes_on_after_an_upgrade(story: Story) -> None:
    wild = replace(MOOD, name="p")
    story.apply(MAIN, node("Person", KEY, AGE, MOOD, wild, Property("q", "I32")), PLACE, LIVES)
    story(Upgrade("b"))
    wilder = replace(wild, values=wild.values | {"red"})

    story.apply(MAIN, node("Person", KEY, AGE, MOOD, wilder), PLACE, LIVES)

    story.model.create("c", "b")
    assert story(Upgrade("b")) == "upgraded"
    assert story(Merge("c", MAIN)) == "merged"
    for branch in ("b", MAIN):  # q does not come back
        assert story.rows(branch)["node:Person"]["ann"].keys() == {"handle", "age", "mood", "p"}


# Programs


def test_programs_reach_every_outcome() -> None:
    """Without these a run of the engine against the model would say little."""
    seen = Counter[str]()
    for seed in range(HISTORIES):
        model = Model()
        model.start("0", PROGRAM_FIRST)
        program = Program(seed)
        for number in range(STEPS):
            step = program.first(model) if number == 0 else program.next(model)
            found = expect(model, step)
            seen[f"{type(step).__name__} {found.outcome}"] += 1
            if found.outcome == "conflict":
                program.after_conflict(step)
            if found.state is not None and found.branch is not None:
                settle(model, found, f"{number + 1}")
                check(model.state(found.branch))

    often = {name for name, count in seen.items() if count >= HISTORIES // 20}
    planned = {f"Apply {outcome}" for outcome in ("applied", "unchanged", "unsupported", "invalid")}
    merged = {f"Merge {each}" for each in ("already_up_to_date", "fast_forward", "merged", "conflict")}
    upgraded = {f"Upgrade {outcome}" for outcome in ("already_up_to_date", "upgraded", "conflict")}
    assert often >= planned | merged | upgraded | {"Load done", "Load refused", "Insert done", "Remove done"}


def check(state: State) -> None:
    """Assert what holds of every state: rows have the properties of their types, and edges their ends."""
    assert state.schema.keys() == state.rows.keys()
    assert not orphans(state)
    for number, shape in state.schema.items():
        for row in state.rows[number].values():
            assert {each for each in row if isinstance(each, int)} == shape.properties.keys()
            for item, each in shape.properties.items():
                assert row[item] is not None or each.is_nullable
                assert row[item] is None or not each.values or row[item] in each.values
