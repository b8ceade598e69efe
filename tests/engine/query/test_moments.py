"""A `DateTime` is the same instant on every surface, and a `Date` never loses a time of day in silence."""

import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph import ParameterError, ValidationError
from omnigraph.operations.engine import Engine
from tests.support.spark import spark_session

SCHEMA = """\
node Call {
    code: String @key
    at: DateTime
    tries: [DateTime]?
    day: Date?
}

edge Follows: Call -> Call {
    since: DateTime?
}
"""
AT = datetime(2024, 5, 1, 13, 45, 12, 345_000, tzinfo=UTC)
TRIES = [AT - timedelta(hours=1), AT]
RECORD = b"""\
{"type": "Call", "data": {"code": "c1", "at": "2024-05-01T13:45:12.345Z", \
"tries": ["2024-05-01T12:45:12.345Z", "2024-05-01T13:45:12.345Z"], "day": "2024-05-01"}}
{"edge": "Follows", "from": "c1", "to": "c1", "data": {"id": "f1", "since": "2024-05-01T13:45:12.345Z"}}
"""
MOMENT = pa.timestamp("ms", "UTC")
READ = "query q() { match { $c: Call } return { $c.at, $c.tries, $c } }"
FIND = (
    "query q($at: DateTime, $day: Date) { match { $c: Call  $c.at = $at  $c.day = $day } return { $c.code } }"
)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> omnigraph.Graph:
    """A graph with one call."""
    made = omnigraph.init(tmp_path_factory.mktemp("calls") / "g.omni", SCHEMA, durability="process")
    made.load(RECORD, "append", index=False)
    return made


def again(graph: omnigraph.Graph, table: object, tmp_path: Path) -> dict[str, Any]:
    """Return the call of a table that was loaded into another graph."""
    other = omnigraph.init(tmp_path / "again.omni", SCHEMA, durability="process")
    other.load_tables({"Call": table}, "append", index=False)
    return other.entity_at("Call", "c1")


@pytest.mark.case("surfaces", 232)
def test_tables_have_timestamps_in_utc(graph: omnigraph.Graph, tmp_path: Path) -> None:
    table = graph.table("Call")

    assert table.schema.field("at").type == MOMENT
    assert table.schema.field("tries").type.value_type == MOMENT
    assert table.to_pylist()[0]["at"] == AT
    assert table.to_pylist()[0]["tries"] == TRIES
    assert table.to_pandas()["at"][0].to_pydatetime() == AT
    assert graph.table("Follows").to_pylist()[0]["since"] == AT
    assert again(graph, table, tmp_path) == graph.entity_at("Call", "c1")


@pytest.mark.case("surfaces", 232)
def test_an_entity_has_its_time_of_day(graph: omnigraph.Graph) -> None:
    assert graph.entity_at("Call", "c1") == {
        "id": "c1",
        "code": "c1",
        "at": AT,
        "tries": TRIES,
        "day": date(2024, 5, 1),
    }


@pytest.mark.case("surfaces", 232)
def test_results_have_timestamps_in_utc(graph: omnigraph.Graph) -> None:
    result = graph.query(READ)

    arrow = result.to_arrow()
    assert arrow.schema.field(0).type == MOMENT
    assert arrow.schema.field(1).type.value_type == MOMENT
    assert arrow.schema.field(2).type.field("at").type == MOMENT
    for row in (*result.to_pylist(), *arrow.to_pylist(), *pa.table(result).to_pylist()):
        assert (row["c.at"], row["c.tries"], row["c"]["at"], row["c"]["tries"]) == (AT, TRIES, AT, TRIES)
    assert result.to_pandas()["c.at"][0].to_pydatetime() == AT
    assert result.to_json()["rows"][0]["c"]["at"] == "2024-05-01T13:45:12.345Z"


@pytest.mark.case("surfaces", 232)
def test_polars_gets_moments(graph: omnigraph.Graph) -> None:
    pytest.importorskip("polars")

    assert graph.query(READ).to_polars()["c.at"][0] == AT


@pytest.mark.case("surfaces", 232)
@pytest.mark.parametrize("form", ["pandas", "pylist", "parquet"])
def test_what_is_given_is_taken_back(form: str, graph: omnigraph.Graph, tmp_path: Path) -> None:
    table = graph.table("Call")
    if form == "pandas":
        given: object = table.to_pandas()
    elif form == "pylist":
        given = pa.Table.from_pylist(table.to_pylist())
    else:
        graph.export(types=["Call"]).to_folder(tmp_path / "out", omnigraph_parquet())
        given = pq.read_table(tmp_path / "out" / "Call.parquet")
        assert given.schema.field("at").type == MOMENT

    assert again(graph, given, tmp_path) == graph.entity_at("Call", "c1")


