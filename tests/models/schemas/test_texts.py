"""The planner of the language against the model: random texts are judged alike."""

import random
from collections import Counter
from collections.abc import Iterator
from itertools import count

from omnigraph import CatalogError, ParseError
from omnigraph.catalog import migration_steps
from tests.models.schemas.edits import Editor
from tests.models.schemas.program import FIRST
from tests.models.schemas.shape import Plan, Schema, Wanted, plan, wanted_of
from tests.models.schemas.texts import render
from tests.support import library

HISTORIES = 120
PLANS_WIDER = hasattr(migration_steps, "WidenProperty")  # and has defaults
TEXTS = 6  # of one history, each a change of the last one that could be applied


def test_the_planner_agrees_with_the_model() -> None:
    seen = Counter[str]()
    for before, text, planned in judged():
        if PLANS_WIDER or not needs_wider_plans(before, text, planned):
            assert outcome(before, text) == planned.outcome, told(before, text, planned)
            seen[planned.outcome] += 1

    assert min(seen[each] for each in ("applied", "unchanged", "unsupported", "invalid")) > 20


def judged() -> Iterator[tuple[Schema, Wanted, Plan]]:
    """Give schemas, texts that change them, and what the model says of each."""
    for seed in range(HISTORIES):
        editor, numbers = Editor(random.Random(seed)), count(1)
        schema = plan({}, FIRST, numbers).schema
        for _ in range(TEXTS):
            text = editor.text(schema, [])
            planned = plan(schema, text, numbers)
            yield schema, text, planned
            schema = planned.schema


def outcome(before: Schema, text: Wanted) -> str:
    """Return what the planner says, in the words of the model."""
    try:
        found = library.plan(render(wanted_of(before)), render(text))
    except (ParseError, CatalogError):
        return "invalid"
    if not found.steps:
        return "unchanged"
    return "applied" if found.is_supported else "unsupported"


def needs_wider_plans(before: Schema, text: Wanted, planned: Plan) -> bool:
    """Return whether a text has a default, or its plan changes the type of a property."""
    has_default = any(item.shape.default is not None for shape in text for item in shape.properties)
    return has_default or any(
        (was.scalar, was.is_nullable) != (now.scalar, now.is_nullable)
        for kind, shape in before.items()
        if kind in planned.schema
        for number, was in shape.properties.items()
        for now in [planned.schema[kind].properties.get(number, was)]
    )


def told(before: Schema, text: Wanted, planned: Plan) -> str:
    """Return all that someone needs to know about a difference."""
    return f"from\n{render(wanted_of(before))}\nto\n{render(text)}\n{planned.outcome}: {planned.reasons}"
