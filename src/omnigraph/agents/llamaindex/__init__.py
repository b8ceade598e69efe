"""LlamaIndex over a graph: a property graph store, a vector store, a retriever, and chats on a branch each.

Raises:
    UnsupportedError: llama-index-core is not installed, which the extra `omnigraph[llamaindex]` does.
"""

from omnigraph.graph.extras import extra

extra("llama_index.core", "llamaindex")  # before what imports it, so that the error says what to install

from omnigraph.agents.llamaindex.chat_store import OmnigraphChatStore as OmnigraphChatStore  # noqa: E402
from omnigraph.agents.llamaindex.property_graph import (  # noqa: E402
    OmnigraphPropertyGraphStore as OmnigraphPropertyGraphStore,
)
from omnigraph.agents.llamaindex.retriever import OmnigraphNodeRetriever as OmnigraphNodeRetriever  # noqa: E402
from omnigraph.agents.llamaindex.vector_store import OmnigraphNodeStore as OmnigraphNodeStore  # noqa: E402
from omnigraph.agents.texts import TextNames as TextNames  # noqa: E402
