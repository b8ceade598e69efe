"""`load`: many records, one commit.

Read `load.py` first. It chooses an engine: `local.py` reads and stages in this process; `spark.py` cuts the
inputs into slices, and `spark_run.py` takes them through the stages of one attempt. What runs inside tasks is
`omnigraph.bulk.load`.
"""
