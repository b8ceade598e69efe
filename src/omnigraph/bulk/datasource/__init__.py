"""Tables of a graph as a Spark data source: `spark.read` and `df.write`."""
