"""Spark Connect: the same load, and the data source, through a server in another process."""

import json
from pathlib import Path

import pytest

from tests.spark.cluster.daemons import connect_server
from tests.spark.cluster.friends import make_friends
from tests.support.commands import python

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

READ = """
import json, sys, warnings
warnings.simplefilter("ignore")
from pyspark.sql import SparkSession
from omnigraph.spark import register
remote, uri = sys.argv[1:]
spark = SparkSession.builder.remote(remote).getOrCreate()
register(spark)
edges = spark.read.format("omnigraph").option("uri", uri).option("type", "Knows").load()
few = edges.where("weight < 10").select("weight").orderBy("weight")
print(json.dumps([edges.count(), [row.weight for row in few.collect()]]))
spark.stop()
"""


def test_a_load_and_a_read_go_through_a_connect_server(tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="Spark's client for Connect is not installed")
    friends = make_friends(tmp_path, people=2_000, edges=400_000, files=2)
    with connect_server(tmp_path / "server") as address:
        status, shown, told = friends.load({}, "--quiet", "--master", address)
        assert status == 0, told
        assert "loaded 402000 rows" in shown.replace(",", "")
        friends.assert_loaded_once()

        read = python("-c", READ, address, friends.root, cwd=tmp_path)

    assert read.code == 0, read.stderr
    assert json.loads(read.stdout) == [friends.edges, list(range(10))]
