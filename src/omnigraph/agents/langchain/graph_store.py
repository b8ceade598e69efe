"""Knowledge that models found in texts, as nodes and edges with types of their own."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from langchain_core.documents import Document

from omnigraph.agents.place import GraphPlace
from omnigraph.agents.texts import TextNames
from omnigraph.agents.typed_graph import FoundGraph, put
from omnigraph.core.errors import BadRequest
from omnigraph.core.values import named

if TYPE_CHECKING:
    from omnigraph.agents.place import AnyGraph

MENTIONS = "Mentions"


class NodeLike(Protocol):
    """A node of a graph document."""

    id: Any
    type: str
    properties: dict[str, Any]


class RelationshipLike(Protocol):
    """A relationship of a graph document."""

    source: Any
    target: Any
    type: str
    properties: dict[str, Any]


class GraphDocumentLike(Protocol):
    """What a model found in one document: the shape that LangChain's graph transformers give."""

    nodes: Any
    relationships: Any
    source: Any


class OmnigraphGraphStore:
    """Nodes and relationships of graph documents, and the schema as models like to read it.

    A label is a type: `WORKS_AT` becomes `WorksAt`. Types and properties that are missing are added to the
    schema; what is there is kept. With `include_source`, the document becomes a node of the type that `names`
    says, as a vector store made it, with an edge to each node that it mentions.
    """

    def __init__(
        self, graph: "AnyGraph", *, names: TextNames | None = None, branch: str | None = None
    ) -> None:
        """Take the graph, in its storage or behind a server."""
        self._place = GraphPlace(graph, branch)
        self._names = names or TextNames()

    # Writing

    def add_graph_documents(
        self, graph_documents: Iterable[GraphDocumentLike], include_source: bool = False
    ) -> None:
        """Write graph documents as one commit, after one that adds what the schema lacks.

        Raises:
            BadRequest: a label or a value cannot be stored, two properties would get one name, or the type of
                the sources is not there; nothing is written.
        """
        found = FoundGraph()
        for document in graph_documents:
            if not (hasattr(document, "nodes") and hasattr(document, "relationships")):
                raise BadRequest(
                    f"a graph document has nodes and relationships, and {named(document)} has not"
                )
            mentioned = [found.node(node.type, node.id, node.properties) for node in document.nodes]
            for relation in document.relationships:
                ends = [
                    found.node(end.type, end.id, end.properties) for end in (relation.source, relation.target)
                ]
                mentioned += ends
                found.relation(ends[0], relation.type, ends[1], relation.properties)
            if include_source:
                source = self._source(found, document.source)
                for name in dict.fromkeys(mentioned):
                    found.relation(source, MENTIONS, name, {})
        put(self._place, found)

    def _source(self, found: FoundGraph, document: Document) -> tuple[str, str]:
        """Take a document as a node; its text is that of the type of the vector store."""
        names = self._names
        if names.type_name not in self._place.catalog.nodes:
            raise BadRequest(
                f"there is no type {names.type_name} for sources: add them to a vector store first"
            )
        if not document.id:
            raise BadRequest("a source needs an id, so that it is the same node each time: Document(id=...)")
        return found.node(names.type_name, document.id, {names.text: document.page_content})

    # Reading

    def query(self, query: str, params: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """Return the rows of a read, given as the text of `.gq`, never as a file; a mutation is refused."""
        return self._place.read(query, params or {}).rows

    @property
    def get_schema(self) -> str:
        """The schema, as its authors wrote it."""
        return self._place.graph.schema(branch=self._place.branch)

    @property
    def get_structured_schema(self) -> dict[str, Any]:
        """The types as dicts: properties of nodes and of edges, and which edge leads from where to where."""
        catalog = self._place.catalog

        def listed(types: Mapping[str, Any]) -> dict[str, list[dict[str, str]]]:
            return {
                name: [{"property": item.name, "type": str(item.type)} for item in type_.properties.values()]
                for name, type_ in types.items()
            }

        return {
            "node_props": listed(catalog.nodes),
            "rel_props": listed(catalog.edges),
            "relationships": [
                {"start": edge.source, "type": edge.name, "end": edge.target}
                for edge in catalog.edges.values()
            ],
        }

    def refresh_schema(self) -> None:
        """Do nothing: the schema is read whenever it is asked for."""
