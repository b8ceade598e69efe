"""The nodes of one type as LlamaIndex's vector store."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from llama_index.core.schema import BaseNode, MetadataMode
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
    VectorStoreQueryResult,
)
from llama_index.core.vector_stores.utils import metadata_dict_to_node, node_to_metadata_dict
from pydantic import PrivateAttr

from omnigraph.agents.conditions import AllOf, PropertyTest, WantedNodes
from omnigraph.agents.llamaindex.filters import conditions_of
from omnigraph.agents.place import GraphPlace
from omnigraph.agents.texts import FoundText, TextNames, TextRanking, TextRow, Texts
from omnigraph.core.errors import UnsupportedError
from omnigraph.graph.arguments import given_names

if TYPE_CHECKING:
    from omnigraph.agents.place import AnyGraph

SOURCE = "ref_doc_id"  # the document that a node is a part of, which LlamaIndex deletes by

_RANKINGS: dict[VectorStoreQueryMode, TextRanking] = {
    VectorStoreQueryMode.DEFAULT: "vector",
    VectorStoreQueryMode.SPARSE: "text",
    VectorStoreQueryMode.TEXT_SEARCH: "text",
    VectorStoreQueryMode.HYBRID: "both",
    VectorStoreQueryMode.SEMANTIC_HYBRID: "both",
}


class OmnigraphNodeStore(BasePydanticVectorStore):
    """Nodes of LlamaIndex as nodes of a type, which is made with the first of them if the schema has none.

    `names` says which properties of an existing type hold what. Metadata that the type declares as properties
    is stored in them, and filters work on these. Adding is one commit, in which a node whose id is there
    replaces it. A similarity by vector is 1 − d²/2: the cosine, if vectors have length 1.
    """

    stores_text: bool = True
    _texts: Texts = PrivateAttr()

    def __init__(
        self, graph: "AnyGraph", *, names: TextNames | None = None, branch: str | None = None
    ) -> None:
        """Take the graph, in its storage or behind a server."""
        super().__init__(stores_text=True)
        self._texts = Texts(GraphPlace(graph, branch), names or TextNames(), {SOURCE: "String? @index"})

    @classmethod
    def class_name(cls) -> str:
        """Return the name that LlamaIndex writes into its documents."""
        return "OmnigraphNodeStore"

    @property
    def client(self) -> Any:  # noqa: ANN401 - the signature of LlamaIndex
        """The graph."""
        return self._texts.place.graph

    @property
    def texts(self) -> Texts:
        """The nodes as the graph has them."""
        return self._texts

    # Writing

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:  # noqa: ANN401, ARG002 - LlamaIndex's
        """Store nodes with their vectors as one commit, and return their ids."""
        rows = {node.node_id: _row(node) for node in nodes}
        self._texts.put(list(rows.values()))
        return [node.node_id for node in nodes]

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:  # noqa: ANN401, ARG002 - LlamaIndex's
        """Delete the nodes of a document as one commit."""
        self._delete(PropertyTest(SOURCE, "=", ref_doc_id))

    def delete_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **delete_kwargs: Any,  # noqa: ANN401, ARG002 - the signature of LlamaIndex
    ) -> None:
        """Delete nodes by their ids, by filters, or by both, as one commit; without either, none."""
        if node_ids is not None or filters is not None:
            self._delete(self._chosen(node_ids, filters))

    def clear(self) -> None:
        """Delete every node, as one commit."""
        self._texts.clear()

    def _delete(self, wanted: WantedNodes) -> None:
        self._texts.delete([found.key for found in self._texts.where(wanted)])

    # Reading

    def get_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """Return nodes by their ids, by filters, or by both; without either, all."""
        return [self.node_of(found) for found in self._texts.where(self._chosen(node_ids, filters))]

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:  # noqa: ANN401, ARG002
        """Return the best nodes: by vector, by words (`text_search`), or by both (`hybrid`).

        Raises:
            UnsupportedError: the mode is another one.
        """
        ranking = _RANKINGS.get(query.mode)
        if ranking is None:
            offered = ", ".join(mode.value for mode in _RANKINGS)
            raise UnsupportedError(f"the mode '{query.mode.value}' is not offered; use one of {offered}")
        wanted = self._chosen(
            query.node_ids or None, query.filters
        )  # an index without any sends an empty list
        if query.doc_ids:
            wanted = AllOf((wanted, PropertyTest(SOURCE, "in", given_names("doc_ids", query.doc_ids))))
        found = self._texts.search(
            ranking=ranking,
            count=query.similarity_top_k,
            vector=query.query_embedding,
            words=query.query_str,
            wanted=wanted,
        ).rows
        return VectorStoreQueryResult(
            nodes=[self.node_of(item) for item in found],
            similarities=[similarity(item, ranking) for item in found],
            ids=[item.key for item in found],
        )

    def node_of(self, found: FoundText) -> BaseNode:
        """Return a text that was found as the node that it was; its properties as they are now."""
        node = metadata_dict_to_node(found.metadata, text=found.text)
        node.metadata |= {name: found.metadata[name] for name in node.metadata if name in found.metadata}
        return node

    def _chosen(self, node_ids: list[str] | None, filters: MetadataFilters | None) -> WantedNodes:
        wanted, keys = conditions_of(filters), given_names("node_ids", node_ids)
        if keys is None:
            return wanted
        return AllOf((PropertyTest(self._texts.names.key, "in", keys), wanted))

    # The same, beside an event loop

    async def async_add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:  # noqa: ANN401
        """Do what `add` does, on a thread."""
        return await asyncio.to_thread(self.add, nodes, **kwargs)

    async def adelete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:  # noqa: ANN401
        """Do what `delete` does, on a thread."""
        await asyncio.to_thread(self.delete, ref_doc_id, **delete_kwargs)

    async def adelete_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **delete_kwargs: Any,  # noqa: ANN401
    ) -> None:
        """Do what `delete_nodes` does, on a thread."""
        await asyncio.to_thread(self.delete_nodes, node_ids, filters, **delete_kwargs)

    async def aclear(self) -> None:
        """Do what `clear` does, on a thread."""
        await asyncio.to_thread(self.clear)

    async def aget_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """Do what `get_nodes` does, on a thread."""
        return await asyncio.to_thread(self.get_nodes, node_ids, filters)

    async def aquery(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:  # noqa: ANN401
        """Do what `query` does, on a thread."""
        return await asyncio.to_thread(self.query, query, **kwargs)


def similarity(found: FoundText, ranking: TextRanking) -> float:
    """Return the score of a text, higher for better ones."""
    score = float(found.score or 0.0)
    return 1.0 - score * score / 2.0 if ranking == "vector" else score


def _row(node: BaseNode) -> TextRow:
    metadata = node_to_metadata_dict(node, remove_text=True)
    metadata[SOURCE] = node.ref_doc_id  # a text "None" where there is no document, in what LlamaIndex makes
    text = node.get_content(metadata_mode=MetadataMode.NONE)
    return TextRow(node.node_id, text, node.embedding, metadata)
