"""When rows of the target may be told by those of the base, and when they are looked up."""

from dataclasses import replace
from pathlib import Path

import lance

from omnigraph.graph.graph import Graph
from omnigraph.merge.rows import RowReader, as_texts
from omnigraph.merge.three_way import Points, table_delta
from omnigraph.storage.tables.pinned import PinnedTable
from tests.engine.merge.world import ages, set_age
from tests.support.seam import internals

PERSON = "node:Person"


def person(graph: Graph, branch: str | None = None) -> PinnedTable:
    return internals(graph).parts.pinned(graph.snapshot(branch).entry(PERSON))


def test_row_ids_of_a_base_that_the_target_did_not_come_from_are_not_used_for_it(world: Graph) -> None:
    set_age(world, "june", "ann", 31)
    set_age(world, None, "cid", 33)
    world.merge("june")
    base = person(world, "june")
    set_age(world, "june", "bob", 41)
    reader = RowReader(internals(world).parts.store)

    delta = table_delta(reader, Points(PERSON, base, person(world, "june"), person(world)))

    assert as_texts(delta.changed.placed.ids) == ["bob"]
    assert delta.changed.replaced is None
    assert world.merge("june").commit is not None
    assert ages(world) == {"ann": 31, "bob": 41, "cid": 33, "dan": 30}


def test_row_ids_of_a_base_that_the_target_came_from_are(world: Graph) -> None:
    base = person(world)
    set_age(world, "june", "bob", 41)
    set_age(world, None, "cid", 33)
    reader = RowReader(internals(world).parts.store)

    delta = table_delta(reader, Points(PERSON, base, person(world, "june"), person(world)))

    assert as_texts(delta.changed.placed.ids) == ["bob"]
    assert delta.changed.replaced is not None


def test_rows_are_not_compared_with_a_base_that_lacks_a_column(world: Graph) -> None:
    base = person(world)
    place = Path(base.address.uri)
    lance.dataset(place).add_columns({"shoe": "cast(null as bigint)"})
    lance.dataset(place).update({"age": "41"}, where="name = 'bob'")
    version = lance.dataset(place).version
    source = replace(base, version=version)
    reader = RowReader(internals(world).parts.store)

    delta = table_delta(reader, Points(PERSON, base, source, base))

    assert as_texts(delta.changed.placed.ids) == ["bob"]
