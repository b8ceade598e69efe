"""`Result`: the rows of a read as Arrow, and in every form that people and programs want."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from omnigraph.catalog.arrow_schema import with_moments
from omnigraph.core.errors import BadRequest
from omnigraph.graph.encode import json_rows, python_rows
from omnigraph.graph.extras import extra
from omnigraph.operations.query import QueryAnswer

if TYPE_CHECKING:
    import pandas as pd

HTML_ROWS_MAX = 50  # rows that a notebook shows; the count below says how many there are

Row = dict[str, object]
Wanted = TypeVar("Wanted")


class Result:
    """The answer to one read: an immutable table, and what it was read from.

    Iterating gives the rows as dictionaries of Python values. Column names may repeat; a dictionary then has
    the last of them, while `to_arrow()` has all.
    """

    __slots__ = ("_answer",)

    def __init__(self, answer: QueryAnswer) -> None:
        """Wrap the answer of a query."""
        table = with_moments(answer.table)
        self._answer = answer if table is answer.table else replace(answer, table=table)

    @property
    def query_name(self) -> str:
        """The name of the query."""
        return self._answer.query_name

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in the order of the projections."""
        return self._answer.table.column_names

    @property
    def row_count(self) -> int:
        """How many rows there are."""
        return self._answer.table.num_rows

    @property
    def target(self) -> Mapping[str, str | None]:
        """What was read: the newest state of a `branch`, or the commit of a `snapshot`."""
        target = self._answer.target
        return {"branch": target.branch, "snapshot": target.snapshot}

    @property
    def commit_id(self) -> str:
        """The graph commit that the rows were read from."""
        return self._answer.commit_id

    # Rows

    @property
    def rows(self) -> list[Row]:
        """The rows as dictionaries of Python values."""
        return list(self)

    def __iter__(self) -> Iterator[Row]:
        names = self.columns
        for row in python_rows(self._answer.table):
            yield dict(zip(names, row, strict=True))

    def __len__(self) -> int:
        return self.row_count

    def to_pylist(self) -> list[Row]:
        """Return the rows as dictionaries of Python values."""
        return self.rows

    def first(self) -> Row | None:
        """Return the first row, or None if there are no rows."""
        return next(iter(Result(self._sliced(1))), None)

    def one(self) -> Row:
        """Return the only row.

        Raises:
            BadRequest: there is no row, or more than one.
        """
        if self.row_count != 1:
            raise BadRequest(f"'{self.query_name}' gave {self.row_count} rows where exactly one was expected")
        return self.rows[0]

    def scalar(self) -> object:
        """Return the only value of the only row.

        Raises:
            BadRequest: there is not exactly one row, or not exactly one column.
        """
        if len(self.columns) != 1:
            raise BadRequest(f"'{self.query_name}' gave {len(self.columns)} columns where one was expected")
        self.one()
        return python_rows(self._answer.table)[0][0]

    def to(self, model: type[Wanted]) -> list[Wanted]:
        """Return the rows as instances of a pydantic model, dataclass, TypedDict or NamedTuple.

        A column goes to the field of its name or alias, `p.name` to `p_name`, and a lone whole entity to the
        fields of its properties. Models validate as their configuration says. For the others a text may
        become what it stands for, such as a UUID or an enum, and no number.

        Raises:
            BadRequest: a column has no field, a field has no column, or a value does not fit; the message
                names the column and the field.
        """
        from omnigraph.graph.instances import instances  # late: most results never become objects

        table = self._answer.table
        types = table.schema.types
        lone = types[0] if len(types) == 1 else None
        members = [field.name for field in lone.fields] if isinstance(lone, pa.StructType) else None
        return instances(model, self.columns, python_rows(table), members)

    # Other forms

    def to_arrow(self) -> pa.Table:
        """Return the table itself; nothing is copied. A `DateTime` is a timestamp in UTC."""
        return self._answer.table

    def to_batches(self, max_chunksize: int | None = None) -> list[pa.RecordBatch]:
        """Return the table in pieces."""
        return self._answer.table.to_batches(max_chunksize)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        table: Any = self._answer.table
        return table.__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> "pd.DataFrame":
        """Return a data frame; a `DateTime` becomes a timestamp in UTC.

        A column of integers or of `Bool` that has a null gets pandas' nullable dtype, `Int64` or `boolean`.
        Without a null it has the plain dtype, as does every other column.
        """
        return frame_of(self._answer.table)

    def to_polars(self) -> Any:  # noqa: ANN401 - polars is optional, and so are its types
        """Return a polars data frame.

        Raises:
            UnsupportedError: polars is not installed.
            BadRequest: two columns have the same name, which polars does not allow.
        """
        polars = extra("polars")
        repeated = sorted({name for name in self.columns if self.columns.count(name) > 1})
        if repeated:
            raise BadRequest(f"two columns are called '{repeated[0]}': give one an alias with 'as'")
        return polars.from_arrow(self._answer.table)

    def json_rows(self) -> list[list[object]]:
        """Return rows of JSON values, in the order of the columns."""
        return json_rows(self._answer.table)

    def to_json(self) -> dict[str, Any]:
        """Return the document with which every surface answers a read."""
        names = self.columns
        return {
            "query_name": self.query_name,
            "target": dict(self.target),
            "row_count": self.row_count,
            "columns": names,
            "rows": [dict(zip(names, row, strict=True)) for row in self.json_rows()],
            "graph_commit_id": self.commit_id,
        }

    def __repr__(self) -> str:
        return f"Result({self.query_name}: {self._counted} of {', '.join(self.columns)})"

    def _repr_html_(self) -> str:
        from omnigraph.core.markup import table as markup_table  # late: for people who look at one

        shown = Result(self._sliced(HTML_ROWS_MAX)).json_rows()
        more = f", the first {len(shown)} shown" if len(shown) < self.row_count else ""
        return markup_table(self.columns, shown, f"{self._counted}{more}")

    @property
    def _counted(self) -> str:
        return f"{self.row_count} {'row' if self.row_count == 1 else 'rows'}"

    def _sliced(self, count: int) -> QueryAnswer:
        answer = self._answer
        return QueryAnswer(answer.query_name, answer.table.slice(0, count), answer.target, answer.commit_id)


def frame_of(table: pa.Table) -> "pd.DataFrame":
    """Return a frame with the columns of a table, in their order; names may repeat.

    Integers and booleans with a null have a nullable dtype: Arrow's own conversion would turn the integers
    into floats, which are not exact from 2^53 on. Inside entities and lists, they are Python's.
    """
    import pandas as pd  # late: most results never become a frame

    nullable = {
        pa.bool_(): pd.BooleanDtype(),
        pa.int32(): pd.Int32Dtype(),
        pa.int64(): pd.Int64Dtype(),
        pa.uint32(): pd.UInt32Dtype(),
        pa.uint64(): pd.UInt64Dtype(),
    }
    frame = table.to_pandas(integer_object_nulls=True)
    for place, column in enumerate(table.columns):
        if column.null_count and column.type in nullable:
            frame.isetitem(place, column.to_pandas(types_mapper=nullable.get).array)
    return frame
