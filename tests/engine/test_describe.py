"""`Graph.describe`: a type, and what its rows hold."""

import base64
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.core.errors import BadRequest, BranchNotFound
from omnigraph.graph.graph import Graph
from omnigraph.operations.describe.columns import (
    DISTINCT_EXACT_MAX,
    SAMPLES_MAX,
    TEXT_CHARACTERS_MAX,
    ColumnSummary,
    Summary,
)
from omnigraph.operations.describe.degrees import Degrees
from omnigraph.wire.describe_document import describe_document
from tests.support.engine import edge, files, new_graph, node
from tests.support.queries import mutation

SCHEMA = """\
interface Named { label: String? }
node Thing implements Named {
    zone: String
    area: I32
    tone: enum(high, low)? @index
    big: U64? @unique
    rate: F32? @default(0.5)
    on: Bool?
    day: Date?
    at: DateTime?
    tags: [String]?
    times: [DateTime]?
    body: Blob?
    place: Vector(2)? @index
    label: String? @note("what people call it")
    @key(zone, area)
    @range(area, 0..9)
    @check(zone, "^[a-z]+$")
}
node Alone { name: String @key }
edge Near: Thing -> Alone @card(0..2) { since: I32? }
"""
NIGHT = datetime(2026, 2, 3, 4, 5, 6, 789_000, tzinfo=UTC)
DATA = base64.b64encode(b"bytes").decode()


