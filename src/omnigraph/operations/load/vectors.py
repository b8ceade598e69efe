"""The provider of a load that makes vectors, which is of the model that its tables record."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from omnigraph.bulk.connect.progress import ProgressCallback, ProgressEvent, Stage, told
from omnigraph.bulk.load.vectors import check_models
from omnigraph.catalog.model import Catalog
from omnigraph.embedding.config import EmbeddingConfig
from omnigraph.embedding.embedder import open_provider
from omnigraph.embedding.provider import Provider
from omnigraph.embedding.remembering import RememberingProvider
from omnigraph.operations.context import OpenGraph


@contextmanager
def vectors_of(
    graph: OpenGraph, catalog: Catalog, tables: Iterable[str], progress: ProgressCallback
) -> Iterator[Provider | None]:
    """Yield what makes the vectors of some tables in this process; nothing if no vector stands for a text.

    Raises:
        EmbeddingError: there is no such provider.
        EmbeddingModelMismatch: a property records another model.
    """
    done = 0

    def tell(vectors: int) -> None:
        nonlocal done
        done += vectors
        progress(ProgressEvent(Stage.EMBED, tasks_done=done, rows=done))

    config = checked_config(graph, catalog, tables)
    if config is None:
        yield None
        return
    provider = RememberingProvider(open_provider(config), told=tell)
    try:
        with told(progress, Stage.EMBED):
            yield provider
    finally:
        provider.close()


def checked_config(graph: OpenGraph, catalog: Catalog, tables: Iterable[str]) -> EmbeddingConfig | None:
    """Return the settings of the provider for some tables; nothing if no vector of them stands for a text.

    Raises:
        EmbeddingError: there is no such provider.
        EmbeddingModelMismatch: a property records another model.
    """
    config = graph.embedding or EmbeddingConfig.from_environment()
    provider = open_provider(config)
    try:
        return config if check_models(catalog, tables, provider.model) else None
    finally:
        provider.close()
