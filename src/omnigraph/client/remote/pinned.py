"""One state of a graph behind a server: its types, and the rows of each, whatever is committed meanwhile.

P1  All that is asked is of one commit. Who may read a branch but not the one on which its commit landed is
    given what the branch shows, for as long as that is the commit.
P2  What is in memory does not grow with a table: a batch is read when it is asked for.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.dataset as ds

from omnigraph.catalog.build import compile_schema
from omnigraph.catalog.model import Catalog, EdgeType, NodeType
from omnigraph.client.http import BrokenAnswer, Http, HttpReply, UrlParams
from omnigraph.client.remote.rows import batches_of, reader_of
from omnigraph.client.understood import understood
from omnigraph.core.access_errors import TransportError
from omnigraph.core.errors import PolicyDenied
from omnigraph.core.span import Source
from omnigraph.operations.scan import outside_schema
from omnigraph.storage.tables.arrow_dataset import BatchDataset
from omnigraph.wire.arrow_stream import COMMIT_ID
from omnigraph.wire.schema_responses import SchemaOutput


@dataclass(frozen=True, slots=True)
class RemotePin:
    """A commit, and the branch whose newest one it was, if that is how it was found."""

    http: Http = field(repr=False, compare=False)
    commit_id: str
    branch: str | None

    def catalog(self) -> tuple[Catalog, str]:
        """Return the types, and the branch that the state is of."""
        try:
            document = self.http.get("/schema", SchemaOutput, {"snapshot": self.commit_id})
        except PolicyDenied:
            if self.branch is None:
                raise
            document = self.http.get("/schema", SchemaOutput, {"branch": self.branch})  # P1
        with understood():
            branch = str(document["branch"]) if self.branch is None else self.branch
            return compile_schema(Source(str(document["schema_source"]))), branch

    @contextmanager
    def rows(self, type_name: str, columns: Sequence[str] | None) -> Iterator[HttpReply]:
        """Ask for the rows of a type, and yield the answer as it comes."""
        params: UrlParams = {"type": type_name, "column": columns}
        with ExitStack() as asked:
            try:
                answer = asked.enter_context(
                    self.http.stream("GET", "/table", params={**params, "snapshot": self.commit_id})
                )
            except PolicyDenied:
                if self.branch is None:
                    raise
                answer = asked.enter_context(
                    self.http.stream("GET", "/table", params={**params, "branch": self.branch})
                )
                if answer.headers.get(COMMIT_ID) != self.commit_id:  # P1
                    raise
            if answer.headers.get(COMMIT_ID) != self.commit_id:
                raise BrokenAnswer("it is of another commit than was asked for")
            yield answer


@dataclass(frozen=True, slots=True)
class RemoteTableRows:
    """The rows of a type at a snapshot, in the order of storage: iterate over batches.

    Each iteration asks anew.
    """

    _pin: RemotePin
    _type_name: str
    _columns: Sequence[str] | None = None

    @property
    def commit_id(self) -> str:
        """The commit that the rows are of."""
        return self._pin.commit_id

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield batches, with times as timestamps in UTC."""
        with self._pin.rows(self._type_name, self._columns) as answer, reader_of(answer) as reader:
            yield from batches_of(reader, answer)

    def to_arrow(self) -> pa.Table:
        """Return all rows as one table."""
        with self._pin.rows(self._type_name, self._columns) as answer, reader_of(answer) as reader:
            return pa.Table.from_batches(batches_of(reader, answer), reader.schema)


class RemoteDataset(BatchDataset):
    """The rows of a type as a dataset: a scan asks for the columns that it needs, and chooses rows here."""

    def __init__(self, pin: RemotePin, type_: NodeType | EdgeType) -> None:
        """Take the state and the type; nothing is asked yet."""
        super().__init__(outside_schema(type_))
        self._pin, self._type = pin, type_

    def _batches(self, columns: list[str], filter: ds.Expression | None) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 - Arrow applies it
        wanted = pa.schema([self.schema.field(name) for name in columns])
        for batch in RemoteTableRows(self._pin, self._type.table_key, columns):
            if not batch.schema.equals(wanted):
                raise TransportError(f"{self._pin.http.url} sent other columns of {self._type.name}")
            yield batch
