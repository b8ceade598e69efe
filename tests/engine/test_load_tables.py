"""Tables that are loaded from memory, and refused as a whole."""

import pyarrow as pa
import pytest

from omnigraph.core.errors import ValidationError
from omnigraph.graph.graph import Graph
from tests.support.engine import ids, ndjson, node


def test_a_table_with_a_wrong_column_does_not_empty_its_type(graph: Graph) -> None:
    graph.load(ndjson([node("Person", name="ann"), node("Company", name="acme")]), "append", index=False)
    tables = {"Person": pa.table({"name": ["bob"], "agee": [1]}), "Company": pa.table({"name": ["bravo"]})}

    with pytest.raises(ValidationError, match="no property 'agee'"):
        graph.load_tables(tables, "overwrite")
    result = graph.load_tables(tables, "overwrite", on_error="skip", index=False)

    assert result.tables == (("node:Company", 1),)
    assert (ids(graph, "Person"), ids(graph, "Company")) == (["ann"], ["bravo"])