def omnigraph_parquet() -> Any:  # noqa: ANN401 - a member of an enumeration
    """Return the format of an export."""
    from omnigraph.bulk.export.files import ExportFormat

    return ExportFormat.PARQUET


@pytest.mark.case("surfaces", 232)
def test_batches_of_an_export_have_timestamps(graph: omnigraph.Graph) -> None:
    (batch,) = graph.export().batches(graph.catalog.nodes["Call"])

    assert batch.to_pylist()[0]["at"] == AT


@pytest.mark.case("surfaces", 232)
def test_moments_of_python_are_parameters(graph: omnigraph.Graph) -> None:
    found = graph.query(FIND, params={"at": AT, "day": date(2024, 5, 1)})

    assert found.scalar() == "c1"


@pytest.mark.case("surfaces", 233)
@pytest.mark.parametrize("day", [AT, "2024-05-01T13:45:12Z", "2024-05-01T00:00:00+02:00"])
def test_a_time_of_day_is_no_date_as_a_parameter(day: object, graph: omnigraph.Graph) -> None:
    with pytest.raises(ParameterError, match=r"param 'day': invalid Date .* a Date has no time of day"):
        graph.query(FIND, params={"at": AT, "day": day})

    assert graph.query(FIND, params={"at": AT, "day": "2024-05-01T00:00:00Z"}).scalar() == "c1"


@pytest.mark.case("surfaces", 233)
@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=pytest.mark.slow)])
def test_a_time_of_day_is_no_date_in_a_load(engine: Engine, tmp_path: Path) -> None:
    if engine == "spark":
        spark_session()
    midnight = datetime(2024, 5, 1, tzinfo=UTC)
    graph = omnigraph.init(tmp_path / "g.omni", SCHEMA, durability="process")
    days = pa.array([midnight, AT, None], pa.timestamp("us", "UTC"))
    table = pa.table({"code": ["a", "b", "c"], "at": [AT] * 3, "day": days})
    line = b'{"type": "Call", "data": {"code": "d", "at": 0, "day": "2024-05-01T10:00:00Z"}}'

    for given in ({"Call": table}, line):
        with pytest.raises(ValidationError, match=r"Call.day: invalid Date .* a Date has no time of day"):
            graph.load(given, "append", engine=engine)

    result = graph.load({"Call": table}, "append", engine=engine, on_error="skip", index=False)
    assert result.rejected_rows == 1
    assert graph.table("Call")["day"].to_pylist() == [date(2024, 5, 1), None]


@pytest.mark.slow
@pytest.mark.case("surfaces", 232)
def test_spark_reads_the_same_instant(graph: omnigraph.Graph) -> None:
    import omnigraph.spark as source

    spark = spark_session()
    source.register(spark)

    frame = spark.read.format("omnigraph").option("uri", graph.uri).option("type", "Call").load()

    (row,) = frame.selectExpr(
        "unix_millis(at) as at", "transform(tries, t -> unix_millis(t)) as tries"
    ).collect()
    assert row["at"] == int(AT.timestamp() * 1_000)
    assert row["tries"] == [int(moment.timestamp() * 1_000) for moment in TRIES]


@pytest.mark.slow
@pytest.mark.case("surfaces", 686)
def test_rows_that_spark_collects_have_its_own_naive_times(
    graph: omnigraph.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    import omnigraph.spark as source

    spark = spark_session()
    source.register(spark)
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    before = str(spark.conf.get("spark.sql.session.timeZone"))
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        frame = spark.read.format("omnigraph").option("uri", graph.uri).option("type", "Call").load()
        (row,) = frame.select("at").collect()
        (shown,) = frame.select("at").toPandas()["at"]
        (instant,) = frame.select("at").toArrow()["at"].to_pylist()
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
        monkeypatch.undo()
        time.tzset()

    assert row["at"].tzinfo is None
    assert row["at"].replace(tzinfo=ZoneInfo("America/New_York")) == AT
    assert shown.tzinfo is None
    assert shown.to_pydatetime().replace(tzinfo=ZoneInfo("Asia/Tokyo")) == AT
    assert isinstance(instant, datetime)
    assert (instant.tzinfo is not None, instant) == (True, AT)
