"""Where an adapter reads and writes: one branch of one graph, in its storage or behind a server."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from omnigraph.agents.arguments import check_finite
from omnigraph.core.errors import BadRequest
from omnigraph.core.span import Source
from omnigraph.graph.arguments import required_text

if TYPE_CHECKING:
    from omnigraph.catalog.model import Catalog
    from omnigraph.client.remote.graph import RemoteGraph
    from omnigraph.graph.graph import Graph
    from omnigraph.graph.result import Result
    from omnigraph.operations.load.load import LoadMode, LoadResult

    AnyGraph = Graph | RemoteGraph

GraphRecord = dict[str, object]


@dataclass(frozen=True, slots=True)
class GraphPlace:
    """A branch of a graph; without a name, the one that the handle is bound to."""

    graph: "AnyGraph"
    branch: str | None = None

    @property
    def catalog(self) -> "Catalog":
        """The types of the branch."""
        return self.graph.catalog_on(self.branch)

    def read(self, text: str, params: Mapping[str, object], *, at: str | None = None) -> "Result":
        """Run a read on the newest state, or on that of a commit.

        Raises:
            BadRequest: it is no text, or does what a read must not.
        """
        branch = self.branch if at is None else None
        source = Source(required_text("query", text))  # a text alone may be the name of a file (A4)
        return self.graph.query(source, None, params, branch=branch, snapshot=at)

    def load(
        self, records: Iterable[GraphRecord], mode: "LoadMode" = "merge", *, index: bool = False
    ) -> "LoadResult":
        """Write records of NDJSON as one commit; both kinds of graphs take them as bytes.

        Raises:
            BadRequest: a value has no form in JSON, or is no number that a graph holds.
        """
        return self.graph.load(ndjson(records), mode, branch=self.branch, index=index)


def ndjson(records: Iterable[GraphRecord]) -> bytes:
    """Return records as lines of JSON.

    Raises:
        BadRequest: a value has no form in JSON, or is no number that a graph holds.
    """
    return b"\n".join(_line(record) for record in records)


def node_record(type_name: str, data: GraphRecord) -> GraphRecord:
    """Return the record of a node."""
    return {"type": type_name, "data": data}


def edge_record(type_name: str, source: str, target: str, data: GraphRecord) -> GraphRecord:
    """Return the record of an edge; `data` has its id."""
    return {"edge": type_name, "from": source, "to": target, "data": data}


def _line(record: GraphRecord) -> bytes:
    kind, data = record.get("type") or record.get("edge"), record.get("data", {})
    try:
        line = orjson.dumps(record, default=_plain, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_UTC_Z)
    except TypeError as error:
        raise BadRequest(f"a value of {kind} cannot be stored: {error}") from error
    assert isinstance(data, dict)
    for name, value in data.items():
        check_finite(f"{kind}.{name}", value)
    return line


def _plain(value: object) -> Any:  # noqa: ANN401 - what orjson can write
    """Return the items of a set or tuple-like value; orjson asks for what it cannot write itself."""
    if isinstance(value, set | frozenset):
        return sorted(value)
    raise TypeError(f"a {type(value).__name__} has no form in JSON")
