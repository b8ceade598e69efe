"""One Spark session for all tests of a process."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from omnigraph.bulk.session import SparkSettings, close_session, open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = SparkSettings(
    "local[2]", options={"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "2"}
)


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """A session on two cores."""
    yield open_session(SETTINGS)
    close_session()
