"""Random changes of a schema: most are supported, some are not, and a few are no schema at all."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from tests.models.schemas.shape import (
    Property,
    Scalar,
    Schema,
    Value,
    Wanted,
    WantedProperty,
    WantedType,
    wanted_of,
)

NODE_NAMES = ("City", "Club", "Event", "Idea")
EDGE_NAMES = ("Likes", "Joined", "Saw")
NAMES = ("p", "q", "r", "s")
WORDS = ("blue", "calm", "red", "wild", "x-1")
SCALARS: tuple[Scalar, ...] = ("String", "Bool", "I32", "I64", "F32", "F64", "enum")
DEFAULTS: dict[Scalar, tuple[Value, ...]] = {
    "String": ("", "none"),
    "Bool": (True, False),
    "I32": (0, 5),
    "I64": (0, 2**40),
    "F32": (0.5,),
    "F64": (1.5,),
}
WIDEN: dict[Scalar, tuple[Scalar, ...]] = {"I32": ("I64", "F64"), "F32": ("F64",)}
ANOTHER: dict[Scalar, Scalar] = {"I64": "I32", "F64": "F32", "String": "I64", "I32": "F32", "Bool": "String"}
NEW_DEFAULTS = 0.2  # of the changes of a schema give a property another default, or take it away
AGREES = 0.25  # of the changes of a schema begin with a change that another branch has made

T = TypeVar("T")


class Editor:
    """A source of texts."""

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw
        self._edits: dict[Callable[[Wanted], Wanted | None], float] = {
            self._add_property: 5,
            self._drop_property: 3,
            self._rename_property: 3,
            self._rename_type: 2,
            self._add_node: 1.5,
            self._add_edge: 1.5,
            self._drop_edge: 1,
            self._drop_node: 1,
            self._extend_enum: 3,
            self._add_index: 1.5,
            self._widen: 3,
            self._allow_null: 1.5,
            self._keep_hint: 0.5,
            self._add_required: 0.3,
            self._change_type: 0.3,
            self._forbid_null: 0.2,
            self._shrink_enum: 0.2,
            self._drop_index: 0.2,
            self._move_end: 0.2,
            self._drop_node_only: 0.3,
            self._hint_at_nothing: 0.3,
            self._declare_twice: 0.2,
        }

    def text(self, own: Schema, others: Sequence[Schema]) -> Wanted:
        """Return a text that changes a schema; some changes are those that other branches have made."""
        if self._draw.random() < NEW_DEFAULTS:
            own = self._with_default(own)
        wanted = wanted_of(own)
        if others and self._draw.random() < AGREES:
            wanted = self._agreeing(own, self._draw.choice(others)) or wanted
        for _ in range(self._draw.choice((0, 1, 1, 1, 1, 2, 2, 3))):
            kinds, weights = zip(*self._edits.items(), strict=True)
            edit = self._draw.choices(kinds, weights)[0]
            wanted = edit(wanted) or wanted
        return tuple(self._draw.sample(wanted, len(wanted)))  # the order says nothing

    def _with_default(self, own: Schema) -> Schema:
        """Return a schema in which one property has another default."""
        places = [
            (owner, number)
            for owner, shape in own.items()
            for number, each in shape.properties.items()
            if not each.is_key
        ]
        if not places:
            return own
        owner, number = self._draw.choice(places)
        shape = own[owner].properties[number]
        values = DEFAULTS.get(shape.scalar) or sorted(shape.values)
        changed = replace(shape, default=self._draw.choice((None, *values)))
        return {**own, owner: replace(own[owner], properties={**own[owner].properties, number: changed})}

    def _agreeing(self, own: Schema, other: Schema) -> Wanted | None:
        """Return a text that makes one change of another branch here, too."""
        wanted = dict(zip(own, wanted_of(own), strict=True))
        texts: list[Wanted] = []
        for number, mine in own.items():
            theirs, text = other.get(number), wanted[number]
            if theirs is None:
                ends = {each for each in own if number in (own[each].ends or ())}
                gone = ends | {number}
                texts.append(tuple(each for number, each in wanted.items() if number not in gone))
                continue
            if theirs.name != mine.name:
                texts.append(_renamed_type(tuple(wanted.values()), text, theirs.name))
            items = dict(zip(mine.properties, text.properties, strict=True))
            for each in mine.properties.keys() | theirs.properties.keys():
                shape, was = theirs.properties.get(each), mine.properties.get(each)
                if shape == was:
                    continue
                hint = was.name if was is not None and shape is not None and was.name != shape.name else None
                after = {**items, each: WantedProperty(shape, hint)} if shape is not None else dict(items)
                if shape is None:
                    del after[each]
                texts.append(_with(tuple(wanted.values()), text, tuple(after.values())))
        return self._draw.choice(texts) if texts else None

    # Properties

    def _add_property(self, wanted: Wanted) -> Wanted | None:
        owner = self._draw.choice(wanted) if wanted else None
        name = self._free(NAMES, [] if owner is None else [each.shape.name for each in owner.properties])
        if owner is None or name is None:
            return None
        return _with(wanted, owner, (*owner.properties, WantedProperty(self._new_property(name))))

    def _new_property(self, name: str) -> Property:
        scalar = self._draw.choice(SCALARS)
        values = frozenset(self._draw.sample(WORDS, 2)) if scalar == "enum" else frozenset[str]()
        is_indexed = self._draw.random() < 0.1
        if self._draw.random() < 0.4:
            default = self._draw.choice(DEFAULTS.get(scalar) or sorted(values))
            is_nullable = self._draw.random() < 0.4
            return Property(name, scalar, is_nullable, values, default, is_indexed)
        return Property(name, scalar, values=values, is_indexed=is_indexed)

    def _drop_property(self, wanted: Wanted) -> Wanted | None:
        return self._change(wanted, lambda shape: not shape.is_key, lambda _: None)

    def _rename_property(self, wanted: Wanted) -> Wanted | None:
        name = self._draw.choice(NAMES)
        return self._change(wanted, lambda shape: shape.name != name, lambda shape: replace(shape, name=name))

    def _extend_enum(self, wanted: Wanted) -> Wanted | None:
        word = self._draw.choice(WORDS)
        return self._change(
            wanted,
            lambda shape: shape.scalar == "enum",
            lambda shape: replace(shape, values=shape.values | {word}),
        )

    def _shrink_enum(self, wanted: Wanted) -> Wanted | None:
        return self._change(
            wanted,
            lambda shape: len(shape.values) > 1,
            lambda shape: replace(shape, values=frozenset(sorted(shape.values)[1:])),
        )

    def _add_index(self, wanted: Wanted) -> Wanted | None:
        return self._change(
            wanted,
            lambda shape: not shape.is_key and not shape.is_indexed,
            lambda shape: replace(shape, is_indexed=True),
        )

    def _drop_index(self, wanted: Wanted) -> Wanted | None:
        return self._change(
            wanted, lambda shape: shape.is_indexed, lambda shape: replace(shape, is_indexed=False)
        )

    def _widen(self, wanted: Wanted) -> Wanted | None:
        return self._change(
            wanted,
            lambda shape: shape.scalar in WIDEN,
            lambda shape: replace(shape, scalar=self._draw.choice(WIDEN[shape.scalar])),
        )

    def _allow_null(self, wanted: Wanted) -> Wanted | None:
        return self._change(
            wanted,
            lambda shape: not (shape.is_nullable or shape.is_key),
            lambda shape: replace(shape, is_nullable=True),
        )

    def _forbid_null(self, wanted: Wanted) -> Wanted | None:
        return self._change(
            wanted, lambda shape: shape.is_nullable, lambda shape: replace(shape, is_nullable=False)
        )

    def _change_type(self, wanted: Wanted) -> Wanted | None:
        return self._change(
            wanted,
            lambda shape: shape.scalar in ANOTHER,
            lambda shape: replace(shape, scalar=ANOTHER[shape.scalar]),
        )

    def _add_required(self, wanted: Wanted) -> Wanted | None:
        owner = self._draw.choice(wanted) if wanted else None
        must = WantedProperty(Property("must", "I64", False))
        return _with(wanted, owner, (*owner.properties, must)) if owner is not None else None

    def _keep_hint(self, wanted: Wanted) -> Wanted | None:
        """Add a hint to something that keeps its name; it says nothing."""
        owner = self._draw.choice(wanted) if wanted else None
        if owner is None:
            return None
        items = tuple(replace(each, hint="ghost") if each.hint is None else each for each in owner.properties)
        return _with(wanted, owner, items)

    def _change(
        self, wanted: Wanted, can: Callable[[Property], bool], change: Callable[[Property], Property | None]
    ) -> Wanted | None:
        """Change, or drop, a property of a kind; a new name comes with its hint."""
        places = [(owner, item) for owner in wanted for item in owner.properties if can(item.shape)]
        if not places:
            return None
        owner, item = self._draw.choice(places)
        after = change(item.shape)
        items = []
        for each in owner.properties:
            if each is not item:
                items.append(each)
            elif after is not None:
                hint = each.hint if after.name == each.shape.name else each.hint or each.shape.name
                items.append(WantedProperty(after, hint))
        return _with(wanted, owner, tuple(items))

    # Types

    def _rename_type(self, wanted: Wanted) -> Wanted | None:
        owner = self._draw.choice(wanted) if wanted else None
        if owner is None:
            return None
        name = self._draw.choice(NODE_NAMES if owner.kind == "node" else EDGE_NAMES)
        return _renamed_type(wanted, owner, name) if name != owner.name else None

    def _add_node(self, wanted: Wanted) -> Wanted | None:
        name = self._free(NODE_NAMES, [each.name for each in wanted])
        if name is None:
            return None
        key = (WantedProperty(Property("code", "String", False, is_key=True)),)
        first = WantedProperty(self._new_property(self._draw.choice(NAMES)))
        return (*wanted, WantedType("node", name, (*(key if self._draw.random() < 0.6 else ()), first)))

    def _add_edge(self, wanted: Wanted) -> Wanted | None:
        name = self._free(EDGE_NAMES, [each.name for each in wanted])
        nodes = [each.name for each in wanted if each.kind == "node"]
        if name is None or not nodes:
            return None
        ends = (self._draw.choice(nodes), self._draw.choice(nodes))
        items = (WantedProperty(self._new_property("p")),) if self._draw.random() < 0.7 else ()
        return (*wanted, WantedType("edge", name, items, ends))

    def _drop_edge(self, wanted: Wanted) -> Wanted | None:
        return self._without("edge", wanted)

    def _drop_node_only(self, wanted: Wanted) -> Wanted | None:
        return self._without("node", wanted)

    def _drop_node(self, wanted: Wanted) -> Wanted | None:
        left = self._without("node", wanted) or ()
        nodes = {each.name for each in left if each.kind == "node"}
        return tuple(each for each in left if nodes.issuperset(each.ends or ())) if nodes else None

    def _without(self, kind: str, wanted: Wanted) -> Wanted | None:
        some = [each for each in wanted if each.kind == kind]
        if not some:
            return None
        gone = self._draw.choice(some)
        return tuple(each for each in wanted if each is not gone)

    def _move_end(self, wanted: Wanted) -> Wanted | None:
        edges = [each for each in wanted if each.ends is not None]
        nodes = [each.name for each in wanted if each.kind == "node"]
        if not edges or not nodes:
            return None
        edge = self._draw.choice(edges)
        assert edge.ends is not None
        moved = replace(edge, ends=(edge.ends[0], self._draw.choice(nodes)))
        return tuple(moved if each is edge else each for each in wanted)

    def _hint_at_nothing(self, wanted: Wanted) -> Wanted | None:
        return (*wanted, WantedType("node", "Odd", (), hint="Ghost"))

    def _declare_twice(self, wanted: Wanted) -> Wanted | None:
        return (*wanted, self._draw.choice(wanted)) if wanted else None

    def _free(self, names: Sequence[str], taken: Sequence[str]) -> str | None:
        free = [each for each in names if each not in taken]
        return self._draw.choice(free) if free else None


def _with(wanted: Wanted, owner: WantedType, properties: tuple[WantedProperty, ...]) -> Wanted:
    changed = replace(owner, properties=properties)
    return tuple(changed if each is owner else each for each in wanted)


def _renamed_type(wanted: Wanted, owner: WantedType, name: str) -> Wanted:
    """Return a text in which a type, and the edges that end at it, use its new name."""

    def follow(each: WantedType) -> WantedType:
        if each is owner:
            each = replace(each, name=name, hint=each.hint or owner.name)
        if owner.kind == "node" and each.ends is not None:
            one, other = (name if end == owner.name else end for end in each.ends)
            each = replace(each, ends=(one, other))
        return each

    return tuple(follow(each) for each in wanted)
