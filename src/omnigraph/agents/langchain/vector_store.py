"""The nodes of one type as LangChain's vector store."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from langchain_core.vectorstores.utils import maximal_marginal_relevance

from omnigraph.agents.arguments import listed_ids, listed_texts
from omnigraph.agents.conditions import wanted_of
from omnigraph.agents.parameters import row_limit
from omnigraph.agents.place import GraphPlace
from omnigraph.agents.texts import FoundText, TextNames, TextRow, Texts
from omnigraph.core.errors import BadRequest
from omnigraph.core.ids import UlidSource

if TYPE_CHECKING:
    from omnigraph.agents.place import AnyGraph

_new_id = UlidSource()


class OmnigraphVectorStore(VectorStore):
    """Documents as nodes of a type, which is made with the first document if the schema has none.

    `names` says which properties of an existing type hold what. Metadata that the type declares as properties
    is stored in them, and `filter` works on these; the rest is kept as JSON. Adding is one commit, in which a
    document whose id is there replaces it. Scores are Euclidean distances: smaller is closer.
    """

    def __init__(
        self,
        graph: "AnyGraph",
        embedding: Embeddings,
        *,
        names: TextNames | None = None,
        branch: str | None = None,
    ) -> None:
        """Take the graph, in its storage or behind a server, and what makes vectors of texts."""
        self._embedding = embedding
        self.texts = Texts(GraphPlace(graph, branch), names or TextNames())

    @property
    def embeddings(self) -> Embeddings:
        """What makes vectors of texts."""
        return self._embedding

    # Writing

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,  # noqa: ANN401, ARG002 - the signature of LangChain
    ) -> list[str]:
        """Store texts as one commit and return their ids; where none is given, one is made.

        Raises:
            BadRequest: there are not as many ids or metadata as texts, or they are no lists of texts.
        """
        listed = listed_texts("texts", texts)
        given_ids = None if ids is None else listed_ids("ids", ids)
        for name, given in (("metadatas", metadatas), ("ids", given_ids)):
            if given is not None and len(given) != len(listed):
                raise BadRequest(f"there are {len(listed)} texts and {len(given)} {name}")
        keys = [key or _new_id() for key in (given_ids or [None] * len(listed))]
        vectors = self._embedding.embed_documents(listed) if listed else []
        given_metadata = metadatas or [{} for _ in listed]
        self._put(keys, listed, vectors, given_metadata)
        return keys

    def add_documents(self, documents: list[Document], **kwargs: Any) -> list[str]:  # noqa: ANN401 - LangChain's
        """Store documents as one commit and return their ids: given ones, those of documents, or new ones."""
        ids = kwargs.pop("ids", None) or [document.id for document in documents]
        return self.add_texts(
            [document.page_content for document in documents],
            [document.metadata for document in documents],
            ids=ids,
            **kwargs,
        )

    def _put(
        self,
        keys: Sequence[str],
        texts: Sequence[str],
        vectors: Sequence[Sequence[float]],
        metadatas: Sequence[dict[str, Any]],
    ) -> None:
        # The last of two documents with one id wins, as if they had been added one after the other.
        rows = {
            key: TextRow(key, text, vector, metadata)
            for key, text, vector, metadata in zip(keys, texts, vectors, metadatas, strict=True)
        }
        self.texts.put(list(rows.values()))

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool | None:  # noqa: ANN401, ARG002 - LangChain's
        """Delete documents as one commit, and every edge that touches them; unknown ids do no harm.

        Raises:
            BadRequest: no list of ids is given: everything is never deleted by leaving something out.
        """
        if ids is None:
            raise BadRequest("delete needs ids: a list of those of the documents to delete")
        self.texts.delete(listed_texts("ids", ids))
        return True

    # Reading

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return the documents of these ids that are there, in the order of the ids.

        Raises:
            BadRequest: it is no list of ids.
        """
        return [document_of(found) for found in self.texts.get(listed_texts("ids", ids))]

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:  # noqa: ANN401
        """Return the `k` closest documents, closest first; `filter` applies before they are ranked."""
        return self.similarity_search_by_vector(self._embedding.embed_query(query), k, **kwargs)

    def similarity_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        **kwargs: Any,  # noqa: ANN401
    ) -> list[Document]:
        """Return the `k` documents closest to a vector."""
        return [
            document for document, _ in self.similarity_search_with_score_by_vector(embedding, k, **kwargs)
        ]

    def similarity_search_with_score(
        self,
        query: str,
        k: int = 4,
        **kwargs: Any,  # noqa: ANN401
    ) -> list[tuple[Document, float]]:
        """Return the `k` closest documents, each with its Euclidean distance."""
        return self.similarity_search_with_score_by_vector(self._embedding.embed_query(query), k, **kwargs)

    def similarity_search_with_score_by_vector(
        self, embedding: list[float], k: int = 4, *, filter: dict[str, Any] | None = None
    ) -> list[tuple[Document, float]]:
        """Return the `k` documents closest to a vector, each with its Euclidean distance."""
        found = self.texts.search(ranking="vector", count=k, vector=embedding, wanted=wanted_of(filter))
        return [(document_of(item), float(item.score or 0.0)) for item in found.rows]

    def max_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        **kwargs: Any,  # noqa: ANN401
    ) -> list[Document]:
        """Return `k` of the `fetch_k` closest documents that are unlike each other as well."""
        vector = self._embedding.embed_query(query)
        return self.max_marginal_relevance_search_by_vector(vector, k, fetch_k, lambda_mult, **kwargs)

    def max_marginal_relevance_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        **kwargs: Any,  # noqa: ANN401
    ) -> list[Document]:
        """Return `k` of the `fetch_k` documents closest to a vector that are unlike each other as well."""
        row_limit("k", k)
        found = self.texts.search(
            ranking="vector",
            count=fetch_k,
            vector=embedding,
            wanted=wanted_of(kwargs.get("filter")),
            with_vectors=True,
        ).rows
        vectors = [item.vector for item in found if item.vector is not None]
        chosen = maximal_marginal_relevance(np.array(embedding), vectors, lambda_mult=lambda_mult, k=k)
        return [document_of(found[place]) for place in chosen]

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return self._euclidean_relevance_score_fn

    # Making one

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        graph: "AnyGraph | None" = None,
        names: TextNames | None = None,
        branch: str | None = None,
        **kwargs: Any,  # noqa: ANN401 - the signature of LangChain
    ) -> Self:
        """Return a store after texts were added to it.

        Raises:
            BadRequest: no graph is given.
        """
        if graph is None:
            raise BadRequest("a store needs a graph: from_texts(..., graph=omnigraph.open(...))")
        store = cls(graph, embedding, names=names, branch=branch)
        store.add_texts(texts, metadatas, ids=ids, **kwargs)
        return store


def document_of(found: FoundText) -> Document:
    """Return a text that was found as a document."""
    return Document(id=found.key, page_content=found.text, metadata=found.metadata)