@pytest.fixture(scope="module")
def things(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return new_graph(
        tmp_path_factory.mktemp("things") / "g",
        SCHEMA,
        node(
            "Thing",
            zone="a",
            area=1,
            tone="low",
            big=2**63 + 1,
            on=True,
            day="2026-01-02",
            at="2026-02-03T04:05:06.789Z",
            tags=["x", "y"],
            times=["2026-02-03T04:05:06.789Z"],
            body=f"base64:{DATA}",
            place=[1.0, 2.0],
            label="x" * 200,
        ),
        node("Thing", zone="a", area=2, tone="low", rate=1.5),
        node("Thing", zone="b", area=2, tone="high", rate=None),
        node("Alone", name="p"),
        node("Alone", name="q"),
        edge("Near", '["1","a"]', "p", id="e1", since=3),
        edge("Near", '["1","a"]', "p", id="e2"),
    )


@pytest.mark.case("surfaces", 433)
def test_a_node_type_is_described(things: Graph) -> None:
    before = files(Path(things.uri))

    found = things.describe("Thing")

    assert (found.table_key, found.rows, found.interfaces) == ("node:Thing", 3, ("Named",))
    assert found.annotations == ("@key(zone, area)",)
    assert [(item.name, item.source, item.target) for item in found.edges] == [("Near", "Thing", "Alone")]
    listed = {item.name: item for item in found.properties}
    assert {name: item.annotations for name, item in listed.items() if item.annotations} == {
        "area": ("@range(area, 0..9)",),
        "big": ("@unique",),
        "label": ('@note("what people call it")',),
        "place": ("@index",),
        "rate": ("@default(0.5)",),
        "tone": ("@index",),
        "zone": ('@check(zone, "^[a-z]+$")',),
    }
    long = "x" * TEXT_CHARACTERS_MAX + "…"
    assert {name: item.values for name, item in listed.items()} == {
        "area": ColumnSummary(0, 2, False, 1, 2, (1, 2)),
        "at": ColumnSummary(2, 1, False, NIGHT, NIGHT, (NIGHT,)),
        "big": ColumnSummary(2, 1, False, 2**63 + 1, 2**63 + 1, (2**63 + 1,)),
        "body": ColumnSummary(2, None, False, None, None, ()),
        "day": ColumnSummary(2, 1, False, date(2026, 1, 2), date(2026, 1, 2), (date(2026, 1, 2),)),
        "label": ColumnSummary(2, 1, False, long, long, (long,)),
        "on": ColumnSummary(2, 1, False, None, None, (True,)),
        "place": ColumnSummary(2, None, False, None, None, ()),
        "rate": ColumnSummary(1, 2, False, 0.5, 1.5, (0.5, 1.5)),
        "tags": ColumnSummary(2, None, False, None, None, (["x", "y"],)),
        "times": ColumnSummary(2, None, False, None, None, ([NIGHT],)),
        "tone": ColumnSummary(0, 2, False, "high", "low", ("low", "high")),
        "zone": ColumnSummary(0, 2, False, "a", "b", ("a", "b")),
    }
    assert str(listed["tone"].type) == "enum(high, low)?"
    assert files(Path(things.uri)) == before


@pytest.mark.case("surfaces", 433)
def test_the_document_has_json_values(things: Graph) -> None:
    document = describe_document(things.describe("Thing"), "g")

    listed = document["properties"]
    assert isinstance(listed, list)
    shown = {item["name"]: (item["min"], item["samples"]) for item in listed}
    assert shown["big"] == (str(2**63 + 1), [str(2**63 + 1)])
    assert shown["at"] == ("2026-02-03T04:05:06.789Z", ["2026-02-03T04:05:06.789Z"])
    assert shown["day"] == ("2026-01-02", ["2026-01-02"])
    assert shown["tags"] == (None, [["x", "y"]])
    assert shown["body"] == shown["place"] == (None, [])


@pytest.mark.case("surfaces", 434)
def test_an_edge_type_has_ends_with_degrees(things: Graph) -> None:
    found = things.describe("Near")

    assert found.annotations == ("@card(0..2)",)
    assert found.source is not None
    assert found.target is not None
    assert (found.source.type_name, found.target.type_name) == ("Thing", "Alone")
    assert found.source.degrees == Degrees(3, 2, 0, 0.0, 2 / 3, 2)
    assert found.target.degrees == Degrees(2, 1, 0, 1.0, 1.0, 2)


@pytest.mark.case("surfaces", 434)
def test_types_without_rows_are_described(tmp_path: Path) -> None:
    with new_graph(tmp_path / "g", SCHEMA) as graph:
        nodes, edges = graph.describe("node:Thing"), graph.describe("edge:Near")

    assert {item.values.distinct for item in nodes.properties} == {0, None}
    assert edges.source is not None
    assert edges.source.degrees == Degrees(0, 0, 0, 0.0, 0.0, 0)


@pytest.mark.case("surfaces", 436)
def test_what_is_no_type_is_refused(things: Graph) -> None:
    with pytest.raises(BadRequest, match=r"unknown type 'Thin'; did you mean 'Thing'\?"):
        things.describe("Thin")
    with pytest.raises(BadRequest, match=r"Named is an interface and has no rows: .* Thing"):
        things.describe("Named")
    with pytest.raises(BadRequest, match="must be a text"):
        things.describe(["Thing"])  # type: ignore[arg-type]
    with pytest.raises(BranchNotFound):
        things.describe("Thing", branch="june")


@pytest.mark.case("surfaces", 436)
def test_a_past_state_and_a_branch_are_described(tmp_path: Path) -> None:
    with new_graph(tmp_path / "g", SCHEMA, node("Alone", name="p")) as graph:
        then = graph.snapshot()
        graph.create_branch("june")
        graph.mutate(mutation('insert Alone { name: "q" }'))

        assert graph.describe("Alone").rows == 2
        assert graph.describe("Alone", branch="june").rows == 1
        assert graph.describe("Alone", snapshot=then.head.graph_commit_id).rows == 1
        assert graph.at(then).describe("Alone").rows == 1


def summary(values: Sequence[Any], type_: pa.DataType, batch: int) -> ColumnSummary:
    found = Summary(type_, is_unique=False)
    for start in range(0, len(values), batch):
        found.add(pa.array(values[start : start + batch]).cast(type_))
    return found.result()


@pytest.mark.case("surfaces", 435)
@pytest.mark.parametrize(
    ("type_", "make"),
    [
        (pa.int64(), lambda number: number),
        (pa.utf8(), lambda number: f"value {number}"),
        (pa.float64(), lambda number: number / 7),
        (pa.date64(), lambda number: number * 1_000),
    ],
    ids=["integers", "texts", "floats", "moments"],
)
def test_many_distinct_values_are_estimated_and_said_to_be(
    type_: pa.DataType, make: Callable[[int], object]
) -> None:
    number = 3 * DISTINCT_EXACT_MAX
    values = [make(place) for place in range(number)] * 2

    found = summary(values, type_, 1_000)

    assert found.is_approximate
    assert found.distinct is not None
    assert abs(found.distinct - number) < number * 0.08, "five times the usual error"
    assert found == summary(values, type_, 7_777)


@pytest.mark.case("surfaces", 435)
def test_distinct_values_are_exact_up_to_the_bound() -> None:
    values = [*range(DISTINCT_EXACT_MAX)] * 2

    found = summary([*values, None], pa.int64(), 999)

    assert (found.distinct, found.is_approximate, found.nulls) == (DISTINCT_EXACT_MAX, False, 1)
    assert (found.minimum, found.maximum) == (0, DISTINCT_EXACT_MAX - 1)
    assert found.samples == tuple(range(SAMPLES_MAX))


@pytest.mark.case("surfaces", 435)
def test_an_estimate_is_never_above_the_number_of_values() -> None:
    values = [f"v{place}" for place in range(DISTINCT_EXACT_MAX + 1)]

    found = summary(values, pa.utf8(), 5_000)

    assert found.is_approximate
    assert found.distinct is not None
    assert found.distinct <= len(values)
