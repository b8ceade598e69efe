"""Rows of JSON values as an Arrow table of the types that the schema says: for a server without streams.

J1  A text that stands for a date, a moment, a large integer or a number that is none becomes that again.
"""

import math
from collections.abc import Mapping, Sequence

import pyarrow as pa

from omnigraph.catalog.arrow_schema import with_moments
from omnigraph.catalog.bind import bind, find_query
from omnigraph.catalog.bound import BoundRead
from omnigraph.catalog.model import Catalog
from omnigraph.client.access import QueryCall
from omnigraph.client.answer import Document
from omnigraph.client.remote.rows import check_times, result_of_document
from omnigraph.client.understood import understood
from omnigraph.core.errors import ExecutionError
from omnigraph.core.temporal import parse_date, parse_datetime
from omnigraph.exec.operators.operand import result_schema
from omnigraph.graph.result import Result
from omnigraph.language.query_parser import parse_queries

_NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def result_of_json(document: Document, call: QueryCall, catalog: Catalog) -> Result:
    """Return the rows of a document, with the types of the query's columns.

    Raises:
        TransportError: it is no answer to this query.
        SourceError: the query does not fit the schema, which has changed since.
    """
    bound = bind(find_query(parse_queries(call.source), call.name), catalog, call.source)
    assert isinstance(bound, BoundRead), "a server has answered it with rows"
    schema = result_schema(bound.projections, catalog)
    with understood():
        rows: Sequence[Document] = document["rows"]
        arrays = [
            pa.array([typed(row.get(field.name), field.type) for row in rows], field.type) for field in schema
        ]
        table = with_moments(pa.table(arrays, names=schema.names))
        for batch in table.to_batches():
            check_times(batch)
        return result_of_document(document, table)


def typed(value: object, type_: pa.DataType) -> object:
    """Return a JSON value as what an array of a type is made from (J1).

    Raises:
        TypeError, ValueError, LookupError: it is no value of this type.
    """
    match value:
        case None:
            return None
        case Mapping() if isinstance(type_, pa.StructType):
            return {field.name: typed(value.get(field.name), field.type) for field in type_}
        case list() if isinstance(type_, pa.ListType | pa.FixedSizeListType):
            return [typed(item, type_.value_type) for item in value]
        case str() if pa.types.is_date32(type_) or pa.types.is_date64(type_):
            try:
                return parse_date(value) if pa.types.is_date32(type_) else parse_datetime(value)
            except ExecutionError as error:
                raise ValueError(error.message) from error
        case str() if pa.types.is_integer(type_):
            return int(value)
        case str() if pa.types.is_floating(type_):
            return _NUMBERS[value]
        case Mapping() | list():
            raise TypeError("several values in place of one")
        case _:
            return value
