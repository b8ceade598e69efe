"""The Spark session of the process, as a fixture."""

from typing import TYPE_CHECKING

import pytest

from tests.support.spark import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> "SparkSession":
    """A session on two cores."""
    return spark_session()
