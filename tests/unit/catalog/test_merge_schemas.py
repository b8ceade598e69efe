"""Three schemas to one, as texts: what both sides did, and what they disagree about."""

import pytest

from omnigraph.catalog.build import read_schema
from omnigraph.catalog.identity import AcceptedSchema, accept_first, inherit, resolve
from omnigraph.catalog.merge_schemas import MergedSchemas, merge_schemas
from omnigraph.catalog.render import render_schema
from omnigraph.core.span import Source

BASE = """\
interface Named { name: String }
node Person implements Named { name: String @key  age: I32?  mood: enum(a, b)?  bio: String?  @index(age) }
node Place { code: String @key }
edge Knows: Person -> Person { since: I32? }
"""


def accepted(text: str = BASE) -> AcceptedSchema:
    return accept_first(read_schema(Source(text)))


def changed(base: AcceptedSchema, text: str, start: int) -> AcceptedSchema:
    """Return a schema that follows another one, with numbers of its own."""
    desired = read_schema(Source(text))
    return inherit(base, desired, resolve(base, desired), start=start)


def merged(ours: str, theirs: str) -> MergedSchemas:
    base = accepted()
    return merge_schemas(base, changed(base, ours, 100), changed(base, theirs, 200))


def replaced(old: str, new: str, text: str = BASE) -> str:
    assert text.count(old) == 1
    return text.replace(old, new)


def shape(text: str) -> object:
    return read_schema(Source(text)).shape


SIDES = {
    "one side only": (BASE, replaced("age: I32?", "age: I64?"), replaced("age: I32?", "age: I64?")),
    "the same on both": (
        replaced("bio: String?", 'story: String? @rename_from("bio")'),
        replaced("bio: String?", 'story: String? @rename_from("bio")'),
        replaced("bio: String?", "story: String?"),
    ),
    "a rename and a wider type": (
        replaced("since: I32?", 'begun: I32? @rename_from("since")'),
        replaced("since: I32?", "since: I64?"),
        replaced("since: I32?", "begun: I64?"),
    ),
    "values of one enum": (
        replaced("enum(a, b)", "enum(a, b, c)"),
        replaced("enum(a, b)", "enum(a, b, d)"),
        replaced("enum(a, b)", "enum(a, b, c, d)"),
    ),
    "two properties and two types": (
        replaced("age: I32?", "age: I32?  x: I32?") + "node A { k: String @key }\n",
        replaced("age: I32?", "age: I32?  y: I32?") + "node B { k: String @key }\n",
        replaced("age: I32?", "age: I32?  x: I32?  y: I32?")
        + "node A { k: String @key }\nnode B { k: String @key }\n",
    ),
    "a renamed end of an edge": (
        BASE.replace("Person ->", "Human ->")
        .replace("-> Person", "-> Human")
        .replace("node Person", 'node Human @rename_from("Person")'),
        BASE + "edge Likes: Person -> Place\n",
        BASE.replace("Person", "Human") + "edge Likes: Human -> Place\n",
    ),
    "a drop and something else": (
        BASE.replace("node Place { code: String @key }\n", ""),
        replaced("age: I32?", "age: I32? @default(3)"),
        replaced("age: I32?", "age: I32? @default(3)").replace("node Place { code: String @key }\n", ""),
    ),
}


@pytest.mark.parametrize(("ours", "theirs", "result"), SIDES.values(), ids=SIDES)
def test_what_both_sides_did_is_in_the_result(ours: str, theirs: str, result: str) -> None:
    for one, other in ((ours, theirs), (theirs, ours)):
        found = merged(one, other)

        assert found.conflicts == ()
        assert found.accepted is not None
        assert found.accepted.shape == shape(result)
        assert found.accepted.next_id == max(
            changed(accepted(), one, 100).next_id, changed(accepted(), other, 200).next_id
        )


def test_things_keep_the_numbers_that_their_side_gave_them() -> None:
    base = accepted()
    ours = changed(base, replaced("age: I32?", "age: I32?  x: I32?"), 100)
    theirs = changed(base, replaced("bio: String?", 'story: String? @rename_from("bio")'), 200)

    found = merge_schemas(base, ours, theirs).accepted

    assert found is not None
    numbers = {name: number for (_, _, name), number in found.property_ids.items()}
    before = {name: number for (_, _, name), number in base.property_ids.items()}
    assert (numbers["story"], numbers["x"]) == (before["bio"], 100)
    assert found.type_ids == base.type_ids


DISAGREEMENTS = {
    "other names": (
        replaced("bio: String?", 'story: String? @rename_from("bio")'),
        replaced("bio: String?", 'tale: String? @rename_from("bio")'),
        ("node:Person", "story"),
    ),
    "other types": (
        replaced("since: I32?", "since: I64?"),
        replaced("since: I32?", "since: F64?"),
        ("edge:Knows", "since"),
    ),
    "other defaults": (
        replaced("since: I32?", "since: I32? @default(1)"),
        replaced("since: I32?", "since: I32? @default(2)"),
        ("edge:Knows", "since"),
    ),
    "a change and a drop": (
        replaced("bio: String?", 'bio: String? @description("who")'),
        replaced("  bio: String?", ""),
        ("node:Person", "bio"),
    ),
    "a type changed and dropped": (
        replaced("code: String @key", "code: String @key  size: I32?"),
        BASE.replace("node Place { code: String @key }\n", ""),
        ("node:Place", None),
    ),
    "two properties of one name": (
        replaced("since: I32?", "since: I32?  x: I32?"),
        replaced("since: I32?", "since: I32?  x: I32?"),
        ("edge:Knows", "x"),
    ),
    "two types of one name": (
        BASE + "node A { k: String @key }\n",
        BASE + "node A { k: String @key }\n",
        ("schema", None),
    ),
    "an edge to a type that is gone": (
        BASE + "edge Likes: Person -> Place\n",
        BASE.replace("node Place { code: String @key }\n", ""),
        ("schema", None),
    ),
}


@pytest.mark.parametrize(("ours", "theirs", "named"), DISAGREEMENTS.values(), ids=DISAGREEMENTS)
def test_a_disagreement_is_named(ours: str, theirs: str, named: tuple[str, str | None]) -> None:
    found = merged(ours, theirs)

    assert found.accepted is None
    (conflict,) = found.conflicts
    assert (conflict.table_key, conflict.property) == named


def test_all_disagreements_are_found() -> None:
    ours = replaced("since: I32?", "since: I64?").replace("bio: String?", 'bio: String? @description("a")')
    theirs = replaced("since: I32?", "since: F64?").replace("bio: String?", 'bio: String? @description("b")')

    assert {conflict.property for conflict in merged(ours, theirs).conflicts} == {"since", "bio"}


def test_a_text_is_written_that_reads_as_the_result() -> None:
    found = merged(replaced("age: I32?", "age: I64?"), BASE + "node A { k: String @key }\n")

    assert found.accepted is not None
    assert shape(found.text) == found.accepted.shape
    assert found.text == render_schema(found.accepted.shape)
