"""The one Spark session of a test process; `tests/spark/conftest.py` has it as a fixture."""

from typing import TYPE_CHECKING

from omnigraph.bulk.connect.session import SparkSettings, open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = SparkSettings(
    "local[2]", options={"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "2"}
)


def spark_session() -> "SparkSession":
    """Return the session, started when a test first asks for one; the end of the process closes it."""
    return open_session(SETTINGS)
