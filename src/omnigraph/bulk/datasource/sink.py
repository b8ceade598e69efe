"""A DataFrame into one table of a graph, by `df.write.format("omnigraph")`: one commit, or none.

W1  Tasks write their rows to files that belong to no table. The rows of a task count when all tasks have
    succeeded, and then once, however often it ran.
W2  The files are gone when the write ends, successfully or not.

Rows are validated and published in one process: for nodes and edges together, or more rows than fit in
memory, there is `omnigraph.spark.load_dataframe`.
"""

import uuid
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from omnigraph.bulk.files import open_output, remove_folder
from omnigraph.core.errors import BadRequest

LOAD_MODES = ("append", "merge", "overwrite")
_TRUTH = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The options of a write, checked."""

    uri: str
    table: str
    mode: str
    branch: str | None
    actor: str | None
    message: str | None
    index: bool
    policy: str | None = None


@dataclass
class WrittenPart(WriterCommitMessage):
    """The file of one task that succeeded."""

    number: int
    path: str


class TableWriter(DataSourceArrowWriter):
    """Writes the rows of a frame; a subclass says with `load` how they get into a graph."""

    def __init__(self, options: WriteOptions, schema: StructType, folder: str) -> None:
        """Take the options, the columns of the frame, and a folder that every executor sees."""
        self.options, self._schema, self._folder = options, schema, folder

    @abstractmethod
    def load(self, parts: Sequence[WrittenPart]) -> None:
        """Load the files of all tasks as one commit."""

    def write(  # type: ignore[override]  # Spark's own Arrow writer takes batches in place of rows
        self, iterator: Iterator[pa.RecordBatch]
    ) -> WriterCommitMessage:
        """Write the rows of one task to a file of this attempt (W1)."""
        context = TaskContext.get()
        number = 0 if context is None else context.partitionId()
        path = f"{self._folder}/{number}-{uuid.uuid4().hex}.arrow"
        schema = to_arrow_schema(self._schema, timezone="UTC")
        with open_output(path) as file, pa.ipc.new_file(file, schema) as writer:
            for batch in iterator:
                writer.write_table(pa.Table.from_batches([batch]).cast(schema))
        return WrittenPart(number, path)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Load the rows of all tasks, in the order of the frame's partitions (W1, W2)."""
        try:
            parts = [cast("WrittenPart", message) for message in messages if message is not None]
            self.load(sorted(parts, key=lambda part: part.number))
        finally:
            self._remove()

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:  # noqa: ARG002 - all go, named or not
        """Remove what the tasks wrote (W2)."""
        self._remove()

    def _remove(self) -> None:
        remove_folder(self._folder)


def write_options(given: Mapping[str, str], *, is_overwrite: bool) -> WriteOptions:
    """Return the options of a write; Spark's own mode overwrite takes precedence over the option `loadMode`.

    Raises:
        BadRequest: a mode or a truth value is invalid.
    """
    options = {name.lower(): value for name, value in given.items()}
    mode = "overwrite" if is_overwrite else options.get("loadmode", "append")
    if mode not in LOAD_MODES:
        raise BadRequest(f"the option 'loadMode' must be one of {', '.join(LOAD_MODES)}, not {mode!r}")
    index = options.get("index", "true").lower()
    if index not in _TRUTH:
        raise BadRequest(f"the option 'index' must be true or false, not {index!r}")
    return WriteOptions(
        uri=options["uri"],
        table=options.get("type") or options["table_key"],
        mode=mode,
        branch=options.get("branch"),
        actor=options.get("actor"),
        message=options.get("message"),
        index=_TRUTH[index],
        policy=options.get("policy"),
    )
