"""A time is an aware datetime in UTC wherever a Python program meets one."""

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from omnigraph import Graph
from omnigraph.core.temporal import moment_of_micros
from tests.support.pages import DOCS

SEEN = datetime(2024, 5, 1, 13, 45, 12, 345_000, tzinfo=UTC)
BORN = date(1990, 2, 3)
ANN = {"name": "ann", "seen": SEEN, "seen_at": [SEEN, SEEN], "born": BORN}
READ = "query q() { match { $p: Person } return { $p.seen, $p.seen_at, $p } }"


def times_in(value: object) -> Iterator[datetime]:
    """Yield the datetimes anywhere in a value."""
    if isinstance(value, datetime):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from times_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from times_in(item)
    elif is_dataclass(value):
        for field in fields(value):
            yield from times_in(getattr(value, field.name))


@pytest.mark.case("surfaces", 650)
def test_every_surface_gives_the_same_aware_moment(town: Graph) -> None:
    town.load({"Person": [ANN]}, "append", index=False)
    commit = town.commits()[0]
    feed = town.changes(start="beginning")
    described = town.describe("Person")
    surfaces: dict[str, tuple[object, int]] = {
        "rows": (town.query(READ).rows, 6),
        "table": (town.table("Person").to_pylist(), 3),
        "entity_at": (town.entity_at("Person", "ann"), 3),
        "export": (list(town.export()), 3),
        "baseline": (list(town.baseline()), 3),
        "diff": (list(town.diff("main", town.commits()[1].graph_commit_id)), 3),
        "commit_changes": (list(town.commit_changes(commit.graph_commit_id)), 3),
        "changes": (list(feed), 3),
        "describe": (next(item.values for item in described.properties if item.name == "seen"), 3),
    }

    for name, (value, count) in surfaces.items():
        found = list(times_in(value))
        assert found == [SEEN] * count, name
        assert {moment.utcoffset() for moment in found} == {timedelta(0)}, name


@pytest.mark.case("surfaces", 650)
def test_commits_and_changes_say_when_they_were_made(town: Graph) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    town.load({"Person": [ANN]}, "append", index=False)
    commit = town.commits()[0]
    (block,) = town.changes(start=f"after:{town.commits()[1].graph_commit_id}")

    assert before <= commit.created_at <= datetime.now(UTC)
    assert commit.created_at.tzinfo is UTC
    assert block.cause.authored_at == commit.created_at == moment_of_micros(commit.created_at_micros)
    assert town.at(commit.created_at).snapshot.head == commit
    assert town.commits(where=lambda one: one.created_at >= before)[0] == commit


@pytest.mark.case("surfaces", 650)
def test_no_public_value_has_a_time_as_a_number() -> None:
    page = (DOCS / "reference" / "python.md").read_text(encoding="utf-8")
    numbers = set(re.findall(r"^\| `(\w+_at)` \| `int", page, re.MULTILINE))
    times = set(re.findall(r"^(\w+_at): (\w+)$", page, re.MULTILINE))

    assert numbers == {"published_at"}  # the number of a version
    assert times == {("created_at", "datetime"), ("authored_at", "datetime"), ("started_at", "datetime")}


@pytest.mark.case("surfaces", 651)
def test_what_was_exported_can_be_loaded_again(town: Graph) -> None:
    town.load(
        {"Person": [ANN, {"name": "bo"}], "Knows": [{"from": "ann", "to": "bo"}]}, "append", index=False
    )
    records: list[dict[str, Any]] = list(town.export())
    lines = b"".join(town.export().lines())

    town.load(records, "overwrite", index=False)

    assert records[0]["data"]["born"] == BORN
    assert list(town.export()) == records
    assert b"".join(town.export().lines()) == lines
    assert b'"seen":"2024-05-01T13:45:12.345Z"' in lines


def test_a_time_that_no_calendar_has_is_the_nearest() -> None:
    assert moment_of_micros(2**63 - 1).year == 9999
    assert moment_of_micros(-(2**63)) == datetime(1, 1, 1, tzinfo=UTC)
