"""`verify`: everything about a graph that can be checked without changing it.

Read `verify.py` first. `files.py` compares files with what commits recorded of them, `history.py` looks at
manifests, schema and pins, `rows.py` and `indexes.py` at what the tables hold, `unreferenced.py` at what is
left over. `report.py` has the values, and says of every kind of finding what it means and what mends it.
"""
