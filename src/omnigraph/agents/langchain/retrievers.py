"""Documents for a question: by meaning, by words, along edges, or with any query of the language."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, Field

from omnigraph.agents.conditions import wanted_of
from omnigraph.agents.following import ReachedNode, follow, lines_of, plain_properties
from omnigraph.agents.langchain.vector_store import OmnigraphVectorStore, document_of
from omnigraph.agents.parameters import row_limit
from omnigraph.agents.question import Question
from omnigraph.agents.texts import TextRanking, Texts


class OmnigraphRetriever(BaseRetriever):
    """The best documents of a store for a question, and the nodes that edges lead to from them.

    `ranking` is by `vector`, by the words of the `text`, or `both`, fused in one query. `follow` names edge
    types: up to `hops` hops along any of them, both ways, at most `reached_max` nodes, of the same commit.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    store: OmnigraphVectorStore
    k: int = 4
    ranking: TextRanking = "both"
    filter: dict[str, Any] | None = None
    follow: Sequence[str] = ()
    hops: int = 1
    reached_max: int = 20

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002
        k: int | None = None,
    ) -> list[Document]:
        texts = self.store.texts
        found = texts.search(
            ranking=self.ranking,
            count=self.k if k is None else k,
            vector=None if self.ranking == "text" else self.store.embeddings.embed_query(query),
            words=query,
            wanted=wanted_of(self.filter),
        )
        documents = [document_of(item) for item in found.rows]
        if not self.follow or found.commit_id is None:
            return documents
        reached = follow(
            texts.place,
            {texts.names.type_name: [item.key for item in found.rows]},
            self.follow,
            hops=self.hops,
            count=self.reached_max,
            at=found.commit_id,
        )
        return documents + [_reached_document(node, texts) for node in reached]


class OmnigraphQueryRetriever(BaseRetriever):
    """The rows of a query as documents: of a `.gq` text or file, or of a stored query by its name.

    `question` names the parameter that gets the question, `vector` the one that gets its vector. The column
    `content` is the text of a document, or else all columns as lines; the column `id` is its id. The
    others are metadata.
    The query is a read; it is asked of the newest commit, and its first `k` rows are taken.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    graph: Any
    source: str | Path | None = None
    name: str | None = None
    params: Mapping[str, Any] = Field(default_factory=dict)
    branch: str | None = None
    question: str | None = "question"
    vector: str | None = None
    embedding: Embeddings | None = None
    content: str | None = None
    id: str | None = None
    k: int | None = None

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002
        k: int | None = None,
    ) -> list[Document]:
        asked = Question(
            graph=self.graph,
            branch=self.branch,
            source=self.source,
            name=self.name,
            params=self.params,
            question=self.question,
            vector=self.vector,
            content=self.content,
            id=self.id,
        )
        embed = None if self.embedding is None else self.embedding.embed_query
        count = self.k if k is None else k
        rows = asked.rows(query, embed, None if count is None else row_limit("k", count))
        return [Document(id=row.id, page_content=row.content, metadata=row.metadata) for row in rows]


def _reached_document(node: ReachedNode, texts: Texts) -> Document:
    """Return a node that was reached: a text of the store, or another node as lines."""
    way = {"type": node.type.name, "hops": node.hops, "via": node.via}
    identity = str(node.data["id"])
    if node.type.name == texts.names.type_name:
        found = texts.of_entity(node.type, node.data)
        return Document(id=identity, page_content=found.text, metadata=found.metadata | way)
    return Document(
        id=identity,
        page_content=lines_of(node.data, node.type),
        metadata=plain_properties(node.data, node.type) | way,
    )
