"""Nodes for a question: by meaning, by words, along edges."""

import asyncio
from collections.abc import Sequence

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.vector_stores.types import MetadataFilters

from omnigraph.agents.following import ReachedNode, follow, lines_of, plain_properties
from omnigraph.agents.llamaindex.filters import conditions_of
from omnigraph.agents.llamaindex.vector_store import OmnigraphNodeStore, similarity
from omnigraph.agents.texts import TextRanking


class OmnigraphNodeRetriever(BaseRetriever):
    """The best nodes of a store for a question, and those that edges lead to from them, which have no score.

    `ranking` is by `vector`, by the words of the `text`, or `both`, fused in one query. `follow` names edge
    types: up to `hops` hops along any of them, both ways, at most `reached_max` nodes, of the same commit.
    """

    def __init__(
        self,
        store: OmnigraphNodeStore,
        embed_model: BaseEmbedding | None = None,
        *,
        similarity_top_k: int = 4,
        ranking: TextRanking = "both",
        filters: MetadataFilters | None = None,
        follow: Sequence[str] = (),
        hops: int = 1,
        reached_max: int = 20,
    ) -> None:
        """Take the store, and what makes vectors of questions: not needed for a ranking by words alone."""
        super().__init__()
        self._store, self._embed_model, self._count = store, embed_model, similarity_top_k
        self._ranking, self._wanted = ranking, conditions_of(filters)
        self._follow, self._hops, self._reached_max = follow, hops, reached_max

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        texts = self._store.texts
        found = texts.search(
            ranking=self._ranking,
            count=self._count,
            vector=None if self._ranking == "text" else self._vector(query_bundle),
            words=query_bundle.query_str,
            wanted=self._wanted,
        )
        nodes = [
            NodeWithScore(node=self._store.node_of(item), score=similarity(item, self._ranking))
            for item in found.rows
        ]
        if not self._follow or found.commit_id is None:
            return nodes
        starts = {texts.names.type_name: [item.key for item in found.rows]}
        reached = follow(
            texts.place, starts, self._follow, hops=self._hops, count=self._reached_max, at=found.commit_id
        )
        return nodes + [NodeWithScore(node=self._reached(node)) for node in reached]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)

    def _vector(self, query_bundle: QueryBundle) -> list[float] | None:
        if query_bundle.embedding is None and self._embed_model is not None:
            return self._embed_model.get_agg_embedding_from_queries(query_bundle.embedding_strs)
        return query_bundle.embedding

    def _reached(self, node: ReachedNode) -> TextNode:
        """Return a node that was reached: a text of the store, or another node as lines."""
        way = {"type": node.type.name, "hops": node.hops, "via": node.via}
        texts = self._store.texts
        if node.type.name == texts.names.type_name:
            stored = self._store.node_of(texts.of_entity(node.type, node.data))
            stored.metadata |= way
            assert isinstance(stored, TextNode)
            return stored
        metadata = plain_properties(node.data, node.type) | way
        return TextNode(id_=str(node.data["id"]), text=lines_of(node.data, node.type), metadata=metadata)
